"""A run's verdict in words: how good each system is, which is better, which faults stand out.

Replies of one conversation resemble each other, so a system's mean is that of its conversations,
and its uncertainty comes from how much these differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from causerie.render.numbers import listed
from causerie.report.figures import Figures, Group

MAIN = "quality"
"""The column that says how good a reply is."""
FEWEST = 6
"""Fewest conversations of each system for a comparison."""
SURE = 1.96
"""Standard errors on either side of the mean in a 95% interval."""
OFTEN = 0.1
"""Share of replies above which a fault is reported; good replies show it in about one of twenty."""
TOLD = 3
"""Most faults named per system, and most pairs of systems compared."""


@dataclass
class Spread:
    """Running mean and variance of numbers; those of parts can be merged."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        difference = value - self.mean
        self.mean += difference / self.count
        self.squares += difference * (value - self.mean)

    def merge(self, other: Spread) -> Spread:
        count = self.count + other.count
        if not count:
            return Spread()
        delta = other.mean - self.mean
        mean = self.mean + delta * other.count / count
        between = delta**2 * self.count * other.count / count
        return Spread(count, mean, self.squares + other.squares + between)

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite for fewer than two."""
        if self.count < 2:
            return math.inf
        return math.sqrt(self.squares / (self.count - 1) / self.count)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Spread:
        return cls(**content)


def verdict(groups: Sequence[Group], talks: Mapping[str, Spread]) -> list[str]:
    """Return sentences about the systems, or none if quality was not scored.

    `talks` has, by system, the mean and spread of its conversations' quality.
    """
    rated = [(g, talks[g.system]) for g in groups if g.system is not None and g.system in talks]
    if not rated:
        return []
    rated.sort(key=lambda one: -one[1].mean)
    means = listed([f"{group.label} {talk.mean:.0f}" for group, talk in rated])
    sentences = [f"Quality, of 100: {means}."]
    compared = [one for one in rated if one[1].count >= FEWEST]
    sentences += [_compared(*both) for both in list(combinations(compared, 2))[:TOLD]]
    for group, _ in rated:
        if found := _faults(group.figures):
            sentences.append(f"What seems wrong with {group.label}: {listed(found)}.")
    return sentences


def _compared(better: tuple[Group, Spread], worse: tuple[Group, Spread]) -> str:
    (one, a), (other, b) = better, worse
    gain, error = a.mean - b.mean, SURE * math.hypot(a.error, b.error)
    interval = f"{gain:.0f} [{gain - error:.0f}, {gain + error:.0f}]"
    if gain > error:
        return f"{one.label} is better than {other.label} ({interval}, certain)."
    return f"{one.label} and {other.label} cannot be told apart ({interval})."


def _faults(figures: Mapping[str, Figures]) -> list[str]:
    """Return the most frequent faults of a system, as "off topic in 31%"."""
    shares = []
    for name, one in figures.items():
        limit = one.column.limit
        if limit is not None and one.scored:
            above = sum(count for value, count in one.distribution() if value > limit)
            shares.append((above / one.scored, name.rpartition(".")[2].replace("_", " ")))
    often = sorted((share, name) for share, name in shares if share >= OFTEN)
    return [f"{name} in {share:.0%}" for share, name in reversed(often)][:TOLD]
