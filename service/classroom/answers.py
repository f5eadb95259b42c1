"""What a class's views answer with, as published in OpenAPI: a model for each question."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from grader.report import MutantStatus, Outcome, Verdict
from service import walltime

Share = Annotated[float, Field(ge=0, le=1)]


def shown(seconds: float | None, zone: str) -> datetime | None:
    """The time as clocks in the zone show it, if there is one."""
    return walltime.show(seconds, zone) if seconds is not None else None


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class OfClass(Answer):
    """About whom. Times have the offset of the course's zone."""

    course: str
    unit: str
    at: datetime = Field(description="when this was asked")


# -- overview --------------------------------------------------------------------------------------------------------


class ScoreBucket(Answer):
    low: Share
    high: Share = Field(description="of the last bucket included, of the others not")
    students: int


class SeriesPoint(Answer):
    at: datetime = Field(description="where the hour or day begins")
    submissions: int
    passed: int = Field(description="students whose first passing submission was received then")


class QueueHealth(Answer):
    """Of all courses together: they share the workers."""

    waiting: int
    running: int
    oldest_seconds: float = Field(description="for how long the oldest has waited")
    workers: int = Field(description="that are alive")
    ready: int = Field(description="of these, those that can grade")
    missing: tuple[str, ...] = Field(description="what the others lack, in words")
    typical_seconds: float | None = Field(description="that a grading of this unit takes lately")


class OverviewAnswer(OfClass):
    students: int = Field(description="enrolled, or with a submission")
    began: int = Field(description="of these, those with a submission")
    passed: int = Field(description="those with a submission that passes, also if a later one does not")
    submissions: int
    pending: int = Field(description="submissions that wait or are being graded")
    failed: int = Field(description="submissions whose grading failed on our side")
    verdicts: dict[Verdict, int] = Field(description="students by the verdict on their latest submission")
    median_score: Share | None = Field(description="of each student's best score")
    scores: tuple[ScoreBucket, ...] = Field(description="students by their best score, in ten equal buckets")
    by: Literal["hour", "day"]
    series: tuple[SeriesPoint, ...] = Field(description="without gaps, on the clocks of the course")
    due_at: datetime | None
    closes_at: datetime | None
    queue: QueueHealth


# -- course tests ----------------------------------------------------------------------------------------------------


class TestRow(Answer):
    id: str
    kind: str
    why: str
    chapter: str
    graded: int = Field(description="students whose latest submission was graded with this test")
    passed: int
    share: Share | None = Field(description="passed / graded")
    failing: int = Field(description="students whose latest submission does not pass it")
    stuck: int = Field(description="of these, those for whom it is the first that does not pass")
    outcomes: dict[Outcome, int]
    students: tuple[str, ...] = Field(description="the first few who do not pass it; all with /students?failing=")


class TestsAnswer(OfClass):
    students: int = Field(description="with a graded submission")
    tests: tuple[TestRow, ...] = Field(description="in the order of the course")


# -- mutants ---------------------------------------------------------------------------------------------------------


class MutantRow(Answer):
    id: str
    tier: str
    category: str
    required: bool
    public: str = Field(description="what students may be told of it")
    private: str = Field(description="what the fault is")
    graded: int = Field(description="students whose latest suite was held against it")
    killed: int
    share: Share | None = Field(description="killed / graded")
    statuses: dict[MutantStatus, int]


class CategoryRow(Answer):
    """Mutants of one kind, with the pitfalls among them: faults that the chapter warns of."""

    category: str
    mutants: tuple[str, ...]
    pitfalls: tuple[str, ...]
    graded: int = Field(description="students x mutants")
    killed: int
    share: Share | None
    survivors: int = Field(description="students who miss at least one of them")


class MatrixRow(Answer):
    student: str
    name: str
    submission: str
    cells: str = Field(
        description="a character for each mutant: K killed, T killed by time, . survived, V void, - not there"
    )
    killed: int
    total: int


class MutantsAnswer(OfClass):
    students: int = Field(description="with a graded submission")
    mutants: tuple[MutantRow, ...] = Field(description="in the unit's order; the columns of the matrix")
    categories: tuple[CategoryRow, ...]
    matrix: tuple[MatrixRow, ...] = Field(description="a page of students")
    next: str | None = Field(description="the next page of students; null on the last one")


# -- misconceptions --------------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What a group of students has in common.

    fault      their tests, or their code, take a planted fault for right
    freedom    their tests forbid what the contract leaves open
    misprint   their tests hold a number that the chapter prints wrongly
    flaky      their tests pass and fail on the same correct code
    broken     their tests cannot be loaded, or were ended, on correct code
    unknown    their tests reject correct code, and nothing tells why
    """

    FAULT = "fault"
    FREEDOM = "freedom"
    MISPRINT = "misprint"
    FLAKY = "flaky"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class Believer(Answer):
    student: str
    name: str
    submission: str
    in_code: bool = Field(description="the student's own code shows it")
    tests: tuple["BelievingTest", ...] = Field(description="the first few of the student's tests that show it")


class BelievingTest(Answer):
    id: str
    file: str
    line: int = Field(description="0: not known")


class Misconception(Answer):
    key: str = Field(description="stable: for links, and /students?believes=")
    kind: Kind
    sentence: str = Field(description="such as: 12 students believe that …")
    detail: str = Field(description="what is right, or what to tell the class")
    students: int
    share: Share = Field(description="of the students with a graded submission")
    in_code: int = Field(description="students whose own code shows it")
    in_tests: int = Field(description="students whose tests show it")
    tests: int = Field(description="tests that show it")
    who: tuple[Believer, ...] = Field(description="the first of them by name")


class MisconceptionsAnswer(OfClass):
    students: int = Field(description="with a graded submission")
    rejecting: int = Field(description="students whose latest tests reject correct code")
    misconceptions: tuple[Misconception, ...] = Field(description="the most common first")


# -- students --------------------------------------------------------------------------------------------------------


class State(StrEnum):
    PASSED = "passed"
    UNDER_WAY = "under_way"
    NOT_BEGUN = "not_begun"


class RiskReason(Answer):
    code: str
    message: str


class LatestAnswer(Answer):
    submission: str
    received_at: datetime
    verdict: Verdict
    score: Share | None
    tests_passed: int
    tests_total: int
    killed: int
    mutants_total: int
    rejecting: int = Field(description="the student's tests that reject correct code")


class StudentRow(Answer):
    student: str
    name: str = Field(description="'' where nobody has said it")
    section: str
    enrolled: bool
    state: State
    submissions: int
    attempts_used: int
    attempts_left: int | None = Field(description="null: without limit")
    pending: int
    passed_at: datetime | None = Field(description="when the first submission that passes was received")
    best_submission: str | None
    best_score: Share | None = Field(description="before what lateness costs")
    set_by_hand: Share | None = Field(description="the grade that a teacher has set in place of the submissions'")
    since_best: int = Field(description="submissions after the best one, none of them better")
    latest: LatestAnswer | None
    due_at: datetime | None = Field(description="for this student")
    risk: tuple[RiskReason, ...] = Field(description="why somebody should look; empty if nobody need")


class StudentsAnswer(OfClass):
    total: int = Field(description="students on all pages")
    at_risk: int = Field(description="of these, those somebody should look at")
    students: tuple[StudentRow, ...]
    next: str | None = Field(description="the next page; null on the last one")
