"""Human judgements of the units of a judged set in one dimension, and how far people agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from causerie.bench.results import Reliability, RunOptions
from causerie.bench.sets.judged import JudgedSet
from causerie.bench.sets.units import Units, units_of
from causerie.stats import (
    CORRELATIONS,
    Estimate,
    FloatArray,
    IntArray,
    Votes,
    cont2cat_floor,
    cyclic_triples,
    fleiss_kappa,
    krippendorff_alpha,
    leave_one_out_ratings,
    mean_reliability,
    points_by_vote,
    split_half,
    vote_codes,
    voting_points,
)

CHANCE_OF_CIRCLES = 0.25
"""Three comparisons can go eight ways, two of which are circles."""


@dataclass(frozen=True)
class Judgement:
    """One number per unit, and the annotators behind it."""

    points: FloatArray
    """Mean rating of each unit; for pairs, its share of votes. NaN where nobody judged."""
    ratings: FloatArray
    """Units x annotators; for pairs, units x comparisons: the share of votes in each. Columns are
    anonymous: the values of one column need not come from one person."""
    single: FloatArray
    """Single ratings, units x annotators; for pairs, units x votes."""
    occasions: IntArray
    """The column of `ratings` that each column of `single` belongs to."""
    votes: Votes
    """Pairs x annotators; empty unless the set consists of pairs."""
    annotators: str
    """Number of annotators per item, such as "3" or "8 to 11"."""
    reason: str | None
    """Why no unit has a judgement; None if any has."""

    def alpha(self) -> Estimate:
        """Return Krippendorff's alpha: interval, or nominal for pairs."""
        if self.votes:
            return krippendorff_alpha(vote_codes(self.votes))
        return krippendorff_alpha(self.ratings, "interval")

    def kappa(self) -> Estimate:
        """Return Fleiss' kappa, for which ratings are categories: 4 is as far from 5 as from 1."""
        return fleiss_kappa(vote_codes(self.votes) if self.votes else self.ratings)

    def floor(self) -> dict[str, Estimate]:
        """Return what an uninformative metric gets if that is not 0 (one half for accuracies)."""
        return {"cont2cat.alpha": cont2cat_floor(self.votes)} if self.votes else {}

    def reliability(self, units: Units, options: RunOptions) -> Reliability:
        """Return whether the judgements are more than chance: the gate of every set.

        Judgements of a unit must be about the unit, whoever gives them (for pairs, whatever it is
        compared with), and preferences must follow some order.
        """
        consistency = mean_reliability(
            self.ratings, units.clusters, resamples=options.resamples, seed=options.seed
        )
        cyclic = cyclic_triples(self.votes, units.first, units.second)
        if not self.votes:
            cyclic = replace(cyclic, reason="nothing was compared with anything")
        return Reliability(consistency, cyclic, tuple(self._failures(consistency, cyclic)))

    def _failures(self, consistency: Estimate, cyclic: Estimate) -> Iterator[str]:
        if consistency.low is not None and consistency.low <= 0:
            by = "comparisons" if self.votes else "annotators"
            yield (
                f"what is said of an item does not hold from one of its {by} to the next: alpha "
                f"{consistency.text(2)} does not stand above 0, which is chance"
            )
        if cyclic.high is not None and cyclic.high >= CHANCE_OF_CIRCLES:
            yield (
                f"{cyclic.value:.0%} of {cyclic.n:,} triples of responses are preferred in a "
                f"circle (95% interval {cyclic.low:.0%} to {cyclic.high:.0%}), which is not below "
                f"the {CHANCE_OF_CIRCLES:.0%} of chance"
            )

    def ceiling(self) -> dict[str, Estimate]:
        """Return the correlation of one person with the mean of the others.

        For pairs it is one vote against those of the response's other comparisons: votes on the
        same pair share the same opponent, which no score of the response can know.
        """
        found = {
            f"{self._prefix}{name}": leave_one_out_ratings(
                self.single, ranks=name == "spearman", groups=self.occasions
            )
            for name in ("spearman", "pearson")
        }
        return {**found, "cont2cat.alpha": self.alpha()} if self.votes else found

    def limit(self) -> dict[str, Estimate]:
        """Return about the highest value a metric can reach: the mean of a few people is noisy."""
        return {
            f"{self._prefix}{name}": _root(split_half(CORRELATIONS[name], self.ratings, seed=0))
            for name in ("spearman", "pearson")
        }

    @property
    def _prefix(self) -> str:
        return "voting." if self.votes else ""


def judgement_of(judged: JudgedSet, units: Units, dimension: str) -> Judgement:
    """Return the judgement of the set's units, in their order."""
    if judged.level == "pair":
        return _of_pairs(judged, units, dimension)
    return _of_items(judged, dimension)


def reliability_of(judged: JudgedSet, dimension: str, options: RunOptions) -> Reliability:
    """Return whether people's judgements of a dimension of a set are more than chance."""
    units = units_of(judged)
    return judgement_of(judged, units, dimension).reliability(units, options)


def points_of(votes: Votes, units: Units) -> FloatArray:
    """Return the share of votes each response got, over all its pairs."""
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
    each = np.arange(ratings.shape[1])
    return Judgement(points, ratings, ratings, each, (), annotators, reason)


def _of_pairs(judged: JudgedSet, units: Units, dimension: str) -> Judgement:
    votes = [tuple(one.get(dimension) for one in pair.judgements) for pair in judged.pairs]
    points = points_of(votes, units)
    by_vote = points_by_vote(votes, units.first, units.second, len(units))
    responses, comparisons, slots = by_vote.shape
    cast = (~np.isnan(by_vote)).sum(axis=2)
    shares = np.where(cast > 0, np.nansum(by_vote, axis=2) / np.maximum(cast, 1), np.nan)
    return Judgement(
        points,
        shares,
        by_vote.reshape(responses, comparisons * slots),
        np.repeat(np.arange(comparisons), slots),
        votes,
        _range(n for row in votes if (n := sum(vote is not None for vote in row))),
        _why_none(judged, points, dimension, "vote"),
    )


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
