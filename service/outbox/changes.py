"""That a grade may have changed goes in, with the transaction that changes it; deliveries that wait come out.

Here nothing is computed: what the grade is, and whether anything of it is new to who is told, is looked up when it is
sent. So whatever changes until then is told once. (docs/decisions/0200)
"""

import hashlib
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache

import sqlalchemy as sa

from service.database import insert_or_ignore
from service.tables import deliveries, runs, submissions


class Channel(StrEnum):
    AGS = "ags"  # Assignment and Grade Services of a platform that speaks LTI
    WEBHOOK = "webhook"


class State(StrEnum):
    IDLE = "idle"  # there is nothing to tell yet
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up; somebody has to look


def connect(
    connection: sa.Connection,
    *,
    platform: str,
    line_item: str,
    recipient: str,
    course: str,
    unit: str,
    student: str,
    now: float,
) -> None:
    """From now on tell a platform's line item this student's grade, and at once if there is one. Twice is once.

    `recipient` is the student's id on the platform.
    """
    same = (
        deliveries.c.channel == Channel.AGS.value,
        deliveries.c.target == platform,
        deliveries.c.address == line_item,
        deliveries.c.student == student,
    )
    # A line item that was another unit's must not get the grades of both.
    elsewhere = sa.or_(deliveries.c.course != course, deliveries.c.unit != unit)
    connection.execute(deliveries.delete().where(*same, elsewhere))
    key = (Channel.AGS.value, platform, line_item, course, unit, student)
    row = _row(key, recipient=recipient, submission=None, state=State.WAITING, revision=1, now=now)
    connection.execute(insert_or_ignore(connection, deliveries, row))
    renamed = deliveries.update().where(deliveries.c.id == row["id"], deliveries.c.recipient != recipient)
    connection.execute(renamed.values(recipient=recipient, told="", **_again(now)))


def disconnect(connection: sa.Connection, *, platform: str, line_items: Collection[str]) -> None:
    """Tell these line items of the platform nothing any more; what they were told stays there."""
    gone = deliveries.delete().where(
        deliveries.c.channel == Channel.AGS.value,
        deliveries.c.target == platform,
        deliveries.c.address.in_(line_items),
    )
    connection.execute(gone)


def expect(
    connection: sa.Connection,
    *,
    token: str,
    callback: str,
    submission: str,
    course: str,
    unit: str,
    student: str,
    now: float,
) -> None:
    """Call back when this submission has ended, and whenever that changes afterwards."""
    key = (Channel.WEBHOOK.value, token, callback, course, unit, student)
    row = _row(key, recipient="", submission=submission, state=State.IDLE, revision=0, now=now)
    connection.execute(deliveries.insert().values(row))


def grade_changed(
    connection: sa.Connection, course: str, unit: str, student: str, *, now: float, submission: str | None = None
) -> None:
    """The student's grade may have changed: by this submission, '' for one that only waits, or by something else."""
    told = _told_again(of_student=True, by_submission=submission is not None)
    of = {"of_course": course, "of_unit": unit, "of_student": student, "at": now}
    connection.execute(told, of if submission is None else {**of, "by_submission": submission})


def unit_changed(connection: sa.Connection, course: str, unit: str, *, now: float) -> None:
    """Any grade of the unit may have changed, as by its due time."""
    told = _told_again(of_student=False, by_submission=False)
    connection.execute(told, {"of_course": course, "of_unit": unit, "at": now})


def run_ended(connection: sa.Connection, run: sa.ColumnElement[bool], now: float) -> None:
    """Runs that ended in this transaction, given by a condition on them."""
    ended = sa.select(submissions).where(
        submissions.c.id.in_(sa.select(runs.c.submission).where(run)), submissions.c.student.is_not(None)
    )
    for row in connection.execute(ended).all():
        grade_changed(connection, row.course, row.unit, row.student, now=now, submission=row.id)


@cache
def _told_again(*, of_student: bool, by_submission: bool) -> sa.Update:
    here = [deliveries.c.course == sa.bindparam("of_course"), deliveries.c.unit == sa.bindparam("of_unit")]
    if of_student:
        here.append(deliveries.c.student == sa.bindparam("of_student"))
    called = deliveries.c.submission == sa.bindparam("by_submission") if by_submission else _last_told()
    concerned = sa.or_(deliveries.c.channel == Channel.AGS.value, called)
    return deliveries.update().where(*here, concerned).values(**_again(sa.bindparam("at", type_=sa.Double)))


def _last_told() -> sa.ColumnElement[bool]:
    """Of the submissions of which a receiver was told, the student's last one: it hears of the grade by that."""
    later = deliveries.alias()
    same = [
        later.c[name] == deliveries.c[name] for name in ("channel", "target", "address", "course", "unit", "student")
    ]
    newer = sa.exists().where(*same, later.c.revision > 0, later.c.created_at > deliveries.c.created_at)
    return sa.and_(deliveries.c.revision > 0, ~newer)


def _again(now: float | sa.BindParameter[float]) -> dict[str, object]:
    return {
        "revision": deliveries.c.revision + 1,
        "state": State.WAITING.value,
        "due_at": now,
        "attempts": 0,
        "failing_since": None,
        "changed_at": now,
    }


def _row(
    key: tuple[str, ...], *, recipient: str, submission: str | None, state: State, revision: int, now: float
) -> Mapping[str, object]:
    channel, target, address, course, unit, student = key
    return {
        "id": _id((*key, submission or "")),
        "channel": channel,
        "target": target,
        "address": address,
        "recipient": recipient,
        "course": course,
        "unit": unit,
        "student": student,
        "submission": submission,
        "state": state.value,
        "revision": revision,
        "due_at": now,
        "attempts": 0,
        "message": "",
        "message_revision": 0,
        "stamped_at": 0.0,
        "told": "",
        "error": "",
        "created_at": now,
        "changed_at": now,
    }


def _id(parts: tuple[str, ...]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(hashlib.blake2b(part.encode()).digest())
    return digest.hexdigest()
