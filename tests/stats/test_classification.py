"""AUC and balanced accuracy against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.stats import (
    auc,
    auc_of_clusters,
    balanced_accuracy,
    balanced_accuracy_of_clusters,
    estimates_of,
)

LABELLED = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=30)


@given(LABELLED)
def test_auc_is_the_share_of_pairs_in_order(labelled: list[tuple[int, bool]]) -> None:
    positives = [score for score, label in labelled if label]
    negatives = [score for score, label in labelled if not label]
    found = auc([s for s, _ in labelled], [label for _, label in labelled])
    if not (positives and negatives):
        assert math.isnan(found)
        return
    wins = sum((p > n) + (p == n) / 2 for p in positives for n in negatives)
    assert found == pytest.approx(wins / (len(positives) * len(negatives)))


def test_balanced_accuracy() -> None:
    decisions, labels = [1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 0, 0]
    assert balanced_accuracy(decisions, labels) == pytest.approx((3 / 4 + 1) / 2)
    assert balanced_accuracy([True] * 6, labels) == 0.5
    assert math.isnan(balanced_accuracy([True], [True]))
    assert math.isnan(balanced_accuracy([], []))


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=20
    ),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_a_resample_is_the_statistic_of_its_items(
    items: list[tuple[int, bool, int]], drawn: list[int]
) -> None:
    scores, labels, clusters = zip(*items, strict=True)
    decisions = [score > 2 for score in scores]
    order = list(dict.fromkeys(clusters))  # clusters are counted in order of appearance
    counts = np.array([drawn[: len(order)]], dtype=float)
    times = [drawn[order.index(cluster)] for cluster in clusters]
    again = [i for i, many in enumerate(times) for _ in range(many)]
    kept = [labels[i] for i in again]
    for found, expected in (
        (auc_of_clusters(scores, labels, clusters), auc([scores[i] for i in again], kept)),
        (
            balanced_accuracy_of_clusters(decisions, labels, clusters),
            balanced_accuracy([decisions[i] for i in again], kept),
        ),
    ):
        assert found(counts)[0, 0] == pytest.approx(expected, nan_ok=True)


def test_estimates_and_intervals() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(400) < 0.3
    scores = np.stack([labels + rng.normal(size=400), rng.normal(size=400)])
    clusters = np.repeat(np.arange(40), 10)
    good, blind = estimates_of(auc_of_clusters(scores, labels, clusters), 400, seed=0)
    assert good.value == pytest.approx(auc(scores[0], labels))
    assert blind.value == pytest.approx(auc(scores[1], labels))
    assert good.low is not None
    assert blind.low is not None
    assert blind.high is not None
    assert blind.low < 0.5 < blind.high
    assert good.low > 0.6
    always = balanced_accuracy_of_clusters([[True] * 400], labels, clusters)
    assert estimates_of(always, 400, seed=0)[0].value == 0.5
    (one_kind,) = estimates_of(auc_of_clusters([1.0, 2.0], [True, True], [0, 1]), 2, seed=0)
    assert (one_kind.value, one_kind.reason) == (None, "no positive and negative to compare")


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2)), min_size=1, max_size=20
    )
)
def test_strata_compare_only_within(items: list[tuple[int, bool, int]]) -> None:
    scores, labels, strata = zip(*items, strict=True)
    pairs = [
        (one > other) + (one == other) / 2
        for one, positive, here in items
        if positive
        for other, label, there in items
        if not label and here == there
    ]
    found = auc_of_clusters(scores, labels, range(len(items)), strata)
    expected = sum(pairs) / len(pairs) if pairs else np.nan
    assert found(np.ones((1, len(items))))[0, 0] == pytest.approx(expected, nan_ok=True)
