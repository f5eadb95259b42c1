"""A class's or a student's submissions go in; the grade of each student, after what lateness costs, comes out.

The run that counts gives a submission's score, a run that failed on our side never does; deadlines change no report,
only what is computed here. A grade that was set by hand stands above all that. (docs/decisions/0126, 0129, 0199)
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import sqlalchemy as sa

from grader.report import Verdict
from service import offerings, overrides
from service.deadlines import Lateness, lateness
from service.offerings import Assignment, Counts, Extension
from service.overrides import Override
from service.runs import TRIAL, Status
from service.tables import overrides as override_rows
from service.tables import results, runs, submissions

FEW = 500  # submissions that are named in a query; for more, the whole class is read


class View(StrEnum):
    """Which of a student's submissions is the grade; the last one leaves out what regrades and hands have changed."""

    BEST = "best"
    LATEST = "latest"
    AS_SUBMITTED = "as_submitted"


@dataclass(frozen=True)
class Sent:
    """A submission as grades see it. `verdict` None: it has no report (yet), or only one of our failure."""

    id: str
    received_at: float
    status: Status
    counted: bool
    verdict: Verdict | None
    score: float | None


@dataclass(frozen=True)
class Graded:
    """A submission with a report, and what is left of its score."""

    sent: Sent
    late: Lateness
    final_score: float


@dataclass(frozen=True)
class Grade:
    """A student's grade for a unit; `graded` None while no submission has a report. What is set by hand counts."""

    student: str
    unit: str
    due_at: float | None
    graded: Graded | None
    attempts_used: int
    pending: int  # submissions that wait or are being graded
    by_hand: Override | None = None

    @property
    def final_score(self) -> float | None:
        """0 to 1; None: there is no grade yet."""
        if self.by_hand is not None:
            return self.by_hand.score
        return self.graded.final_score if self.graded is not None else None


def grade(
    student: str,
    unit: str,
    sent: Sequence[Sent],
    asked: Assignment,
    granted: Extension | None,
    by: Counts,
    by_hand: Override | None = None,
) -> Grade:
    """The grade that a student's submissions of a unit come to, with what was set by hand."""
    due_at = offerings.times_for(asked, granted).due_at
    found = []
    for each in sent:
        if each.verdict is not None:
            late = lateness(asked.late_policy, due_at, each.received_at)
            # What was rejected has no score; it counts as nothing.
            found.append(Graded(each, late, late.applied(each.score or 0.0)))
    return Grade(
        student=student,
        unit=unit,
        due_at=due_at,
        graded=_chosen(found, by) if found else None,
        attempts_used=sum(each.counted and each.status not in (Status.CANCELLED, Status.ERROR) for each in sent),
        pending=sum(not each.status.ended for each in sent),
        by_hand=by_hand,
    )


def _chosen(found: Iterable[Graded], by: Counts) -> Graded:
    """The latest, or the best after what lateness costs and of equals the earliest."""
    if by is Counts.LATEST:
        return max(found, key=lambda each: (each.sent.received_at, each.sent.id))
    return min(found, key=lambda each: (-each.final_score, each.sent.received_at, each.sent.id))


def of_class(
    connection: sa.Connection, course: str, unit: str, view: View | None, after: str | None, limit: int
) -> tuple[list[Grade], str | None]:
    """Up to `limit` students' grades by name, and the last name if there are more. `view` None: as the course says."""
    there = [submissions.c.course == course, submissions.c.unit == unit, submissions.c.student.is_not(None)]
    by_hand = overrides.of_unit(connection, course, unit) if view is not View.AS_SUBMITTED else {}
    students = _names(connection, course, unit, view, after, limit + 1)
    if not students:
        return [], None
    page = students[:limit]
    these = [*there, submissions.c.student >= page[0], submissions.c.student <= page[-1]]
    sent = _sent(connection, these, view, submissions.c.student)
    asked = offerings.assignment(connection, course, unit) or Assignment()
    granted = {each.student: each for each in offerings.extensions(connection, course, unit)}
    by = _by(view, asked)
    grades = [
        grade(student, unit, sent.get(student, []), asked, granted.get(student), by, by_hand.get(student))
        for student in page
    ]
    return grades, page[-1] if len(students) > limit else None


def _names(
    connection: sa.Connection, course: str, unit: str, view: View | None, after: str | None, limit: int
) -> list[str]:
    """Those who have sent something or whose grade was set, in the database's order."""
    tables = (submissions, override_rows) if view is not View.AS_SUBMITTED else (submissions,)
    asked = []
    for table in tables:
        name = table.c.student
        there = [table.c.course == course, table.c.unit == unit, name.is_not(None)]
        asked.append(sa.select(name.label("student")).where(*there, *([name > after] if after is not None else [])))
    names = sa.union(*asked).subquery()
    return list(connection.execute(sa.select(names.c.student).order_by(names.c.student).limit(limit)).scalars())


