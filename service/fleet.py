"""What workers write of themselves goes in; who has fallen silent, and the runs that nobody is at, comes out.

A worker's row is its lease: while the row is there, the runs it claimed are its own. It writes to the row every third
of its time to live. One that another worker sees silent for that long loses the row, and with it its runs, in one
transaction; if it comes back, it finds no row, and ends. (docs/decisions/0120)
"""

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from service import runs
from service.runs import Status
from service.tables import runs as run_rows
from service.tables import workers


class Silence:
    """Tells which workers have fallen silent, by this process's own monotonic clock.

    The times that workers write are only compared with what they wrote before: no step of a clock, and no other
    machine's clock, makes a worker look dead.
    """

    def __init__(self, ttl_seconds: float) -> None:
        self._ttl_seconds = ttl_seconds
        self._seen: dict[str, tuple[float, float]] = {}  # what a worker wrote last, and when that was first seen
        self._looked_at: float | None = None

    def of(self, beats: Mapping[str, float], now: float) -> list[str]:
        """Of workers and what each wrote last, those who have written nothing new for the whole time to live."""
        if self._looked_at is not None and now - self._looked_at > self._ttl_seconds / 2:
            self._seen.clear()  # we have been away ourselves, maybe with the whole machine: begin anew
        self._looked_at = now
        known = {worker: self._seen.get(worker) for worker in beats}
        self._seen = {
            worker: seen if seen is not None and seen[0] == beats[worker] else (beats[worker], now)
            for worker, seen in known.items()
        }
        return [worker for worker, (_, since) in self._seen.items() if now - since >= self._ttl_seconds]


def beats(connection: sa.Connection) -> dict[str, float]:
    """The workers that have a row, and what they wrote last."""
    return {row.id: row.beat_at for row in connection.execute(sa.select(workers.c.id, workers.c.beat_at))}


def take_over(connection: sa.Connection, worker: str, beat_at: float, now: float) -> bool:
    """Give back the runs of a worker that has written nothing since `beat_at`; False if it has, or is gone."""
    silent = workers.delete().where(workers.c.id == worker, workers.c.beat_at == beat_at)
    if not connection.execute(silent).rowcount:
        return False
    runs.hand_back(connection, worker, now, died=True)
    return True


def give_back_orphans(connection: sa.Connection, now: float) -> None:
    """Give back the runs of workers that have no row."""
    there = sa.select(workers.c.id)
    mine = run_rows.c.status == Status.RUNNING.value
    gone = sa.select(run_rows.c.worker).distinct().where(mine, run_rows.c.worker.not_in(there))
    for worker in connection.execute(gone).scalars().all():
        runs.hand_back(connection, worker, now, died=True)


def claimed(connection: sa.Connection, worker: str) -> list[str]:
    """The runs that this worker is at, as it wrote down."""
    mine = (run_rows.c.worker == worker, run_rows.c.status == Status.RUNNING.value)
    return list(connection.execute(sa.select(run_rows.c.id).where(*mine)).scalars())


def stranded(waiting: Collection[str], known: Mapping[str, str | None], workers: Collection[str]) -> list[str]:
    """Of the runs that wait, those that the engine will deliver to nobody.

    `known`: the runs that it has, with the worker it gave each to, None for one that waits.
    """
    return [run for run in waiting if run not in known or (known[run] is not None and known[run] not in workers)]
