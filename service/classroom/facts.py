"""The report of a run goes in; what the class's views ask of it is stored: one row, and one for each of the student's
tests that rejects correct code.

Outcomes are stored as one character for each course test and mutant, in the order of a layout that many rows share: a
class of 2,000 is read as 2,000 short texts, not as 130,000 rows. (docs/decisions/0180)
"""

import hashlib
import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa

from grader import wording
from grader.report import Cell, KillMatrixPart, MutantStatus, Outcome, Report, StudentTestPart, Verdict
from service.classroom import progress
from service.database import insert_or_ignore, writing
from service.tables import facts, layouts, rejections, results, runs, submissions

MOST_REJECTIONS = 40  # stored of one run; how many there are is stored in any case
MOST_CHARS = 500  # of a test's name, and of what it denies
MOST_ACCEPTED = 5  # mutants that a test takes for right, before it says nothing about any of them
IDS_AT_A_TIME = 500  # in one statement
AT_A_TIME = 100  # reports that are read in one transaction

TESTS: Mapping[Outcome, str] = MappingProxyType(
    {
        Outcome.PASSED: ".",
        Outcome.FAILED: "F",
        Outcome.ERROR: "E",
        Outcome.TIMEOUT: "T",
        Outcome.SKIPPED: "S",
        Outcome.NOT_RUN: "-",
    }
)
MUTANTS: Mapping[MutantStatus, str] = MappingProxyType(
    {
        MutantStatus.KILLED: "K",
        MutantStatus.TIMEOUT: "T",
        MutantStatus.SURVIVED: ".",
        MutantStatus.INVALID: "-",
        MutantStatus.VOID: "V",
    }
)
OUTCOMES = MappingProxyType({char: outcome for outcome, char in TESTS.items()})
STATUSES = MappingProxyType({char: status for status, char in MUTANTS.items()})
CAUGHT = frozenset(MUTANTS[status] for status in (MutantStatus.KILLED, MutantStatus.TIMEOUT))
FAILING = frozenset(TESTS[outcome] for outcome in Outcome if outcome.failing)


@dataclass(frozen=True)
class Rejection:
    """A test of the student's that rejects correct code, and the kind of reason, as far as the report tells.

    code      misprint | denies | asks_more | flaky | not_loaded | ended | unexplained
    said      the number printed wrongly; what the contract leaves open; the code of the cause
    accepts   mutants that the test passes although it rejects all correct code: what its author takes for right
    """

    test: str
    file: str
    line: int
    code: str
    said: str = ""
    accepts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """The names behind the characters of a row: course tests, and mutants."""

    tests: tuple[str, ...] = ()
    mutants: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return hashlib.sha256(self.names.encode()).hexdigest()

    @property
    def names(self) -> str:
        return json.dumps({"tests": self.tests, "mutants": self.mutants})

    @classmethod
    def read(cls, names: str) -> "Layout":
        found = json.loads(names)
        return cls(tuple(found["tests"]), tuple(found["mutants"]))


# -- of one report ---------------------------------------------------------------------------------------------------


def layout_of(report: Report) -> Layout:
    tests = report.course_tests.tests if report.course_tests else ()
    mutants = report.mutation.mutants if report.mutation else ()
    return Layout(tuple(test.id for test in tests), tuple(mutant.id for mutant in mutants))


def row_of(report: Report) -> dict[str, object]:
    """The columns of ag_facts that the report decides."""
    course, mutation = report.course_tests, report.mutation
    mine = report.student_tests.tests if report.student_tests else ()
    return {
        "verdict": report.verdict.value,
        "score": report.score,
        "tests_passed": course.passed if course else 0,
        "tests_total": course.total if course else 0,
        "killed": mutation.killed if mutation else 0,
        "mutants_total": mutation.total if mutation else 0,
        "rejecting": sum(test.valid is False for test in mine),
        "layout": layout_of(report).id,
        "tests": "".join(TESTS[test.outcome] for test in course.tests) if course else "",
        "mutants": "".join(MUTANTS[mutant.status] for mutant in mutation.mutants) if mutation else "",
    }


def rejections_of(report: Report) -> tuple[Rejection, ...]:
    """The student's tests that reject correct code, in their order."""
    if report.student_tests is None:
        return ()
    matrix = report.mutation.kill_matrix if report.mutation else None
    rows = {row.id: row for row in matrix.tests} if matrix else {}
    found = []
    for test in report.student_tests.tests:
        if test.valid is False:
            row = rows.get(test.id)
            accepts = _accepted(matrix, row.mutants) if matrix and row and _rejects_all(row.correct) else ()
            code, said = _reason(test)
            found.append(Rejection(test.id, test.file, test.line, code, said, accepts))
    return tuple(found)


