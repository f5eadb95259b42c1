"""A submission and who reads it go in; all that its page shows comes out: where it stands, its report as this reader
may see it, files, runs, hints and what the student sent before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from markupsafe import Markup

from grader import reading
from grader.changes import Changes, between
from grader.report import (
    Cell,
    CourseTestPart,
    KillMatrixPart,
    Level,
    MutantPart,
    MutantStatus,
    Report,
    StudentTestPart,
    Verdict,
)
from grader.submission import Submission
from grader.views import for_role
from grader.wording import escaped
from service import (
    answers,
    deadlines,
    feedback,
    hints,
    limits,
    listing,
    offerings,
    overrides,
    places,
    regrades,
    runs,
    submissions,
)
from service.accounts import Account, Role
from service.dashboard.arrays import figure
from service.dashboard.charts import Head, HeatRow, Mark, Segment, Tone, heat_map, stacked
from service.dashboard.wording import MUTANT_TONES, MUTANTS
from service.dependencies import Service
from service.hints import Board, Survivor
from service.offerings import Moment
from service.submissions import Stored

MOST_HISTORY = 50
MOST_LINES = 2_000  # of a file

CELLS = {
    Cell.KILL: Mark("caught it", Tone.GOOD),
    Cell.TIMEOUT: Mark("out of time", Tone.INFO),
    Cell.FAIL: Mark("failed, and it counts for nothing", Tone.WARN),
    Cell.ERROR: Mark("ended with an error", Tone.WARN),
    Cell.PASS: Mark("passed: it does not notice this fault", Tone.IDLE),
    Cell.SKIPPED: Mark("skipped", Tone.IDLE),
    Cell.NOT_RUN: Mark("not run", Tone.IDLE),
    Cell.UNTOLD: Mark("did not catch it", Tone.IDLE),
}
TODO_FIRST = (Tone.BAD, Tone.IDLE, Tone.GOOD)
SURVIVED = "!"  # of all tests together


@dataclass(frozen=True)
class SentFile:
    """A file of the submission as text; `kind` is "unit" or "test", `anchor` begins the ids of its lines."""

    kind: str
    path: str
    anchor: str
    lines: tuple[str, ...]
    more: int = 0  # lines that are not shown


@dataclass(frozen=True)
class Since:
    """Another submission of the student that this one is compared with, and what changed from it to this one."""

    id: str
    received_at: float
    score: float | None
    changes: Changes


@dataclass(frozen=True)
class SubmissionPage:
    """Everything its page shows. `report` None: there is none yet, or never will be."""

    stored: Stored
    standing: answers.SubmissionAnswer
    report: Report | None
    late: deadlines.Lateness
    due_at: float | None
    files: tuple[SentFile, ...]
    runs: tuple[answers.RunAnswer, ...]
    hints: Board | None
    history: tuple[answers.SubmissionRow, ...]
    since: Since | None = None

    @property
    def passed(self) -> Sequence[str]:
        return reading.passed(self.report) if self.report is not None else ()

    @property
    def missed(self) -> Sequence[tuple[CourseTestPart, Markup]]:
        """The course tests that did not pass, each with the arrays it compared, drawn."""
        found = reading.missed_course_tests(self.report) if self.report is not None else ()
        return [
            (test, figure(f"map-{place}", test.compared) if test.compared else Markup(""))
            for place, test in enumerate(found)
        ]

    @property
    def to_mend(self) -> Sequence[StudentTestPart]:
        return reading.tests_to_mend(self.report) if self.report is not None else ()

    @property
    def hinted(self) -> MutantPart | None:
        return reading.hinted(self.report) if self.report is not None else None

    @property
    def board(self) -> Mapping[str, Survivor]:
        """The survivors with what is unlocked of their hints, by id."""
        return {each.id: each for each in self.hints.survivors} if self.hints is not None else {}

    def place(self, path: str, line: int) -> str:
        """The anchor of a line of a file that was sent; empty if it is not on the page."""
        for file in self.files:
            if file.kind == "test" and file.path == path and 0 < line <= len(file.lines):
                return f"{file.anchor}-{line}"
        return ""

    @property
    def mutants(self) -> Sequence[MutantPart]:
        """Those first that something is to be done about."""
        mutation = self.report.mutation if self.report is not None else None
        found = mutation.mutants if mutation is not None else ()
        return sorted(found, key=lambda mutant: TODO_FIRST.index(MUTANT_TONES[mutant.status]))

    @property
    def kill_matrix(self) -> Markup:
        """Which test caught which mutant, as a heat map; empty where there is none to show."""
        mutation = self.report.mutation if self.report is not None else None
        if mutation is None or mutation.kill_matrix is None or not mutation.kill_matrix.tests:
            return Markup("")
        return drawn(mutation.kill_matrix, {mutant.id: mutant.status for mutant in mutation.mutants})

    @property
    def mutant_bar(self) -> Markup:
        """How many mutants had which status; empty where there are none."""
        mutation = self.report.mutation if self.report is not None else None
        if mutation is None or not mutation.mutants:
            return Markup("")
        counts = {status: sum(mutant.status is status for mutant in mutation.mutants) for status in (*MutantStatus,)}
        segments = [Segment(MUTANTS[status], count, MUTANT_TONES[status]) for status, count in counts.items() if count]
        return stacked("Mutants", f"{mutation.killed} of {mutation.total} caught.", segments)


@dataclass(frozen=True)
class Reader:
    """Who reads it. `sees_all`: as staff; otherwise as the submission's student, at `moment` if staff names one."""

    account: Account
    sees_all: bool
    moment: Moment | None = None

    @property
    def asks_of(self) -> Moment | None:
        """The moment whose feedback is told; None: that of now."""
        return self.moment if self.account.sees_class else None

    @property
    def role(self) -> str:
        return self.account.role.value if self.sees_all else Role.STUDENT.value


