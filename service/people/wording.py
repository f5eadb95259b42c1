"""Every sentence about people, sessions, courses and tokens: values go in, text that says what to do next comes out."""

from collections.abc import Sequence

from service.people.passwords import LEAST_CHARS, MOST_CHARS

CSRF_MISSING = (
    "This form is from an older page, or not from a page of this service. Load the page again and repeat what you did."
)
GRADER_CHANGES_NOTHING = "Graders see everything of a class and change nothing. Ask a teacher of the course."
SIGN_IN_WRONG = (
    "This login and password do not go together. Check both; a teacher can give you a link to set a new password."
)
SIGN_IN_BUSY = "Too many people sign in at this moment. Try again in a few seconds."
SIGNED_OUT = "You are signed out."
LINK_DEAD = (
    "This link does not work: it was used already, is too old, or a newer one was made. Ask whoever gave it to you "
    "for another."
)
PASSWORD_WEAK = (
    f"Choose a password of {LEAST_CHARS} to {MOST_CHARS} characters that is neither your login nor one character again "
    "and again. Several words in a row do well."
)
PASSWORDS_DIFFER = "The two passwords differ. Type the same one twice."
PASSWORD_WRONG = "The password you have now is another one. Type it again."
PASSWORD_SET = "Your password is set. You are signed in here, and nowhere else any more."


def sign_in_slow(seconds: float) -> str:
    minutes = max(1, round(seconds / 60 + 0.5))
    return f"There were too many wrong tries. Wait {minutes} min and try again."


def course_missing(courses: Sequence[str]) -> str:
    return f"Say which course: add ?course= with one of {', '.join(courses)}."


def not_enrolled(course: str) -> str:
    return (
        f"You are not enrolled in a course {course[:80]!r}. Name yours in the field 'course', or ask its teacher to "
        "add you."
    )


# -- class lists -----------------------------------------------------------------------------------------------------

ROSTER_EMPTY = "The list is empty. Its first line names the columns, such as: email,name,student,section"
ROSTER_NOBODY = "There is neither an email (or login) nor a student id. Fill one in, or take the line out."
ROSTER_SAME_PERSON = (
    "This is a person whom a line before names already, by another login or id. Take one of the two out."
)
ROSTER_OUTDATED = (
    "Somebody changed who is in the course meanwhile. Look at what the list would change now, and apply that."
)
LAST_TEACHER = "The course would have no teacher any more. Make somebody else a teacher first."


def roster_unreadable(reason: str) -> str:
    return f"This is not a CSV: {reason}. Export the list again, or look for a quotation mark without its pair."


def roster_without_login(head: Sequence[str]) -> str:
    shown = ", ".join(repr(cell[:40]) for cell in head[:12])
    return (
        "The first line must name the columns, and one of them must be email, login or student. It names: "
        f"{shown}. Add a line such as: email,name,student,section"
    )


def roster_long(most: int) -> str:
    return f"The list has more than {most} lines. Send it in parts."


def roster_wide(cells: int, columns: int) -> str:
    return f"The line has {cells} cells, but there are {columns} columns. Put quotation marks around cells with commas."


def roster_twice(what: str, value: str, line: int) -> str:
    return f"The {what} {value[:80]!r} is in line {line} as well. Take one of the two out."


def login_invalid(login: str) -> str:
    return f"{login[:80]!r} is no email or login: there must be no space in it."


def role_unknown(role: str) -> str:
    return f"There is no role {role[:40]!r}. It is student, grader or teacher; without one, student."


def cell_invalid(what: str, most: int) -> str:
    return f"The {what} must have at most {most} printable characters."


def login_of_another(login: str, student: str) -> str:
    return (
        f"The login {login[:80]!r} is of somebody whom submissions know by another student id than {student[:80]!r}. "
        "Correct one of them, or leave the id empty."
    )


def login_kept(login: str) -> str:
    return f"known by this student id; signs in with another login than {login[:80]!r}, and goes on doing so"


def role_kept(role: str) -> str:
    return f"is a {role} here and stays one"


# -- members, links, tokens ------------------------------------------------------------------------------------------

MEMBER_UNKNOWN = "Nobody with this login is in the course."
ADMIN_EVERYWHERE = "An administrator's token is good for every course. Leave --course out, or make a teacher's."
USER_UNKNOWN = "There is nobody with this login."
LINK_NOT_YOURS = (
    "You cannot make a link for this person: they have a part in a course that is not yours, or a password and more "
    "rights than a student or grader. An administrator can."
)
TOO_MANY_TOKENS = "You have as many tokens as one may. Revoke one that you do not need."
TOKEN_UNKNOWN = "There is no such token here."
TOKEN_NEEDS_STUDENT = "A student's token needs the student it stands for, and no other token has one."
STUDENT_NOT_MEMBER = "No student of this course is known by that name. Add the student first."


def taken(field: str) -> str:
    what = "login" if field == "login" else "student id"
    return f"Somebody else has this {what}."


# -- forms -----------------------------------------------------------------------------------------------------------

SAVED = "Saved."
COURSE_TAKEN = "There is a course with this id already. Choose another id."
TITLE_INVALID = "A course needs a title of at most 400 printable characters."
EXTENSION_INVALID = (
    "An extension has at most a million attempts more, and a reason of at most 400 printable characters."
)

FIELDS = {
    "opens_at": "Opens",
    "due_at": "Due",
    "closes_at": "Closes",
    "attempts": "Attempts",
    "attempts_per_hour": "Attempts an hour",
    "cooldown_seconds": "Pause between attempts",
    "cooldown_minutes": "Pause between attempts",
    "hints": "Hints",
    "hints_per_hour": "Hints an hour",
    "hint_cooldown_seconds": "Pause between hints",
    "late_policy.penalty": "Lost for being late",
    "penalty_percent": "Lost for being late",
    "late_policy.cap": "At most",
    "cap_percent": "At most",
    "late_policy.grace_seconds": "Grace",
    "grace_minutes": "Grace",
    "late_policy.zero_after_seconds": "Nothing left after",
    "zero_after_hours": "Nothing left after",
    "feedback.attempts": "Submissions with normal feedback",
    "feedback_attempts": "Submissions with normal feedback",
    "extra_attempts": "More attempts",
    "days": "Valid for",
}
"""How fields are labelled on pages."""


def number_unreadable(name: str, said: str) -> str:
    return f"{FIELDS.get(name, name)}: {said[:40]!r} is not a number. Write one such as 3, or leave the field empty."


def field_wrong(where: str, message: str) -> str:
    return f"{FIELDS.get(where, where)}: {message[:1].lower()}{message[1:]}."


NOTHING_CHOSEN = "Nothing was chosen to be done. Press one of the page's buttons."
NOT_ONESELF = "That would lock you out yourself. Ask another administrator to do it."
TOKEN_INVALID = (
    "A token needs a role; its note has at most 200 printable characters, and it is valid for at most 3650 days, or "
    "without end if the field is empty."
)


def first_link(link: str) -> str:
    return f"To sign in as the first administrator, set a password within a day: {link}"
