"""Soft pairwise accuracy of systems (SPA, Thompson et al. 2024).

Does the metric tell two systems apart as confidently as people do? For each pair of systems
p is the one-sided p-value that the first is better, by a paired permutation test on the
items both answered; SPA is the mean over pairs of 1 - |p_human - p_metric|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    Labels,
    Seed,
    label_index,
    pairwise_complete,
)


def soft_pairwise_accuracy(
    scores: ArrayLike,
    human: ArrayLike,
    systems: Labels,
    items: Labels,
    *,
    permutations: int = 1000,
    seed: Seed,
) -> list[Estimate]:
    """SPA of each metric; its n is the number of system pairs that share an item.

    `items` says what each response answers (its context); several responses of one system to
    one item are averaged. A response counts if it has both a score and a judgement. The same
    permutations serve people and metrics, so they add no noise to the comparison. Of the
    permutations that equal what was observed half count as larger, so that naming a pair the
    other way round turns p into 1 - p and leaves SPA as it is.
    """
    x, y = pairwise_complete(scores, human)
    system, system_count = label_index(systems)
    item, item_count = label_index(items)
    flips = np.random.default_rng(seed).integers(0, 2, (item_count, permutations))
    signs = 1 - 2 * flips.astype(np.float64)
    first, second = np.triu_indices(system_count, 1)
    estimates = []
    for row_x, row_y in zip(x, y, strict=True):
        tables = [_table(row, system, item, system_count, item_count) for row in (row_x, row_y)]
        differences = [table[first] - table[second] for table in tables]
        shared = ~np.isnan(differences[0]).all(axis=1)
        p_metric, p_human = (_p_values(d[shared], signs) for d in differences)
        n = int(shared.sum())
        estimates.append(
            Estimate.of(
                float(np.mean(1 - np.abs(p_human - p_metric))) if n else np.nan,
                n,
                None if n else "no two systems have judged responses to the same item",
            )
        )
    return estimates


def _table(
    values: FloatArray, system: IntArray, item: IntArray, systems: int, items: int
) -> FloatArray:
    """Systems x items, NaN where a system has no response."""
    present = ~np.isnan(values)
    cell = (system * items + item)[present]
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, values[present], systems * items) / np.bincount(
            cell, minlength=systems * items
        )
    return mean.reshape(systems, items)


def _p_values(differences: FloatArray, signs: FloatArray) -> FloatArray:
    filled = np.nan_to_num(differences)
    observed = filled.sum(axis=1, keepdims=True)
    permuted = filled @ signs
    # Equal sums differ by rounding, which grows with what is summed.
    close = 1e-12 * np.abs(filled).sum(axis=1, keepdims=True)
    larger = permuted > observed + close
    equal = np.abs(permuted - observed) <= close
    p: FloatArray = (larger + 0.5 * equal).mean(axis=1)
    return p
