"""The port to the job engine: a run's id goes in with the transaction that stores it, and comes out in a worker.

The engine delivers each id at least once. Everything else (the state, the attempts, that there is one result) is in
our own tables, see service/runs.py. (docs/decisions/0060)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import sqlalchemy as sa

Handler = Callable[[str], None]
"""Grades the run with this id and stores what came of it. Raises Stopping to leave it to another worker."""


class Stopping(Exception):
    """The run is not graded here: the engine forgets it until it is told to deliver it again."""


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

    def known(self) -> Mapping[str, str | None]:
        """The runs that it will deliver or has delivered, with the worker each was given to; None while it waits."""
        ...

    def deliver_again(self, runs: Mapping[str, int]) -> None:
        """Enqueue runs (id: priority) that it has lost, believes ended, or gave to a worker that is gone."""
        ...

    def forget_ended(self, before: float) -> int:
        """Delete what it keeps of runs that ended before that time, UTC seconds; returns how many."""
        ...

    def stop(self, grace_seconds: float) -> None:
        """Deliver nothing more and give what runs `grace_seconds`. `known` and `deliver_again` still work."""
        ...

    def close(self) -> None: ...


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
