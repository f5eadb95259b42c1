"""What the API answers with, as published in OpenAPI: rows and units go in, JSON models come out."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from grader.report import IntakeEntry, Verdict, intake_entries
from grader.unit import Dep, Unit
from service import audit, links, regrades, runs
from service.hints import Board, Budget, HintUse, Unlocked
from service.places import Place
from service.schedules import StandingAnswer
from service.submissions import Stored


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


Share = Annotated[float, Field(ge=0, le=1)]


class ProgressAnswer(Answer):
    phase: str
    done: int
    total: int


class SubmissionLinks(Answer):
    self: str
    events: str = Field(description="Server-Sent Events: status, progress, done")
    report: str
    hints: str


_ID = "6f1c2b9d0c6c4c6f8f6e0c1f6d1b2a3c"
_HERE = f"/v1/submissions/{_ID}"
_RUNNING: dict[str, Any] = {
    "id": _ID,
    "unit": "L5.3",
    "status": "running",
    "position": None,
    "estimate_seconds": 8.5,
    "progress": {"phase": "mutants", "done": 9, "total": 80},
    "attempts_left": 4,
    "links": {"self": _HERE, "events": f"{_HERE}/events", "report": f"{_HERE}/report", "hints": f"{_HERE}/hints"},
    "intake": [],
}


class SubmissionAnswer(Answer):
    """Where a submission stands: the answer to a POST and to every status request."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RUNNING]})

    id: str
    unit: str
    status: runs.Status
    position: int | None = Field(description="place among those that wait; 1 is next")
    estimate_seconds: float | None = Field(description="until the report; null while there is nothing to go by")
    progress: ProgressAnswer | None
    attempts_left: int | None = Field(description="the student's; null: unlimited")
    quarantined: bool = Field(default=False, description="given up, because the grader died in every attempt")
    links: SubmissionLinks
    intake: tuple[IntakeEntry, ...] = Field(description="what was dropped or renamed, and why")


class UnitLinks(Answer):
    self: str
    page: str
    submissions: str
    course_tests: str


class UnitSummary(Answer):
    id: str
    title: str
    files: tuple[str, ...] = Field(description="what a student writes, as paths in the student's repository")
    links: UnitLinks


class UnitProblemAnswer(Answer):
    unit: str
    file: str
    line: int
    reason: str


class ListedUnitAnswer(Answer):
    unit: str
    title: str
    reason: str = Field(description="why nothing can be handed in for it here")


class UnitList(Answer):
    units: tuple[UnitSummary, ...]
    not_offered: tuple[ListedUnitAnswer, ...] = Field(description="units that the course names and does not grade here")
    problems: tuple[UnitProblemAnswer, ...] = Field(description="units of the course tree that could not be loaded")


class FieldAnswer(Answer):
    name: str
    path: str
    required: bool
    repeatable: bool


class DepAnswer(Answer):
    id: str
    title: str
    offered: bool
    fields: tuple[str, ...] = Field(description="of the form, in which its files may be sent along")


class LimitsAnswer(Answer):
    upload_bytes: int
    course_test_seconds: float = Field(description="wall seconds one course test may take")
    suite_cpu_seconds: float = Field(description="CPU seconds one run of your tests may take on the reference")


class CourseTestAnswer(Answer):
    id: str
    kind: str
    why: str
    chapter: str
    path: str


class FreedomAnswer(Answer):
    id: str
    says: str


class ErratumAnswer(Answer):
    printed: str
    correct: str
    note: str


class UnitAnswer(Answer):
    """What to build for a unit, and how it is judged."""

    id: str
    title: str
    build: tuple[str, ...]
    contract: dict[str, str] = Field(description="the .pyi of each of the unit's modules, by module name")
    forbidden: tuple[str, ...]
    fields: tuple[FieldAnswer, ...] = Field(description="of the multipart form to post")
    deps: tuple[DepAnswer, ...] = Field(description="the units it builds on, nearest first")
    tests_path: str
    threshold: Share
    required_mutants: int
    mutants: int
    limits: LimitsAnswer
    attempts_left: int | None = Field(description="the caller's; null: unlimited")
    assignment: StandingAnswer = Field(description="times and attempts in the course asked for")
    smoke: tuple[str, ...]
    course_tests: tuple[CourseTestAnswer, ...]
    freedoms: tuple[FreedomAnswer, ...]
    errata: tuple[ErratumAnswer, ...]
    links: UnitLinks


