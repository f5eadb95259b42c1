"""Deliveries that wait go in; the next message to one target comes out, and what came of it goes back in.

A message is written down, with its time, before it is sent. Whoever finds it after a crash sends the same again: a
platform takes a score of one time once, a receiver knows a webhook by its id. The time of a message to one place only
grows, in whole seconds, as some platforms compare no finer. (docs/decisions/0200, 0202)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import sqlalchemy as sa

from service import audit
from service.audit import By
from service.database import insert_or_ignore
from service.outbox import backoff
from service.outbox.backoff import Kind, Outcome
from service.outbox.changes import Channel, State
from service.outbox.score import Content
from service.tables import deliveries, targets

AT_A_TIME = 50  # deliveries that are looked at in one transaction
LEAST_STEP_SECONDS = 1.0  # between the times of two messages to one place
VOLATILE = ("timestamp", "new_submission")  # members of a message that say nothing new
ERROR_CHARS = 500
AGAIN = "again"  # in what was told: it is to be told again, even if nothing is new


@dataclass(frozen=True)
class Target:
    """A platform, or a token that asked to be called back: whoever sends there does it alone."""

    channel: Channel
    name: str


@dataclass(frozen=True)
class Delivery:
    """One thing to tell one receiver, and how far that is. Times are UTC seconds."""

    id: str
    channel: Channel
    target: str
    address: str
    recipient: str
    course: str
    unit: str
    student: str
    submission: str | None
    state: State
    revision: int
    due_at: float
    attempts: int
    failing_since: float | None
    message: str
    message_revision: int
    stamped_at: float
    told: str
    delivered_at: float | None
    status_code: int | None
    error: str
    created_at: float
    changed_at: float

    @property
    def known(self) -> Content:
        """What is known to have arrived last; nothing, if nothing has."""
        return _object(self.told)


@dataclass(frozen=True)
class Claimed:
    """A message that is to be sent now. `again`: it may have arrived already."""

    delivery: Delivery
    message: Content
    again: bool

    @property
    def message_id(self) -> str:
        return f"{self.delivery.id}-{self.delivery.message_revision}"


@dataclass(frozen=True)
class Step:
    """What a look at a target brought. `more`: there may be more to look at."""

    claimed: Claimed | None
    more: bool


class Telling(Protocol):
    """What a channel says. `content` is what it has to tell now, None for nothing; `stamped` makes a message of it."""

    def content(self, connection: sa.Connection, delivery: Delivery) -> Content | None: ...

    def stamped(self, content: Content, told: Content, stamp: float) -> Content: ...


# -- sending ---------------------------------------------------------------------------------------------------------


def due(connection: sa.Connection, holder: str, now: float) -> list[Target]:
    """The targets for which something waits, and which this process may send to."""
    same = sa.and_(targets.c.channel == deliveries.c.channel, targets.c.target == deliveries.c.target)
    busy = sa.exists().where(
        same, sa.or_(targets.c.paused_until > now, sa.and_(targets.c.holder != holder, targets.c.held_until > now))
    )
    waiting = (deliveries.c.state == State.WAITING.value, deliveries.c.due_at <= now)
    query = sa.select(deliveries.c.channel, deliveries.c.target).where(*waiting, ~busy).distinct()
    return [Target(Channel(row.channel), row.target) for row in connection.execute(query)]


def claim(
    connection: sa.Connection, target: Target, telling: Telling, holder: str, now: float, lease_seconds: float
) -> Step:
    """Take the target, and the next message to it. What says nothing new is settled without one."""
    if not _hold(connection, target, holder, now, lease_seconds):
        return Step(None, more=False)
    query = (
        sa.select(deliveries.c.id)
        .where(
            deliveries.c.channel == target.channel.value,
            deliveries.c.target == target.name,
            deliveries.c.state == State.WAITING.value,
            deliveries.c.due_at <= now,
        )
        .order_by(deliveries.c.due_at, deliveries.c.id)
        .limit(AT_A_TIME)
    )
    found = connection.execute(query).scalars().all()
    for delivery_id in found:
        delivery = find(connection, delivery_id)
        claimed = _message(connection, delivery, telling, now) if delivery is not None else None
        if claimed is not None:
            return Step(claimed, more=True)
    return Step(None, more=len(found) == AT_A_TIME)


def _hold(connection: sa.Connection, target: Target, holder: str, now: float, lease_seconds: float) -> bool:
    keys = {"channel": target.channel.value, "target": target.name}
    fresh = {"holder": holder, "held_until": 0.0, "paused_until": 0.0, "failures": 0}
    connection.execute(insert_or_ignore(connection, targets, {**keys, **fresh}))
    free = sa.or_(targets.c.holder == holder, targets.c.held_until <= now)
    query = targets.update().where(*_this(target), free, targets.c.paused_until <= now)
    return connection.execute(query.values(holder=holder, held_until=now + lease_seconds)).rowcount == 1


def _message(connection: sa.Connection, delivery: Delivery, telling: Telling, now: float) -> Claimed | None:
    again = bool(delivery.message) and delivery.message_revision == delivery.revision
    if again:
        message = _object(delivery.message)
    else:
        content = telling.content(connection, delivery)
        if content is None or _text(content) == delivery.told:
            state = State.DELIVERED if delivery.told else State.IDLE
            quiet = deliveries.update().where(
                deliveries.c.id == delivery.id, deliveries.c.revision == delivery.revision
            )
            connection.execute(quiet.values(state=state.value, message="", failing_since=None, error=""))
            return None
        stamp = max(now, delivery.stamped_at + LEAST_STEP_SECONDS)
        message = telling.stamped(content, delivery.known, stamp)
        delivery = replace(
            delivery, message=json.dumps(dict(message)), message_revision=delivery.revision, stamped_at=stamp
        )
    written = {name: getattr(delivery, name) for name in ("message", "message_revision", "stamped_at")}
    _update(connection, delivery, **written, attempts=deliveries.c.attempts + 1)
    return Claimed(delivery, message, again)


def settle(connection: sa.Connection, claimed: Claimed, outcome: Outcome, now: float, chance: float) -> State | None:
    """Note what came of a message; None, and nothing noted, if it is no longer this process's, or nobody's."""
    sent = claimed.delivery
    query = sa.select(deliveries).where(
        deliveries.c.id == sent.id,
        deliveries.c.message_revision == sent.message_revision,
        deliveries.c.stamped_at == sent.stamped_at,
    )
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None or row.message == "":
        return None
    current = _delivery(row)
    target = Target(sent.channel, sent.target)
    changed_since = current.revision != sent.message_revision
    values: dict[str, object] = {"status_code": outcome.status, "error": _printable(outcome.message)}
    arrived = outcome.kind is Kind.ARRIVED or (outcome.kind is Kind.STALE and claimed.again)
    pause = backoff.pause_seconds(current.attempts, outcome.retry_after_seconds, chance)
    since = current.failing_since if current.failing_since is not None else now
    if arrived:
        told = {name: value for name, value in claimed.message.items() if name not in VOLATILE}
        values |= {"told": _text(told), "delivered_at": now, "message": "", "failing_since": None}
        values |= {"state": (State.WAITING if changed_since else State.DELIVERED).value}
    elif outcome.kind is Kind.REFUSED or backoff.is_over(since, now):
        values |= {"message": "", "failing_since": since}
        values |= {"state": (State.WAITING if changed_since else State.FAILED).value}
    else:
        values |= {"failing_since": since, "due_at": current.due_at if changed_since else now + pause}
        if not outcome.may_have_arrived:
            values["message"] = ""  # the next one has a time of its own
    _update(connection, current, **values)
    _note_target(connection, target, outcome, now, chance)
    return State(str(values.get("state", State.WAITING.value)))


def _note_target(connection: sa.Connection, target: Target, outcome: Outcome, now: float, chance: float) -> None:
    """Leave a target alone that does not answer; one that answers starts over."""
    if not (outcome.of_all and outcome.kind is Kind.LATER):
        connection.execute(targets.update().where(*_this(target)).values(failures=0, paused_until=0.0))
        return
    failures = connection.execute(sa.select(targets.c.failures).where(*_this(target))).scalar_one_or_none() or 0
    until = now + backoff.pause_seconds(failures + 1, outcome.retry_after_seconds, chance)
    connection.execute(targets.update().where(*_this(target)).values(failures=failures + 1, paused_until=until))


def let_go(connection: sa.Connection, holder: str) -> None:
    """Leave the targets of a process that stops to others."""
    connection.execute(targets.update().where(targets.c.holder == holder).values(held_until=0.0))


# -- what staff do and see -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter:
    """What to show: every field that is given must fit."""

    channel: Channel | None = None
    state: State | None = None
    course: str | None = None
    unit: str | None = None
    student: str | None = None
    target: str | None = None


def find(connection: sa.Connection, delivery_id: str) -> Delivery | None:
    if "\0" in delivery_id:  # PostgreSQL refuses to compare it
        return None
    row = connection.execute(sa.select(deliveries).where(deliveries.c.id == delivery_id)).one_or_none()
    return _delivery(row) if row is not None else None


def page(
    connection: sa.Connection, wanted: Filter, limit: int, before: tuple[float, str] | None = None
) -> tuple[list[Delivery], tuple[float, str] | None]:
    """Up to `limit` deliveries, what changed last first, and the `before` of the next page; None on the last one."""
    query = sa.select(deliveries).where(*_where(wanted))
    if before is not None:
        row = sa.tuple_(deliveries.c.changed_at, deliveries.c.id)
        query = query.where(row < sa.tuple_(sa.literal(before[0]), sa.literal(before[1])))
    query = query.order_by(deliveries.c.changed_at.desc(), deliveries.c.id.desc()).limit(limit + 1)
    found = [_delivery(row) for row in connection.execute(query)]
    last = (found[limit - 1].changed_at, found[limit - 1].id) if len(found) > limit else None
    return found[:limit], last


def counts(connection: sa.Connection, wanted: Filter) -> dict[State, int]:
    """How many deliveries there are of each state."""
    query = sa.select(deliveries.c.state, sa.func.count()).where(*_where(wanted)).group_by(deliveries.c.state)
    return {State(state): count for state, count in connection.execute(query)}


def oldest_due(connection: sa.Connection, now: float) -> float | None:
    """For how many seconds the oldest delivery has been due that nothing holds up; None if none is."""
    same = sa.and_(targets.c.channel == deliveries.c.channel, targets.c.target == deliveries.c.target)
    paused = sa.exists().where(same, targets.c.paused_until > now)
    due = (deliveries.c.state == State.WAITING.value, deliveries.c.due_at <= now, ~paused)
    since = connection.execute(sa.select(sa.func.min(deliveries.c.due_at)).where(*due)).scalar_one()
    return None if since is None else now - since


def resend(connection: sa.Connection, wanted: Filter, ids: list[str] | None, now: float) -> list[Delivery]:
    """Send what fits again, as it stands now, even if it has arrived, and at once; returns what was there."""
    query = sa.select(deliveries).where(*_where(wanted), deliveries.c.state != State.IDLE.value)
    if ids is not None:
        query = query.where(deliveries.c.id.in_(ids))
    found = [_delivery(row) for row in connection.execute(query)]
    for delivery in found:
        _update(
            connection,
            delivery,
            **{"revision": deliveries.c.revision + 1, "state": State.WAITING.value, "due_at": now, "attempts": 0},
            **{"failing_since": None, "told": _text({**delivery.known, AGAIN: True}), "changed_at": now},
        )
    for target in {Target(each.channel, each.target) for each in found}:
        connection.execute(targets.update().where(*_this(target)).values(paused_until=0.0, failures=0))
    return found


def note_resend(connection: sa.Connection, resent: list[Delivery], by: By, *, course: str | None) -> None:
    """Write into the audit log that deliveries are sent again."""
    one = resent[0] if len(resent) == 1 else None
    audit.note(
        connection,
        by,
        action="delivery.resend",
        object=one.id if one is not None else "",
        student=one.student if one is not None else None,
        course=one.course if one is not None else course,
        unit=one.unit if one is not None else None,
        detail={"count": len(resent)},
    )


def note_secret(connection: sa.Connection, by: By) -> None:
    """Write into the audit log that a token's secret was replaced by whoever holds it."""
    assert by.who is not None
    audit.note(connection, by, action="callback_secret.replace", object=by.who.id)


