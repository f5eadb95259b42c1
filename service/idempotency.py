"""A token, its Idempotency-Key and what was posted go in; whether to go on, or what was answered before, comes out.

    claim -> bind, in the transaction that stores the submission     the key now answers with that submission
          -> release                                                 refused: the key is free again

A claim that is neither, because its process died, lapses after LAPSE_SECONDS. (docs/decisions/0135)
"""

from dataclasses import dataclass

import sqlalchemy as sa

from service.database import insert_or_ignore, reading, writing
from service.tables import idempotency, submissions

KEY_CHARS = 255
KEPT_SECONDS = 24 * 3600.0
LAPSE_SECONDS = 300.0
RETRY_SECONDS = 2


class Mismatch(Exception):
    """The key was used for another submission."""


class InFlight(Exception):
    """A request with the key is being answered right now."""


@dataclass(frozen=True)
class Claim:
    """A key that is ours to answer: only the request that claimed it at `at` can bind or release it."""

    token: str
    key: str
    at: float


@dataclass(frozen=True)
class Answered:
    """The id of the submission that the key was answered with."""

    submission: str


def is_key(text: str) -> bool:
    return 0 < len(text) <= KEY_CHARS and text.isascii() and text.isprintable()


def claim(engine: sa.Engine, token: str, key: str, fingerprint: str, now: float) -> Claim | Answered:
    """Take the key, or say what it was answered with. Raises Mismatch or InFlight."""
    with reading(engine) as connection:  # a reader sees a claim at once, where a writer would wait for its transaction
        answered = _answered(connection, token, key, fingerprint, now)
    if answered is not None:
        return answered
    with writing(engine) as connection:
        connection.execute(idempotency.delete().where(idempotency.c.created_at <= now - KEPT_SECONDS))
        connection.execute(idempotency.delete().where(_key(token, key), sa.not_(_holds(now))))
        values = {"token": token, "key": key, "fingerprint": fingerprint, "created_at": now}
        insert = insert_or_ignore(connection, idempotency, values).returning(idempotency.c.key)
        if connection.execute(insert).first() is not None:  # on PostgreSQL, rowcount would not tell
            return Claim(token, key, now)
        answered = _answered(connection, token, key, fingerprint, now)
    if answered is None:
        raise InFlight  # somebody else's, and released in this very moment
    return answered


def bind(connection: sa.Connection, claim: Claim, submission: str) -> None:
    """Answer the key with this submission, if the transaction commits. Raises InFlight if the claim lapsed."""
    query = idempotency.update().where(_mine(claim)).values(submission=submission)
    if not connection.execute(query).rowcount:
        raise InFlight


def release(connection: sa.Connection, claim: Claim) -> None:
    """Let the key be used again; nothing happens once it is bound."""
    connection.execute(idempotency.delete().where(_mine(claim)))


def _answered(connection: sa.Connection, token: str, key: str, fingerprint: str, now: float) -> Answered | None:
    """What the key was answered with, None if it is free. Raises Mismatch or InFlight."""
    row = connection.execute(sa.select(idempotency).where(_key(token, key), _holds(now))).one_or_none()
    if row is None:
        return None
    if row.fingerprint != fingerprint:
        raise Mismatch
    if row.submission is None:
        raise InFlight
    return Answered(row.submission)


def _key(token: str, key: str) -> sa.ColumnElement[bool]:
    return sa.and_(idempotency.c.token == token, idempotency.c.key == key)


def _mine(claim: Claim) -> sa.ColumnElement[bool]:
    return sa.and_(
        _key(claim.token, claim.key), idempotency.c.created_at == claim.at, idempotency.c.submission.is_(None)
    )


def _holds(now: float) -> sa.ColumnElement[bool]:
    """Whether a row still says something: its submission is there, or its request may be under way."""
    there = sa.select(submissions.c.id).where(submissions.c.id == idempotency.c.submission).exists()
    under_way = sa.and_(idempotency.c.submission.is_(None), idempotency.c.created_at > now - LAPSE_SECONDS)
    return sa.and_(idempotency.c.created_at > now - KEPT_SECONDS, sa.or_(there, under_way))
