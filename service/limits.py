"""A submission about to be stored goes in, with who sends it; how many attempts are left comes out, or Problem.

What counts: the time of receipt decides whether an assignment is open. An attempt is used by every submission that is
`counted`, unless its run was cancelled or failed on our side; the hourly limit counts everything. Teachers and
administrators are not limited, and what they send for a student uses none of the student's attempts.
(docs/decisions/0127)
"""

import math
from dataclasses import dataclass

import sqlalchemy as sa

from service import offerings, walltime, wording
from service.accounts import Account, Role
from service.database import take_turns
from service.deadlines import LatePolicy, Times
from service.offerings import Assignment, Counts, Feedback, Offering
from service.problems import Problem
from service.runs import Status
from service.settings import Settings
from service.tables import runs, submissions, tokens

SECONDS_PER_HOUR = 3_600.0


@dataclass(frozen=True)
class Standing:
    """Where a student stands with a unit: times and limits with the extension, and what of them is used.

    `free_at` is when the hourly limit and the pause between attempts next allow one; the past if they do now.
    """

    times: Times
    late_policy: LatePolicy
    counts: Counts
    attempts: int | None
    attempts_used: int
    attempts_per_hour: int | None
    used_this_hour: int
    cooldown_seconds: float | None
    hour_free_at: float
    cooled_at: float
    feedback: Feedback

    @property
    def attempts_left(self) -> int | None:
        """None: without limit."""
        return max(0, self.attempts - self.attempts_used) if self.attempts is not None else None

    @property
    def left_this_hour(self) -> int | None:
        if self.attempts_per_hour is None:
            return None
        return max(0, self.attempts_per_hour - self.used_this_hour)

    @property
    def free_at(self) -> float:
        return max(self.hour_free_at, self.cooled_at)


@dataclass(frozen=True)
class Allowed:
    """A submission may be stored. `counted` belongs into its row; `attempts_left` is what is left after it."""

    counted: bool
    attempts_left: int | None


def usual(settings: Settings) -> Assignment:
    """What is asked of a unit where no teacher has said anything."""
    return Assignment(attempts_per_hour=settings.attempts_per_hour or None)


def check(
    connection: sa.Connection,
    account: Account,
    *,
    course: str,
    unit: str,
    student: str | None,
    received_at: float,
    now: float,
    usual: Assignment,
    counted: bool = True,
) -> Allowed:
    """Whether a submission may be stored in this transaction, before which nobody else's of the student's can be.

    `counted` False is for one that uses no attempt: it repeats an earlier one. Raises Problem 403 `course_archived`,
    `not_open_yet` or `closed`, and 429 `attempts_used_up`, `too_many_per_hour` or `cooling_down`.
    """
    # Across units and courses, because the place in the queue depends on all of them.
    take_turns(connection, f"submissions of {student if student is not None else account.id}")
    if account.sees_class:
        return Allowed(False, None)
    offering = offerings.find(connection, course)
    if offering is None:
        raise LookupError(f"there is no course {course}")
    if offering.archived_at is not None:
        raise Problem(403, "course_archived", wording.course_archived(course))
    found = standing(connection, course, unit, student, now, usual)
    _check_times(found.times, offering, received_at)
    if student is None:
        return Allowed(False, None)
    if counted:
        _check_attempts(found)
    _check_pace(found, now, counted)
    left = found.attempts_left
    return Allowed(counted, left - 1 if counted and left is not None else left)


def attempts_left(connection: sa.Connection, course: str, unit: str, student: str | None) -> int | None:
    """What is left of a student's attempts at a unit; None: without limit."""
    asked = offerings.assignment(connection, course, unit) if student is not None else None
    if student is None or asked is None or asked.attempts is None:
        return None
    allowed = offerings.attempts_for(asked, offerings.extension(connection, course, unit, student)) or 0
    return max(0, allowed - _used(connection, course, unit, student)[0])