def read(
    service: Service, connection: sa.Connection, reader: Reader, stored: Stored, run: runs.RunState, against: str = ""
) -> SubmissionPage:
    """The page of a submission that the reader may see, whose counting run is `run`, compared with `against`: another
    submission of the same history, or else the last one before that was graded."""
    now = service.clock()
    told = feedback.of(connection, stored, now, reader.asks_of).level
    report = _report(connection, reader, stored, run.id, told)
    history = _history(connection, stored)
    asked = offerings.assignment(connection, stored.course, stored.unit) or offerings.Assignment()
    granted = _extension(connection, stored)
    due_at = offerings.times_for(asked, granted).due_at
    place = places.of(connection, run, stored.unit, now, service.paces)
    left = limits.attempts_left(connection, stored.course, stored.unit, stored.student)
    counts, hinted = (reader.sees_all or told.tells(level) for level in (Level.COUNTS, Level.HINTS))
    all_runs = regrades.runs_of(connection, stored.id, trials=reader.sees_all)
    return SubmissionPage(
        stored=stored,
        standing=answers.submission(stored, run, place, left),
        report=report,
        late=deadlines.lateness(asked.late_policy, due_at, stored.received_at),
        due_at=due_at,
        files=files(submissions.load(connection, stored)),
        runs=answers.run_list(stored, all_runs, staff=reader.sees_all, counts=counts).runs,
        hints=_hints(service, connection, stored, report, now) if hinted else None,
        history=history,
        since=_since(connection, reader, stored, report, history, against, now),
    )


def _report(connection: sa.Connection, reader: Reader, stored: Stored, run_id: str, told: Level) -> Report | None:
    """As the reader may see it."""
    graded = runs.report(connection, run_id)
    return for_role(overrides.marked(connection, graded, stored), reader.role, told) if graded is not None else None


def _since(
    connection: sa.Connection,
    reader: Reader,
    stored: Stored,
    report: Report | None,
    history: Sequence[answers.SubmissionRow],
    against: str,
    now: float,
) -> Since | None:
    """None where there is nothing to compare, or `against` is not one of the history."""
    if report is None or report.course_tests is None:
        return None
    graded = [row for row in history if row.id != stored.id and row.verdict in (Verdict.PASS, Verdict.FAIL)]
    before = [row for row in graded if row.received_at.timestamp() <= stored.received_at]
    chosen = next((row for row in (graded if against else before) if row.id == (against or row.id)), None)
    other = submissions.find(connection, chosen.id) if chosen is not None else None
    if other is None:
        return None
    told = feedback.of(connection, other, now, reader.asks_of).level
    earlier = _report(connection, reader, other, other.run, told)
    if earlier is None:
        return None
    return Since(other.id, other.received_at, earlier.score, between(earlier, report))


def _extension(connection: sa.Connection, stored: Stored) -> offerings.Extension | None:
    if stored.student is None:
        return None
    return offerings.extension(connection, stored.course, stored.unit, stored.student)


def files(sent: Submission) -> tuple[SentFile, ...]:
    """What was sent, the unit's files first."""
    parts = [("unit", path, data) for path, data in sent.files.items()]
    parts += [("test", file.path, file.data) for file in sent.tests]
    return tuple(_file(kind, path, f"file-{place}", data) for place, (kind, path, data) in enumerate(parts, 1))


def _file(kind: str, path: str, anchor: str, data: bytes) -> SentFile:
    lines = data.decode("utf-8", "replace").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    shown = tuple(escaped(line.rstrip("\r").expandtabs(4)) for line in lines[:MOST_LINES])
    return SentFile(kind, path, anchor, shown, len(lines) - len(shown))


def drawn(part: KillMatrixPart, statuses: Mapping[str, MutantStatus]) -> Markup:
    """A kill matrix as a heat map; its first row is what all tests together did."""
    used = set("".join(row.mutants for row in part.tests))
    marks = {cell.value: mark for cell, mark in CELLS.items() if cell.value in used or cell is Cell.KILL}
    marks[SURVIVED] = Mark("survived all tests", Tone.BAD)
    together = "".join(
        {Tone.GOOD: Cell.KILL.value, Tone.BAD: SURVIVED}.get(MUTANT_TONES[statuses[mutant]], Cell.NOT_RUN.value)
        for mutant in part.mutants
    )
    marks.setdefault(Cell.NOT_RUN.value, CELLS[Cell.NOT_RUN])
    rows = [HeatRow(Head("all", "all tests"), together)]
    rows += [HeatRow(Head(f"t{place}", escaped(row.id)), row.mutants) for place, row in enumerate(part.tests)]
    heads = [Head(mutant, mutant, href=f"#mutant-{mutant}") for mutant in part.mutants]
    return heat_map("Which test catches which mutant", "A row for each test.", rows, heads, marks, corner="test")


def _hints(
    service: Service, connection: sa.Connection, stored: Stored, report: Report | None, now: float
) -> Board | None:
    """The survivors and their hints; None where there is no mutation grade, or the unit is no longer there."""
    unit = service.course.units.get(stored.unit)
    if unit is None or report is None or report.mutation is None:
        return None
    return hints.board(connection, stored, unit, now, limits.usual(service.settings))


def _history(connection: sa.Connection, stored: Stored) -> tuple[answers.SubmissionRow, ...]:
    """What the same student sent for the same unit in the same course, the newest first."""
    if stored.student is None:
        return ()
    wanted = listing.Filter(stored.unit, stored.student, stored.course)
    found, _ = listing.page(connection, wanted, listing.Sort.NEWEST, MOST_HISTORY, None)
    return found
