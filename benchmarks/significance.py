"""Time of the bench's resampling on one core: 20 metrics, 2,000 items, 500 contexts.

python benchmarks/significance.py
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from causerie.stats import (
    correlation_of_clusters,
    pearson,
    permutation_tests,
    spearman,
    with_intervals,
)

METRICS, ITEMS, CLUSTER, PERMUTATIONS, RESAMPLES = 20, 2000, 4, 10_000, 1000


def timed(name: str, run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    print(f"{name:<58} {seconds:6.2f} s")
    return seconds


def main() -> None:
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, ITEMS).astype(np.float64)
    scores = 0.4 * human + rng.standard_normal((METRICS, ITEMS))
    holes = np.where(rng.random(scores.shape) < 0.02, np.nan, scores)
    clusters = np.arange(ITEMS) // CLUSTER
    pairs = METRICS * (METRICS - 1) // 2

    def test(scores: NDArray[np.float64], ranks: bool, stop_after: int | None = None) -> object:
        return permutation_tests(
            scores,
            human,
            clusters,
            ranks=ranks,
            permutations=PERMUTATIONS,
            stop_after=stop_after,
            seed=1,
        )

    def interval(ranks: bool) -> object:
        estimates = (spearman if ranks else pearson)(scores, human)
        statistic = correlation_of_clusters(scores, human, clusters, ranks=ranks)
        return with_intervals(estimates, statistic, resamples=RESAMPLES, seed=1)

    permutations = f"{PERMUTATIONS} permutations, {pairs} pairs"
    total = timed(f"{permutations}, Pearson", lambda: test(scores, False))
    total += timed(f"{permutations}, Spearman", lambda: test(scores, True))
    print(f"{'both (the aim: under 15 s)':<58} {total:6.2f} s")
    timed("the same, Pearson, 2% of the scores missing", lambda: test(holes, False))
    timed("the same, Pearson, stopping after 100", lambda: test(scores, False, 100))
    timed(f"{RESAMPLES} resamples, {METRICS} metrics, Pearson", lambda: interval(False))
    timed(f"{RESAMPLES} resamples, {METRICS} metrics, Spearman", lambda: interval(True))


if __name__ == "__main__":
    main()
