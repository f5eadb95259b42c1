"""What the API says of batches of regrades, as published in OpenAPI: records go in, JSON models come out."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from grader.report import Verdict
from service import links, schedules
from service.answers import Share, moment
from service.grades import Grade
from service.regrading import wording
from service.regrading.batches import Batch, GradeMove, Item, Progress, Stage, State, Which
from service.regrading.decisions import Decision, What
from service.regrading.moves import Why
from service.regrading.versions import Change, Version, changes

MOST_CHOSEN = 1_000

SubmissionId = Annotated[str, Field(pattern=r"^[0-9a-zA-Z]{1,32}$")]
Reason = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RegradeBody(_Body):
    """Which submissions of a unit to grade again. Nothing changes for anybody until it is applied."""

    course: str = Field(default=schedules.DEFAULT_COURSE, pattern=schedules.COURSE_ID)
    unit: str = Field(max_length=64)
    which: Which = Field(default=Which.ALL, description="all, the latest of each student, or the chosen ones")
    submissions: tuple[SubmissionId, ...] = Field(default=(), max_length=MOST_CHOSEN, description="the chosen ones")
    reason: Reason = Field(description="why; students read this too once it is applied")

    @model_validator(mode="after")
    def _fits(self) -> "RegradeBody":
        if (self.which is Which.CHOSEN) != bool(self.submissions):
            raise ValueError(wording.CHOSEN_NOT_WANTED if self.submissions else wording.CHOSEN_MISSING)
        return self


class DecisionBody(_Body):
    submissions: tuple[SubmissionId, ...] | None = Field(
        default=None, max_length=MOST_CHOSEN, description="of the batch; null: all of them"
    )


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class ProgressAnswer(_Answer):
    total: int
    waiting: int = Field(description="for a place in the queue")
    queued: int
    running: int
    done: int = Field(description="tried and not decided")
    moved: int = Field(description="of these, how many came out otherwise")
    failed: int = Field(description="whose trial failed on our side or was stopped")
    applied: int
    dropped: int
    rolled_back: int


class DecisionAnswer(_Answer):
    """What was decided of a batch, and how far that is."""

    what: What
    begun_at: datetime
    ended: bool
    submissions: int = Field(description="to which it was done so far")
    stale: int


class RegradeLinks(_Answer):
    self: str
    page: str
    moves: str
    students: str


class RegradeAnswer(_Answer):
    """A batch. It is applied, dropped or rolled back by POST to `apply`, `drop` or `rollback` below it."""

    id: str
    course: str
    unit: str
    which: Which
    reason: str
    requested_by: str = Field(description="the token's id")
    created_at: datetime
    stage: Stage
    progress: ProgressAnswer
    decision: DecisionAnswer | None = Field(description="the last one; null: there was none")
    links: RegradeLinks


class RegradeList(_Answer):
    regrades: tuple[RegradeAnswer, ...] = Field(description="the newest first")


class MoveAnswer(_Answer):
    """A submission of a batch: what came out otherwise, and why."""

    submission: str
    student: str | None
    received_at: datetime
    state: State
    status: str | None = Field(description="of the trial; null: it is not in the queue yet")
    moved: bool | None = Field(description="null: the trial has not ended")
    stale: bool = Field(description="another run counts by now, so that it will be left alone")
    why: Why
    report: str | None = Field(description="of the trial")


class MovePage(_Answer):
    regrade: str
    moves: tuple[MoveAnswer, ...]
    next: str | None = Field(description="the next page; null on the last one")


class GradeSide(_Answer):
    submission: str | None
    verdict: Verdict | None
    final_score: Share | None


class StudentMove(_Answer):
    """A student whose grade would be another one. What is set by hand does not move."""

    student: str
    before: GradeSide
    after: GradeSide


class StudentMoves(_Answer):
    regrade: str
    students: tuple[StudentMove, ...]


class DoneAnswer(_Answer):
    """What a decision did, and where the batch is then. A large one goes on after the answer: ask for the regrade."""

    submissions: int
    ended: bool
    stale: int = Field(description="left alone, because another run counts by now")
    regrade: RegradeAnswer


class ChangeAnswer(_Answer):
    kind: str
    name: str
    how: Literal["added", "removed", "changed"]


class VersionAnswer(_Answer):
    """A state of a unit by which something was graded."""

    digest: str
    image: str
    grader: str
    first_at: datetime
    changed: tuple[ChangeAnswer, ...] = Field(description="since the version before; empty for the first")
    image_changed: bool
    grader_changed: bool


class VersionList(_Answer):
    unit: str
    now: str = Field(description="the digest of the unit as this process has loaded it")
    versions: tuple[VersionAnswer, ...] = Field(description="the first one first")


def regrade(batch: Batch, progress: Progress, decision: Decision | None) -> RegradeAnswer:
    here = links.to(f"/v1/regrades/{batch.id}")
    return RegradeAnswer(
        id=batch.id,
        course=batch.course,
        unit=batch.unit,
        which=batch.which,
        reason=batch.reason,
        requested_by=batch.token,
        created_at=moment(batch.created_at),
        stage=progress.stage,
        progress=ProgressAnswer(**vars(progress)),
        decision=_decision(decision) if decision is not None else None,
        links=RegradeLinks(
            self=here,
            page=links.to(f"/courses/{batch.course}/regrades/{batch.id}"),
            moves=f"{here}/moves",
            students=f"{here}/students",
        ),
    )


def _decision(found: Decision) -> DecisionAnswer:
    return DecisionAnswer(
        what=found.what,
        begun_at=moment(found.by.now),
        ended=found.ended,
        submissions=found.submissions,
        stale=found.stale,
    )


def move(item: Item) -> MoveAnswer:
    report = f"/v1/submissions/{item.submission}/runs/{item.run}/report"
    return MoveAnswer(
        submission=item.submission,
        student=item.student,
        received_at=moment(item.received_at),
        state=item.state,
        status=item.status.value if item.status is not None else None,
        moved=item.moved,
        stale=item.stale,
        why=item.why,
        report=links.to(report) if item.run is not None else None,
    )


def student(found: GradeMove) -> StudentMove:
    return StudentMove(student=found.before.student, before=_side(found.before), after=_side(found.after))


def _side(grade: Grade) -> GradeSide:
    sent = grade.graded.sent if grade.graded is not None else None
    return GradeSide(
        submission=sent.id if sent is not None else None,
        verdict=sent.verdict if sent is not None else None,
        final_score=round(grade.final_score, 6) if grade.final_score is not None else None,
    )


def done(found: Decision, batch: Batch, progress: Progress) -> DoneAnswer:
    return DoneAnswer(
        submissions=found.submissions, ended=found.ended, stale=found.stale, regrade=regrade(batch, progress, found)
    )


def versions(unit: str, now: str, found: list[Version]) -> VersionList:
    before = [None, *found]
    return VersionList(
        unit=unit, now=now, versions=tuple(_version(old, new) for old, new in zip(before, found, strict=False))
    )


def _version(old: Version | None, new: Version) -> VersionAnswer:
    changed: tuple[Change, ...] = changes(old.parts, new.parts) if old is not None else ()
    return VersionAnswer(
        digest=new.digest,
        image=new.image,
        grader=new.grader,
        first_at=moment(new.first_at),
        changed=tuple(ChangeAnswer.model_validate(vars(each)) for each in changed),
        image_changed=old is not None and old.image != new.image,
        grader_changed=old is not None and old.grader != new.grader,
    )