class SubmissionRow(Answer):
    id: str
    unit: str
    course: str
    student: str | None
    received_at: datetime
    status: runs.Status
    verdict: Verdict | None
    score: Share | None
    mutation_score: Share | None
    attempts: int = Field(description="times the grading of this submission was begun")
    quarantined: bool = Field(description="given up, because the grader died in every attempt: somebody should look")
    by_hand: Share | None = Field(description="the student's grade for the unit as a teacher set it; null: not set")
    links: SubmissionLinks


class SubmissionPage(Answer):
    submissions: tuple[SubmissionRow, ...]
    next: str | None = Field(description="the next page; null on the last one")


class ScoreBucket(Answer):
    low: Share
    high: Share
    count: int


class CourseTestStats(Answer):
    id: str
    graded: int
    failed: int = Field(description="every outcome but passed")
    outcomes: dict[str, int]


class MutantStats(Answer):
    id: str
    graded: int
    survived: int
    statuses: dict[str, int]


class DayStats(Answer):
    day: str = Field(description="UTC, YYYY-MM-DD")
    submissions: int
    passed: int


class StatsAnswer(Answer):
    """What a class did with a unit."""

    unit: str
    course: str | None
    submissions: int
    students: int
    statuses: dict[str, int]
    verdicts: dict[str, int]
    mean_score: Share | None
    scores: tuple[ScoreBucket, ...] = Field(description="ten equal buckets; the last one includes 1")
    course_tests: tuple[CourseTestStats, ...]
    mutants: tuple[MutantStats, ...]
    days: tuple[DayStats, ...]


class RegradeRequest(Answer):
    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^[^\x00]*$")
    ] = Field(description="why it is graded again; the student reads this too")


class RunLinks(Answer):
    report: str


class RunAnswer(Answer):
    """One grading of a submission."""

    id: str
    kind: Literal["first", "regrade", "trial"] = Field(description="trial: of a batch, and does not count; for staff")
    status: runs.Status
    counts: bool = Field(description="its report is the submission's")
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    quarantined: bool = Field(description="the worker died in every attempt; a regrade is another try")
    cached: bool = Field(description="the same files had been graded before, and the report repeats that")
    reason: str
    requested_by: str | None = Field(description="the token that asked for the regrade; null for students")
    requester: str | None = Field(description="that token's label; null for students")
    verdict: Verdict | None
    score: Share | None
    mutation_score: Share | None
    links: RunLinks


class RunList(Answer):
    submission: str
    runs: tuple[RunAnswer, ...] = Field(description="the first one first")


MUTANT_ID = r"^[A-Za-z][A-Za-z0-9]{0,15}$"
MOST_HINTS = 20  # of a mutant


class HintRequest(Answer):
    model_config = ConfigDict(frozen=True, extra="forbid")

    mutant: str = Field(pattern=MUTANT_ID, examples=["m09"])
    number: int | None = Field(
        default=None, ge=1, le=MOST_HINTS, description="which hint; null: the next. With it, sending twice unlocks one."
    )


class RatingRequest(Answer):
    model_config = ConfigDict(frozen=True, extra="forbid")

    helpful: bool


class HintAnswer(Answer):
    number: int = Field(description="1 is the hint in the report")
    text: str
    unlocked_at: datetime | None = Field(description="null: it stands in the report")
    helpful: bool | None = Field(description="the student's rating; null: none yet")


class MutantHints(Answer):
    mutant: str
    category: str
    required: bool
    unlocked: tuple[HintAnswer, ...] = Field(description="from vague to concrete")
    left: int = Field(description="hints of this mutant that are not unlocked")


class HintLimitsAnswer(Answer):
    """A teacher's limits on unlocking, and what is left of them."""

    unlocks: int | None = Field(description="at this unit in all; null: without limit")
    unlocks_used: int
    unlocks_left: int | None
    unlocks_per_hour: int | None
    left_this_hour: int | None
    cooldown_seconds: float | None = Field(description="between two")
    retry_after_seconds: float = Field(description="until the limits in time allow the next; 0: they do now")


class HintsAnswer(Answer):
    """What a student has unlocked of the hints of the mutants that survived."""

    submission: str
    newest: bool = Field(description="hints can be unlocked for the newest graded submission only")
    mutants: tuple[MutantHints, ...]
    limits: HintLimitsAnswer


class UnlockAnswer(Answer):
    mutant: str
    hint: HintAnswer
    left: int = Field(description="hints of this mutant that are not unlocked")
    limits: HintLimitsAnswer


