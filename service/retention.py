"""The settings say how long to keep what; what is older goes, once a day in a worker, or when told to.

Submissions go with their runs, reports and files once they are old enough and graded, and with the last of a unit the
hints that were unlocked there; keys of requests after a day; the audit log stays. (docs/decisions/0133)
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from service import audit, blobs, database
from service.audit import By
from service.classroom import progress
from service.database import writing
from service.meanwhile import meanwhile
from service.runs import UNFINISHED
from service.settings import Settings
from service.tables import hints, idempotency, runs, submissions

log = logging.getLogger(__name__)

SECONDS_PER_DAY = 86_400.0
KEY_SECONDS = SECONDS_PER_DAY  # how long a request with an Idempotency-Key is remembered
FIRST_SECONDS = 60.0  # after the start of a worker
AT_A_TIME = 200  # submissions in one transaction: others wait for no longer


@dataclass(frozen=True)
class Swept:
    """How much is no longer there."""

    submissions: int
    blobs: int
    keys: int


def sweep(engine: sa.Engine, settings: Settings, now: float) -> Swept:
    """Delete everything that is older than the settings keep it."""
    swept = Swept(
        submissions=_sweep_submissions(engine, settings, now),
        blobs=_collect_blobs(engine),
        keys=_sweep_keys(engine, now),
    )
    if swept.submissions:
        database.empty_journal(engine)
    return swept


def _sweep_submissions(engine: sa.Engine, settings: Settings, now: float) -> int:
    if not settings.keep_submissions_days:
        return 0
    before = now - settings.keep_submissions_days * SECONDS_PER_DAY
    unfinished = sa.exists().where(runs.c.submission == submissions.c.id, UNFINISHED)
    old = sa.select(submissions.c.id).where(submissions.c.received_at < before, ~unfinished)
    total = 0
    while True:
        with writing(engine) as connection:
            found = connection.execute(old.order_by(submissions.c.received_at).limit(AT_A_TIME)).scalars().all()
            if not found:
                _sweep_hints(connection, before)
                return total
            connection.execute(idempotency.delete().where(idempotency.c.submission.in_(found)))
            whose = progress.of_submissions(connection, found)
            # Runs, results, outcomes, facts, files and cache entries go with their submission.
            connection.execute(submissions.delete().where(submissions.c.id.in_(found)))
            progress.renew(connection, whose)
            audit.note(
                connection,
                By(None, now),
                action="submissions.sweep",
                object="",
                detail={"count": len(found), "received_before": before},
            )
        total += len(found)


def _sweep_hints(connection: sa.Connection, before: float) -> None:
    """What was unlocked long ago by students of whom no submission of the unit is left."""
    same = [getattr(submissions.c, name) == getattr(hints.c, name) for name in ("course", "unit", "student")]
    connection.execute(hints.delete().where(hints.c.unlocked_at < before, ~sa.exists().where(*same)))


def _collect_blobs(engine: sa.Engine) -> int:
    total = 0
    while True:
        with writing(engine) as connection:
            count = blobs.collect(connection)
        if not count:
            return total
        total += count


def _sweep_keys(engine: sa.Engine, now: float) -> int:
    with writing(engine) as connection:
        return connection.execute(idempotency.delete().where(idempotency.c.created_at < now - KEY_SECONDS)).rowcount


@contextmanager
def daily(
    engine: sa.Engine,
    settings: Settings,
    clock: Callable[[], float] = time.time,
    first_seconds: float = FIRST_SECONDS,
    every_seconds: float = SECONDS_PER_DAY,
) -> Iterator[None]:
    """Sweep soon, and every day, in a thread of its own for as long as the context is open.

    Every worker does so: what one has swept, the next does not find.
    """

    def watch(stop: threading.Event) -> None:
        pause = first_seconds
        while not stop.wait(pause):
            pause = every_seconds
            try:
                swept = sweep(engine, settings, clock())
            except sa.exc.SQLAlchemyError:
                log.exception("the sweep failed; it is tried again in an hour")
                pause = min(every_seconds, 3_600.0)
            else:
                log.info("swept %d submissions, %d blobs, %d keys", swept.submissions, swept.blobs, swept.keys)

    with meanwhile(
        "sweep", watch, patience_seconds=1
    ):  # what it is in the middle of is rolled back if the process ends
        yield
