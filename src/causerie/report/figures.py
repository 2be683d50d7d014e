"""Summary of a column of scores in bounded memory: mean, spread, distribution, worst responses.

The figures of parts can be merged into those of the whole. An empty response counts as the worst
one: it leads the list of worst responses, and mean and spread take it for the worst value that
the column can have or, where that has no bound, for the worst one seen.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import accumulate
from typing import Any

from causerie.metrics.base import EMPTY, Column, Score

WORST = 6
"""Number of worst responses kept per column."""
MAX_CELLS = 512
FINEST = -40
LARGEST = 1e280


@dataclass(frozen=True, slots=True)
class Quote:
    """A response or a dialogue, with what is needed to find it and to show it."""

    row: int
    """Its index among all rows."""
    dialogue: int
    """The index of its conversation among all that have a row."""
    dialogue_id: str
    turn: int | None
    text: str = ""
    before: str = ""
    """The turn before it, which it answers."""
    value: float | None = None
    """None if the response is empty."""
    percentile: float | None = None


@dataclass
class Figures:
    """The figures of one column of scores, updated some scores at a time.

    Values are counted in cells of width 2**exponent on a fixed grid. Whenever more than
    `MAX_CELLS` of them are occupied, the exponent grows by one and neighbours merge: a few values
    stay practically exact, many are known to a fraction of their range, and their order does not
    matter.
    """

    column: Column
    scored: int = 0
    mean_scored: float = 0.0
    """Mean of the scored values only; `mean` includes empty responses."""
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    percentiles: int = 0
    """Number of scores that came with a percentile."""
    percentile_sum: float = 0.0
    unscored: Counter[str] = field(default_factory=Counter)
    """Number of unscored items by reason, empty responses among them."""
    worst: list[Quote] = field(default_factory=list)
    """The worst responses, worst first."""
    exponent: int = FINEST
    cells: Counter[int] = field(default_factory=Counter)

    @property
    def empty(self) -> int:
        """Number of empty responses; 0 where the column has no direction."""
        return self.unscored[str(EMPTY.reason)] if self.column.better else 0

    @property
    def items(self) -> int:
        return self.scored + self.unscored.total()

    @property
    def worst_value(self) -> float | None:
        """The value that an empty response counts as."""
        seen = (self.low, self.high) if self.scored else (None, None)
        return self.column.empty_value(*seen)

    @property
    def mean(self) -> float | None:
        """The mean with empty responses as the worst value; None if nothing is scored."""
        counted, worst = self._counted
        if not counted:
            return None
        return (self.scored * self.mean_scored + (counted - self.scored) * worst) / counted

    @property
    def spread(self) -> float | None:
        """Sample standard deviation; None for fewer than two items."""
        counted, worst = self._counted
        mean = self.mean
        if counted < 2 or mean is None:
            return None
        between = self.scored * (self.mean_scored - mean) ** 2
        between += (counted - self.scored) * (worst - mean) ** 2
        return math.sqrt((self.squares + between) / (counted - 1))

    @property
    def percentile(self) -> float | None:
        """The mean percentile among human responses; None without percentiles."""
        counted = self.percentiles + (self.empty if self.column.calibrated else 0)
        return self.percentile_sum / counted if counted else None

    @property
    def share_unscored(self) -> float | None:
        return self.unscored.total() / self.items if self.items else None

    def add(self, scores: Sequence[Score], quote: Callable[[int], Quote]) -> None:
        """Count scores; `quote` is called with the index of one that is among the worst."""
        values: list[float] = []
        # Items come in order, so one that is as bad as the last of the worst comes after it.
        limit = self._limit
        for place, score in enumerate(scores):
            value = score.value
            if value is not None and math.isfinite(value):
                values.append(value)
                if score.percentile is not None:
                    self.percentiles += 1
                    self.percentile_sum += score.percentile
            else:
                why = score.reason or "no reason given"
                reason = why if value is None else f"the value is {value}"
                self.unscored[reason] += 1
                if reason != EMPTY.reason or not self.column.better:
                    continue
                value = None
            if self.badness(value) < limit:
                self.worst.append(replace(quote(place), value=value, percentile=score.percentile))
                self._keep_worst()
                limit = self._limit
        if values:
            self._add_values(values)

    def merge(self, other: Figures, rows: int = 0, dialogues: int = 0) -> Figures:
        """Return the figures of both; `rows` and `dialogues` are how many precede the other's."""
        scored = self.scored + other.scored
        share = other.scored / scored if scored else 0.0
        delta = other.mean_scored - self.mean_scored
        moved = [
            replace(quote, row=quote.row + rows, dialogue=quote.dialogue + dialogues)
            for quote in other.worst
        ]
        both = Figures(
            self.column,
            scored,
            self.mean_scored + delta * share,
            self.squares + other.squares + delta**2 * self.scored * share,
            min(self.low, other.low),
            max(self.high, other.high),
            self.percentiles + other.percentiles,
            self.percentile_sum + other.percentile_sum,
            self.unscored + other.unscored,
            [*self.worst, *moved],
            max(self.exponent, other.exponent),
        )
        for part in (self, other):
            for cell, count in part.cells.items():
                both.cells[cell >> (both.exponent - part.exponent)] += count
        both._coarsen()
        both._keep_worst()
        return both

    def rank(self, quote: Quote) -> tuple[float, int]:
        """Return a sort key: worst first, and the earlier of equals first."""
        return self.badness(quote.value), quote.row

    def badness(self, value: float | None) -> float:
        """Return a sort key of values, worst first; None stands for an empty response."""
        return -math.inf if value is None else self.column.sign * value

    def distribution(self) -> list[tuple[float, int]]:
        """Return the middle of every occupied cell and its count, in ascending order."""
        width = 2.0**self.exponent
        return [((cell + 0.5) * width, self.cells[cell]) for cell in sorted(self.cells)]

    def to_json(self) -> dict[str, Any]:
        ends = (self.low, self.high) if self.scored else (None, None)
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "column": asdict(self.column),
            "low": ends[0],
            "high": ends[1],
            "unscored": dict(self.unscored),
            "worst": [asdict(quote) for quote in self.worst],
            "cells": sorted(self.cells.items()),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Figures:
        low, high = content["low"], content["high"]
        column = content["column"]
        return cls(
            **{
                **content,
                "column": Column(**{**column, "range": tuple(column["range"])}),
                "low": math.inf if low is None else low,
                "high": -math.inf if high is None else high,
                "unscored": Counter(content["unscored"]),
                "worst": [Quote(**quote) for quote in content["worst"]],
                "cells": Counter(dict(content["cells"])),
            }
        )

    @property
    def _counted(self) -> tuple[int, float]:
        """How many items mean and spread cover, and the value of the empty ones among them."""
        worst = self.worst_value
        return (self.scored, 0.0) if worst is None else (self.scored + self.empty, worst)

    @property
    def _limit(self) -> float:
        """The badness below which a response is among the worst."""
        return self.badness(self.worst[-1].value) if len(self.worst) == WORST else math.inf

    def _add_values(self, values: Sequence[float]) -> None:
        count, mean, squares = self.scored, self.mean_scored, self.squares
        for value in values:
            count += 1
            difference = value - mean
            mean += difference / count
            squares += difference * (value - mean)
        self.scored, self.mean_scored, self.squares = count, mean, squares
        self.low = min(self.low, min(values))
        self.high = max(self.high, max(values))
        width = 2.0**self.exponent
        for value, times in Counter(values).items():
            # The bound keeps the division by the finest cell width finite.
            self.cells[math.floor(max(-LARGEST, min(LARGEST, value)) / width)] += times
        self._coarsen()

    def _coarsen(self) -> None:
        while len(self.cells) > MAX_CELLS:
            self.exponent += 1
            merged: Counter[int] = Counter()
            for cell, count in self.cells.items():
                merged[cell >> 1] += count
            self.cells = merged

    def _keep_worst(self) -> None:
        self.worst.sort(key=self.rank)
        del self.worst[WORST:]


@dataclass(frozen=True)
class Group:
    """The figures of one system, by column."""

    label: str
    system: str | None
    """Name of the system, empty if unnamed; None groups all systems without their own group."""
    figures: Mapping[str, Figures]


def quantile(cells: list[tuple[float, int]], share: float) -> float:
    """Return the middle of the cell that holds the quantile `share`; `cells` is not empty."""
    counts = list(accumulate(count for _, count in cells))
    return cells[bisect_left(counts, share * counts[-1])][0]
