"""What a class's views answer goes in; tables come out as CSV, in which no spreadsheet takes a name for a formula.

The text begins with a byte order mark: without it spreadsheets read names in the machine's old encoding.
"""

import io
from collections.abc import Iterable, Mapping, Sequence

from grader.report import MutantStatus, Outcome
from service.classroom.answers import (
    MatrixRow,
    Misconception,
    MutantRow,
    SeriesPoint,
    StudentRow,
    TestRow,
)
from service.spreadsheet import write_sheet

MEDIA_TYPE = "text/csv; charset=utf-8"
Row = Mapping[str, object]


def written(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """The rows under a head; texts that a spreadsheet would compute stand behind an apostrophe."""
    target = io.StringIO()
    target.write("\N{ZERO WIDTH NO-BREAK SPACE}")
    write_sheet(target, columns, rows)
    return target.getvalue()


def series(points: Iterable[SeriesPoint]) -> str:
    return written(
        ("at", "submissions", "passed"),
        ({"at": each.at.isoformat(), "submissions": each.submissions, "passed": each.passed} for each in points),
    )


def tests(rows: Iterable[TestRow]) -> str:
    named = ("id", "kind", "why", "chapter", "graded", "passed", "share", "failing", "stuck")
    return written(
        (*named, *(outcome.value for outcome in Outcome if outcome is not Outcome.PASSED)),
        ({**row.model_dump(include=set(named)), **_counts(row.outcomes, Outcome, but=Outcome.PASSED)} for row in rows),
    )


def mutants(rows: Iterable[MutantRow]) -> str:
    named = ("id", "tier", "category", "required", "public", "private", "graded", "share")
    return written(
        (*named, *(status.value for status in MutantStatus)),
        ({**row.model_dump(include=set(named)), **_counts(row.statuses, MutantStatus)} for row in rows),
    )


def _counts(
    found: Mapping[Outcome, int] | Mapping[MutantStatus, int],
    of: type[Outcome] | type[MutantStatus],
    but: Outcome | None = None,
) -> dict[str, int]:
    counts = {str(each): count for each, count in found.items()}
    return {each.value: counts.get(each.value, 0) for each in of if each is not but}


def matrix(mutant_ids: Sequence[str], rows: Iterable[MatrixRow]) -> str:
    """A column for each mutant, with a character as in the answer; an apostrophe stands before a dash."""
    named = ("student", "name", "submission", "killed", "total")
    return written(
        (*named, *mutant_ids),
        ({**row.model_dump(include=set(named)), **dict(zip(mutant_ids, row.cells, strict=True))} for row in rows),
    )


def misconceptions(found: Iterable[Misconception]) -> str:
    """A row for each student and misconception."""
    return written(
        ("key", "kind", "sentence", "student", "name", "submission", "in_code", "tests"),
        (
            {
                "key": each.key,
                "kind": each.kind.value,
                "sentence": each.sentence,
                "student": who.student,
                "name": who.name,
                "submission": who.submission,
                "in_code": who.in_code,
                "tests": "\n".join(test.id for test in who.tests),
            }
            for each in found
            for who in each.who
        ),
    )


STUDENTS = (
    *("student", "name", "section", "enrolled", "state", "submissions", "attempts_used", "attempts_left", "pending"),
    *("due_at", "passed_at", "best_submission", "best_score", "set_by_hand", "since_best"),
    *("latest_submission", "latest_received_at"),
    *("latest_verdict", "latest_score", "tests_passed", "tests_total", "killed", "mutants_total", "rejecting", "risk"),
)


def students(rows: Iterable[StudentRow]) -> str:
    return written(STUDENTS, map(_student, rows))


def _student(row: StudentRow) -> Row:
    told = row.model_dump(mode="json", exclude={"latest", "risk"})
    told["risk"] = "\n".join(reason.message for reason in row.risk)
    if row.latest is not None:
        latest = row.latest.model_dump(mode="json")
        told |= {name: latest[name] for name in STUDENTS if name in latest}
        told |= {f"latest_{name}": latest[name] for name in ("submission", "received_at", "verdict", "score")}
    return told
