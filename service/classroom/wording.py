"""Every sentence that a class's views say to a teacher. The counts and names come in, plain English comes out."""

from datetime import timedelta

_TRUTHS = (" where it should be ", " instead of ")


def count_of(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# -- misconceptions --------------------------------------------------------------------------------------------------


def takes_for_right(students: int, fault: str) -> str:
    """`fault` is what the manifest says of a planted fault, such as: The scale is 1 where it should be 2."""
    believed = _lowered(_believed(fault))
    return f"{count_of(students, 'student believes', 'students believe')} this is right: {believed}."


def _believed(fault: str) -> str:
    """What the fault does, without what would be right."""
    first = fault.strip().rstrip(".")
    for truth in _TRUTHS:
        first = first.partition(truth)[0]
    return first


def _lowered(text: str) -> str:
    """A sentence as it goes on after a colon; a first word that is a name or a symbol stays as it is."""
    first, _, rest = text.partition(" ")
    is_word = first.istitle() and (len(first) > 1 or first == "A")
    return f"{first.lower()} {rest}" if is_word and rest else text


def forbids(students: int, says: str) -> str:
    subject = count_of(students, "student tests", "students test")
    return f"{subject} for something that the contract leaves open. {says}"


def misprints(students: int, printed: str) -> str:
    return (
        f"{count_of(students, 'student uses', 'students use')} the number {printed}, which the chapter prints wrongly."
    )


def flaky(students: int) -> str:
    return f"{count_of(students, 'student has', 'students have')} tests that pass and fail on the same correct code."


def broken(students: int, cause: str) -> str:
    subject = count_of(students, "student has", "students have")
    if not cause:
        return f"{subject} test files that pytest cannot load beside correct code."
    return f"{subject} tests that are ended on correct code ({cause})."


def unexplained(students: int) -> str:
    return f"{count_of(students, 'student has', 'students have')} tests that reject correct code for another reason."


FLAKY_ADVICE = "Random draws need a fixed seed, and no test may depend on time or on another one."
BROKEN_ADVICE = "They should run pytest themselves first, and read what it says."
UNEXPLAINED_ADVICE = "Look at one of these tests: the report of the submission says what it said on correct code."


# -- students at risk ------------------------------------------------------------------------------------------------


def not_begun(left: timedelta | None) -> str:
    if left is None:
        return "Has not submitted anything, while most of the class has begun."
    return f"Has not submitted anything; {_until(left)}."


def no_attempts_left(used: int) -> str:
    spent = "the only attempt" if used == 1 else f"all {used} attempts"
    return f"Has used {spent} and has not passed."


def behind(left: timedelta) -> str:
    return f"Has not passed; {_until(left)}."


def no_progress(count: int) -> str:
    return f"The last {count} submissions were no better than the one before them."


def silent(days: int) -> str:
    return f"Has not passed, and has not submitted anything for {count_of(days, 'day', 'days')}."


def all_rejected(count: int) -> str:
    return f"{count_of(count, 'submission was', 'submissions were')} rejected before anything was graded."


def _until(left: timedelta) -> str:
    seconds = left.total_seconds()
    if seconds < 0:
        return "it was due before now"
    hours = int(seconds // 3600)
    return f"it is due in {count_of(hours, 'hour', 'hours') if hours < 48 else count_of(hours // 24, 'day', 'days')}"