class HintUseRow(Answer):
    number: int = Field(description="1 is the hint in the report, which nobody unlocks")
    text: str
    unlocked: int = Field(description="by how many students")
    helpful: int = Field(description="rated so by how many students")
    unhelpful: int
    caught: int = Field(description="who unlocked it and caught the mutant with a later submission")


class MutantHintUse(Answer):
    mutant: str
    hints: tuple[HintUseRow, ...]


class HintUseAnswer(Answer):
    """How a class fared with the hints of a unit."""

    unit: str
    course: str | None
    mutants: tuple[MutantHintUse, ...]


class ErasedAnswer(Answer):
    """What is no longer there."""

    pseudonym: str = Field(description="what the audit log calls the student from now on")
    submissions: int
    runs: int
    tokens: int = Field(description="revoked, and of nobody now")
    blobs: int = Field(description="files that nobody else had sent")


class AuditEntry(Answer):
    id: int
    at: datetime
    token: str | None = Field(description="who; null: the command line or the service itself")
    label: str = Field(description="of the token")
    role: str
    action: str
    object: str = Field(description="the id of what it was done to")
    student: str | None = Field(description="whom it concerns; a pseudonym once that student is erased")
    course: str | None
    unit: str | None
    detail: dict[str, Any]
    request_id: str


class AuditPage(Answer):
    entries: tuple[AuditEntry, ...]
    next: str | None = Field(description="the next page; null on the last one")


class Alive(Answer):
    status: Literal["alive"] = "alive"


class CheckAnswer(Answer):
    name: str
    ok: bool
    state: str = Field(description="in words")


class Ready(Answer):
    ready: bool
    missing: tuple[str, ...] = Field(description="what is missing to take in and grade submissions, in words")
    workers: int = Field(description="that are alive")
    checks: tuple[CheckAnswer, ...]


def links_of(submission_id: str) -> SubmissionLinks:
    here = links.to(f"/v1/submissions/{submission_id}")
    return SubmissionLinks(self=here, events=f"{here}/events", report=f"{here}/report", hints=f"{here}/hints")


def submission(stored: Stored, run: runs.RunState, place: Place, attempts_left: int | None) -> SubmissionAnswer:
    seconds = place.estimate_seconds
    running = run.status is runs.Status.RUNNING
    return SubmissionAnswer(
        id=stored.id,
        unit=stored.unit,
        status=run.status,
        position=place.position,
        estimate_seconds=round(seconds, 1) if seconds is not None else None,
        progress=ProgressAnswer(phase=run.phase, done=run.done, total=run.total) if running else None,
        attempts_left=attempts_left,
        quarantined=run.quarantined,
        links=links_of(stored.id),
        intake=intake_entries(stored.notes),
    )


def taken_in(stored: Stored) -> SubmissionAnswer:
    """All that is certain of a submission just stored, when the database cannot be asked."""
    return SubmissionAnswer(
        id=stored.id,
        unit=stored.unit,
        status=runs.Status.QUEUED,
        position=None,
        estimate_seconds=None,
        progress=None,
        attempts_left=None,
        links=links_of(stored.id),
        intake=intake_entries(stored.notes),
    )


def unit_links(unit: Unit) -> UnitLinks:
    here = links.to(f"/v1/units/{unit.id}")
    return UnitLinks(
        self=here,
        page=links.to(f"/units/{unit.id}"),
        submissions=f"{here}/submissions",
        course_tests=f"{here}/course-tests",
    )


def unit_summary(unit: Unit) -> UnitSummary:
    return UnitSummary(id=unit.id, title=unit.title, files=tuple(f.path for f in unit.files), links=unit_links(unit))


def unit_answer(unit: Unit, upload_bytes: int, standing: StandingAnswer) -> UnitAnswer:
    fields = [FieldAnswer(name=f.stem, path=f.path, required=True, repeatable=False) for f in unit.files]
    fields.append(FieldAnswer(name="tests", path=unit.tests_path, required=True, repeatable=True))
    return UnitAnswer(
        id=unit.id,
        title=unit.title,
        build=unit.build,
        contract={name: contract.source for name, contract in unit.contract.items()},
        forbidden=unit.forbidden,
        fields=tuple(fields),
        deps=tuple(_dep_answer(unit, dep) for dep in unit.deps),
        tests_path=unit.tests_path,
        threshold=unit.threshold,
        required_mutants=len(unit.required_mutants),
        mutants=len(unit.mutants),
        limits=LimitsAnswer(
            upload_bytes=upload_bytes,
            course_test_seconds=unit.test_seconds,
            suite_cpu_seconds=unit.budget_cpu_seconds,
        ),
        attempts_left=standing.attempts_left,
        assignment=standing,
        smoke=unit.smoke,
        course_tests=tuple(
            CourseTestAnswer(id=t.name, kind=t.kind, why=t.why, chapter=t.chapter, path=t.path)
            for t in unit.course_tests
        ),
        freedoms=tuple(FreedomAnswer(id=f.id, says=f.says) for f in unit.freedoms),
        errata=tuple(ErratumAnswer(printed=e.printed, correct=e.correct, note=e.note) for e in unit.errata),
        links=unit_links(unit),
    )


