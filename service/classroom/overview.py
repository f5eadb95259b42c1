"""A class goes in; how many have begun and passed, their scores, what was submitted when, and the queue come out."""

from collections import Counter
from datetime import datetime, timedelta
from statistics import median
from typing import Literal
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from grader.report import Verdict
from service import health, offerings, walltime
from service.classroom import selection
from service.classroom.answers import OverviewAnswer, QueueHealth, ScoreBucket, SeriesPoint, shown
from service.classroom.selection import Latest, Selection
from service.offerings import Assignment, Offering
from service.places import Paces
from service.runs import Status
from service.tables import runs, submissions

BUCKETS = 10
QUARTER_SECONDS = 900  # every zone's hours and days begin at one
HOURS_OF = timedelta(days=3)  # what is longer is shown by the day
MOST_POINTS = 1_000
By = Literal["hour", "day"]


def of_class(
    connection: sa.Connection, wanted: Selection, course: Offering, by: By | None, paces: Paces, now: float
) -> OverviewAnswer:
    """The class of a course, or the part of it that was asked for. `by` None: by the hour while it is not long."""
    latest = selection.latest(connection, wanted)
    waiting = selection.unfinished(connection, wanted)
    began = {each.student for each in latest} | set(waiting)
    known = set(selection.people(connection, wanted)) if wanted.is_whole else set()
    sent = _by_quarter(connection, wanted)
    asked = offerings.assignment(connection, wanted.course, wanted.unit) or Assignment()
    passed = [each.passed_at for each in latest if each.passed_at is not None]
    zone = ZoneInfo(course.timezone)
    steps, series = series_of(sent, passed, by, zone)
    scores = [each.best_score for each in latest if each.best_score is not None]
    return OverviewAnswer(
        course=wanted.course,
        unit=wanted.unit,
        at=walltime.show(now, course.timezone),
        students=len(known | began),
        began=len(began),
        passed=len(passed),
        submissions=sum(sent.values()),
        pending=sum(each.pending for each in waiting.values()),
        failed=sum(each.failed for each in waiting.values()),
        verdicts=_verdicts(latest),
        median_score=round(median(scores), 6) if scores else None,
        scores=buckets(scores),
        by=steps,
        series=series,
        due_at=shown(asked.times.due_at, course.timezone),
        closes_at=shown(asked.times.closes_at, course.timezone),
        queue=queue(connection, wanted.unit, paces, now),
    )


def _verdicts(latest: list[Latest]) -> dict[Verdict, int]:
    return dict(sorted(Counter(Verdict(each.verdict) for each in latest).items()))


def buckets(scores: list[float]) -> tuple[ScoreBucket, ...]:
    """Ten equal ones; a full score is in the last."""
    counts = Counter(min(int(score * BUCKETS), BUCKETS - 1) for score in scores)
    return tuple(ScoreBucket(low=i / BUCKETS, high=(i + 1) / BUCKETS, students=counts[i]) for i in range(BUCKETS))


# -- over time -------------------------------------------------------------------------------------------------------


def _by_quarter(connection: sa.Connection, wanted: Selection) -> dict[int, int]:
    """Submissions received, by quarters of an hour since 1970."""
    number = submissions.c.received_at / QUARTER_SECONDS
    if connection.dialect.name == "postgresql":  # there a cast rounds
        number = sa.func.floor(number)
    quarter = sa.cast(number, sa.Integer).label("quarter")
    query = sa.select(quarter, sa.func.count()).where(*selection.sent_between(wanted)).group_by(quarter)
    return {row[0]: row[1] for row in connection.execute(query)}


def series_of(
    sent: dict[int, int], passed: list[float], by: By | None, zone: ZoneInfo
) -> tuple[By, tuple[SeriesPoint, ...]]:
    """Hours or days on the clocks of the zone, from the first to the last with a submission, without gaps."""
    if not sent:
        return by or "day", ()
    first, last = (datetime.fromtimestamp(quarter * QUARTER_SECONDS, zone) for quarter in (min(sent), max(sent)))
    if by is None:
        by = "hour" if last - first <= HOURS_OF else "day"
    if by == "hour" and (last - first) / timedelta(hours=1) >= MOST_POINTS:
        by = "day"
    submitted: Counter[datetime] = Counter()
    for quarter, count in sent.items():
        submitted[_begin(quarter * QUARTER_SECONDS, by, zone)] += count
    passing = Counter(_begin(at, by, zone) for at in passed)
    points, at, end = [], _begin(first.timestamp(), by, zone), _begin(last.timestamp(), by, zone)
    while at.timestamp() <= end.timestamp():
        points.append(SeriesPoint(at=at, submissions=submitted[at], passed=passing[at]))
        at = _next(at, by, zone)
    return by, tuple(points[-MOST_POINTS:])


def _begin(seconds: float, by: By, zone: ZoneInfo) -> datetime:
    at = datetime.fromtimestamp(seconds, zone).replace(minute=0, second=0, microsecond=0)
    return at if by == "hour" else at.replace(hour=0, fold=0)


def _next(at: datetime, by: By, zone: ZoneInfo) -> datetime:
    """Where the next hour or day begins; an hour is one that passes, whatever the clocks do meanwhile."""
    if by == "hour":
        return datetime.fromtimestamp(at.timestamp() + 3_600, zone)
    return at + timedelta(days=1)  # on the clocks: a day may have 23 hours or 25


# -- the queue -------------------------------------------------------------------------------------------------------


def queue(connection: sa.Connection, unit: str, paces: Paces, now: float) -> QueueHealth:
    """How the queue that all courses share is, and how long a grading of this unit takes."""
    waiting = health.waiting(connection, now)
    running = sa.select(sa.func.count()).where(runs.c.status == Status.RUNNING.value)
    workers = health.alive(connection, now)
    pace = paces.of(connection, now)
    return QueueHealth(
        waiting=waiting.count,
        running=connection.execute(running).scalar_one(),
        oldest_seconds=round(waiting.oldest_seconds, 1),
        workers=len(workers),
        ready=sum(worker.ready for worker in workers),
        missing=tuple(sorted({lack for worker in workers for lack in worker.missing})),
        typical_seconds=round(pace.of(unit).typical, 1) if pace is not None else None,
    )