def sweep(connection: sa.Connection, before: float) -> int:
    """Forget callbacks that ended before that time, UTC seconds."""
    over = (
        deliveries.c.channel == Channel.WEBHOOK.value,
        deliveries.c.state.in_([State.DELIVERED.value, State.FAILED.value]),
        deliveries.c.changed_at < before,
    )
    return connection.execute(deliveries.delete().where(*over)).rowcount


# -- rows ------------------------------------------------------------------------------------------------------------


def _where(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    return [
        deliveries.c[name] == value
        for name in Filter.__dataclass_fields__
        if (value := getattr(wanted, name)) is not None
    ]


def _this(target: Target) -> tuple[sa.ColumnElement[bool], ...]:
    return targets.c.channel == target.channel.value, targets.c.target == target.name


def _update(connection: sa.Connection, delivery: Delivery, **values: object) -> None:
    connection.execute(deliveries.update().where(deliveries.c.id == delivery.id).values(**values))


def _printable(text: str) -> str:
    """What somebody else said, as a column and a page can hold it."""
    return "".join(char if char.isprintable() else " " for char in text[:ERROR_CHARS])


def _text(content: Content) -> str:
    return json.dumps(dict(content), sort_keys=True)


def _object(text: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(text) if text else {}
    return found


def _delivery(row: sa.Row[tuple[object, ...]]) -> Delivery:
    values = dict(row._mapping) | {"channel": Channel(row.channel), "state": State(row.state)}
    return Delivery(**values)
