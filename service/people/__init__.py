"""People: who they are, how they sign in, and the part each has in a course.

users, members         who somebody is; the part each has in which course
passwords, sign_in     a password -> its hash; a login and a password -> the person, or a miss that is counted
sessions, visitors     a session by its cookie; a request -> who is signed in
invitations, inviting  links with which a password is set; who may hand them over
roster                 a class list as CSV -> what it changes, and then that it is done
mint                   tokens made, listed and revoked
routes                 all this as JSON
pages, courses, class_pages, token_pages, admin_pages   the same for people; forms, the fields of their forms
routers                all pages of this package, for the application
wording                every sentence of this package that a person reads
"""
