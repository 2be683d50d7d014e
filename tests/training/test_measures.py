"""AUC and balanced accuracy against their definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.training.measures import auc, balanced_accuracy

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
