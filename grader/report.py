"""The report: what grading a submission leaves, as published in docs/report.schema.json.

Every part is frozen and allows no unknown field. Numbers are finite: NaN and Infinity are refused here, so they can
never reach JSON. Parts that do not exist for a submission (it was rejected, or we failed) are null.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader.submission import IntakeNote

SCHEMA: Literal["autograder.report/1"] = "autograder.report/1"

Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1)]
Seconds = Annotated[float, Field(allow_inf_nan=False, ge=0, description="seconds")]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    REJECTED = "rejected"
    GRADER_ERROR = "grader_error"


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"

    @property
    def failing(self) -> bool:
        return self in _FAILING


_FAILING = (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT)


class MutantStatus(StrEnum):
    KILLED = "killed"
    SURVIVED = "survived"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    VOID = "void"


class Cell(StrEnum):
    """What a test did on a version of the unit, as one character of the kill matrix."""

    PASS = "."
    KILL = "K"
    FAIL = "F"  # and it counts for nothing: on correct code, of a test that is not valid, or only once
    ERROR = "E"  # in set-up or tear-down, at import, or its run ended with it
    TIMEOUT = "T"
    SKIPPED = "S"
    NOT_RUN = "-"
    UNTOLD = "?"  # it did not catch it; what it did is not for this reader


class Level(StrEnum):
    """How much feedback a student is given, least first."""

    NONE = "none"
    COUNTS = "counts"
    CATEGORIES = "categories"
    NAMES = "names"
    HINTS = "hints"

    def tells(self, least: "Level") -> bool:
        """Whether this level tells what is told from `least` on."""
        levels = list(Level)
        return levels.index(self) >= levels.index(least)


class SubmissionPart(Part):
    id: str
    unit: str
    course: str
    student: str | None
    received_at: datetime
    digest: str = Field(description="SHA-256 over the files graded, after intake")


class Reason(Part):
    code: str = Field(description="stable, for programs")
    message: str = Field(description="for people: what happened and what to do")


class IntakeEntry(Part):
    action: str
    path: str
    message: str


def intake_entries(notes: Iterable[IntakeNote]) -> tuple[IntakeEntry, ...]:
    """What intake did, as it is told."""
    return tuple(IntakeEntry(action=note.action, path=note.path, message=note.message) for note in notes)


class Problem(Part):
    code: str
    file: str
    line: Count
    message: str


class ContractPart(Part):
    ok: bool
    problems: tuple[Problem, ...]


class Cause(Part):
    """How a run ended that did not end by itself, or which limit a test met."""

    code: str = Field(
        description="cpu_time, no_progress, memory, processes, disk, file_size, output, signal, early_exit, …"
    )
    message: str
    limit: Finite | None = None
    seen: Finite | None = None
    unit: str = Field(default="", description="of limit and seen: seconds, bytes, …")


Index = Annotated[int, Field(ge=0, lt=2**53)]  # what every reader of JSON holds exactly
Entry = Finite | Literal["nan", "inf", "-inf"]
AxisName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,23}$")]
Rows = Annotated[
    tuple[Annotated[tuple[Entry, ...], Field(min_length=1, max_length=12)], ...], Field(min_length=1, max_length=12)
]


class ComparedPart(Part):
    """Two arrays that a course test compared, around the first place where they differ: a piece of the slice over the
    last two axes. Numbers are rounded."""

    axes: Annotated[tuple[AxisName, ...], Field(max_length=8)] = Field(description="their names; empty if not told")
    shape: Annotated[tuple[Index, ...], Field(min_length=1, max_length=8)] = Field(description="of both arrays")
    at: tuple[Index, ...] = Field(description="the first index at which they differ")
    first: tuple[Index, Index] = Field(description="the row and column of the slice with which the piece begins")
    expected: Rows
    actual: Rows

    @model_validator(mode="after")
    def _fits(self) -> Self:
        rows, columns = len(self.expected), len(self.expected[0])
        if {len(line) for line in (*self.expected, *self.actual)} != {columns} or len(self.actual) != rows:
            raise ValueError("the two pieces have other shapes")
        if len(self.at) != len(self.shape) or len(self.axes) not in (0, len(self.shape)):
            raise ValueError("an index and the names of axes have as many entries as the shape")
        if not (0 <= self.row < rows and 0 <= self.column < columns):
            raise ValueError("the piece does not hold the place")
        return self

    @property
    def row(self) -> int:
        """The row of the piece in which they first differ."""
        return (0, *self.at)[-2] - self.first[0]

    @property
    def column(self) -> int:
        return self.at[-1] - self.first[1]


class CourseTestPart(Part):
    id: str
    kind: str
    outcome: Outcome
    seconds: Seconds
    message: str
    where: str
    why: str
    chapter: str
    cause: Cause | None = None
    compared: ComparedPart | None = Field(default=None, description="null where it compared no arrays that differ")


class CourseTestsPart(Part):
    passed: Count
    total: Count
    tests: tuple[CourseTestPart, ...]
    next: str = Field(default="", description="id of the test that next_step is about, if it is about one")


class Disagreement(Part):
    case: str = Field(description="its number; empty where no case can be named")
    message: str = Field(description="the case in words, and what came out differently there")
    cause: Cause | None = None


class OraclePart(Part):
    """The unit against independent computations, on random cases made for this grading."""

    status: Literal["agree", "disagree", "not_run"] = Field(
        description="not_run: the unit has no oracle, or could not be read"
    )
    cases: Count
    agreed: Count = Field(description="how many of the cases agree")
    seed: int | None = Field(description="of the cases; it derives from the seed of the grading")
    worst: Finite | None = Field(description="the largest error met, in tolerances: more than 1 is a disagreement")
    disagreements: tuple[Disagreement, ...] = Field(description="the first few")


class Runs(Part):
    """How often a test passed on runs that it had to pass."""

    passed: Count
    total: Count


class StudentTestPart(Part):
    id: str
    file: str = Field(default="", description="the uploaded file it stands in; empty for a name made while running")
    line: Count = Field(default=0, description="its line there, or 0")
    correct_runs: Runs | None = Field(description="null where this reader may not see it")
    kills: tuple[str, ...] = Field(description="ids of the mutants this test killed; where matrix is first_kill, first")
    flaky: bool | None = Field(description="passed some correct runs and failed others")
    own_code: Outcome = Field(description="on the student's own unit")
    valid: bool | None = Field(description="passed every correct run: its failures on mutants count")
    message: str = Field(default="", description="what the test said on the student's own unit")
    rejection: str = Field(default="", description="for teachers: what the test said on correct code")
    advice: str = Field(default="", description="which test to look at, why, and what to do")
    denies: str = Field(default="", description="what the contract leaves open and this test forbids")
    cause: Cause | None = None


class SuiteRunPart(Part):
    """One run of the student's whole suite on code that is not a mutant."""

    variant: str = Field(description="reference, the wheat's id, own, or broken (the forced failure)")
    ending: str
    passed: Count
    failed: Count
    skipped: Count
    cause: Cause | None = None