def of_class_if(
    connection: sa.Connection, course: str, unit: str, replaced: Mapping[str, tuple[Verdict, float | None]]
) -> list[tuple[Grade, Grade]]:
    """Of each student with a submission whose verdict and score would be `replaced`: the grade now, and then."""
    there = [submissions.c.course == course, submissions.c.unit == unit, submissions.c.student.is_not(None)]
    if len(replaced) <= FEW:
        mine = sa.select(submissions.c.student).where(submissions.c.id.in_(replaced))
        there.append(submissions.c.student.in_(mine))
    sent = _sent(connection, there, None, submissions.c.student) if replaced else {}
    asked = offerings.assignment(connection, course, unit) or Assignment()
    granted = {each.student: each for each in offerings.extensions(connection, course, unit)}
    by_hand = overrides.of_unit(connection, course, unit)
    found = []
    for student in sorted(sent):
        then = [_replaced(each, replaced.get(each.id)) for each in sent[student]]
        if then != sent[student]:
            more = (asked, granted.get(student), asked.counts, by_hand.get(student))
            found.append((grade(student, unit, sent[student], *more), grade(student, unit, then, *more)))
    return found


def _replaced(sent: Sent, by: tuple[Verdict, float | None] | None) -> Sent:
    return sent if by is None else replace(sent, verdict=by[0], score=by[1], status=Status.DONE)


def of_student(connection: sa.Connection, course: str, student: str, view: View | None) -> list[Grade]:
    """A student's grades in a course, by unit, for the units of which there is a submission or a grade set by hand."""
    mine = [submissions.c.course == course, submissions.c.student == student]
    sent = _sent(connection, mine, view, submissions.c.unit)
    by_hand = overrides.of_student(connection, course, student) if view is not View.AS_SUBMITTED else {}
    asked = offerings.assignments(connection, course)
    granted = offerings.extensions_of(connection, course, student)
    return [
        grade(
            student,
            unit,
            sent.get(unit, []),
            a := asked.get(unit, Assignment()),
            granted.get(unit),
            _by(view, a),
            by_hand.get(unit),
        )
        for unit in sorted({*sent, *by_hand})
    ]


def _by(view: View | None, asked: Assignment) -> Counts:
    return Counts(view.value) if view in (View.BEST, View.LATEST) else asked.counts


def _sent(
    connection: sa.Connection,
    where: Sequence[sa.ColumnElement[bool]],
    view: View | None,
    group: sa.ColumnElement[str],
) -> Mapping[str, list[Sent]]:
    """The submissions in question by student or by unit, in one query, or two for the view as submitted."""
    query = (
        sa.select(
            group.label("grouped"),
            submissions.c.id,
            submissions.c.received_at,
            submissions.c.counted,
            runs.c.status,
            results.c.verdict,
            results.c.score,
        )
        .select_from(
            submissions.join(runs, runs.c.id == submissions.c.run).outerjoin(
                results, sa.and_(results.c.run == runs.c.id, runs.c.status == Status.DONE.value)
            )
        )
        .where(*where)
    )
    first = _first_reports(connection, where) if view is View.AS_SUBMITTED else None
    found: dict[str, list[Sent]] = defaultdict(list)
    for row in connection.execute(query):
        verdict, score = (row.verdict, row.score) if first is None else first.get(row.id, (None, None))
        found[row.grouped].append(
            Sent(
                id=row.id,
                received_at=row.received_at,
                status=Status(row.status),
                counted=row.counted,
                verdict=Verdict(verdict) if verdict is not None else None,
                score=score,
            )
        )
    return found


def _first_reports(
    connection: sa.Connection, where: Sequence[sa.ColumnElement[bool]]
) -> dict[str, tuple[str, float | None]]:
    """Verdict and score of the first run of each submission that ended done: whose report is not of our failure.

    Asked of the verdict, as SQLite would begin with everything that ever ended done.
    """
    query = (
        sa.select(runs.c.submission, results.c.verdict, results.c.score)
        .select_from(
            submissions.join(runs, runs.c.submission == submissions.c.id).join(results, results.c.run == runs.c.id)
        )
        .where(*where, results.c.verdict != Verdict.GRADER_ERROR.value, runs.c.kind != TRIAL)
        .order_by(runs.c.queued_at.desc(), runs.c.id.desc())
    )
    return {row.submission: (row.verdict, row.score) for row in connection.execute(query)}