def _rejects_all(correct: str) -> bool:
    return bool(correct) and Cell.PASS not in correct


def _accepted(matrix: KillMatrixPart, cells: str) -> tuple[str, ...]:
    """The mutants a test passes; none if it passes many, and so tells none of them from the others."""
    found = tuple(mid for mid, cell in zip(matrix.mutants, cells, strict=True) if cell == Cell.PASS)
    return found if len(found) <= MOST_ACCEPTED else ()


def _reason(test: StudentTestPart) -> tuple[str, str]:
    if printed := wording.misprinted(test.advice):
        return "misprint", printed
    if test.denies:
        return "denies", test.denies
    if asked := wording.asks_more(test.advice):
        return "asks_more", asked
    if test.flaky:
        return "flaky", ""
    if test.file and test.id == test.file:
        return "not_loaded", ""
    if test.cause is not None:
        return "ended", test.cause.code
    return "unexplained", ""


# -- of all of them --------------------------------------------------------------------------------------------------


def keep(connection: sa.Connection, run_id: str, report: Report) -> None:
    """Store what the views ask of a run's report, in the transaction that stores the report; once is enough.

    A report of our failure says nothing of the student, and leaves nothing here.
    """
    if report.verdict is Verdict.GRADER_ERROR:
        return
    layout = layout_of(report)
    connection.execute(insert_or_ignore(connection, layouts, {"id": layout.id, "names": layout.names}))
    query = (
        sa.select(submissions.c.id, submissions.c.run, *(submissions.c[name] for name in _COPIED))
        .join(runs, runs.c.submission == submissions.c.id)
        .where(runs.c.id == run_id)
    )
    of = connection.execute(query).one()
    row = {name: getattr(of, name) for name in _COPIED}
    row |= {"run": run_id, "submission": of.id, "counts": of.run == run_id, **row_of(report)}
    added = insert_or_ignore(connection, facts, row).returning(facts.c.run)
    if connection.execute(added).first() is None:  # on PostgreSQL, rowcount would not tell
        return
    rejecting = [
        {
            "run": run_id,
            "number": number,
            "test": _storable(each.test),
            "file": _storable(each.file),
            "line": each.line,
            "code": each.code,
            "said": _storable(each.said),
            "accepts": " ".join(each.accepts),
        }
        for number, each in enumerate(rejections_of(report)[:MOST_REJECTIONS], start=1)
    ]
    if rejecting:
        connection.execute(rejections.insert(), rejecting)
    if row["counts"]:
        progress.renew(connection, [progress.Whose(of.course, of.unit, of.student)])


_COPIED = ("course", "unit", "student", "received_at")


def _storable(text: str) -> str:
    """PostgreSQL stores no NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:MOST_CHARS]


def let_count(connection: sa.Connection, submission_ids: Collection[str]) -> None:
    """Follow the submissions' runs that count: to be called in the transaction that changes ag_submissions.run."""
    counting = sa.select(submissions.c.run).where(submissions.c.id == facts.c.submission).scalar_subquery()
    whose = sa.select(facts.c.course, facts.c.unit, facts.c.student).distinct()
    ids = list(submission_ids)
    for start in range(0, len(ids), IDS_AT_A_TIME):
        these = facts.c.submission.in_(ids[start : start + IDS_AT_A_TIME])
        connection.execute(facts.update().where(these).values(counts=facts.c.run == counting))
        progress.renew(connection, [progress.Whose(*row) for row in connection.execute(whose.where(these))])


def complete(engine: sa.Engine, most: int = AT_A_TIME) -> int:
    """Store what is missing of up to `most` reports that were there before this table was; returns how many."""
    missing = (
        sa.select(results.c.run)
        .outerjoin(facts, facts.c.run == results.c.run)
        .where(facts.c.run.is_(None), results.c.verdict != Verdict.GRADER_ERROR.value)
        .limit(most)
    )
    with writing(engine) as connection:
        found = connection.execute(missing).scalars().all()
        for run_id in found:
            packed = connection.execute(sa.select(results.c.report).where(results.c.run == run_id)).scalar_one()
            keep(connection, run_id, Report.model_validate_json(zlib.decompress(packed)))
    return len(found)
