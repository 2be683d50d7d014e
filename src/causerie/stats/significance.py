"""Is one metric really better than another? Paired permutation tests of all pairs of metrics.

If two metrics are equally good, exchanging their scores for a dialogue changes the result only by
chance. Both are standardised first (for Spearman, ranked and then standardised), so that a
swapped value means the same on either side; each permutation then swaps the two metrics' values
in a random half of the clusters, all items of a cluster together, and recomputes both
correlations. p is the share of permutations whose difference is at least as large as the observed
one, in either direction, counting the observed one. Where many pairs are tested, `holm` corrects
the p-values and `rank_clusters` assigns ranks that respect them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from causerie.stats.correlation import row_ranks
from causerie.stats.estimate import (
    FloatArray,
    IntArray,
    Labels,
    Seed,
    cluster_sums,
    label_index,
    pairwise_complete,
)

_BLOCK = 500


@dataclass(frozen=True, slots=True)
class PairTests:
    """Tests of all pairs, as metrics x metrics matrices; NaN where nothing can be compared."""

    difference: FloatArray
    """Correlation of the row's metric minus that of the column's, on the items both scored."""
    p: FloatArray
    """Two-sided p-value, not corrected for the number of pairs."""
    permutations: IntArray
    """Number of permutations behind each p."""


def permutation_tests(
    scores: ArrayLike,
    human: ArrayLike,
    clusters: Labels,
    *,
    ranks: bool = False,
    permutations: int = 10_000,
    stop_after: int | None = None,
    seed: Seed,
) -> PairTests:
    """Test the difference in Pearson's r (with `ranks`: Spearman's rho) of every two metrics.

    Scores must point the same way (higher is better); otherwise a metric that is merely
    reversed looks different. A pair is compared on the items that both metrics scored. Ranks
    are computed once, on the whole data: swaps exchange ranks without ranking again.

    With `stop_after`, a pair is settled after any block of 500 permutations once that many of
    them reached the observed difference: its p is far from small and known to a relative
    1 / sqrt(stop_after). Pairs with small p always run to the end.
    """
    x, y = pairwise_complete(scores, human)
    index, cluster_count = label_index(clusters)
    parts = [
        _Part(x, y, items, pairs, index, cluster_count, ranks)
        for items, pairs in _pairs_by_items(x)
    ]
    generator = np.random.default_rng(seed)
    for start in range(0, permutations, _BLOCK):
        size = min(_BLOCK, permutations - start)
        swaps = generator.integers(0, 2, (size, cluster_count), dtype=np.int8).astype(np.float64)
        for part in parts:
            part.permute(swaps, stop_after)
    shape = (len(x), len(x))
    difference, p = np.full(shape, np.nan), np.full(shape, np.nan)
    made = np.zeros(shape, np.int64)
    for part in parts:
        first, second = part.pairs
        difference[first, second], difference[second, first] = part.observed, -part.observed
        p[first, second] = p[second, first] = part.p_values()
        made[first, second] = made[second, first] = part.made
    return PairTests(difference, p, made)


def holm(p: ArrayLike) -> FloatArray:
    """Return Holm-corrected p-values, to be compared with the level of the whole family of tests.

    `p` is a list of p-values, or a symmetric matrix of pairs in which each pair counts once. NaN
    stands for no test and stays NaN.
    """
    given = np.asarray(p, dtype=np.float64)
    if given.ndim == 2:
        upper = np.triu_indices(len(given), 1)
        adjusted = np.full(given.shape, np.nan)
        adjusted[upper] = adjusted.T[upper] = holm(given[upper])
        return adjusted
    result = np.full(given.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(given))
    order = tests[np.argsort(given[tests], kind="stable")]
    steps = given[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(1, np.maximum.accumulate(steps))
    return result


def permutations_for(tests: int, level: float) -> int:
    """Return the permutations each of so many tests needs to become significant after `holm`.

    The smallest p a permutation test can give is 1 / (permutations + 1), and Holm multiplies
    it by the number of tests: with this many it comes out at half the level.
    """
    return math.ceil(2 * tests / level)


def rank_clusters(values: ArrayLike, wins: ArrayLike) -> list[int | None]:
    """Return ranks 1, 2, ... in which no metric is significantly better than one of its own rank.

    From the largest value down, a new rank begins with the first metric that any member of the
    current rank significantly beats, as in the WMT metrics tasks. `wins` is metrics x metrics:
    whether the row is significantly better than the column. A win of the lower metric opens no
    rank: pairs are tested on the items both scored, where their order can differ. A metric
    without a value (NaN) has no rank.
    """
    measured, better = np.asarray(values, dtype=np.float64), np.asarray(wins, dtype=bool)
    order = [m for m in np.argsort(-measured, kind="stable").tolist() if np.isfinite(measured[m])]
    ranks: list[int | None] = [None] * len(measured)
    rank = 1
    members: list[int] = []
    for metric in order:
        if any(better[member, metric] for member in members):
            rank += 1
            members = []
        members.append(metric)
        ranks[metric] = rank
    return ranks


class _Part:
    """The pairs of metrics that share the same items, and their permutations so far."""

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray,
        items: IntArray,
        pairs: IntArray,
        index: IntArray,
        clusters: int,
        ranks: bool,
    ) -> None:
        self.pairs = pairs
        metrics, numbered = np.unique(pairs, return_inverse=True)
        self.columns = numbered.reshape(pairs.shape)
        """The pairs as rows of the arrays below, which hold only the metrics of these pairs."""
        scores, judgement = x[np.ix_(metrics, items)], y[np.ix_(metrics[:1], items)]
        if ranks:
            scores, judgement = row_ranks(scores), row_ranks(judgement)
        z, h = _standardised(scores), _standardised(judgement)
        sums = cluster_sums(np.vstack([z, z * z, z * h]), index[items], clusters)
        self.sums = sums.reshape(3, len(metrics), clusters)
        """Sums per cluster of the score, its square and its product with the judgement."""
        self.items = len(items)
        self.observed = self._differences(np.zeros((1, clusters)), self.columns)[0]
        self.reached = np.zeros(pairs.shape[1], np.int64)
        self.made = np.zeros(pairs.shape[1], np.int64)

    def permute(self, swaps: FloatArray, stop_after: int | None) -> None:
        """Count one block (permutations x clusters, 1 where the two metrics swap places)."""
        open_ = np.full(len(self.made), True) if stop_after is None else self.reached < stop_after
        if not open_.any():
            return
        found = np.abs(self._differences(swaps, self.columns[:, open_]))
        # Equal differences differ by rounding errors.
        self.reached[open_] += (found >= np.abs(self.observed[open_]) - 1e-12).sum(axis=0)
        self.made[open_] += len(swaps)

    def p_values(self) -> FloatArray:
        p = (self.reached + 1) / (self.made + 1)
        return np.where(np.isnan(self.observed), np.nan, p)

    def _differences(self, swaps: FloatArray, columns: IntArray) -> FloatArray:
        """Return permutations x pairs: the difference of the correlations after the swaps.

        The exchanged sums are linear in the swaps, so one matrix product per moment serves all
        pairs.
        """
        a, b = columns
        total = self.sums.sum(axis=2)
        moved = [swaps @ moment.T for moment in self.sums]
        exchanged = [m[:, b] - m[:, a] for m in moved]
        one = [t[a] + e for t, e in zip(total, exchanged, strict=True)]
        other = [t[b] - e for t, e in zip(total, exchanged, strict=True)]
        return self._correlation(*one) - self._correlation(*other)

    def _correlation(
        self, score: FloatArray, square: FloatArray, product: FloatArray
    ) -> FloatArray:
        # The judgement has mean 0 and variance 1 on these items.
        with np.errstate(invalid="ignore", divide="ignore"):
            result: FloatArray = product / np.sqrt((square - score**2 / self.items) * self.items)
        return result


def _pairs_by_items(x: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Return pairs of metrics (2 x pairs), grouped by the items that both scored."""
    present = ~np.isnan(x)
    groups: dict[bytes, list[tuple[int, int]]] = {}
    shared: dict[bytes, IntArray] = {}
    for a, b in combinations(range(len(x)), 2):
        both = present[a] & present[b]
        groups.setdefault(both.tobytes(), []).append((a, b))
        shared.setdefault(both.tobytes(), np.flatnonzero(both))
    return [(shared[key], np.array(pairs).T) for key, pairs in groups.items() if len(shared[key])]


def _standardised(values: FloatArray) -> FloatArray:
    """Return rows with mean 0 and variance 1; NaN for a constant row."""
    constant = np.ptp(values, axis=1, keepdims=True) == 0
    spread = values.std(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = (values - values.mean(axis=1, keepdims=True)) / np.where(
            constant, np.nan, spread
        )
    return result
