"""A course goes in; for each unit comes out how many of the class have begun and passed: for the page that lists them.

Asked of the students' progress only, as a course may have many units.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from grader.unit import Unit
from service import offerings
from service.classroom import roster, selection
from service.classroom.selection import Selection
from service.offerings import Assignment
from service.tables import progress


@dataclass(frozen=True)
class UnitRow:
    """A unit and how far the class is. `pending`: submissions that wait or are being graded."""

    unit: Unit
    due_at: float | None
    students: int
    began: int
    passed: int
    pending: int


def of_course(connection: sa.Connection, course: str, units: Iterable[Unit]) -> list[UnitRow]:
    """The units in their order; the same figures as in the overview of each."""
    enrolled = set(roster.enrolled(connection, course))
    asked = offerings.assignments(connection, course)
    passed: dict[str, dict[str, bool]] = defaultdict(dict)
    query = sa.select(progress.c.unit, progress.c.student, progress.c.passed_at.is_not(None))
    query = query.where(progress.c.course == course, roster.of_class(progress.c.student, course, None))
    for unit_id, student, has_passed in connection.execute(query):
        passed[unit_id][student] = bool(has_passed)
    rows = []
    for unit in units:
        waiting = selection.unfinished(connection, Selection(course, unit.id))
        began = passed[unit.id].keys() | waiting.keys()
        rows.append(
            UnitRow(
                unit=unit,
                due_at=asked.get(unit.id, Assignment()).times.due_at,
                students=len(enrolled | began),
                began=len(began),
                passed=sum(passed[unit.id].values()),
                pending=sum(each.pending for each in waiting.values()),
            )
        )
    return rows
