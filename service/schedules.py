"""What a teacher writes about offerings, assignments and extensions goes in and becomes the records of offerings.py, or
Problem; the records come out as the API shows them.

A time is read on the clocks of the course's zone unless it has an offset, and always shown with one.
"""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from grader.report import Level
from service import walltime, wording
from service.deadlines import LatePolicy, Times
from service.limits import Standing
from service.offerings import Assignment, Counts, Extension, Feedback, HintLimits, Offering
from service.problems import Problem

COURSE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
MOST_ATTEMPTS = 1_000_000
DEFAULT_COURSE = "default"


def is_course_id(text: str) -> bool:
    return re.fullmatch(COURSE_ID, text) is not None


def _storable(text: str) -> str:
    if "\0" in text or not text.isprintable():
        raise ValueError("must consist of printable characters")
    return text


Line = Annotated[str, Field(max_length=400), AfterValidator(_storable)]
Moment = Annotated[str | None, Field(max_length=40, examples=["2026-10-25T23:59", "2026-10-25T23:59:00+02:00"])]
Count = Annotated[int | None, Field(ge=1, le=MOST_ATTEMPTS)]
Unlocks = Annotated[int | None, Field(ge=0, le=MOST_ATTEMPTS)]
Pause = Annotated[float | None, Field(ge=0, le=400 * 86_400, allow_inf_nan=False)]


_USUAL = HintLimits()


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FeedbackBody(_Body):
    """How much students are told of their reports: none, counts, categories, names or hints.

    The first of after_passing, after_deadline and past_limit that is not null and applies when the report is read
    decides; else `normal` does. Verdict and score are always told, and staff everything.
    """

    normal: Level = Level.HINTS
    past_limit: Level | None = Field(default=None, description="of submissions after the student's `attempts`")
    after_deadline: Level | None = Field(default=None, description="once the student's due time is over")
    after_passing: Level | None = Field(default=None, description="once a submission of the student's has passed")
    attempts: Count = Field(
        default=None, description="with normal feedback; null: as many as the assignment has attempts"
    )


class OfferingBody(_Body):
    title: Line
    timezone: str = Field(default="UTC", max_length=64, description="IANA name, such as Europe/Berlin")
    archived: bool = Field(default=False, description="an archived course takes no more submissions from students")
    listed_only: bool = Field(
        default=False, description="students' tokens that name no course are good only for those on the class list"
    )


class AssignmentBody(_Body):
    """All that is asked; what is left out becomes as it is for a unit nobody has said anything about."""

    opens_at: Moment = None
    due_at: Moment = None
    closes_at: Moment = None
    late_policy: LatePolicy = LatePolicy()
    attempts: Count = Field(default=None, description="of a student in all; null: without limit")
    attempts_per_hour: Count = None
    cooldown_seconds: Pause = Field(default=None, description="between two attempts")
    counts: Counts = Counts.BEST
    hints: Unlocks = Field(default=_USUAL.unlocks, description="that a student may unlock in all; null: without limit")
    hints_per_hour: Count = Field(default=_USUAL.per_hour, description="null: without limit")
    hint_cooldown_seconds: Pause = Field(default=_USUAL.cooldown_seconds, description="between two hints; null: none")
    feedback: FeedbackBody = FeedbackBody()


class ExtensionBody(_Body):
    due_at: Moment = None
    closes_at: Moment = None
    extra_attempts: int = Field(default=0, ge=0, le=MOST_ATTEMPTS)
    reason: Line = ""


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True)


class OfferingAnswer(_Shown):
    id: str
    title: str
    timezone: str
    archived: bool
    listed_only: bool
    archived_at: datetime | None
    created_at: datetime


class OfferingList(_Shown):
    courses: tuple[OfferingAnswer, ...]


class AssignmentAnswer(_Shown):
    """What a course asks of a unit. Times have the offset of the course's zone."""

    course: str
    unit: str
    opens_at: datetime | None
    due_at: datetime | None
    closes_at: datetime | None
    late_policy: LatePolicy
    attempts: int | None
    attempts_per_hour: int | None
    cooldown_seconds: float | None
    counts: Counts
    hints: int | None = Field(description="that a student may unlock in all; null: without limit")
    hints_per_hour: int | None
    hint_cooldown_seconds: float | None
    feedback: FeedbackBody


class CourseAnswer(OfferingAnswer):
    units: tuple[AssignmentAnswer, ...] = Field(description="those about which something has been said")


class ExtensionAnswer(_Shown):
    student: str
    due_at: datetime | None
    closes_at: datetime | None
    extra_attempts: int
    reason: str
    granted_by: str = Field(description="the token's id, or command line")
    granted_at: datetime


class ExtensionList(_Shown):
    extensions: tuple[ExtensionAnswer, ...]


class StandingAnswer(_Shown):
    """When the caller may submit, and how often; for a teacher, what holds for everyone."""

    course: str
    opens_at: datetime | None
    due_at: datetime | None
    closes_at: datetime | None
    late_policy: LatePolicy
    counts: Counts
    attempts: int | None = Field(description="in all; null: without limit")
    attempts_used: int
    attempts_left: int | None
    attempts_per_hour: int | None
    left_this_hour: int | None
    cooldown_seconds: float | None
    retry_after_seconds: float = Field(description="until the limits in time allow the next; 0: they do now")
    feedback: FeedbackBody = Field(description="how much is told of reports, and when")


# -- in ------------------------------------------------------------------------------------------------------------


