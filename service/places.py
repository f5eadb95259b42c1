"""A run goes in; its place among those that wait, and the seconds until its report as far as can be told, come out.

The estimate plays the queue forward: the slots of the workers that are ready, what they are at, and what waits ahead,
each run taking as long as recent ones of its unit did. It knows nothing of what will still arrive and go before, or be
cancelled. (docs/decisions/0128)
"""

import heapq
import statistics
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service.runs import RunState, Status, alive
from service.tables import runs

RECENT_RUNS = 100
HALF_LIFE_RUNS = 25  # the run that ended so many runs ago weighs half as much as the last one
PACE_SECONDS = 10.0  # for which a pace is good enough: working it out costs more than all else about a place
ENOUGH_RUNS = 3  # of a unit, or those of all units are asked
LEVEL_ROUNDS = 8  # after so many runs each, slots differ by less than a run


@dataclass(frozen=True)
class Finished:
    """A run that ended with a report of its own, in UTC seconds."""

    unit: str
    worker: str | None
    queued_at: float
    started_at: float
    finished_at: float

    @property
    def seconds(self) -> float:
        return max(0.0, self.finished_at - self.started_at)


@dataclass(frozen=True)
class Lengths:
    """How long runs take, in seconds: a single one typically (the median), each of many (the mean)."""

    typical: float
    mean: float
    all: tuple[float, ...]  # ascending

    def left(self, age: float) -> float:
        """What a run of this age still takes: as those did that took longer. Beyond all of them, nobody knows; the
        longer it has lasted, the longer it may, but then it begins anew sooner or later."""
        longer = self.all[bisect_right(self.all, age) :]
        return statistics.fmean(longer) - age if longer else min(age / 4, self.typical)


@dataclass(frozen=True)
class Pace:
    """What recent runs tell: how long they take, by unit, and for how long a slot stands empty between two."""

    units: Mapping[str, Lengths]
    any: Lengths
    gap: float

    def of(self, unit: str) -> Lengths:
        return self.units.get(unit, self.any)


@dataclass(frozen=True)
class Place:
    """`position` 1 is next, None for what does not wait; `estimate_seconds` None while there is nothing to go by."""

    position: int | None
    estimate_seconds: float | None


class Paces:
    """The pace as of the run that ended last, or of the one that had when it was worked out less than PACE_SECONDS ago,
    unless few were known. Any thread may ask."""

    def __init__(self) -> None:
        self._known: tuple[object, Pace | None, float] = (None, None, 0.0)

    def of(self, connection: sa.Connection, now: float) -> Pace | None:
        asked, pace, at = self._known
        if pace is not None and len(pace.any.all) >= RECENT_RUNS and 0 <= now - at < PACE_SECONDS:
            return pace
        last = connection.execute(_LAST).first()
        if last is None or last != asked:
            pace = measured(_recent(connection))
        self._known = (last, pace, now)
        return pace


def of(connection: sa.Connection, run: RunState, unit: str, now: float, paces: Paces) -> Place:
    """Where a run of the unit stands, and when its report is to be expected."""
    if run.status.ended:
        return Place(None, None)
    ahead = _ahead(connection, run) if run.status is Status.QUEUED else None
    position = ahead.total() + 1 if ahead is not None else None
    pace = paces.of(connection, now)
    if pace is None:
        return Place(position, None)
    if ahead is None:
        return Place(None, pace.of(unit).left(now - (run.started_at if run.started_at is not None else now)))
    slots = {worker.id: worker.slots for worker in alive(connection, now) if worker.ready}
    if not slots:
        return Place(position, None)
    busy, silent = _under_way(connection, slots, now)
    return Place(position, wait_seconds(pace, sum(slots.values()), busy, ahead + silent) + pace.of(unit).typical)


def wait_seconds(pace: Pace, slots: int, busy: Sequence[tuple[str, float]], ahead: Mapping[str, int]) -> float:
    """Until a run begins: `busy` holds the unit and age in seconds of what runs, `ahead` how many wait of each unit."""
    free = [pace.of(unit).left(age) + pace.gap for unit, age in busy]
    free += [0.0] * (max(1, slots) - len(free))
    heapq.heapify(free)
    count = sum(ahead.values())
    if count:
        each = sum(number * pace.of(unit).mean for unit, number in ahead.items()) / count + pace.gap
        level = min(count, LEVEL_ROUNDS * len(free))
        _take(free, level, each)
        rounds, rest = divmod(count - level, len(free))
        _take(free, rest, each)
        return free[0] + rounds * each
    return free[0]


