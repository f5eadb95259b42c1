"""`ol`, the student's command: their files on their machine, their course tree, and the service where they hand in.

places   where the course tree and the student's files are
stubs    a contract -> the file to begin with
trials   the student's files -> what the course tests, or a whole grading, say here, in processes of this machine
account  the service's address and token, kept for this user alone
service  what is asked of the service over HTTP
screen   what is printed, for people or as JSON
stops    why a command ends, each with its exit status
cli      the commands
"""
