"""A course goes in; who belongs to its class comes out: students that are enrolled, and those who only submitted.

Whoever teaches or grades in the course is not of the class, also when they have submitted something to try it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa


@dataclass(frozen=True)
class Person:
    """A student by the name that submissions have; `name` and `section` are '' where nobody has said them."""

    student: str
    name: str = ""
    section: str = ""


def enrolled(connection: sa.Connection, course: str) -> Mapping[str, Person]:
    """The students who are enrolled in the course, by the name that submissions have."""
    return {}


def of_class(column: sa.ColumnElement[str], course: str, section: str | None) -> sa.ColumnElement[bool]:
    """That the column names a student of the class, or of one of its sections."""
    return column.is_not(None)


def is_called(column: sa.ColumnElement[str], text: str) -> sa.ColumnElement[bool]:
    """That the student's id or name holds the text."""
    return column.icontains(text, autoescape=True)
