"""A student's answers to a unit's questions go in, are marked and kept; what was answered comes out, for them and for
the class.

The latest answers count; they are apart from submissions and their grades. (docs/decisions/0218)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from grader.quiz import Mark, Quiz, grade
from service.database import insert_or_ignore
from service.tables import quiz_answers


@dataclass(frozen=True)
class Answered:
    """One answer as it was understood, and how it was marked. UTC seconds."""

    student: str
    question: str
    answer: str
    mark: Mark
    message: str
    answered_at: float


def put(
    connection: sa.Connection,
    quiz: Quiz,
    sent: Mapping[str, Any],
    *,
    course: str,
    unit: str,
    student: str,
    now: float,
) -> tuple[Answered, ...]:
    """Mark and keep what was answered, in place of earlier answers to the same questions; all as they stand now."""
    for result in grade(quiz, sent):
        if result.mark is Mark.UNANSWERED:
            continue
        key = {"course": course, "unit": unit, "student": student, "question": result.id}
        values = {
            "answer": result.answer.replace("\0", ""),  # PostgreSQL refuses it
            "mark": result.mark.value,
            "message": result.message,
            "answered_at": now,
        }
        connection.execute(insert_or_ignore(connection, quiz_answers, {**key, **values}))
        same = [getattr(quiz_answers.c, name) == value for name, value in key.items()]
        connection.execute(quiz_answers.update().where(*same).values(values))
    return of_student(connection, course, unit, student)


def of_student(connection: sa.Connection, course: str, unit: str, student: str) -> tuple[Answered, ...]:
    query = sa.select(quiz_answers).where(*_of_unit(course, unit), quiz_answers.c.student == student)
    return tuple(_answered(row) for row in connection.execute(query.order_by(quiz_answers.c.question)))


def of_class(
    connection: sa.Connection, course: str, unit: str, after: str | None, limit: int
) -> tuple[dict[str, list[Answered]], str | None]:
    """The answers of up to `limit` students by name, and the last name if there are more."""
    there = _of_unit(course, unit)
    if after is not None:
        there.append(quiz_answers.c.student > after)
    names = sa.select(quiz_answers.c.student).where(*there).distinct().order_by(quiz_answers.c.student).limit(limit + 1)
    students = list(connection.execute(names).scalars())
    page = students[:limit]
    query = sa.select(quiz_answers).where(*there, quiz_answers.c.student.in_(page))
    found: dict[str, list[Answered]] = {student: [] for student in page}
    for row in connection.execute(query.order_by(quiz_answers.c.student, quiz_answers.c.question)):
        found[row.student].append(_answered(row))
    return found, page[-1] if len(students) > limit else None


def _of_unit(course: str, unit: str) -> list[sa.ColumnElement[bool]]:
    return [quiz_answers.c.course == course, quiz_answers.c.unit == unit]


def _answered(row: sa.Row[tuple[object, ...]]) -> Answered:
    return Answered(row.student, row.question, row.answer, Mark(row.mark), row.message, row.answered_at)