def _take(free: list[float], count: int, each: float) -> None:
    """Let the slot that is free first take the next run, `count` times."""
    for _ in range(count):
        heapq.heapreplace(free, free[0] + each)


def measured(recent: Iterable[Finished]) -> Pace | None:
    """The pace of recent runs, the last one first; None if there are none."""
    weighed = [(run, 0.5 ** (n / HALF_LIFE_RUNS)) for n, run in enumerate(recent)]
    if not weighed:
        return None
    by_unit: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for run, weight in weighed:
        by_unit[run.unit].append((run.seconds, weight))
    return Pace(
        units={unit: _lengths(found) for unit, found in by_unit.items() if len(found) >= ENOUGH_RUNS},
        any=_lengths([(run.seconds, weight) for run, weight in weighed]),
        gap=_gap([run for run, _ in weighed]),
    )


def _lengths(weighed: list[tuple[float, float]]) -> Lengths:
    weighed = sorted(weighed)
    total = sum(weight for _, weight in weighed)
    below, typical = 0.0, weighed[-1][0]
    for seconds, weight in weighed:
        below += weight
        if below >= total / 2:
            typical = seconds
            break
    mean = sum(seconds * weight for seconds, weight in weighed) / total
    return Lengths(typical, mean, tuple(seconds for seconds, _ in weighed))


def _gap(recent: Sequence[Finished]) -> float:
    """The usual time from the end of a run to the start of the next that waited for its slot."""
    gaps = []
    ended: dict[str | None, list[float]] = defaultdict(list)
    for run in sorted(recent, key=lambda run: run.finished_at):
        ended[run.worker].append(run.finished_at)
    for run in recent:
        before = bisect_right(ended[run.worker], run.started_at)
        if before and run.queued_at <= (freed_at := ended[run.worker][before - 1]):
            gaps.append(run.started_at - freed_at)
    return statistics.median(gaps) if gaps else 0.0


# -- from the database -----------------------------------------------------------------------------------------------


_KEY = sa.tuple_(runs.c.priority, runs.c.queued_at, runs.c.id)
_MINE = sa.tuple_(
    sa.bindparam("priority", type_=runs.c.priority.type),
    sa.bindparam("queued_at", type_=runs.c.queued_at.type),
    sa.bindparam("run", type_=runs.c.id.type),
)
_AHEAD = (
    sa.select(runs.c.unit, sa.func.count())
    .where(runs.c.status == Status.QUEUED.value, _KEY < _MINE)
    .group_by(runs.c.unit)
)
_LAST = (
    sa.select(runs.c.finished_at, runs.c.id)
    .where(runs.c.finished_at.is_not(None))
    .order_by(runs.c.finished_at.desc())
    .limit(1)
)
_RECENT = (
    sa.select(
        runs.c.status,
        runs.c.cached_from,
        runs.c.unit,
        runs.c.worker,
        runs.c.queued_at,
        runs.c.started_at,
        runs.c.finished_at,
    )
    .where(runs.c.finished_at.is_not(None))
    .order_by(runs.c.finished_at.desc())
    .limit(2 * RECENT_RUNS)
)
_RUNNING = sa.select(runs.c.unit, runs.c.started_at, runs.c.worker).where(runs.c.status == Status.RUNNING.value)


def _ahead(connection: sa.Connection, run: RunState) -> Counter[str]:
    """How many runs of each unit go before, in the order in which the job engine takes them."""
    mine = {"priority": run.priority, "queued_at": run.queued_at, "run": run.id}
    return Counter({unit: count for unit, count in connection.execute(_AHEAD, mine)})


def _recent(connection: sa.Connection) -> list[Finished]:
    """Those of the runs that ended last which were graded in full, the last one first.

    Which they are is seen here, not in the query: SQLite would otherwise find all that ever ended so, and sort them.
    """
    found = [
        Finished(row.unit, row.worker, row.queued_at, row.started_at, row.finished_at)
        for row in connection.execute(_RECENT)
        if row.status == Status.DONE.value and row.cached_from is None and row.started_at is not None
    ]
    return found[:RECENT_RUNS]


def _under_way(
    connection: sa.Connection, slots: Mapping[str, int], now: float
) -> tuple[list[tuple[str, float]], Counter[str]]:
    """Unit and age of what the ready workers are at; and, by unit, what others began, which will begin anew."""
    busy, silent = [], Counter[str]()
    for row in connection.execute(_RUNNING):
        if row.worker in slots:
            busy.append((row.unit, now - row.started_at))
        else:
            silent[row.unit] += 1
    return busy, silent
