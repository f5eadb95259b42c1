"""The database and the workers' last words go in; each part of the service, with its state in words, comes out."""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from service import runs, wording
from service.runs import Status, Worker
from service.tables import runs as runs_table

PARTS_OF_WORKERS = ("docker", "image", "oracle", "memory")
"""What a worker may lack, as the first word of what it says is missing."""


@dataclass(frozen=True)
class Check:
    """One part: whether it works, and how it is, in words. What does not work is missing."""

    name: str
    works: bool
    state: str


@dataclass(frozen=True)
class Waiting:
    """How many runs wait, and for how long the oldest has."""

    count: int
    oldest_seconds: float


def database_name(engine: sa.Engine) -> str:
    """Which database, without who may enter it and how."""
    url = engine.url
    if url.get_backend_name() == "sqlite":
        return f"SQLite, {(url.database or '').rpartition('/')[2]}"
    host = url.host or url.query.get("host") or "local"
    return f"PostgreSQL, {url.database} on {host}"


def waiting(connection: sa.Connection, now: float) -> Waiting:
    query = sa.select(sa.func.count(), sa.func.min(runs_table.c.queued_at))
    count, oldest = connection.execute(query.where(runs_table.c.status == Status.QUEUED.value)).one()
    return Waiting(count, max(0.0, now - oldest) if oldest is not None else 0.0)


def of_database(name: str, error: str | None) -> Check:
    return Check("database", error is None, wording.answers(name) if error is None else wording.silent(name, error))


def of_workers(alive: Iterable[Worker]) -> list[Check]:
    """The workers, and what they need: a part is missing when no worker is ready and one of them lacks it."""
    workers = list(alive)
    ready = sum(worker.ready for worker in workers)
    lacks = sorted({lack for worker in workers if not worker.ready for lack in worker.missing})
    checks = []
    for name in PARTS_OF_WORKERS:
        found = [lack.partition(": ")[2] for lack in lacks if lack.startswith(f"{name}:")]
        if found or name in ("docker", "image"):
            checks.append(Check(name, ready > 0 or not found, "; ".join(found) or wording.nothing_lacks(ready)))
    others = [lack for lack in lacks if lack.partition(":")[0] not in PARTS_OF_WORKERS]
    state = "; ".join([wording.workers_ready(ready, len(workers)), *(lack.partition(": ")[2] for lack in others)])
    known = any(not check.works for check in checks)
    return [Check("worker", ready > 0 or (known and not others), state), *checks]


def of_queue(found: Waiting, full: bool) -> Check:
    """A long queue is no fault; one at its mark closes intake."""
    return Check("queue", not full, wording.queue_state(found.count, found.oldest_seconds))


def alive(connection: sa.Connection, now: float) -> list[Worker]:
    return runs.alive(connection, now)
