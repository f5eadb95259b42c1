"""What teachers decide goes in and is stored: course offerings, what they ask of a unit, and extensions; it comes out
as the records that limits and grades are computed from.

A unit without an assignment in a course is open without end and without limits. Every change is written into the audit
log by the function that makes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

import sqlalchemy as sa

from grader.report import Level
from service import audit, outbox, tables, wording
from service.audit import By
from service.database import insert_or_ignore
from service.deadlines import LatePolicy, Times, extended
from service.problems import Problem


class Counts(StrEnum):
    """Which of a student's submissions is the grade."""

    BEST = "best"
    LATEST = "latest"


@dataclass(frozen=True)
class Offering:
    """A course as it is held once. `timezone` is the IANA zone in which its times are read and shown. `listed_only`: a
    student's token that names no course is good for it only if the student is in it."""

    id: str
    title: str
    timezone: str
    created_at: float
    archived_at: float | None = None
    listed_only: bool = False


@dataclass(frozen=True)
class HintLimits:
    """How many hints a student may unlock at a unit: in all, in any hour, and how long after the one before.

    None: without that limit. What is usual is enough for every pitfall, and not for reading all hints in a row.
    (docs/decisions/0168)
    """

    unlocks: int | None = 20
    per_hour: int | None = 6
    cooldown_seconds: float | None = 60.0


class Moment(StrEnum):
    """When a student looks at a report, as far as that decides how much is told."""

    NORMAL = "normal"
    PAST_LIMIT = "past_limit"
    AFTER_DEADLINE = "after_deadline"
    AFTER_PASSING = "after_passing"


@dataclass(frozen=True)
class Feedback:
    """How much students are told of their reports. None: that moment changes nothing.

    `attempts` are those of a student whose reports are told normally; what is sent after them is past the limit. None:
    as many as the assignment has attempts. (docs/decisions/0196)
    """

    normal: Level = Level.HINTS
    past_limit: Level | None = None
    after_deadline: Level | None = None
    after_passing: Level | None = None
    attempts: int | None = None

    def at(self, moment: Moment) -> Level:
        level: Level | None = getattr(self, moment.value)
        return level if level is not None else self.normal


@dataclass(frozen=True)
class Assignment:
    """What an offering asks of a unit. None: without that limit."""

    times: Times = field(default_factory=Times)
    late_policy: LatePolicy = field(default_factory=LatePolicy)
    attempts: int | None = None
    attempts_per_hour: int | None = None
    cooldown_seconds: float | None = None
    counts: Counts = Counts.BEST
    hints: HintLimits = field(default_factory=HintLimits)
    feedback: Feedback = field(default_factory=Feedback)


@dataclass(frozen=True)
class Extension:
    """What one student gets beyond the others. `token` is the account that granted it."""

    student: str
    due_at: float | None
    closes_at: float | None
    extra_attempts: int
    reason: str
    token: str
    created_at: float


# Asked with every submission and every status, so made once.
_BY_ID = sa.select(tables.courses).where(tables.courses.c.id == sa.bindparam("course"))
_ASSIGNMENT = sa.select(tables.assignments).where(
    tables.assignments.c.course == sa.bindparam("course"), tables.assignments.c.unit == sa.bindparam("unit")
)
_EXTENSION = sa.select(tables.extensions).where(
    tables.extensions.c.course == sa.bindparam("course"),
    tables.extensions.c.unit == sa.bindparam("unit"),
    tables.extensions.c.student == sa.bindparam("student"),
)


def all_offerings(connection: sa.Connection) -> list[Offering]:
    return [_offering(row) for row in connection.execute(sa.select(tables.courses).order_by(tables.courses.c.id))]


def find(connection: sa.Connection, course: str) -> Offering | None:
    row = connection.execute(_BY_ID, {"course": course}).one_or_none()
    return _offering(row) if row is not None else None


