"""A course goes in; who belongs to its class comes out: students that are enrolled, and those who only submitted.

Whoever teaches or grades in the course is not of the class, also when they have submitted something to try it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from service.accounts import Role
from service.tables import members, users

_MEMBERS = members.join(users, users.c.id == members.c.user)


class Person(NamedTuple):
    """A student by the id that submissions have; `name` and `section` are '' where nobody has said them."""

    student: str
    name: str = ""
    section: str = ""


def enrolled(connection: sa.Connection, course: str) -> Mapping[str, Person]:
    """The students who are enrolled in the course, by the id that submissions have."""
    query = sa.select(users.c.student, users.c.name, members.c.section).select_from(_MEMBERS)
    found = connection.execute(query.where(members.c.course == course, members.c.role == Role.STUDENT.value))
    return {row[0]: Person._make(row) for row in found}


def sections(connection: sa.Connection, course: str) -> tuple[str, ...]:
    """The sections that students of the course are in, by name."""
    query = sa.select(members.c.section).distinct()
    query = query.where(members.c.course == course, members.c.role == Role.STUDENT.value, members.c.section != "")
    return tuple(connection.execute(query.order_by(members.c.section)).scalars())


def of_class(column: sa.ColumnElement[str], course: str, section: str | None) -> sa.ColumnElement[bool]:
    """That the column names a student of the class, or of one of its sections."""
    known = sa.select(users.c.student).select_from(_MEMBERS).where(members.c.course == course)
    if section is not None:
        return column.in_(known.where(members.c.role == Role.STUDENT.value, members.c.section == section))
    staff = known.where(members.c.role != Role.STUDENT.value)
    return sa.and_(column.is_not(None), column.not_in(staff))


def is_called(column: sa.ColumnElement[str], text: str) -> sa.ColumnElement[bool]:
    """That the student's id or name holds the text, in capitals or not."""
    named = sa.select(users.c.student).where(users.c.name.icontains(text, autoescape=True))
    return sa.or_(column.icontains(text, autoescape=True), column.in_(named))
