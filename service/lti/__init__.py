"""A learning platform's messages (LTI 1.3 Advantage) go in; people with a session, courses with their members, and
scores that a platform took come out.

routes         the paths that platforms and browsers ask
api, pages     what administrators and teachers decide, as JSON and on pages; answers, its models
keys           the keys we sign with, and the set in which platforms look them up
platforms      which platforms are registered, and which of their deployments are let in
invitations    a code handed out once -> that whoever brings it was invited
registering    a platform that introduces itself (dynamic registration)
logins         a login a platform begins: state, nonce and the browser it was begun in
messages       a launch message, verified -> `Launch`
roles          what a platform calls a person -> our role
placements     a platform's course and its links -> our course, unit, line item
tickets        a launch that waits for a teacher's choice
people         who launches -> a user and a member of the course
deep_linking   units a teacher picks -> the signed answer the platform waits for
speaking       tokens and requests to a platform
memberships    a platform's list of a course's people -> records of them
syncing        these -> members of our course, and a grade column where there is none
ags            one score -> what the platform said
frames         which platforms may show our pages in a frame
wording        every sentence of this package that a person reads
"""