def offering(course: str, body: OfferingBody, before: Offering | None, now: float) -> Offering:
    """The offering as it shall be; raises Problem 422 for a zone that is none."""
    if not walltime.is_zone(body.timezone):
        raise Problem(422, "timezone_unknown", wording.zone_unknown(body.timezone))
    archived_at = before.archived_at if before is not None else None
    return Offering(
        id=course,
        title=body.title,
        timezone=body.timezone,
        created_at=before.created_at if before is not None else now,
        archived_at=(archived_at or now) if body.archived else None,
        listed_only=body.listed_only,
    )


def assignment(body: AssignmentBody, zone: str) -> Assignment:
    """Raises Problem 422 for times that cannot be read, or do not follow one another."""
    times = Times(*(read_time(getattr(body, name), name, zone) for name in ("opens_at", "due_at", "closes_at")))
    said = [moment for moment in (times.opens_at, times.due_at, times.closes_at) if moment is not None]
    if said != sorted(said):
        raise Problem(422, "times_disordered", wording.TIMES_DISORDERED)
    return Assignment(
        times,
        body.late_policy,
        body.attempts,
        body.attempts_per_hour,
        body.cooldown_seconds,
        body.counts,
        HintLimits(body.hints, body.hints_per_hour, body.hint_cooldown_seconds),
        Feedback(**dict(body.feedback)),
    )


def extension(student: str, body: ExtensionBody, zone: str, token: str, now: float) -> Extension:
    """Raises Problem 422 for times that cannot be read, and where nothing is extended."""
    due_at, closes_at = (read_time(getattr(body, name), name, zone) for name in ("due_at", "closes_at"))
    if due_at is None and closes_at is None and not body.extra_attempts:
        raise Problem(422, "extension_empty", wording.EXTENSION_EMPTY)
    return Extension(student, due_at, closes_at, body.extra_attempts, body.reason, token, now)


def read_time(text: str | None, name: str, zone: str) -> float | None:
    """UTC seconds of a time in the field `name`; raises Problem 422 for one that cannot be read."""
    if text is None:
        return None
    try:
        return walltime.read(text, zone)
    except walltime.Unreadable as error:
        raise Problem(422, "time_unreadable", wording.TIME_UNREADABLE, field=name) from error
    except walltime.Skipped as error:
        message = wording.time_skipped(text, zone, error.earlier, error.later)
        raise Problem(422, "time_skipped", message, field=name) from error
    except walltime.Repeated as error:
        message = wording.time_repeated(text, zone, error.earlier, error.later)
        raise Problem(422, "time_repeated", message, field=name) from error


# -- out -----------------------------------------------------------------------------------------------------------


def shown_offering(found: Offering) -> OfferingAnswer:
    return OfferingAnswer(
        id=found.id,
        title=found.title,
        timezone=found.timezone,
        archived=found.archived_at is not None,
        listed_only=found.listed_only,
        archived_at=_show(found.archived_at, found.timezone),
        created_at=walltime.show(found.created_at, found.timezone),
    )


def shown_course(found: Offering, units: dict[str, Assignment]) -> CourseAnswer:
    shown = tuple(shown_assignment(found, unit, asked) for unit, asked in units.items())
    return CourseAnswer(**dict(shown_offering(found)), units=shown)


def shown_assignment(course: Offering, unit: str, asked: Assignment) -> AssignmentAnswer:
    return AssignmentAnswer(
        course=course.id,
        unit=unit,
        **_times_fields(asked.times, course.timezone),
        late_policy=asked.late_policy,
        attempts=asked.attempts,
        attempts_per_hour=asked.attempts_per_hour,
        cooldown_seconds=asked.cooldown_seconds,
        counts=asked.counts,
        hints=asked.hints.unlocks,
        hints_per_hour=asked.hints.per_hour,
        hint_cooldown_seconds=asked.hints.cooldown_seconds,
        feedback=_shown_feedback(asked.feedback),
    )


def shown_extension(found: Extension, zone: str) -> ExtensionAnswer:
    return ExtensionAnswer(
        student=found.student,
        due_at=_show(found.due_at, zone),
        closes_at=_show(found.closes_at, zone),
        extra_attempts=found.extra_attempts,
        reason=found.reason,
        granted_by=found.token,
        granted_at=walltime.show(found.created_at, zone),
    )


def shown_standing(course: Offering, found: Standing, now: float) -> StandingAnswer:
    return StandingAnswer(
        course=course.id,
        **_times_fields(found.times, course.timezone),
        late_policy=found.late_policy,
        counts=found.counts,
        attempts=found.attempts,
        attempts_used=found.attempts_used,
        attempts_left=found.attempts_left,
        attempts_per_hour=found.attempts_per_hour,
        left_this_hour=found.left_this_hour,
        cooldown_seconds=found.cooldown_seconds,
        retry_after_seconds=round(max(0.0, found.free_at - now), 1),
        feedback=_shown_feedback(found.feedback),
    )


def _shown_feedback(found: Feedback) -> FeedbackBody:
    return FeedbackBody(**vars(found))


def _times_fields(times: Times, zone: str) -> dict[str, datetime | None]:
    return {
        "opens_at": _show(times.opens_at, zone),
        "due_at": _show(times.due_at, zone),
        "closes_at": _show(times.closes_at, zone),
    }


def _show(seconds: float | None, zone: str) -> datetime | None:
    return walltime.show(seconds, zone) if seconds is not None else None
