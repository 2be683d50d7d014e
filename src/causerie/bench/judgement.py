"""What people said about the units of a judged set in one dimension, and how far they agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from causerie.bench.sets.judged import JudgedSet
from causerie.bench.sets.units import Units
from causerie.stats import (
    CORRELATIONS,
    Estimate,
    FloatArray,
    Votes,
    cont2cat_floor,
    fleiss_kappa,
    krippendorff_alpha,
    leave_one_out_ratings,
    split_half,
    vote_codes,
    voting_points,
)


@dataclass(frozen=True)
class Judgement:
    """One number per unit, and the annotators behind it."""

    points: FloatArray
    """Mean rating; of pairs, the share of votes a response got. NaN where nobody judged."""
    ratings: FloatArray
    """Units x annotators; of pairs, the share of each one's votes. Annotators have no names:
    what stands in one column is not of one person."""
    votes: Votes
    """Pairs x annotators; empty unless the set is one of pairs."""
    annotators: str
    """How many judged an item, such as "3" or "8 to 11"."""
    reason: str | None
    """Why no unit has a judgement; None if one has."""

    def alpha(self) -> Estimate:
        """Krippendorff's, with interval distances; of pairs, nominal."""
        if self.votes:
            return krippendorff_alpha(vote_codes(self.votes))
        return krippendorff_alpha(self.ratings, "interval")

    def kappa(self) -> Estimate:
        """Fleiss', which takes ratings as categories: 4 is as far from 5 as from 1."""
        return fleiss_kappa(vote_codes(self.votes) if self.votes else self.ratings)

    def floor(self) -> dict[str, Estimate]:
        """What a metric that knows nothing gets, where that is not 0 (accuracies: one half)."""
        return {"cont2cat.alpha": cont2cat_floor(self.votes)} if self.votes else {}

    def ceiling(self) -> dict[str, Estimate]:
        """One person against the mean (of pairs: the votes) of the others."""
        found = {
            f"{self._prefix}spearman": leave_one_out_ratings(self.ratings, ranks=True),
            f"{self._prefix}pearson": leave_one_out_ratings(self.ratings),
        }
        return {**found, "cont2cat.alpha": self.alpha()} if self.votes else found

    def limit(self) -> dict[str, Estimate]:
        """About the most any metric can reach, because the mean of a few people is noisy."""
        return {
            f"{self._prefix}{name}": _root(split_half(CORRELATIONS[name], self.ratings, seed=0))
            for name in ("spearman", "pearson")
        }

    @property
    def _prefix(self) -> str:
        return "voting." if self.votes else ""


def judgement_of(judged: JudgedSet, units: Units, dimension: str) -> Judgement:
    """Of the units of the set, in their order."""
    if judged.level == "pair":
        return _of_pairs(judged, units, dimension)
    return _of_items(judged, dimension)


def points_of(votes: Votes, units: Units) -> FloatArray:
    """The share of votes each response got, over all its pairs."""
    return voting_points(votes, units.first, units.second, len(units))


def _of_items(judged: JudgedSet, dimension: str) -> Judgement:
    means = [item.mean(dimension) for item in judged.items]
    points = np.array([np.nan if mean is None else mean for mean in means], dtype=np.float64)
    given = [
        [rating for rating in item.ratings.get(dimension, ()) if rating is not None]
        for item in judged.items
    ]
    ratings = np.full((len(given), max(1, *map(len, given))), np.nan)
    for place, row in enumerate(given):
        ratings[place, : len(row)] = row
    annotators = _range(len(row) for row in given if row)
    reason = _why_none(judged, points, dimension, "rating")
    return Judgement(points, ratings, (), annotators, reason)


def _of_pairs(judged: JudgedSet, units: Units, dimension: str) -> Judgement:
    votes = [tuple(one.get(dimension) for one in pair.judgements) for pair in judged.pairs]
    points = points_of(votes, units)
    slots = max(1, *map(len, votes))
    by_slot = np.column_stack(
        [points_of([row[slot : slot + 1] for row in votes], units) for slot in range(slots)]
    )
    annotators = _range(n for row in votes if (n := sum(vote is not None for vote in row)))
    reason = _why_none(judged, points, dimension, "vote")
    return Judgement(points, by_slot, votes, annotators, reason)


def _root(reliability: Estimate) -> Estimate:
    if reliability.value is None or reliability.value >= 0:
        value = None if reliability.value is None else reliability.value**0.5
        return replace(reliability, value=value)
    return replace(reliability, value=None, reason="the annotators contradict one another")


def _why_none(judged: JudgedSet, points: FloatArray, dimension: str, what: str) -> str | None:
    if not np.isnan(points).all():
        return None
    if not judged.dimensions:
        return f"no {what} can be used"
    if dimension not in judged.dimensions:
        return f"the set has no dimension {dimension!r} (it has {', '.join(judged.dimensions)})"
    return f"no {what} of {dimension!r} can be used"


def _range(counts: Iterable[int]) -> str:
    found = sorted(set(counts)) or [0]
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