class Baselines(Part):
    correct: tuple[SuiteRunPart, ...]
    own: SuiteRunPart | None
    broken: SuiteRunPart | None = Field(description="a unit in which every call fails: shows that failures are seen")
    cpu_seconds: Seconds | None = Field(
        description="of one suite run on the reference; null where this reader may not see it"
    )
    budget_cpu_seconds: Seconds


class StudentTestsPart(Part):
    total: Count
    own_code_ok: bool = Field(description="the student's tests pass on the student's own unit")
    tests: tuple[StudentTestPart, ...]
    baselines: Baselines


class MutantPart(Part):
    id: str
    tier: str
    required: bool
    status: MutantStatus
    killed_by: tuple[str, ...]
    hint: str = Field(description="of a survivor: what kind of test is missing; the first of its hints")
    hints_total: Count = Field(default=0, description="of a survivor: how many hints there are, this one included")
    hints: tuple[str, ...] = Field(default=(), description="for teachers: all of them, from vague to concrete")
    category: str
    cause: Cause | None = None
    detail: str = Field(default="", description="for teachers: what the fault is")


class WheatPart(Part):
    id: str
    accepted: bool
    rejected_by: tuple[str, ...]


class CategoryPart(Part):
    category: str
    killed: Count
    total: Count


class KillMatrixRow(Part):
    id: str = Field(description="of the test, or the path of a file that could not be collected somewhere")
    correct: str = Field(description="a character for each correct run; empty where this reader may not see it")
    mutants: str = Field(
        description="a character for each mutant: . pass, K kill, F fail that does not count, E error, T timeout, "
        "S skipped, - not run, ? not caught and not told how"
    )


