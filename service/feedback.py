"""A stored submission and the time go in; how much of its report its student is told, and why so much, come out.

It depends on when the report is read: what was withheld can be opened for everyone at once, and what was told cannot be
taken back. Of the moments that a teacher has given a level, the first that applies decides: the student has passed, the
student's due time is over, the submission came after the attempts with full feedback. (docs/decisions/0196)
"""

from dataclasses import dataclass

import sqlalchemy as sa

from grader.report import Level, Verdict
from service import offerings, wording
from service.accounts import Account
from service.offerings import Assignment, Extension, Moment
from service.problems import Problem
from service.runs import Status
from service.submissions import Stored
from service.tables import results, runs, submissions


@dataclass(frozen=True)
class Given:
    level: Level
    moment: Moment


def of(connection: sa.Connection, stored: Stored, now: float, moment: Moment | None = None) -> Given:
    """What the submission's student is told of its report at this time, or would be at a moment that is named."""
    asked = offerings.assignment(connection, stored.course, stored.unit) or Assignment()
    if moment is None:
        moment = _moment(connection, stored, asked, now)
    return Given(asked.feedback.at(moment), moment)


def check_hints(connection: sa.Connection, account: Account, stored: Stored, now: float) -> None:
    """Raises Problem 403 for who is not staff where hints are withheld."""
    if not account.sees_class and not of(connection, stored, now).level.tells(Level.HINTS):
        raise Problem(403, "feedback_withheld", wording.HINTS_WITHHELD)


def _moment(connection: sa.Connection, stored: Stored, asked: Assignment, now: float) -> Moment:
    told, student = asked.feedback, stored.student
    if student is None or (told.past_limit, told.after_deadline, told.after_passing) == (None, None, None):
        return Moment.NORMAL
    granted = offerings.extension(connection, stored.course, stored.unit, student)
    due_at = offerings.times_for(asked, granted).due_at
    if told.after_passing is not None and _has_passed(connection, stored):
        return Moment.AFTER_PASSING
    if told.after_deadline is not None and due_at is not None and now > due_at:
        return Moment.AFTER_DEADLINE
    if told.past_limit is not None and _is_past_limit(connection, stored, asked, granted):
        return Moment.PAST_LIMIT
    return Moment.NORMAL


def _mine(stored: Stored) -> list[sa.ColumnElement[bool]]:
    return [getattr(submissions.c, name) == getattr(stored, name) for name in ("course", "unit", "student")]


def _has_passed(connection: sa.Connection, stored: Stored) -> bool:
    query = (
        sa.select(submissions.c.id)
        .join(results, results.c.run == submissions.c.run)
        .where(*_mine(stored), results.c.verdict == Verdict.PASS.value)
    )
    return connection.execute(query.limit(1)).first() is not None


def _is_past_limit(connection: sa.Connection, stored: Stored, asked: Assignment, granted: Extension | None) -> bool:
    """Whether it came after as many attempts as are told normally. One that repeats an earlier one uses none, and is
    past the limit once they are all used and more."""
    told = asked.feedback.attempts
    limit = offerings.attempts_for(asked if told is None else Assignment(attempts=told), granted)
    if limit is None:
        return False
    so_far = sa.tuple_(submissions.c.received_at, submissions.c.id) <= sa.tuple_(
        sa.literal(stored.received_at), sa.literal(stored.id)
    )
    query = (
        sa.select(sa.func.count())
        .select_from(submissions.join(runs, runs.c.id == submissions.c.run))
        .where(
            *_mine(stored),
            so_far,
            submissions.c.counted,
            runs.c.status.not_in([Status.CANCELLED.value, Status.ERROR.value]),
        )
    )
    return connection.execute(query).scalar_one() > limit
