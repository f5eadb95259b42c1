"""A course's grades go in; a CSV comes out that a spreadsheet opens without taking a name for a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO

import sqlalchemy as sa

from service import grades
from service.answers import moment
from service.grades import Grade
from service.tables import overrides, submissions

COLUMNS = (
    "student",
    "unit",
    "submission",
    "received_at",
    "due_at",
    "verdict",
    "score",
    "late_seconds",
    "penalty",
    "final_score",
    "by_hand",
    "by_hand_reason",
    "attempts_used",
    "pending",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a cell begins with that a spreadsheet computes
INSIDE = re.compile(r"([;\t\r\n])(?=[=+\-@])")  # where some languages' spreadsheets begin another cell
STUDENTS_AT_A_TIME = 500


def write(connection: sa.Connection, course: str, target: IO[str]) -> int:
    """A row for each student's grade of each unit, times in UTC; returns how many."""
    return write_sheet(target, COLUMNS, map(_row, _all(connection, course)))


def write_sheet(target: IO[str], columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> int:
    """The rows under a head, as CSV; texts that a spreadsheet would compute stand behind an apostrophe. Returns how
    many rows there were."""
    sheet, count = csv.DictWriter(target, columns), 0
    sheet.writerow({name: as_text(name) for name in columns})
    for row in rows:
        sheet.writerow({name: as_text(value) if isinstance(value, str) else value for name, value in row.items()})
        count += 1
    return count


def as_text(text: str) -> str:
    """The text, behind an apostrophe where a spreadsheet would compute it."""
    text = INSIDE.sub(r"\1'", text)
    return f"'{text}" if text.startswith(FORMULA) else text


def _all(connection: sa.Connection, course: str) -> Iterator[Grade]:
    of = [sa.select(table.c.unit).where(table.c.course == course) for table in (submissions, overrides)]
    for unit in sorted(connection.execute(sa.union(*of)).scalars().all()):
        last: str | None = None
        while True:
            found, last = grades.of_class(connection, course, unit, None, last, STUDENTS_AT_A_TIME)
            yield from found
            if last is None:
                break


def _row(grade: Grade) -> dict[str, object]:
    row: dict[str, object] = {
        "student": grade.student,
        "unit": grade.unit,
        "due_at": moment(grade.due_at).isoformat() if grade.due_at is not None else None,
        "final_score": grade.final_score,
        "attempts_used": grade.attempts_used,
        "pending": grade.pending,
    }
    if grade.graded is not None:
        sent, late = grade.graded.sent, grade.graded.late
        row |= {
            "submission": sent.id,
            "received_at": moment(sent.received_at).isoformat(),
            "verdict": sent.verdict.value if sent.verdict is not None else None,
            "score": sent.score,
            "late_seconds": late.seconds,
            "penalty": late.penalty,
        }
    if grade.by_hand is not None:
        row |= {"by_hand": grade.by_hand.score, "by_hand_reason": grade.by_hand.reason}
    return row
