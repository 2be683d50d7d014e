"""A stream of scores in bounded memory: how many, their mean, spread and distribution."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

MAX_BINS = 512
FINEST = -40
LARGEST = 1e280


class Distribution:
    """What is kept of a stream of numbers, the same whatever their order.

    Values are counted in cells of width 2**k on a fixed grid. Whenever more than `MAX_BINS`
    cells are occupied, k grows by one and neighbours merge, so the few values of a small file
    stay exact for every purpose and those of a large one are known to a fraction of their range.
    """

    def __init__(self) -> None:
        self.count = 0
        self.unscored = 0
        self.mean = 0.0
        self.least = math.inf
        self.greatest = -math.inf
        self._squares = 0.0
        self._exponent = FINEST
        self._cells: Counter[int] = Counter()

    def add(self, value: float | None) -> None:
        """Count one value, or one response that has none."""
        if value is None:
            self.unscored += 1
            return
        self.count += 1
        difference = value - self.mean
        self.mean += difference / self.count
        self._squares += difference * (value - self.mean)
        self.least = min(self.least, value)
        self.greatest = max(self.greatest, value)
        # The bound keeps the division by the finest cell width finite.
        bounded = max(-LARGEST, min(LARGEST, value))
        self._cells[math.floor(bounded / 2.0**self._exponent)] += 1
        while len(self._cells) > MAX_BINS:
            self._coarsen()

    def _coarsen(self) -> None:
        self._exponent += 1
        merged: Counter[int] = Counter()
        for cell, count in self._cells.items():
            merged[cell >> 1] += count
        self._cells = merged

    @property
    def spread(self) -> float | None:
        """Sample standard deviation; None for fewer than two values."""
        return math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else None

    def cells(self) -> list[tuple[float, int]]:
        """The middle of every occupied cell and its count, in order."""
        width = 2.0**self._exponent
        return [((cell + 0.5) * width, self._cells[cell]) for cell in sorted(self._cells)]


def quantile(cells: list[tuple[float, int]], share: float) -> float:
    """The middle of the cell below (or in) which `share` of all values lie; cells not empty."""
    counts = list(accumulate(count for _, count in cells))
    return cells[bisect_left(counts, share * counts[-1])][0]
