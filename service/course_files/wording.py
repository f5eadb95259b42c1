"""What is to be said of the course's files goes in; the sentence that a teacher reads of it comes out."""

from collections.abc import Sequence

from grader.unit import UnitProblem

VERSION_UNKNOWN = "There is no such version of the course's files."
NOTHING_SENT = "Choose a file or an archive, or name what is to be removed."
NOTHING_CHANGED = "These files are the same as those in use."
CHECK_UNDER_WAY = "Other files are being checked. Send yours again in a few seconds."
NOTE_MISSING = "Say what the change is for."
OF_ANOTHER = "Somebody else sent this version: they delete it, or an administrator does."
WAS_USED = "This version was in use, and what was graded by it names it. It stays."


def too_many(most: int) -> str:
    return f"You have {most} versions that were never used. Delete one of them first."


def unreadable(error: str) -> str:
    return f"The course's files cannot be read: {error}. Units stay as they were."


def unusable(problems: Sequence[UnitProblem]) -> str:
    first = problems[0]
    place = f"{first.file}:{first.line}" if first.line else first.file
    return f"{first.unit} would be lost: {place}: {first.reason.rstrip('.')}. Units stay as they were."
