"""A course goes in; what differs from the course in use comes out, and it is in use then.

Nothing is read while it is being edited: somebody says when. The web process that is asked takes the course at once; a
worker sees that it was asked, ends what it is at, and starts anew, so that nothing of the course before is left in it.
A course of which a unit that was in use does not load is not taken. (docs/decisions/0198, 0229)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from grader.unit import Course, UnitProblem
from service import audit
from service.audit import By
from service.regrading.versions import Change, changes, parts_of
from service.tables import course_loads


@dataclass(frozen=True)
class Difference:
    """A unit that is not as it was. `how`: added, removed or changed."""

    unit: str
    how: str
    changes: tuple[Change, ...] = ()


class Unusable(Exception):
    """Units that are in use would be lost."""

    def __init__(self, problems: Sequence[UnitProblem]) -> None:
        super().__init__(", ".join(problem.unit for problem in problems))
        self.problems = tuple(problems)


def differences(before: Course, after: Course) -> tuple[Difference, ...]:
    """What another course would change, unit by unit. Raises Unusable."""
    lost = [problem for problem in after.problems if problem.unit in before.units]
    if lost:
        raise Unusable(lost)
    found = []
    for name in sorted({*before.units, *after.units}):
        old, new = before.units.get(name), after.units.get(name)
        if old is None or new is None:
            found.append(Difference(name, "added" if old is None else "removed"))
        elif old.digest != new.digest:
            found.append(Difference(name, "changed", changes(parts_of(old), parts_of(new))))
    return tuple(found)


def note(connection: sa.Connection, course: Course, tree: str | None, found: Sequence[Difference], by: By) -> None:
    """Take a version of the files, None: those on the machine, into use: workers start anew. Write down who wanted it
    and what it changed."""
    assert by.who is not None
    connection.execute(course_loads.insert().values(at=by.now, token=by.who.id, digest=course.digest, tree=tree))
    detail = {
        each.unit: [each.how, *(f"{change.kind} {change.name}: {change.how}" for change in each.changes[:50])]
        for each in found
    }
    audit.note(
        connection,
        by,
        action="course.reload" if tree is None else "course.publish",
        object=tree or course.digest,
        detail={"units": detail},
    )


def chosen(connection: sa.Connection) -> tuple[int, str | None]:
    """The number of the last choice, and the version that is in use; (0, None) if nobody has chosen. A worker that
    finds a higher number than at its start is old."""
    query = sa.select(course_loads.c.id, course_loads.c.tree).order_by(course_loads.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return (row.id, row.tree) if row is not None else (0, None)