def standing(
    connection: sa.Connection, course: str, unit: str, student: str | None, now: float, usual: Assignment
) -> Standing:
    """Where a student stands with a unit; what holds for everyone if `student` is None."""
    asked = offerings.assignment(connection, course, unit) or usual
    granted = offerings.extension(connection, course, unit, student) if student is not None else None
    used, last_at, hour = 0, -math.inf, list[float]()
    if student is not None:
        if asked.attempts is not None or asked.cooldown_seconds is not None:
            used, last_at = _used(connection, course, unit, student)
        if asked.attempts_per_hour is not None:
            hour = _within_an_hour(connection, course, unit, student, now, asked.attempts_per_hour)
    hour_is_full = asked.attempts_per_hour is not None and len(hour) >= asked.attempts_per_hour
    return Standing(
        times=offerings.times_for(asked, granted),
        late_policy=asked.late_policy,
        counts=asked.counts,
        attempts=offerings.attempts_for(asked, granted),
        attempts_used=used,
        attempts_per_hour=asked.attempts_per_hour,
        used_this_hour=len(hour),
        cooldown_seconds=asked.cooldown_seconds,
        hour_free_at=hour[-1] + SECONDS_PER_HOUR if hour_is_full else -math.inf,
        cooled_at=last_at + (asked.cooldown_seconds or 0.0),
        feedback=asked.feedback,
    )


def _check_times(times: Times, offering: Offering, received_at: float) -> None:
    if times.opens_at is not None and received_at < times.opens_at:
        opens = walltime.show(times.opens_at, offering.timezone)
        message = wording.not_open_yet(opens, offering.timezone)
        raise Problem(403, "not_open_yet", message, opens_at=opens.isoformat())
    if times.closes_at is not None and received_at > times.closes_at:
        closed = walltime.show(times.closes_at, offering.timezone)
        message = wording.closed(closed, offering.timezone)
        raise Problem(403, "closed", message, closes_at=closed.isoformat())


def _check_attempts(found: Standing) -> None:
    if found.attempts is not None and found.attempts_left == 0:
        # No Retry-After: waiting does not help.
        raise Problem(429, "attempts_used_up", wording.attempts_used_up(found.attempts), attempts_left=0)


def _check_pace(found: Standing, now: float, counted: bool) -> None:
    if found.hour_free_at > now:
        message = wording.too_many_per_hour(found.attempts_per_hour or 0, found.hour_free_at - now)
        raise _later("too_many_per_hour", message, found.free_at - now, found)
    if counted and found.cooled_at > now:
        message = wording.cooling_down(found.cooldown_seconds or 0.0, found.cooled_at - now)
        raise _later("cooling_down", message, found.free_at - now, found)


def _later(code: str, message: str, seconds: float, found: Standing) -> Problem:
    return Problem(
        429,
        code,
        message,
        headers={"Retry-After": str(math.ceil(seconds))},
        attempts_left=found.attempts_left,
        left_this_hour=found.left_this_hour,
        retry_after_seconds=math.ceil(seconds),
    )


_MINE = (
    submissions.c.course == sa.bindparam("course"),
    submissions.c.unit == sa.bindparam("unit"),
    submissions.c.student == sa.bindparam("student"),
)
_USED = (
    sa.select(sa.func.count(), sa.func.max(submissions.c.received_at))
    .select_from(submissions.join(runs, runs.c.id == submissions.c.run))
    .where(*_MINE, submissions.c.counted, runs.c.status.not_in([Status.CANCELLED.value, Status.ERROR.value]))
)
_SINCE = (
    sa.select(submissions.c.received_at)
    .join(tokens, tokens.c.id == submissions.c.token)
    .where(
        *_MINE,
        submissions.c.received_at > sa.bindparam("since"),
        # A person submits for themselves as a student, and for others as a teacher.
        sa.or_(
            tokens.c.role.in_([Role.STUDENT.value, Role.LMS.value]),
            sa.and_(tokens.c.role == Role.PERSON.value, tokens.c.student == submissions.c.student),
        ),
    )
    .order_by(submissions.c.received_at.desc())
    .limit(sa.bindparam("most"))
)


def _used(connection: sa.Connection, course: str, unit: str, student: str) -> tuple[int, float]:
    """How many attempts the student has used, and when the last of them was received."""
    count, last_at = connection.execute(_USED, {"course": course, "unit": unit, "student": student}).one()
    return count, last_at if last_at is not None else -math.inf


def _within_an_hour(
    connection: sa.Connection, course: str, unit: str, student: str, now: float, most: int
) -> list[float]:
    """When the newest submissions of the last hour were received that were not a teacher's, up to `most` of them, the
    newest first."""
    mine = {"course": course, "unit": unit, "student": student, "since": now - SECONDS_PER_HOUR, "most": most}
    return list(connection.execute(_SINCE, mine).scalars())
