"""How faults are learned: across the halves of the dialogues, and calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from causerie.dialogue import Dialogue
from causerie.quality.faulting import (
    FLAGGED,
    MadeReplies,
    calibrate_faults,
    learn_faults,
    logistic_line,
    out_of_fold,
    report_faults,
)
from causerie.quality.judging import ALL, fault_probabilities
from causerie.training.faulty import FAULTS

EXCHANGE = Dialogue.from_texts(["Hello!", "Hi."]).exchanges()[0]


def half(seed: int, count: int = 240) -> tuple[np.ndarray, MadeReplies]:
    """Every other reply has a fault, which a feature of its own tells roughly."""
    rng = np.random.default_rng(seed)
    has = np.zeros((count, len(FAULTS)), dtype=bool)
    has[np.arange(1, count, 2), rng.integers(len(FAULTS), size=count // 2)] = True
    features = has * 2.0 + rng.normal(size=has.shape)
    known = has | (rng.random(has.shape) < 0.9)
    clusters = tuple(i // 2 for i in range(count))
    return features, MadeReplies((EXCHANGE,) * count, has, known, clusters)


HALVES = [half(0), half(1)]
FEATURES, MADE = [x for x, _ in HALVES], [made for _, made in HALVES]


def test_every_reply_is_told_by_learners_of_the_other_half() -> None:
    """Against learners that are fitted one by one."""
    said = out_of_fold(FEATURES, MADE, seed=3)
    whole = MadeReplies.joined(MADE)
    assert said.shape == whole.has.shape
    for place in (0, 100, 240, 479):
        own = place // 240
        learners = learn_faults(FEATURES[1 - own], MADE[1 - own], seed=3)
        row = FEATURES[own][place % 240][None]
        expected = [float(learners[fault, ALL](row)[0]) for fault in FAULTS]
        np.testing.assert_allclose(said[place], expected, rtol=1e-12)


def test_joined_halves_share_no_dialogue() -> None:
    whole = MadeReplies.joined(MADE)
    assert whole.clusters == (*MADE[0].clusters, *(120 + c for c in MADE[1].clusters))
    assert (whole.has == np.concatenate([one.has for one in MADE])).all()
    assert (whole.known == np.concatenate([one.known for one in MADE])).all()


def test_limits_flag_the_share_of_good_replies_that_they_say() -> None:
    whole = MadeReplies.joined(MADE)
    said = out_of_fold(FEATURES, MADE, seed=0)
    lines, limits = calibrate_faults(said, whole)
    found = fault_probabilities(said, lines)
    for i, fault in enumerate(FAULTS):
        assert limits[fault] == float(f"{limits[fault]:.6g}")
        flagged = (found[whole.fine, i] > limits[fault]).mean()
        assert flagged == pytest.approx(FLAGGED, abs=1.5 / whole.fine.sum())
    results = report_faults(said, lines, limits, whole)
    for i, fault in enumerate(FAULTS):
        there = whole.has[:, i]
        text = results[f"{fault} (n={there.sum()}): recall / good replies flagged"]
        assert float(text.split()[0]) == pytest.approx(
            (found[there, i] > limits[fault]).mean(), abs=5e-4
        )


def test_the_logistic_line_is_the_best_one() -> None:
    """Against a search that needs no gradient."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    labels = values + rng.normal(size=200) > 0.5
    weights = rng.uniform(0.2, 2, 200)

    def cost(line: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-(line[0] * values + line[1])))
        losses = -np.log(np.where(labels, p, 1 - p))
        return float((weights * losses).sum() + 1e-6 * (line**2).sum())

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    best = optimize.minimize(cost, np.zeros(2), method="Nelder-Mead", options=options).x
    assert logistic_line(values, labels, weights) == pytest.approx(best.tolist(), rel=1e-4)
    assert logistic_line(values, labels | True, weights) == (1.0, 0.0)


def test_what_is_told_apart_without_a_mistake_has_a_finite_line() -> None:
    values = np.array([-2.0, -1.0, 1.0, 2.0])
    line = logistic_line(values, values > 0, np.ones(4))
    assert np.isfinite(line).all()
    assert line[0] > 0
