"""A grade that a teacher sets by hand, and why, goes in and is stored; it comes out to those who compute grades.

It belongs to a student and a unit, not to a submission or a run: no regrade and no later submission changes it, and it
loses nothing for lateness. Taking it away brings back what the submissions come to. (docs/decisions/0199)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from grader.report import ByHandPart, Report
from service import audit, outbox, tables
from service.answers import moment
from service.audit import By
from service.database import insert_or_ignore
from service.submissions import Stored


@dataclass(frozen=True)
class Override:
    """`token` is the account that set it; `score` is 0 to 1."""

    student: str
    score: float
    reason: str
    token: str
    set_at: float


def put(connection: sa.Connection, course: str, unit: str, wanted: Override, by: By) -> None:
    """Store a student's grade in place of one that was set before."""
    before = find(connection, course, unit, wanted.student)
    table = tables.overrides
    keys = {"course": course, "unit": unit, "student": wanted.student}
    values = {"score": wanted.score, "reason": wanted.reason, "token": wanted.token, "set_at": wanted.set_at}
    connection.execute(insert_or_ignore(connection, table, {**keys, **values}))
    connection.execute(table.update().where(*_is(course, unit), table.c.student == wanted.student).values(values))
    detail = {"before": before.score if before is not None else None, "after": wanted.score, "reason": wanted.reason}
    _note(connection, "grade.set", course, unit, wanted.student, detail, by)


def withdraw(connection: sa.Connection, course: str, unit: str, student: str, by: By) -> bool:
    """Let the student's submissions be the grade again; False if nothing was set."""
    before = find(connection, course, unit, student)
    if before is None:
        return False
    connection.execute(tables.overrides.delete().where(*_is(course, unit), tables.overrides.c.student == student))
    _note(connection, "grade.unset", course, unit, student, {"before": before.score, "reason": before.reason}, by)
    return True


def find(connection: sa.Connection, course: str, unit: str, student: str) -> Override | None:
    query = sa.select(tables.overrides).where(*_is(course, unit), tables.overrides.c.student == student)
    row = connection.execute(query).one_or_none()
    return _override(row) if row is not None else None


def of_unit(connection: sa.Connection, course: str, unit: str) -> dict[str, Override]:
    """Every grade set for the unit, by student."""
    query = sa.select(tables.overrides).where(*_is(course, unit)).order_by(tables.overrides.c.student)
    return {row.student: _override(row) for row in connection.execute(query)}


def of_student(connection: sa.Connection, course: str, student: str) -> dict[str, Override]:
    """Every grade set for the student in a course, by unit."""
    table = tables.overrides
    query = sa.select(table).where(table.c.course == course, table.c.student == student)
    return {row.unit: _override(row) for row in connection.execute(query)}


def marked(connection: sa.Connection, report: Report, stored: Stored) -> Report:
    """The report with the grade that was set for its student, if one was."""
    if stored.student is None:
        return report
    found = find(connection, stored.course, stored.unit, stored.student)
    if found is None:
        return report
    part = ByHandPart(score=found.score, reason=found.reason, set_at=moment(found.set_at))
    return report.model_copy(update={"by_hand": part})


def _is(course: str, unit: str) -> list[sa.ColumnElement[bool]]:
    return [tables.overrides.c.course == course, tables.overrides.c.unit == unit]


def _note(
    connection: sa.Connection, action: str, course: str, unit: str, student: str, detail: Mapping[str, object], by: By
) -> None:
    """Tell the audit log, and whoever is told of the student's grades."""
    outbox.grade_changed(connection, course, unit, student, now=by.now)
    audit.note(
        connection,
        by,
        action=action,
        object=f"{course}/{unit}",
        student=student,
        course=course,
        unit=unit,
        detail=detail,
    )


def _override(row: sa.Row[tuple[object, ...]]) -> Override:
    return Override(row.student, row.score, row.reason, row.token, row.set_at)
