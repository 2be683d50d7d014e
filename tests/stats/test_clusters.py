"""Linearised intervals against the resampled ones that everything else uses."""

from __future__ import annotations

import numpy as np
import pytest

from causerie.stats import (
    ClusterMoments,
    compare_unpaired,
    difference,
    mean_of_clusters,
    with_intervals,
)
from causerie.stats import means as plain_means


def sample(seed: int, dialogues: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(dialogues), generator.integers(1, 9, dialogues))
    level = generator.normal(size=dialogues)
    return level[labels] + generator.normal(size=len(labels)) + shift, labels


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_intervals_agree_with_resampling(shift: float) -> None:
    values, labels = sample(1, 300, shift)
    told = ClusterMoments.of(values, labels).estimate()
    (drawn,) = with_intervals(
        plain_means(values[None], "none"),
        mean_of_clusters(values[None], labels),
        resamples=4000,
        seed=0,
    )
    assert told.value == pytest.approx(values.mean())
    width = drawn.high - drawn.low  # type: ignore[operator]
    assert told.low == pytest.approx(drawn.low, abs=0.06 * width)
    assert told.high == pytest.approx(drawn.high, abs=0.06 * width)
    # an interval that ignores the clusters would be far narrower
    assert width > 1.4 * 2 * 1.96 * values.std() / len(values) ** 0.5


@pytest.mark.parametrize("gap", [0.0, 0.25, 0.6])
def test_differences_agree_with_permutations(gap: float) -> None:
    (x, in_x), (y, in_y) = sample(2, 120, 0.0), sample(3, 90, gap)
    told, p = difference(ClusterMoments.of(x, in_x), ClusterMoments.of(y, in_y))
    (drawn,) = compare_unpaired(y, in_y, x, in_x, resamples=4000, seed=0)
    assert told.value == pytest.approx(drawn.difference.value)
    width = drawn.difference.high - drawn.difference.low  # type: ignore[operator]
    assert told.low == pytest.approx(drawn.difference.low, abs=0.08 * width)
    assert p == pytest.approx(drawn.p, abs=0.02)


def test_few_dialogues_have_no_interval() -> None:
    one = ClusterMoments.of([1.0, 2.0], ["d", "d"])
    assert (one.estimate().value, one.estimate().low, one.p()) == (1.5, None, None)
    assert ClusterMoments.of([], []).estimate().value is None
    gap, p = difference(one, ClusterMoments.of([1.0, 4.0], ["e", "f"]))
    assert (gap.value, gap.low, p) == (1.0, None, None)
    same = ClusterMoments.of([2.0] * 4, list("aabb"))
    assert same.p() == 0.0
    assert difference(same, same) == (same.estimate().__class__(0.0, 8, 0.0, 0.0), 1.0)
