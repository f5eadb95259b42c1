"""The port to the job engine: a run's id goes in with the transaction that stores it, and comes out in a worker.

The engine delivers each id at least once. Everything else (the state, the attempts, that there is one result) is in
our own tables, see service/runs.py. (docs/decisions/0060)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import sqlalchemy as sa

Handler = Callable[[str], None]
"""Grades the run with this id and stores what came of it. Raises Stopping to leave it to a later start."""


class Stopping(Exception):
    """The worker stops before the run is graded: the engine may forget the run until it is adopted again."""


class Queue(Protocol):
    """What the web process needs."""

    def submit(self, connection: sa.Connection, run_id: str, priority: int) -> None:
        """Enqueue as part of the caller's transaction; lower priorities go first. Twice is once."""
        ...

    def cancel(self, run_id: str) -> None:
        """Take a run that has not begun out of the queue; harmless if it has begun or is gone."""
        ...

    def forget(self, run_ids: Sequence[str]) -> None:
        """Delete what the engine keeps of these runs; harmless for those it does not know."""
        ...

    def close(self) -> None: ...


class Engine(Protocol):
    """What the worker process needs."""

    def start(self, handler: Handler) -> None:
        """Deliver what is queued to `handler`, beginning with what an earlier process of this worker left behind."""
        ...

    def adopt(self, runs: Mapping[str, int]) -> list[str]:
        """Enqueue again those of `runs` (id: priority) that the engine believes ended, or does not know."""
        ...

    def stop(self, grace_seconds: float) -> None:
        """Begin nothing more, give what runs `grace_seconds`, and let go of everything."""
        ...


class FakeQueue:
    """Remembers what was enqueued instead of delivering it: for tests of what builds on a queue."""

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.cancelled: list[str] = []
        self.forgotten: list[str] = []

    def submit(self, connection: sa.Connection, run_id: str, priority: int) -> None:
        self.submitted.append(run_id)

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)

    def forget(self, run_ids: Sequence[str]) -> None:
        self.forgotten += run_ids

    def close(self) -> None:
        pass
