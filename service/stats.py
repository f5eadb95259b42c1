"""Counts, gauges and durations go in from any thread; all of them come out as JSON, which another process can read.

The names, kinds and labels are in SERIES and nowhere else: what is not listed there cannot be counted. Labels take few
values by construction (routes, statuses, verdicts, phases), never ids or names.
"""

import json
import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["counter", "gauge", "histogram"]
Labels = tuple[str, ...]

BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histograms, in seconds."""
MOST_ROWS = 1000  # of one series: a label that is not as few-valued as believed must not fill the memory


@dataclass(frozen=True)
class Series:
    kind: Kind
    says: str
    labels: Labels = ()


SERIES: Mapping[str, Series] = {
    # the web process
    "http_requests": Series("counter", "Requests answered.", ("route", "method", "status")),
    "http_request_seconds": Series(
        "histogram", "Seconds from a request's head to its answer's end; of a stream, to its beginning.", ("route",)
    ),
    "refused": Series("counter", "Requests answered with 429 or 503, by reason.", ("status", "reason")),
    "followers": Series("gauge", "Event streams that are open."),
    # both
    "cache": Series("counter", "Submissions looked up among graded ones.", ("result",)),
    # a worker
    "graded": Series("counter", "Runs ended with a report.", ("verdict",)),
    "phase_seconds": Series("histogram", "Seconds a run spent in a phase, or waiting (queued).", ("phase",)),
    "attempts_failed": Series("counter", "Attempts at a run that failed on our side.", ("error",)),
    "takeovers": Series("counter", "Dead workers whose runs were taken over."),
    "quarantined": Series("counter", "Runs given up because their worker died in every attempt."),
    "late_results": Series("counter", "Reports dropped because the run had ended, or was another worker's by then."),
    "grading": Series("gauge", "Submissions being graded."),
    "sandboxes": Series("gauge", "Containers of the warm pool that are ready.", ("state",)),
}


class Stats:
    """Thread-safe; costs a lock and a dictionary look-up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, dict[Labels, float]] = {}
        self._buckets: dict[str, dict[Labels, list[float]]] = {}

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter or a gauge."""
        rows, key = self._numbers, _key(name, labels, "counter", "gauge")
        with self._lock:
            found = rows.setdefault(name, {})
            if key in found or len(found) < MOST_ROWS:
                found[key] = found.get(key, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        key = _key(name, labels, "gauge")
        with self._lock:
            self._numbers.setdefault(name, {})[key] = value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        key = _key(name, labels, "histogram")
        with self._lock:
            found = self._buckets.setdefault(name, {})
            if key not in found and len(found) >= MOST_ROWS:
                return
            counts = found.setdefault(key, [0.0] * (len(BUCKETS) + 2))  # one a bucket, those above, and the sum
            counts[bisect_left(BUCKETS, seconds)] += 1
            counts[-1] += seconds

    def read(self) -> "Figures":
        """What was counted so far."""
        with self._lock:
            return Figures(
                {name: dict(rows) for name, rows in self._numbers.items()},
                {name: {key: tuple(row) for key, row in rows.items()} for name, rows in self._buckets.items()},
            )


@dataclass(frozen=True)
class Figures:
    """`numbers` and `buckets` by series and label values, in the order of the series' labels.

    The buckets of a histogram: how many in each of BUCKETS, how many above, and the sum in seconds.
    """

    numbers: Mapping[str, Mapping[Labels, float]]
    buckets: Mapping[str, Mapping[Labels, tuple[float, ...]]]

    def to_json(self) -> str:
        return json.dumps(
            {
                "numbers": {
                    name: [[*key, value] for key, value in rows.items()] for name, rows in self.numbers.items()
                },
                "buckets": {
                    name: [[*key, list(row)] for key, row in rows.items()] for name, rows in self.buckets.items()
                },
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Figures":
        """Reads what `to_json` wrote; leaves out what this version does not know."""
        read: Any = json.loads(text)
        return cls(
            {
                name: {tuple(row[:-1]): float(row[-1]) for row in rows}
                for name, rows in read.get("numbers", {}).items()
                if _fits(name, rows)
            },
            {
                name: {tuple(row[:-1]): tuple(row[-1]) for row in rows if len(row[-1]) == len(BUCKETS) + 2}
                for name, rows in read.get("buckets", {}).items()
                if _fits(name, rows)
            },
        )


def _key(name: str, labels: Mapping[str, str], *kinds: Kind) -> Labels:
    series = SERIES[name]
    if series.kind not in kinds or tuple(sorted(labels)) != tuple(sorted(series.labels)):
        raise ValueError(f"{name} is a {series.kind} with the labels {series.labels}, not {tuple(labels)}")
    return tuple(labels[label] for label in series.labels)


def _fits(name: str, rows: list[list[Any]]) -> bool:
    return name in SERIES and all(len(row) == len(SERIES[name].labels) + 1 for row in rows)
