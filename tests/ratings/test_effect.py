"""The doubly robust estimate on a simulator whose truth is known; refuters; E-values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from causerie import CauserieError
from causerie.ratings.effect import (
    LEAST,
    Study,
    doubly_robust,
    heads_effect,
    logistic,
    pearson,
    refute,
    ridge,
    study_of,
)
from causerie.ratings.examples import Example

EFFECT = -0.5
DIALOGUES = 1500


def simulate(seed: int, n: int = DIALOGUES, effect: float = EFFECT) -> Study:
    """Two covariates make users both give the signal and rate higher: confounding upwards."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    treated = rng.random(n) < 1 / (1 + np.exp(-(1.0 * x[:, 0] + 0.7 * x[:, 1])))
    ratings = 3 + 0.8 * x[:, 0] + 0.5 * x[:, 1] + effect * treated + 0.6 * rng.standard_normal(n)
    return Study(x, treated, ratings)


def test_the_interval_covers_the_truth_and_the_naive_difference_does_not() -> None:
    seeds = 100
    found = [doubly_robust(simulate(seed), seed) for seed in range(seeds)]
    covered = sum(one.low <= EFFECT <= one.high for one in found)
    bias = abs(float(np.mean([one.naive for one in found])) - EFFECT)
    width = float(np.mean([one.high - one.low for one in found]))
    naive = 0
    for seed, one in enumerate(found):
        study = simulate(seed)
        parts = [study.ratings[study.treated == kind] for kind in (True, False)]
        margin = 1.96 * math.sqrt(sum(part.var(ddof=1) / len(part) for part in parts))
        naive += abs(one.naive - EFFECT) <= margin
    assert covered >= 90
    assert width <= bias / 2
    assert naive < 50
    assert abs(np.mean([one.estimate for one in found]) - EFFECT) < 0.02


@pytest.mark.parametrize("broken", ["propensity", "outcome"])
def test_one_of_the_two_models_may_be_wrong(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from causerie.ratings import effect

    if broken == "propensity":
        monkeypatch.setattr(effect, "logistic", lambda x, t: lambda z: np.full(len(z), t.mean()))
    else:
        monkeypatch.setattr(effect, "ridge", lambda x, y: lambda z: np.full(len(z), y.mean()))
    found = [effect.doubly_robust(simulate(seed, 4000), seed) for seed in range(5)]
    assert np.mean([one.estimate for one in found]) == pytest.approx(EFFECT, abs=0.06)


def test_regressions_against_a_general_optimiser() -> None:
    study = simulate(0, 200)
    x, y, t = study.covariates, study.ratings, study.treated.astype(float)

    def squares(w: np.ndarray) -> float:
        return float(((y - w[0] - x @ w[1:]) ** 2).sum() + (w[1:] ** 2).sum())

    def likelihood(w: np.ndarray) -> float:
        z = w[0] + x @ w[1:]
        return float((np.logaddexp(0, z) - t * z).sum() + 0.5 * (w[1:] ** 2).sum())

    np.testing.assert_allclose(
        ridge(x, y).weights, optimize.minimize(squares, np.zeros(4)).x, atol=1e-4
    )
    np.testing.assert_allclose(
        logistic(x, study.treated).weights, optimize.minimize(likelihood, np.zeros(4)).x, atol=1e-4
    )


def test_refuters_let_a_true_effect_stand_and_an_unstable_one_fall() -> None:
    study = simulate(3)
    tries = {one.name: one for one in refute(study, doubly_robust(study), seed=1)}
    assert set(tries) == {"placebo treatment", "random common cause", "subsets"}
    assert all(one.passed for one in tries.values())
    assert abs(tries["placebo treatment"].found) < 0.1
    shifted = doubly_robust(simulate(3, effect=2.0))
    assert not any(one.passed for one in refute(study, shifted) if one.name != "placebo treatment")


def test_e_values_by_hand() -> None:
    one = doubly_robust(simulate(0))
    ratio = math.exp(0.91 * abs(one.estimate) / one.spread)
    assert one.e_value == pytest.approx(ratio + math.sqrt(ratio**2 - ratio))
    assert 1 < one.e_value_of_interval < one.e_value
    none = doubly_robust(simulate(1, 200, effect=0.0))
    if none.low <= 0 <= none.high:
        assert none.e_value_of_interval == 1.0


def test_too_few_dialogues_are_refused() -> None:
    study = simulate(0, 60)
    few = study.part(
        np.concatenate([np.flatnonzero(study.treated)[:5], np.flatnonzero(~study.treated)])
    )
    with pytest.raises(CauserieError, match=f"only 5 dialogues of a treatment.*at least {LEAST}"):
        doubly_robust(few)


def example(rows: list[list[float]], rating: float) -> Example:
    features = np.array(rows, dtype=np.float32)
    return Example(features, np.zeros(len(rows), dtype=np.int64), ("",) * len(rows), rating)


def test_covariates_are_what_was_before_the_first_signal() -> None:
    treated = example([[1, 9], [3, 9], [100, 9], [100, 9]], 2.0)
    control = example([[5, 9], [7, 9], [200, 9]], 4.0)
    first = example([[50, 9]], 1.0)
    fired = [np.array(f) for f in ([False, False, True, True], [False] * 3, [True])]
    study = study_of([treated, control, first], fired, covariates=[0])
    np.testing.assert_allclose(study.covariates[0], [2, 3, math.log(3)])
    np.testing.assert_allclose(study.covariates[2], [0, 0, 0])
    place = study.covariates[1, 2]  # drawn from the places of signals: 0 or 2
    assert place in (0.0, pytest.approx(math.log(3)))
    assert study.covariates[1, 1] == (7 if place else 0)
    assert study.treated.tolist() == [True, False, True]
    with pytest.raises(CauserieError, match="no dialogue has the signal"):
        study_of([control], [fired[1]], [0])


def test_the_difference_of_heads_by_hand() -> None:
    outcomes = np.array([[4.0, 3.0], [5.0, 2.0], [3.0, 3.0]])
    ratings = np.array([4.0, 3.0, 2.0])
    found = heads_effect(outcomes, np.array([0, 1, 1]), ratings)
    assert found.effect == pytest.approx((-1 - 3 + 0) / 3)
    assert found.factual_error == pytest.approx((0 + 1 + 1) / 3)
    assert found.counterfactual_gap == pytest.approx((1 + 9 + 0) / 3)
    assert pearson(np.array([4.0, 2, 3]), ratings) == pytest.approx(
        np.corrcoef([4, 2, 3], [4, 3, 2])[0, 1]
    )
    assert math.isnan(pearson(np.ones(3), np.arange(3.0)))
