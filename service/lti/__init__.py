"""A learning platform's messages (LTI 1.3 Advantage) go in; people with a session, courses with their members, and
scores that a platform took come out.

keys           the keys we sign with, and the set in which platforms look them up
platforms      which platforms are registered, and which of their deployments are let in
registering    a platform that introduces itself (dynamic registration)
logins         a login a platform begins: state, nonce and the browser it was begun in
messages       a launch message, verified -> `Launch`
roles          what a platform calls a person -> our role
placements     a platform's course and its links -> our course, unit, line item
people         who launches -> a user and a member of the course
deep_linking   units a teacher picks -> the signed answer the platform waits for
speaking       tokens and requests to a platform
memberships    a platform's list of a course's people -> members
ags            one score -> what the platform said
routes         the paths that platforms and browsers ask; admin, the pages and JSON of administrators
wording        every sentence of this package that a person reads
"""
