"""What a delivery is about goes in; the sentence that a student, a teacher or an operator reads of it comes out."""

from grader.report import Verdict
from service.accounts import Role
from service.grades import Grade
from service.outbox.changes import State

CALLBACK_WITHOUT_STUDENT = "Whoever wants to be called back names the student: add the field 'student'."
DELIVERY_UNKNOWN = "There is no such delivery, or it is not yours."
NO_ANSWER = "it did not answer in time"
REDIRECTS = "it redirects; give the address it redirects to"
TOKEN_REVOKED = "the token that asked to be called back was revoked"
PLATFORM_GONE = "this platform is no longer registered"

STATES = {
    State.IDLE: "nothing to tell yet",
    State.WAITING: "waiting",
    State.DELIVERED: "arrived",
    State.FAILED: "given up",
}
PROGRESS = {"Pending": "being graded", "Failed": "grading failed", "NotReady": "not handed in"}


def points(given: float, maximum: float) -> str:
    return f"{given:g} of {maximum:g}"


def sent_again(count: int) -> str:
    if not count:
        return "There was nothing to send again."
    return f"{count} {'is' if count == 1 else 'are'} sent again, in the next seconds."


def callback_of_role(role: Role) -> str:
    return f"Only a learning platform's token may ask to be called back; this is a {role.value} token."


def callback_refused(reason: str) -> str:
    return f"This address cannot be called back: {reason}."


def not_https(host: str, setting: str) -> str:
    return f"{host} is not asked by https; use https, or have the operator list it in {setting}"


def not_an_address() -> str:
    return "it is not an http or https address with a host and without a user name"


def not_listed(host: str) -> str:
    return f"{host} is not in AUTOGRADER_CALLBACK_HOSTS"


def private(host: str, setting: str) -> str:
    return f"{host} is not a public address; the operator can list it in {setting}"


def not_found(host: str) -> str:
    return f"{host} has no address that can be found"


def answered(status: int) -> str:
    return f"it answered {status}"


def not_reached(error: str) -> str:
    return f"it could not be reached: {error}"


BEING_GRADED = "Being graded."
GRADING_FAILED = "The grading failed on our side. Nothing is lost; the course staff can have it graded again."


def comment(grade: Grade) -> str:
    """What stands beside a score: whether it passes, and what lateness cost; or why it was set by hand."""
    if grade.by_hand is not None:
        return f"Set by hand: {grade.by_hand.reason}"
    if grade.graded is None:
        return ""
    said = {
        Verdict.PASS: "Passed.",
        Verdict.FAIL: "Not passed yet; the report says what to do next.",
        Verdict.REJECTED: "Not graded: the report says what to change.",
        Verdict.GRADER_ERROR: GRADING_FAILED,
    }
    parts = [said[grade.graded.sent.verdict]] if grade.graded.sent.verdict is not None else []
    late = grade.graded.late
    if late.penalty:
        parts.append(f"Received {duration(late.seconds)} late, which costs {late.penalty:.0%} of the score.")
    return " ".join(parts)


def duration(seconds: float) -> str:
    """In the largest unit that leaves something to count."""
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {name}{'s' if count != 1 else ''}"
    return "less than a minute"
