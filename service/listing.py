"""A teacher's filter goes in; one page of submissions, or the statistics of a class, comes out.

Pages are by key, not by number: a page continues after the last row of the one before, whatever was added since.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import sqlalchemy as sa

from grader.report import Outcome, Verdict
from service import answers, page_keys
from service.page_keys import BadKey
from service.runs import Status
from service.tables import outcomes, overrides, results, runs, submissions

K = TypeVar("K")

SECONDS_PER_DAY = 86_400
BUCKETS = 10


class Sort(StrEnum):
    NEWEST = "-received_at"
    OLDEST = "received_at"
    BEST = "-score"
    WORST = "score"


@dataclass(frozen=True)
class Filter:
    unit: str
    student: str | None = None
    course: str | None = None
    verdict: Verdict | None = None
    status: Status | None = None


_JOINED = submissions.join(runs, runs.c.id == submissions.c.run).outerjoin(results, results.c.run == runs.c.id)
_BY_HAND = sa.and_(
    *(overrides.c[name] == submissions.c[name] for name in ("course", "unit", "student")),
)
# Submissions without a score sort below every score, on both databases alike.
_SCORE = sa.func.coalesce(results.c.score, -1.0)


def _where(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = [submissions.c.unit == wanted.unit]
    if wanted.student is not None:
        conditions.append(submissions.c.student == wanted.student)
    if wanted.course is not None:
        conditions.append(submissions.c.course == wanted.course)
    if wanted.verdict is not None:
        conditions.append(results.c.verdict == wanted.verdict.value)
    if wanted.status is not None:
        conditions.append(runs.c.status == wanted.status.value)
    return conditions


def page(
    connection: sa.Connection, wanted: Filter, sort: Sort, limit: int, cursor: str | None
) -> tuple[tuple[answers.SubmissionRow, ...], str | None]:
    """Up to `limit` rows and the key of the next page, None on the last one. Raises BadKey."""
    key: sa.ColumnElement[float] = _SCORE if "score" in sort.value else submissions.c.received_at
    descending = sort.value.startswith("-")
    query = (
        sa.select(
            submissions,
            runs.c.status,
            runs.c.attempts,
            runs.c.quarantined,
            results.c.verdict,
            results.c.score,
            results.c.mutation_score,
            overrides.c.score.label("by_hand"),
            key.label("key"),
        )
        .select_from(_JOINED.outerjoin(overrides, _BY_HAND))
        .where(*_where(wanted))
    )
    if cursor is not None:
        value, last_id = _last_row(cursor, sort)
        row, last = sa.tuple_(key, submissions.c.id), sa.tuple_(sa.literal(value), sa.literal(last_id))
        query = query.where(row < last if descending else row > last)
    order = [key.desc(), submissions.c.id.desc()] if descending else [key, submissions.c.id]
    rows = connection.execute(query.order_by(*order).limit(limit + 1)).all()
    found = tuple(
        answers.SubmissionRow(
            id=row.id,
            unit=row.unit,
            course=row.course,
            student=row.student,
            received_at=answers.moment(row.received_at),
            status=Status(row.status),
            verdict=Verdict(row.verdict) if row.verdict is not None else None,
            score=row.score,
            mutation_score=row.mutation_score,
            attempts=row.attempts,
            quarantined=row.quarantined,
            by_hand=row.by_hand,
            links=answers.links_of(row.id),
        )
        for row in rows[:limit]
    )
    more = len(rows) > limit
    return found, page_keys.write((rows[limit - 1].key, rows[limit - 1].id), sort.value) if more else None


def stats(connection: sa.Connection, unit: str, course: str | None) -> answers.StatsAnswer:
    """What was submitted for a unit, in one course or in all, and how it fared."""
    conditions = _where(Filter(unit, course=course))
    totals = connection.execute(
        sa.select(sa.func.count(), sa.func.count(sa.distinct(submissions.c.student)), sa.func.avg(results.c.score))
        .select_from(_JOINED)
        .where(*conditions)
    ).one()
    bucket = sa.cast(sa.func.floor(results.c.score * BUCKETS), sa.Integer)
    counts = _count(connection, bucket, [*conditions, results.c.score.is_not(None)])
    counts[BUCKETS - 1] = counts.get(BUCKETS - 1, 0) + counts.pop(BUCKETS, 0)
    return answers.StatsAnswer(
        unit=unit,
        course=course,
        submissions=totals[0],
        students=totals[1],
        statuses=_count(connection, runs.c.status, conditions),
        verdicts=_count(connection, results.c.verdict, [*conditions, results.c.verdict.is_not(None)]),
        mean_score=totals[2],
        scores=tuple(
            answers.ScoreBucket(low=i / BUCKETS, high=(i + 1) / BUCKETS, count=counts.get(i, 0)) for i in range(BUCKETS)
        ),
        course_tests=tuple(
            answers.CourseTestStats(
                id=name,
                graded=sum(found.values()),
                failed=sum(found.values()) - found.get(Outcome.PASSED.value, 0),
                outcomes=found,
            )
            for name, found in _outcomes(connection, "course_test", conditions).items()
        ),
        mutants=tuple(
            answers.MutantStats(id=name, graded=sum(found.values()), survived=found.get("survived", 0), statuses=found)
            for name, found in _outcomes(connection, "mutant", conditions).items()
        ),
        days=_days(connection, conditions),
    )


def _count(
    connection: sa.Connection, column: sa.ColumnElement[K], conditions: list[sa.ColumnElement[bool]]
) -> dict[K, int]:
    query = sa.select(column, sa.func.count()).select_from(_JOINED).where(*conditions).group_by(column)
    return {key: count for key, count in connection.execute(query)}


def _outcomes(
    connection: sa.Connection, kind: str, conditions: list[sa.ColumnElement[bool]]
) -> dict[str, dict[str, int]]:
    query = (
        sa.select(outcomes.c.name, outcomes.c.outcome, sa.func.count())
        .select_from(_JOINED.join(outcomes, outcomes.c.run == runs.c.id))
        .where(outcomes.c.kind == kind, *conditions)
        .group_by(outcomes.c.name, outcomes.c.outcome)
        .order_by(outcomes.c.name)
    )
    found: dict[str, dict[str, int]] = {}
    for name, outcome, count in connection.execute(query):
        found.setdefault(name, {})[outcome] = count
    return found


def _days(connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]) -> tuple[answers.DayStats, ...]:
    day = sa.cast(sa.func.floor(submissions.c.received_at / SECONDS_PER_DAY), sa.Integer)
    passed = sa.func.count(sa.case((results.c.verdict == Verdict.PASS.value, 1)))
    query = sa.select(day, sa.func.count(), passed).select_from(_JOINED).where(*conditions).group_by(day).order_by(day)
    return tuple(
        answers.DayStats(
            day=answers.moment(number * SECONDS_PER_DAY).date().isoformat(), submissions=count, passed=good
        )
        for number, count, good in connection.execute(query)
    )


def _last_row(cursor: str, sort: Sort) -> tuple[float, str]:
    """Value and id of the last row of the page before. Raises BadKey."""
    value, last_id = page_keys.read(cursor, sort.value)
    if not (last_id.isascii() and last_id.isprintable()):
        raise BadKey
    return value, last_id
