"""Monitoring data in the text format of Prometheus: counters, gauges and histograms."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
ITEMS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)


@dataclass
class Histogram:
    """Number of values up to each bound, and their sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        so_far = 0
        for bound, count in zip((*map(_number, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            yield f"{name}_bucket{_written((*labels, ('le', bound)))} {so_far}"
        yield f"{name}_sum{_written(labels)} {_number(self.total)}"
        yield f"{name}_count{_written(labels)} {so_far}"


class Counts:
    """All counters of the API; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[Labels] = Counter()
        self._seconds: dict[Labels, Histogram] = {}
        self._passes = Histogram(ITEMS)
        self._scoring_seconds = 0.0
        self.gauges: dict[str, tuple[str, Callable[[], Mapping[Labels, float]]]] = {}
        """Help text of each gauge, and a function that returns its values."""

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        with self._lock:
            labels = (("route", route), ("method", method), ("status", str(status)))
            self._requests[labels] += 1
            self._seconds.setdefault((("route", route),), Histogram(SECONDS)).add(seconds)

    def scored(self, items: int, seconds: float) -> None:
        """Count a pass over the networks."""
        with self._lock:
            self._passes.add(items)
            self._scoring_seconds += seconds

    def text(self) -> str:
        """Return all values in the text format of Prometheus."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        with self._lock:
            yield from _head("causerie_requests_total", "counter", "Requests that were answered.")
            for labels, count in sorted(self._requests.items()):
                yield f"causerie_requests_total{_written(labels)} {count}"
            name = "causerie_request_seconds"
            yield from _head(name, "histogram", "How long answers took.")
            for labels, histogram in sorted(self._seconds.items(), key=lambda one: one[0]):
                yield from histogram.lines(name, labels)
            name = "causerie_pass_items"
            yield from _head(name, "histogram", "Items that were scored in one pass.")
            yield from self._passes.lines(name, ())
            name = "causerie_scoring_seconds_total"
            yield from _head(name, "counter", "Time that scoring took.")
            yield f"{name} {_number(self._scoring_seconds)}"
        for name, (about, ask) in self.gauges.items():
            yield from _head(name, "gauge", about)
            for labels, value in ask().items():
                yield f"{name}{_written(labels)} {_number(value)}"


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(value)


def _written(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