def course_of(connection: sa.Connection, course: str) -> Offering:
    """The course that a path names; raises Problem 404 if there is none."""
    found = find(connection, course)
    if found is None:
        raise Problem(404, "course_unknown", wording.offering_unknown(course))
    return found


def put(connection: sa.Connection, offering: Offering, by: By) -> None:
    """Store an offering; one that is there keeps its time of creation, and its times stay the same moments."""
    known = find(connection, offering.id) is not None
    values = {
        "title": offering.title,
        "timezone": offering.timezone,
        "archived_at": offering.archived_at,
        "listed_only": offering.listed_only,
    }
    _put(connection, tables.courses, {"id": offering.id}, values, {"created_at": offering.created_at})
    _note(connection, "course.update" if known else "course.create", by, offering.id, detail=values)


def assignment(connection: sa.Connection, course: str, unit: str) -> Assignment | None:
    """What the course asks of the unit, None where no teacher has said so."""
    row = connection.execute(_ASSIGNMENT, {"course": course, "unit": unit}).one_or_none()
    return _assignment(row) if row is not None else None


def assignments(connection: sa.Connection, course: str) -> dict[str, Assignment]:
    """What the course asks, by unit."""
    query = sa.select(tables.assignments).where(tables.assignments.c.course == course)
    return {row.unit: _assignment(row) for row in connection.execute(query.order_by(tables.assignments.c.unit))}


def put_assignment(connection: sa.Connection, course: str, unit: str, wanted: Assignment, by: By) -> None:
    """Store what the course asks of the unit, in place of all that it asked before."""
    values = {
        "opens_at": wanted.times.opens_at,
        "due_at": wanted.times.due_at,
        "closes_at": wanted.times.closes_at,
        "late_policy": json.dumps(wanted.late_policy.model_dump(mode="json")),
        "attempts": wanted.attempts,
        "attempts_per_hour": wanted.attempts_per_hour,
        "cooldown_seconds": wanted.cooldown_seconds,
        "counts": wanted.counts.value,
        "hints": wanted.hints.unlocks,
        "hints_per_hour": wanted.hints.per_hour,
        "hint_cooldown_seconds": wanted.hints.cooldown_seconds,
        "feedback": wanted.feedback.normal.value,
        "feedback_past_limit": wanted.feedback.past_limit,
        "feedback_after_deadline": wanted.feedback.after_deadline,
        "feedback_after_passing": wanted.feedback.after_passing,
        "feedback_attempts": wanted.feedback.attempts,
    }
    _put(connection, tables.assignments, {"course": course, "unit": unit}, {**values, "updated_at": by.now})
    outbox.unit_changed(connection, course, unit, now=by.now)
    said = {**values, "late_policy": wanted.late_policy.model_dump(mode="json")}
    _note(connection, "assignment.update", by, course, unit, detail=said)


def extension(connection: sa.Connection, course: str, unit: str, student: str) -> Extension | None:
    row = connection.execute(_EXTENSION, {"course": course, "unit": unit, "student": student}).one_or_none()
    return _extension(row) if row is not None else None


def extensions(connection: sa.Connection, course: str, unit: str) -> list[Extension]:
    """Every extension for the unit, by student."""
    query = sa.select(tables.extensions).where(tables.extensions.c.course == course, tables.extensions.c.unit == unit)
    query = query.order_by(tables.extensions.c.student)
    return [_extension(row) for row in connection.execute(query)]


def extensions_of(connection: sa.Connection, course: str, student: str) -> dict[str, Extension]:
    """A student's extensions in a course, by unit."""
    query = sa.select(tables.extensions).where(
        tables.extensions.c.course == course, tables.extensions.c.student == student
    )
    return {row.unit: _extension(row) for row in connection.execute(query)}


