"""All statistics of how well metrics agree with one judgement per unit.

Scores are metrics x units and point the same way: higher is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causerie.bench.results import RunOptions, Significance
from causerie.bench.sets.units import Units
from causerie.stats import (
    CORRELATIONS,
    ClusterStatistic,
    Estimate,
    FloatArray,
    PairwiseAccuracy,
    accuracy_of_clusters,
    correlation_of_clusters,
    group_accuracies,
    group_values,
    holm,
    kendall,
    kendall_of_clusters,
    mean_of_clusters,
    mean_of_groups,
    pairwise_accuracy,
    partial,
    pearson,
    permutation_tests,
    permutations_for,
    rank_clusters,
    soft_pairwise_accuracy,
    spearman,
    system_level,
    with_intervals,
)

FEWEST_SYSTEMS = 3
FEWEST_CONTEXTS = 10
LEVEL = 0.05
_STOP_AFTER = 500
"""A test is settled once this many permutations reached the difference: its p is known to
about 5%."""


@dataclass(frozen=True)
class Measures:
    """The statistics of one set; each method returns one `Estimate` per metric."""

    scores: FloatArray
    judgement: FloatArray
    units: Units
    options: RunOptions

    def spearman(self) -> list[Estimate]:
        return self._correlation(ranks=True)

    def pearson(self) -> list[Estimate]:
        return self._correlation(ranks=False)

    def kendall(self) -> list[Estimate]:
        return self._with_intervals(
            kendall(self.scores, self.judgement),
            kendall_of_clusters(self.scores, self.judgement, self.units.clusters),
        )

    def accuracy(self) -> list[Estimate]:
        """Return pairwise accuracy; intervals take each metric's tie threshold as given."""
        found = pairwise_accuracy(self.scores, self.judgement)
        return self._with_intervals(
            [f.estimate for f in found],
            accuracy_of_clusters(
                self.scores, self.judgement, self.units.clusters, _epsilons(found)
            ),
        )

    def within_context(self) -> list[Estimate]:
        if why := self._too_few_contexts():
            return self.none(why)
        values = group_values(spearman, self.scores, self.judgement, self.units.contexts)
        return self._mean_of_contexts(mean_of_groups(values), values)

    def within_context_accuracy(self) -> list[Estimate]:
        """Return accuracy within contexts; intervals take each metric's tie threshold as given."""
        if why := self._too_few_contexts():
            return self.none(why)
        contexts = self.units.contexts
        found = pairwise_accuracy(self.scores, self.judgement, contexts)
        values = group_accuracies(self.scores, self.judgement, contexts, _epsilons(found))
        return self._mean_of_contexts([f.estimate for f in found], values)

    def system(self) -> list[Estimate]:
        """Return soft pairwise accuracy of systems that answered the same contexts."""
        if why := self._too_few_systems():
            return self.none(why)
        part = self._named_systems()
        return soft_pairwise_accuracy(
            part.scores,
            part.judgement,
            part.units.systems,
            part.units.contexts,
            permutations=1000,
            seed=self.options.seed,
        )

    def system_means(self) -> list[Estimate]:
        """Return Spearman's rho of the systems' means."""
        if why := self._too_few_systems():
            return self.none(why)
        part = self._named_systems()
        return system_level(
            CORRELATIONS["spearman"], part.scores, part.judgement, part.units.systems
        )

    def partial(self, length: FloatArray) -> list[Estimate]:
        return self._with_intervals(
            partial(self.scores, self.judgement, length, ranks=True),
            correlation_of_clusters(
                self.scores, self.judgement, self.units.clusters, ranks=True, covariates=length
            ),
        )

    def without_humans(self) -> list[Estimate]:
        written = np.array(self.units.human_written, dtype=bool)
        if not written.any():
            return self.none("no response is known to be written by a person")
        return self.only(~written).spearman()

    def significance(self, columns: Sequence[str], statistic: str) -> Significance:
        """Test every pair of metrics on Spearman's rho.

        Many metrics form many pairs, which may require more permutations than the options give.
        """
        needed = permutations_for(len(columns) * (len(columns) - 1) // 2, LEVEL)
        tests = permutation_tests(
            self.scores,
            self.judgement,
            self.units.clusters,
            ranks=True,
            permutations=max(self.options.permutations, needed),
            stop_after=_STOP_AFTER,
            seed=self.options.seed,
        )
        p = holm(tests.p)
        with np.errstate(invalid="ignore"):
            wins = (p <= LEVEL) & (tests.difference > 0)
        return Significance(
            statistic,
            tuple(columns),
            tuple(tuple(None if np.isnan(v) else float(v) for v in row) for row in p),
            tuple(tuple(bool(v) for v in row) for row in wins),
        )

    def only(self, keep: NDArray[np.bool_]) -> Measures:
        """Return the measures on some of the units, given as a mask."""
        units = self.units.only(keep)
        return Measures(self.scores[:, keep], self.judgement[keep], units, self.options)

    def none(self, reason: str) -> list[Estimate]:
        return [Estimate(None, 0, reason=reason) for _ in self.scores]

    def _correlation(self, *, ranks: bool) -> list[Estimate]:
        return self._with_intervals(
            (spearman if ranks else pearson)(self.scores, self.judgement),
            correlation_of_clusters(self.scores, self.judgement, self.units.clusters, ranks=ranks),
        )

    def _with_intervals(
        self, estimates: list[Estimate], statistic: ClusterStatistic
    ) -> list[Estimate]:
        return with_intervals(
            estimates, statistic, resamples=self.options.resamples, seed=self.options.seed
        )

    def _mean_of_contexts(self, estimates: list[Estimate], values: FloatArray) -> list[Estimate]:
        """Add the intervals of the mean of `values`, metrics x contexts."""
        contexts = self.units.contexts
        first = dict(zip(reversed(contexts), reversed(self.units.clusters), strict=True))
        clusters = [first[context] for context in dict.fromkeys(contexts)]
        return self._with_intervals(estimates, mean_of_clusters(values, clusters))

    def _too_few_contexts(self) -> str | None:
        repeated = sum(count > 1 for count in Counter(self.units.contexts).values())
        if repeated >= FEWEST_CONTEXTS:
            return None
        return f"{repeated} of the {FEWEST_CONTEXTS} contexts with several responses it takes"

    def _named_systems(self) -> Measures:
        return self.only(np.array([bool(system) for system in self.units.systems], dtype=bool))

    def _too_few_systems(self) -> str | None:
        count = len(set(self.units.systems) - {""})
        return (
            f"{count} of the {FEWEST_SYSTEMS} systems it takes" if count < FEWEST_SYSTEMS else None
        )


def _epsilons(found: Sequence[PairwiseAccuracy]) -> list[float]:
    return [0.0 if one.epsilon is None else one.epsilon for one in found]


def ranks(estimates: Sequence[Estimate], significance: Significance) -> list[int | None]:
    """Return the rank of each metric; a new rank begins where a better metric wins."""
    return rank_clusters(
        [np.nan if e.value is None else e.value for e in estimates], significance.wins
    )
