"""What the pages about a class call things: names of states and verdicts, their colours, and sentences."""

from collections.abc import Sequence

from grader.changes import Changes
from grader.report import MutantStatus, Outcome, Verdict
from grader.wording import listed
from service.classroom.answers import MutantRow, State
from service.classroom.students import Narrowed
from service.dashboard.charts import Tone
from service.offerings import Moment
from service.runs import FIRST, REGRADE, Status

MOST_CHANGED = 12  # names in a row

TABS = {
    "Overview": "",
    "Tests": "/tests",
    "Mutants": "/mutants",
    "Misconceptions": "/misconceptions",
    "Students": "/students",
}

VERDICTS = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "not passed",
    Verdict.REJECTED: "rejected",
    Verdict.GRADER_ERROR: "our failure",
}
VERDICT_TONES = {
    Verdict.PASS: Tone.GOOD,
    Verdict.FAIL: Tone.BAD,
    Verdict.REJECTED: Tone.WARN,
    Verdict.GRADER_ERROR: Tone.IDLE,
}
STATUSES = {
    Status.QUEUED: "waiting",
    Status.RUNNING: "being graded",
    Status.DONE: "graded",
    Status.ERROR: "our failure",
    Status.CANCELLED: "cancelled",
}
STATUS_TONES = {
    Status.QUEUED: Tone.IDLE,
    Status.RUNNING: Tone.INFO,
    Status.DONE: Tone.GOOD,
    Status.ERROR: Tone.WARN,
    Status.CANCELLED: Tone.IDLE,
}
OUTCOMES = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "failed",
    Outcome.ERROR: "error",
    Outcome.TIMEOUT: "out of time",
    Outcome.SKIPPED: "skipped",
    Outcome.NOT_RUN: "not run",
}
OUTCOME_TONES = {
    Outcome.PASSED: Tone.GOOD,
    Outcome.FAILED: Tone.BAD,
    Outcome.ERROR: Tone.BAD,
    Outcome.TIMEOUT: Tone.BAD,
    Outcome.SKIPPED: Tone.IDLE,
    Outcome.NOT_RUN: Tone.IDLE,
}
MUTANTS = {
    MutantStatus.KILLED: "caught",
    MutantStatus.TIMEOUT: "caught, out of time",
    MutantStatus.SURVIVED: "survived",
    MutantStatus.INVALID: "not built",
    MutantStatus.VOID: "void",
}
MUTANT_TONES = {
    MutantStatus.KILLED: Tone.GOOD,
    MutantStatus.TIMEOUT: Tone.GOOD,
    MutantStatus.SURVIVED: Tone.BAD,
    MutantStatus.INVALID: Tone.IDLE,
    MutantStatus.VOID: Tone.IDLE,
}
MOMENTS = {
    "": " now",
    Moment.NORMAL.value: " at first",
    Moment.PAST_LIMIT.value: " past the limit of attempts",
    Moment.AFTER_DEADLINE.value: " after it was due",
    Moment.AFTER_PASSING.value: " after passing",
}
MOMENT_LINKS = {value: text.strip() for value, text in MOMENTS.items()}
RUN_KINDS = {FIRST: "first", REGRADE: "regrade", "trial": "trial"}
ASKED_VERDICTS = {verdict: VERDICTS[verdict] for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.REJECTED)}
STATES = {State.PASSED: "passed", State.UNDER_WAY: "under way", State.NOT_BEGUN: "not begun"}
STATE_TONES = {State.PASSED: Tone.GOOD, State.UNDER_WAY: Tone.INFO, State.NOT_BEGUN: Tone.IDLE}

NOTHING = "Nothing is graded yet."
MATRIX = (
    "A row for each student, a column for each mutant; those that most students miss come first. "
    "With the keyboard: arrows walk, Enter opens the submission."
)


def filter_unreadable(name: str) -> str:
    return f"The filter {name!r} holds something that it cannot. Choose it again, or leave it empty."


def field_unreadable(name: str) -> str:
    return f"The field {name!r} holds something that it cannot, or nothing. Go back, fill it in and send it again."


def class_of(students: int, passed: int, under_way: int) -> str:
    others = students - passed - under_way
    return f"{passed} of {students} have passed, {under_way} are under way, {others} have not begun."


def latest_of(graded: int) -> str:
    return f"The verdict on the latest submission of each of {graded}." if graded else NOTHING


def scores_of(students: int, median: str) -> str:
    return (
        f"The best score of each of {students} students; half of them have {median} or more." if students else NOTHING
    )


def series_of(submissions: int, by: str, zone: str) -> str:
    return f"{submissions} submissions by the {by}, on the clocks of {zone}." if submissions else NOTHING


def queue_stands(waiting: int, missing: Sequence[str]) -> str:
    lacking = f" Missing: {'; '.join(missing)}." if missing else " No worker runs."
    return f"Nothing is being graded, and {waiting} wait.{lacking}"


def queue_runs(waiting: int, running: int, ready: int, oldest: str, typical: str) -> str:
    said = f"{waiting} wait, {running} are being graded by {ready} {'worker' if ready == 1 else 'workers'}."
    if oldest:
        said += f" The oldest has waited for {oldest}."
    return f"{said} A grading takes {typical} as a rule." if typical else said


def mutant_head(mutant: MutantRow) -> str:
    return f"{mutant.id}: {mutant.category}; {mutant.killed} of {mutant.graded} catch it"


def matrix_row(student: str, killed: int, total: int) -> str:
    return f"{student} catches {killed} of {total}"


def narrowed(asked: Narrowed, sentence: str) -> str:
    """What the students on the page have in common; `sentence` is that of a misconception."""
    said = []
    if asked.state is not None:
        said.append(STATES[asked.state])
    if asked.at_risk:
        said.append("who need a look")
    if asked.failing is not None:
        said.append(f"whose latest submission does not pass {asked.failing}")
    if asked.survived is not None:
        said.append(f"whose latest tests miss {asked.survived}")
    if asked.believes is not None:
        said.append(f"of whom this is said: {sentence or asked.believes}")
    return ", ".join(said)


# -- the page of a submission ----------------------------------------------------------------------------------------

DIFFERENCE = "difference"
MAPS = (
    "In the pictures stronger is larger; the difference is orange where more came than was expected, blue where less. "
    "A cross is no finite number. The first place that differs is framed, and bold in the numbers."
)


def scale_of(low: str, high: str) -> str:
    return f"From {low}, the faintest, to {high}, the strongest. The numbers stand below."


def off_by(most: str) -> str:
    return f"What came minus what was expected, at most {most} apart. The numbers stand below."


def changes(found: Changes) -> list[tuple[Tone, str, Sequence[str]]]:
    """What changed, in words, with the names; only what there is."""
    kinds: list[tuple[Tone, str, Sequence[str]]] = [
        (Tone.GOOD, "newly passing", found.passing),
        (Tone.BAD, "no longer passing", found.failing),
        (Tone.GOOD, "newly caught", found.caught),
        (Tone.BAD, "no longer caught", found.missed),
    ]
    return [each for each in kinds if each[2]]


def changed(names: Sequence[str]) -> str:
    """'test_a, test_b and 3 more'."""
    return listed(names, MOST_CHANGED)