def grant(connection: sa.Connection, course: str, unit: str, granted: Extension, by: By) -> None:
    """Store a student's extension in place of the one before."""
    keys = {"course": course, "unit": unit, "student": granted.student}
    values = {
        "due_at": granted.due_at,
        "closes_at": granted.closes_at,
        "extra_attempts": granted.extra_attempts,
        "reason": granted.reason,
    }
    _put(connection, tables.extensions, keys, {**values, "token": granted.token, "created_at": granted.created_at})
    outbox.grade_changed(connection, course, unit, granted.student, now=by.now)
    _note(connection, "extension.grant", by, course, unit, granted.student, values)


def withdraw(connection: sa.Connection, course: str, unit: str, student: str, by: By) -> bool:
    """Take a student's extension away; False if there was none."""
    table = tables.extensions
    query = table.delete().where(table.c.course == course, table.c.unit == unit, table.c.student == student)
    if connection.execute(query).rowcount == 0:
        return False
    outbox.grade_changed(connection, course, unit, student, now=by.now)
    _note(connection, "extension.withdraw", by, course, unit, student)
    return True


def times_for(asked: Assignment, granted: Extension | None) -> Times:
    """When a student with this extension may submit."""
    return extended(asked.times, granted.due_at, granted.closes_at) if granted is not None else asked.times


def attempts_for(asked: Assignment, granted: Extension | None) -> int | None:
    """How many attempts a student with this extension has in all; None: without limit."""
    if asked.attempts is None:
        return None
    return asked.attempts + (granted.extra_attempts if granted is not None else 0)


def _put(
    connection: sa.Connection,
    table: sa.Table,
    keys: Mapping[str, object],
    values: Mapping[str, object],
    only_new: Mapping[str, object] | None = None,
) -> None:
    """Change the row with these keys, or make it."""
    query = table.update().where(*(table.c[name] == value for name, value in keys.items())).values(values)
    if connection.execute(query).rowcount:
        return
    connection.execute(insert_or_ignore(connection, table, {**keys, **values, **(only_new or {})}))
    connection.execute(query)  # another may have made it in between


def _note(
    connection: sa.Connection,
    action: str,
    by: By,
    course: str,
    unit: str | None = None,
    student: str | None = None,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Write a change into the audit log, with times as people read them, in UTC."""
    said = {
        name: moment.isoformat(timespec="seconds") if name.endswith("_at") and (moment := _moment(value)) else value
        for name, value in (detail or {}).items()
    }
    audit.note(
        connection,
        by,
        action=action,
        object=course if unit is None else f"{course}/{unit}",
        student=student,
        course=course,
        unit=unit,
        detail=said,
    )


def _moment(value: object) -> datetime | None:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else None


def _offering(row: sa.Row[tuple[object, ...]]) -> Offering:
    return Offering(row.id, row.title, row.timezone, row.created_at, row.archived_at, row.listed_only)


def _assignment(row: sa.Row[tuple[object, ...]]) -> Assignment:
    return Assignment(
        times=Times(row.opens_at, row.due_at, row.closes_at),
        late_policy=LatePolicy.model_validate_json(row.late_policy),
        attempts=row.attempts,
        attempts_per_hour=row.attempts_per_hour,
        cooldown_seconds=row.cooldown_seconds,
        counts=Counts(row.counts),
        hints=HintLimits(row.hints, row.hints_per_hour, row.hint_cooldown_seconds),
        feedback=Feedback(
            normal=Level(row.feedback),
            past_limit=_level(row.feedback_past_limit),
            after_deadline=_level(row.feedback_after_deadline),
            after_passing=_level(row.feedback_after_passing),
            attempts=row.feedback_attempts,
        ),
    )


def _level(name: str | None) -> Level | None:
    return Level(name) if name is not None else None


def _extension(row: sa.Row[tuple[object, ...]]) -> Extension:
    return Extension(
        student=row.student,
        due_at=row.due_at,
        closes_at=row.closes_at,
        extra_attempts=row.extra_attempts,
        reason=row.reason,
        token=row.token,
        created_at=row.created_at,
    )
