"""Within-context and system-level views of a correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.correlation import Correlation
from causerie.bench.statistics.estimate import (
    Estimate,
    FloatArray,
    Labels,
    as_matrix,
    label_index,
    pairwise_complete,
)
from causerie.bench.statistics.resampling import cluster_sums


def group_values(
    correlation: Correlation, scores: ArrayLike, human: ArrayLike, groups: Labels
) -> FloatArray:
    """Metrics x groups (in order of first appearance): the correlation within each group.

    NaN where a group leaves it undefined: fewer than two scored items, or all of them equal.
    """
    x, y = as_matrix(scores), as_matrix(human)[0]
    index, count = label_index(groups)
    order = np.argsort(index, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(index, minlength=count))[:-1])
    values = np.full((len(x), count), np.nan)
    for group, items in enumerate(members):
        for row, estimate in enumerate(correlation(x[:, items], y[items])):
            if estimate.value is not None:
                values[row, group] = estimate.value
    return values


def mean_of_groups(values: FloatArray) -> list[Estimate]:
    """Mean over the groups that have a value; n is their number, every group counts the same."""
    return [
        Estimate.of(
            row[~np.isnan(row)].mean() if (n := int((~np.isnan(row)).sum())) else np.nan,
            n,
            None if n else "no context has two items that differ in score and in judgement",
        )
        for row in values
    ]


def system_level(
    correlation: Correlation, scores: ArrayLike, human: ArrayLike, systems: Labels
) -> list[Estimate]:
    """Correlation of the systems' mean scores with their mean judgements; n is the systems.

    A system's means are over its items that have both.
    """
    x, y = pairwise_complete(scores, human)
    index, count = label_index(systems)
    present = cluster_sums((~np.isnan(x)).astype(np.float64), index, count)
    with np.errstate(invalid="ignore"):
        mean_x = cluster_sums(np.nan_to_num(x), index, count) / present
        mean_y = cluster_sums(np.nan_to_num(y), index, count) / present
    return [correlation(row_x, row_y)[0] for row_x, row_y in zip(mean_x, mean_y, strict=True)]
