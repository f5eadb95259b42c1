"""The course's files: what is in use, what somebody would like to use instead, and when that was.

loads   two courses -> what differs; which files were taken into use when
trees   uploaded files -> versions beside what is in use; which of them is in use -> the course that a process grades by
heeding a web process -> it answers by what another process has taken into use
routes  the same over HTTP: read again, look, propose, publish, delete
pages   the same for people
wording every sentence of this package that a person reads
"""
