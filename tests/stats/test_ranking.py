"""True against false: ranks, R@1, MRR and the share above one other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.stats import rank_of_true, ranking_estimates, wins

NAN = float("nan")
VALUES = st.one_of(st.just(NAN), st.integers(-3, 3).map(float))
ITEMS = st.lists(st.lists(VALUES, min_size=1, max_size=5), min_size=1, max_size=12)


def test_a_hand_worked_example() -> None:
    items = [[3.0, 1.0, 2.0], [1.0, 1.0, 0.0], [0.0, 1.0, 2.0], [NAN, 1.0, 2.0], [1.0, NAN, 2.0]]
    assert rank_of_true(items).tolist()[:3] == [1.0, 2.0, 3.0]
    assert math.isnan(rank_of_true(items)[3])
    found = ranking_estimates(items, "aabbc", seed=0)
    assert found.recall.value == 1 / 4
    assert found.mrr.value == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert found.above.value == pytest.approx((1 + 0.5 + 0) / 3)
    assert (found.recall.n, found.mrr.n, found.above.n) == (4, 4, 3)
    assert found.mrr.low is not None
    assert found.mrr.low <= found.mrr.value <= (found.mrr.high or 0)


def test_nothing_scored_has_reasons_and_no_numbers() -> None:
    found = ranking_estimates([[NAN, 1.0]], "a")
    assert found.recall.value is found.above.value is None
    assert found.recall.reason == "no true response has a score"
    assert found.above.reason == "no pair has a score on both sides"


@given(ITEMS)
def test_ranks_are_those_of_a_plain_count(items: list[list[float]]) -> None:
    for item, rank in zip(items, rank_of_true(items), strict=True):
        true, *others = item
        if math.isnan(true):
            assert math.isnan(rank)
        else:
            assert rank == 1 + len([other for other in others if other >= true])


@given(ITEMS, st.floats(0.1, 10), st.floats(-5, 5))
def test_only_the_order_of_scores_counts(
    items: list[list[float]], factor: float, shift: float
) -> None:
    moved = [[factor * value + shift for value in item] for item in items]
    np.testing.assert_array_equal(rank_of_true(items), rank_of_true(moved))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1))
def test_wins_of_one_side_are_losses_of_the_other(pairs: list[tuple[float, float]]) -> None:
    true, false = zip(*pairs, strict=True)
    np.testing.assert_allclose(
        wins(true, false) + wins(false, true), wins(true, true) * 2 + 0 * wins(false, false)
    )