class KillMatrixPart(Part):
    """What every test did on every version of the unit. In `first_kill` runs stop at their first failure: - follows."""

    correct: tuple[str, ...] = Field(
        description="reference or the wheat's id, for each run; a version can have several"
    )
    mutants: tuple[str, ...] = Field(description="ids of the mutants, the columns of each row")
    tests: tuple[KillMatrixRow, ...]


class MutationPart(Part):
    score: Share = Field(description="killed / total; 0 when the test grade is void")
    score_if_valid: Share = Field(description="the score without the tests that reject correct code")
    threshold: Share
    killed: Count
    total: Count
    required_ok: bool
    passed: bool
    remembered: bool = Field(
        default=False, description="the same tests were graded before on this unit, and this is what they did then"
    )
    matrix: Literal["full", "first_kill", "none"]
    mutants: tuple[MutantPart, ...]
    wheats: tuple[WheatPart, ...]
    categories: tuple[CategoryPart, ...]
    kill_matrix: KillMatrixPart | None = Field(
        default=None, description="null where matrix is none, or this reader may not see it"
    )

    @property
    def void(self) -> bool:
        """Whether what was caught counts for nothing."""
        return self.score < self.score_if_valid


class WeightsPart(Part):
    """What share of the score each part makes."""

    course_tests: Share
    mutation: Share


class EnvironmentPart(Part):
    sandbox: str
    isolated: bool
    image_id: str
    python: str
    numpy: str
    pytest: str
    hypothesis: str
    libraries: dict[str, str] = {}  # of the unit's runtime, by name
    grader: str
    limits: dict[str, Finite]


class Timing(Part):
    queued: Seconds
    phases: dict[str, Seconds]
    total: Seconds


class Integrity(Part):
    seed: int
    digests: dict[str, str]


class CachedPart(Part):
    """The same files were graded before under the same conditions, and this report repeats that one."""

    graded_at: datetime


class FeedbackPart(Part):
    """The course tells its students less of this report than there is."""

    level: Level
    message: str = Field(description="for people: what is told at this level")


class ByHandPart(Part):
    """A teacher has set this student's grade for the unit by hand; it counts in place of every report's score."""

    score: Share
    reason: str
    set_at: datetime


class DepPart(Part):
    id: str
    title: str
    used: Literal["submitted", "reference"] = Field(description="whose code the student's unit was run with")
    offered: bool = Field(description="whether the course has it as a unit that can be handed in")


class Report(Part):
    schema_: Literal["autograder.report/1"] = Field(default=SCHEMA, alias="schema")
    submission: SubmissionPart
    verdict: Verdict
    score: Share | None = Field(description="what an LMS receives; null when nothing was graded")
    weights: WeightsPart | None = Field(default=None, description="null when nothing was graded")
    reasons: tuple[Reason, ...]
    next_step: str
    intake: tuple[IntakeEntry, ...] = ()
    deps: tuple[DepPart, ...] = Field(default=(), description="the units that this one builds on")
    contract: ContractPart | None = None
    course_tests: CourseTestsPart | None = None
    oracle: OraclePart | None = None
    student_tests: StudentTestsPart | None = None
    mutation: MutationPart | None = None
    environment: EnvironmentPart | None = None
    timing: Timing
    integrity: Integrity | None = None
    cached: CachedPart | None = Field(default=None, description="null: graded for this submission")
    feedback: FeedbackPart | None = Field(
        default=None, description="null: everything is told that this reader's role may see"
    )
    by_hand: ByHandPart | None = Field(default=None, description="null: the grade is that of a report")

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True)

    def to_json(self) -> str:
        """The report as published: UTF-8 JSON, two spaces of indent."""
        return self.model_dump_json(indent=2) + "\n"