def _dep_answer(unit: Unit, dep: Dep) -> DepAnswer:
    fields = tuple(stem for stem, file in unit.dep_stems.items() if file in dep.files)
    return DepAnswer(id=dep.id, title=dep.title, offered=dep.offered, fields=fields)


def moment(seconds: float) -> datetime:
    """Seconds since 1970, as stored, as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def seconds(time: datetime | None) -> float | None:
    """A time as stored: seconds since 1970; one without an offset is in UTC."""
    if time is None:
        return None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def run_list(stored: Stored, found: Iterable[regrades.RunRow], *, staff: bool, counts: bool = True) -> RunList:
    """`counts`: the reader is told more than verdict and score."""
    return RunList(submission=stored.id, runs=tuple(_run_answer(stored, run, staff, counts) for run in found))


def _run_answer(stored: Stored, run: regrades.RunRow, staff: bool, counts: bool) -> RunAnswer:
    return RunAnswer(
        id=run.id,
        kind="regrade" if run.kind == runs.REGRADE else "trial" if run.kind == runs.TRIAL else "first",
        status=run.status,
        counts=run.counts,
        queued_at=moment(run.queued_at),
        started_at=moment(run.started_at) if run.started_at is not None else None,
        finished_at=moment(run.finished_at) if run.finished_at is not None else None,
        attempts=run.attempts,
        quarantined=run.quarantined,
        cached=run.cached,
        reason=run.reason,
        requested_by=run.requested_by if staff else None,
        requester=run.requester if staff and run.requested_by is not None else None,
        verdict=Verdict(run.verdict) if run.verdict is not None else None,
        score=run.score,
        mutation_score=run.mutation_score if counts else None,
        links=RunLinks(report=links.to(f"/v1/submissions/{stored.id}/runs/{run.id}/report")),
    )


def audit_entry(entry: audit.Entry) -> AuditEntry:
    return AuditEntry(
        id=entry.id,
        at=moment(entry.at),
        token=entry.token,
        label=entry.label,
        role=entry.role,
        action=entry.action,
        object=entry.object,
        student=entry.student,
        course=entry.course,
        unit=entry.unit,
        detail=dict(entry.detail),
        request_id=entry.request_id,
    )


def hint(found: Unlocked) -> HintAnswer:
    unlocked_at = moment(found.unlocked_at) if found.unlocked_at is not None else None
    return HintAnswer(number=found.number, text=found.text, unlocked_at=unlocked_at, helpful=found.helpful)


def hint_limits(found: Budget, now: float) -> HintLimitsAnswer:
    return HintLimitsAnswer(
        unlocks=found.limits.unlocks,
        unlocks_used=found.used,
        unlocks_left=found.left,
        unlocks_per_hour=found.limits.per_hour,
        left_this_hour=found.left_this_hour,
        cooldown_seconds=found.limits.cooldown_seconds,
        retry_after_seconds=round(max(0.0, found.free_at - now), 1),
    )


def hints(submission_id: str, found: Board, now: float) -> HintsAnswer:
    return HintsAnswer(
        submission=submission_id,
        newest=found.newest,
        mutants=tuple(
            MutantHints(
                mutant=each.id,
                category=each.category,
                required=each.required,
                unlocked=tuple(map(hint, each.unlocked)),
                left=each.left,
            )
            for each in found.survivors
        ),
        limits=hint_limits(found.budget, now),
    )


def hint_use(unit: str, course: str | None, found: Iterable[HintUse]) -> HintUseAnswer:
    """`found` goes mutant by mutant."""
    rows: dict[str, list[HintUseRow]] = {}
    for each in found:
        row = HintUseRow(
            number=each.number,
            text=each.text,
            unlocked=each.unlocked,
            helpful=each.helpful,
            unhelpful=each.unhelpful,
            caught=each.caught,
        )
        rows.setdefault(each.mutant, []).append(row)
    mutants = tuple(MutantHintUse(mutant=mutant, hints=tuple(told)) for mutant, told in rows.items())
    return HintUseAnswer(unit=unit, course=course, mutants=mutants)
