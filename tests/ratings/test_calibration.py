"""The distribution of ratings and the limits of alarms, on simulated data and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from causerie import CauserieError
from causerie.ratings.calibration import (
    BOUNDS,
    BUDGETS,
    Calibration,
    Distribution,
    alarm_limits,
    check_budget,
)
from causerie.ratings.log import five_class


def world(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate predictions, ratings by proportional odds, and true probabilities of low ones."""
    rng = np.random.default_rng(seed)
    predicted = rng.uniform(2, 4, count)
    below = special.expit(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) - 2.0 * (predicted[:, None] - 3))
    place = (rng.random(count)[:, None] > below).sum(1)
    return predicted, np.array([1.2, 2.0, 2.8, 3.2, 4.0, 4.8])[place], below[:, BOUNDS.index(3.0)]


def test_the_distribution_is_found_that_ratings_came_from() -> None:
    predicted, ratings, low = world(20_000)
    found = Distribution.of(predicted, ratings)
    assert found.slope == pytest.approx(2.0, abs=0.1)
    np.testing.assert_allclose(found.low(predicted), low, atol=0.02)
    near = np.abs(predicted - 3.5) < 0.1
    assert float(found.rating(3.5)) == pytest.approx(ratings[near].mean(), abs=0.06)


def test_rating_class_and_probability_agree() -> None:
    for seed in range(5):
        predicted, ratings, _ = world(200, seed)
        found = Distribution.of(predicted, ratings)
        line = np.linspace(1, 5, 200)
        rating, low, five = found.rating(line), found.low(line), found.five(line)
        assert (np.diff(rating) > 0).all()
        assert (np.diff(low) < 0).all()
        assert (np.diff(five) >= 0).all()
        assert (low[five <= 2] >= 0.5).all()
        assert (low[five >= 4] < 0.5).all()
        assert ((rating >= 1) & (rating <= 5)).all()


def test_what_nobody_rated_stays_possible_and_a_constant_says_nothing() -> None:
    ratings = np.array([4.0, 5.0] * 30)
    found = Distribution.of(np.full(60, 4.5), ratings)
    assert 0 < float(found.low(4.5)) < 0.1
    assert five_class(float(found.rating(4.5))) in (4, 5)


def test_limits_keep_their_budget_and_differ_by_turn() -> None:
    """Scores rise with every pair, so a single limit would raise alarms only at the end."""
    rng = np.random.default_rng(0)

    def dialogues(count: int) -> list[np.ndarray]:
        return [
            0.05 * np.arange(n) + 0.1 * rng.standard_normal(n) + 0.1 * rng.standard_normal()
            for n in rng.integers(2, 8, count)
        ]

    limits = alarm_limits(dialogues(3000))
    assert limits.shape[0] == len(BUDGETS)
    for budget in (0.05, 0.2):
        row = limits[round(100 * budget) - 1]
        assert (np.diff(row[:6]) > 0).all()
        fresh = dialogues(3000)
        raised = [
            bool((one > row[np.minimum(np.arange(len(one)), len(row) - 1)]).any()) for one in fresh
        ]
        assert np.mean(raised) == pytest.approx(budget, abs=0.015)
    assert np.isinf(alarm_limits(dialogues(19))).all()


def test_a_calibration_is_kept_and_budgets_are_checked() -> None:
    predicted, ratings, _ = world(300)
    running = [np.full(4, value) for value in predicted]
    found = Calibration.of(predicted, running, ratings)
    again = Calibration.load(found.tensors())
    assert (again.limits == found.limits).all()
    assert again.whole.slope == found.whole.slope
    assert found.limit(1, 0.05) == found.limits[4, 0]
    assert found.limit(99, 0.057) == found.limits[4, -1]  # the largest budget within it
    broken = {**found.tensors(), "whole.cuts": found.tensors()["whole.cuts"][:-1]}
    with pytest.raises(ValueError, match=r"whole\.cuts has the wrong shape or NaN"):
        Calibration.load(broken)
    for bad in (0.0, 0.6):
        with pytest.raises(CauserieError, match="false alarms must be from 1% to 50%"):
            check_budget(bad)
