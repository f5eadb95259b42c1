"""What this process and the live workers counted, and what the database holds, go in; Prometheus' text comes out.

Names begin with autograder_. A worker's figures carry the worker's id, which is new at every start: a counter never
falls. Nothing here names a student, a submission or a unit. (docs/decisions/0141)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import sqlalchemy as sa
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from service import health
from service.outbox import deliveries
from service.runs import ALIVE_SECONDS
from service.stats import BUCKETS, SERIES, Figures, Labels, Series
from service.tables import results, runs, workers


@dataclass(frozen=True)
class Stored:
    """What the database says. `workers`: of each that is alive, whether it is ready, and its figures."""

    waiting: health.Waiting = field(default_factory=lambda: health.Waiting(0, 0.0))
    runs: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    workers: Mapping[str, tuple[bool, Figures]] = field(default_factory=dict)
    deliveries: Mapping[str, int] = field(default_factory=dict)
    due_seconds: float = 0.0  # for how long the oldest delivery has been due


def read(connection: sa.Connection, now: float) -> Stored:
    statuses = sa.select(runs.c.status, sa.func.count()).group_by(runs.c.status)
    verdicts = sa.select(results.c.verdict, sa.func.count()).group_by(results.c.verdict)
    alive = sa.select(workers.c.id, workers.c.ready, workers.c.stats).where(workers.c.beat_at > now - ALIVE_SECONDS)
    return Stored(
        waiting=health.waiting(connection, now),
        runs={status: count for status, count in connection.execute(statuses)},
        verdicts={verdict: count for verdict, count in connection.execute(verdicts)},
        deliveries={state.value: count for state, count in deliveries.counts(connection, deliveries.Filter()).items()},
        due_seconds=deliveries.oldest_due(connection, now) or 0.0,
        workers={row.id: (row.ready, Figures.from_json(row.stats)) for row in connection.execute(alive)},
    )


def exposition(own: Figures, stored: Stored | None, free_bytes: int, accept: str) -> tuple[bytes, str]:
    """The figures as a scraper with this Accept header reads them, and their media type. `stored` is None while the
    database does not answer."""
    encode, media_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once([*_of_process(own), *_of_machine(free_bytes, stored), *_of_database(stored or Stored())]))
    return encode(registry), media_type


class _Once(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _of_process(own: Figures) -> Iterator[Metric]:
    for name, series in SERIES.items():
        yield _family(f"autograder_{name}", series, [((), own)], name)


def _of_machine(free_bytes: int, stored: Stored | None) -> Iterator[Metric]:
    yield _gauge("database_up", "Whether the database answers.", {(): float(stored is not None)})
    yield _gauge("disk_free_bytes", "Free bytes on the disk of the data directory.", {(): float(free_bytes)})


def _of_database(stored: Stored) -> Iterator[Metric]:
    yield _gauge("queue_length", "Runs that wait.", {(): float(stored.waiting.count)})
    yield _gauge("queue_oldest_seconds", "For how long the oldest of them has.", {(): stored.waiting.oldest_seconds})
    yield _gauge("runs", "Runs stored, by status.", _rows(stored.runs), "status")
    yield _gauge("results", "Results stored, by verdict.", _rows(stored.verdicts), "verdict")
    yield _gauge("deliveries", "Grades and callbacks told to others, by state.", _rows(stored.deliveries), "state")
    yield _gauge("deliveries_due_seconds", "For how long the oldest of them has been due.", {(): stored.due_seconds})
    ready = sum(ready for ready, _ in stored.workers.values())
    states: dict[Labels, float] = {("ready",): float(ready), ("not_ready",): float(len(stored.workers) - ready)}
    yield _gauge("workers", "Workers that are alive.", states, "state")
    figures = [((worker,), figures) for worker, (_, figures) in sorted(stored.workers.items())]
    for name, series in SERIES.items():
        told = Series(series.kind, series.says, ("worker", *series.labels))
        family = _family(f"autograder_worker_{name}", told, figures, name)
        if family.samples:
            yield family


def _family(full_name: str, series: Series, told: Iterable[tuple[Labels, Figures]], name: str) -> Metric:
    if series.kind == "histogram":
        histogram = HistogramMetricFamily(full_name, series.says, labels=series.labels)
        for first, figures in told:
            for labels, row in figures.buckets.get(name, {}).items():
                counts = list(accumulate(row[:-1]))
                bounds = [*map(str, BUCKETS), "+Inf"]
                histogram.add_metric([*first, *labels], list(zip(bounds, counts, strict=True)), row[-1])
        return histogram
    family = (CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily)(
        full_name, series.says, labels=series.labels
    )
    for first, figures in told:
        for labels, value in figures.numbers.get(name, {}).items():
            family.add_metric([*first, *labels], value)
    return family


def _gauge(name: str, says: str, rows: Mapping[Labels, float], *labels: str) -> Metric:
    family = GaugeMetricFamily(f"autograder_{name}", says, labels=labels)
    for key, value in rows.items():
        family.add_metric(key, value)
    return family


def _rows(counts: Mapping[str, int]) -> dict[Labels, float]:
    return {(name,): float(count) for name, count in counts.items()}
