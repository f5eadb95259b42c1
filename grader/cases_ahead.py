"""A unit that is about to be graded comes in; its grading's seed leaves, with an oracle that has drawn the cases of
that seed already, if there was time before.

Cases follow from a seed alone, and a seed from nothing. So those of the next grading of a unit are drawn when none has
been under way for a moment, and not beside one (decision 0251).
"""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from grader.errors import OracleError
from grader.grade import fresh_seed
from grader.oracle import Oracle, Trial
from grader.plan import oracle_seed
from grader.unit import Unit, UnitOracle

SETTLE_SECONDS = 0.5  # without a grading, before cases are drawn for the next one


class Seeded:
    """A fresh seed for one grading, and an oracle that draws the cases of a seed once."""

    def __init__(self, oracle: Oracle) -> None:
        self.seed = fresh_seed()
        self._oracle = oracle
        self._drawn: dict[tuple[UnitOracle, int], tuple[Trial, ...]] = {}
        self._lock = threading.Lock()

    def trials(self, oracle: UnitOracle, seed: int) -> tuple[Trial, ...]:
        with self._lock:  # who asks while they are drawn gets these
            if (oracle, seed) not in self._drawn:
                self._drawn[oracle, seed] = self._oracle.trials(oracle, seed)
            return self._drawn[oracle, seed]


class CasesAhead:
    """Knows the next seed of each unit that was graded. Any thread may grade; `close` it."""

    def __init__(self, oracle: Oracle, settle_seconds: float = SETTLE_SECONDS) -> None:
        self._oracle = oracle
        self._settle_seconds = settle_seconds
        self._next: dict[UnitOracle, Seeded] = {}
        self._running = 0
        self._soon: threading.Timer | None = None
        self._closed = False
        self._lock = threading.Lock()

    @contextmanager
    def grading(self, unit: Unit) -> Iterator[Seeded]:
        """While a grading of the unit is under way: its seed, and the oracle to give it."""
        with self._lock:
            self._running += 1
            self._put_off()
            ready = None if unit.oracle is None else self._next.pop(unit.oracle, None)
        try:
            yield ready or Seeded(self._oracle)
        finally:
            with self._lock:
                self._running -= 1
                if unit.oracle is not None and not self._running and not self._closed:
                    self._soon = threading.Timer(self._settle_seconds, self._draw, [unit.oracle])
                    self._soon.daemon = True
                    self._soon.start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._put_off()

    def _put_off(self) -> None:
        if self._soon is not None:
            self._soon.cancel()

    def _draw(self, oracle: UnitOracle) -> None:
        with self._lock:
            if self._running or self._closed or oracle in self._next:
                return
            ready = self._next[oracle] = Seeded(self._oracle)
        with contextlib.suppress(OracleError):  # then the grading asks again, and hears what is wrong
            ready.trials(oracle, oracle_seed(ready.seed))
