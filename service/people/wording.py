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
