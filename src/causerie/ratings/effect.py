"""What a signal costs in rating: a doubly robust estimate, and what would refute it.

Covariates are what was measured *before* the first signal, signals left out. The propensity
and the outcomes of either treatment are fitted on other dialogues than those they are used on
(cross-fitting); the estimate is right if either of the two models is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.examples import Example

Array: TypeAlias = "NDArray[np.float64]"

FOLDS = 5
CLIP = 0.02
"""Propensities are kept this far from 0 and 1; how many had to be is reported."""
NORMAL_95 = 1.959964
LEAST = 20
"""Dialogues of either treatment that an effect can be estimated from."""
PENALTY = 1.0
"""Of squared weights, for standardised covariates."""
REPEATS = 20
"""Of what is drawn at random in a refuter."""


@dataclass(frozen=True, eq=False)
class Study:
    """Dialogues of two treatments: what was before, which it was, what the rating was."""

    covariates: Array
    """(dialogues, covariates)"""
    treated: NDArray[np.bool_]
    ratings: Array

    def part(self, rows: NDArray[np.int64]) -> Study:
        return Study(self.covariates[rows], self.treated[rows], self.ratings[rows])


@dataclass(frozen=True, eq=False)
class Effect:
    """By how much treatment changes the rating, on average."""

    estimate: float
    low: float
    """Of the 95% interval."""
    high: float
    naive: float
    """The plain difference of mean ratings."""
    propensities: Array
    """Of treatment, for each dialogue, by models that had not seen it."""
    treated: NDArray[np.bool_]
    clipped: int
    """Dialogues whose propensity was nearer to 0 or 1 than is allowed."""
    spread: float
    """Standard deviation of the ratings."""

    @property
    def e_value(self) -> float:
        """How strongly an unseen cause would have to act on treatment and rating, as risk ratios,
        to explain the estimate away (VanderWeele and Ding, for a standardised difference)."""
        return _e_value(abs(self.estimate) / self.spread)

    @property
    def e_value_of_interval(self) -> float:
        """The same for the end of the interval that is nearer to nothing; 1 if it holds 0."""
        if self.low <= 0 <= self.high:
            return 1.0
        return _e_value(min(abs(self.low), abs(self.high)) / self.spread)


def _e_value(difference: float) -> float:
    ratio = math.exp(0.91 * difference)
    return ratio + math.sqrt(ratio * (ratio - 1))


def doubly_robust(study: Study, seed: int = 0) -> Effect:
    """The cross-fitted augmented inverse propensity estimate with its interval."""
    treated, y = study.treated, study.ratings
    smaller = min(int(treated.sum()), int((~treated).sum()))
    if smaller < LEAST:
        raise CauserieError(
            f"only {smaller} dialogues of a treatment: an effect needs at least {LEAST} of each"
        )
    propensity, y1, y0 = (np.empty(len(y)) for _ in range(3))
    fold = _folds(treated, seed)
    for number in range(FOLDS):
        out = fold == number
        x, inside = _standard(study.covariates[~out], study.covariates), ~out
        propensity[out] = logistic(x[inside], treated[inside])(x[out])
        y1[out] = ridge(x[inside & treated], y[inside & treated])(x[out])
        y0[out] = ridge(x[inside & ~treated], y[inside & ~treated])(x[out])
    p = propensity.clip(CLIP, 1 - CLIP)
    each = y1 - y0 + np.where(treated, (y - y1) / p, -(y - y0) / (1 - p))
    margin = NORMAL_95 * float(each.std(ddof=1)) / math.sqrt(len(each))
    estimate = float(each.mean())
    return Effect(
        estimate,
        estimate - margin,
        estimate + margin,
        float(y[treated].mean() - y[~treated].mean()),
        propensity,
        treated,
        int((p != propensity).sum()),
        float(y.std()) or 1.0,
    )


class Linear:
    """An intercept and a weight per covariate."""

    def __init__(self, weights: Array, *, logistic: bool) -> None:
        self.weights, self._logistic = weights, logistic

    def __call__(self, x: Array) -> Array:
        values: Array = self.weights[0] + x @ self.weights[1:]
        return _sigmoid(values) if self._logistic else values


def ridge(x: Array, y: Array) -> Linear:
    """Least squares with squared weights penalised, the intercept not."""
    design, penalty = _design(x)
    weights = np.linalg.solve(design.T @ design + penalty, design.T @ y)
    return Linear(weights.astype(np.float64), logistic=False)


def logistic(x: Array, treated: NDArray[np.bool_]) -> Linear:
    """Penalised logistic regression by Newton's method."""
    design, penalty = _design(x)
    share = float(np.clip(treated.mean(), 0.01, 0.99))
    weights = np.zeros(design.shape[1])
    weights[0] = math.log(share / (1 - share))
    for _ in range(25):
        p = _sigmoid(design @ weights)
        gradient = design.T @ (p - treated) + penalty @ weights
        curvature = design.T @ (design * (p * (1 - p))[:, None]) + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(weights)), gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return Linear(weights, logistic=True)


def _design(x: Array) -> tuple[Array, Array]:
    penalty = PENALTY * np.eye(x.shape[1] + 1)
    penalty[0, 0] = 0.0
    return np.column_stack([np.ones(len(x)), x]), penalty


def _sigmoid(x: Array) -> Array:
    half: Array = 0.5 * (1 + np.tanh(0.5 * x))
    return half


def _standard(seen: Array, x: Array) -> Array:
    """Z-scores by what was seen."""
    deviation = seen.std(0)
    z: Array = (x - seen.mean(0)) / np.where(deviation > 1e-9, deviation, 1.0)
    return z


def _folds(treated: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """A fold for each dialogue, with its share of either treatment."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(treated), dtype=np.int64)
    for kind in (True, False):
        rows = rng.permutation(np.flatnonzero(treated == kind))
        fold[rows] = np.arange(len(rows)) % FOLDS
    return fold


@dataclass(frozen=True)
class Refutation:
    """One try to refute an effect."""

    name: str
    expected: str
    found: float
    passed: bool


def refute(study: Study, effect: Effect, seed: int = 0) -> list[Refutation]:
    """A placebo treatment, a random common cause, and subsets of the dialogues."""
    rng = np.random.default_rng(seed)
    width = effect.high - effect.low
    placebo = [
        doubly_robust(Study(study.covariates, rng.permutation(study.treated), study.ratings), seed)
        for _ in range(REPEATS)
    ]
    covering = sum(one.low <= 0 <= one.high for one in placebo) / REPEATS
    noise = rng.standard_normal((len(study.ratings), 1))
    causes = np.hstack([study.covariates, noise])
    common = doubly_robust(Study(causes, study.treated, study.ratings), seed).estimate
    subsets = []
    for _ in range(REPEATS):
        kept = [
            rng.permutation(rows)[: max(LEAST, round(0.8 * len(rows)))]
            for rows in (np.flatnonzero(study.treated), np.flatnonzero(~study.treated))
        ]
        subsets.append(doubly_robust(study.part(np.concatenate(kept)), seed).estimate)
    mean = float(np.mean(subsets))
    return [
        Refutation(
            "placebo treatment",
            "0: treatment dealt out at random has no effect",
            float(np.mean([one.estimate for one in placebo])),
            covering >= 0.8,
        ),
        Refutation(
            "random common cause",
            f"{effect.estimate:+.3f}: a covariate of noise changes nothing",
            common,
            abs(common - effect.estimate) <= width / 4,
        ),
        Refutation(
            "subsets",
            f"{effect.estimate:+.3f}: four fifths of the dialogues say the same",
            mean,
            abs(mean - effect.estimate) <= width / 4,
        ),
    ]


def study_of(
    examples: Sequence[Example],
    treated: Sequence[NDArray[np.bool_]],
    covariates: Sequence[int],
    seed: int = 0,
) -> Study:
    """What was measured before the first signal, of the dialogues with one and of those without.

    `treated` says of every pair whether the signal fired there. A dialogue without any is
    looked at before a place that is drawn from those where signals first fire: otherwise
    treatment would be told by how far one has looked. `covariates` are columns of features.
    """
    firsts = [int(np.argmax(fired)) if fired.any() else None for fired in treated]
    seen = np.array([place for place in firsts if place is not None], dtype=np.int64)
    if not len(seen):
        raise CauserieError("no dialogue has the signal: there is no effect to estimate")
    rng = np.random.default_rng(seed)
    rows = []
    for one, first in zip(examples, firsts, strict=True):
        place = first
        if place is None:
            possible = seen[seen < one.pairs]
            place = int(rng.choice(possible)) if len(possible) else 0
        before = one.features[:place, list(covariates)].astype(np.float64)
        nothing = np.zeros(len(covariates))
        mean, last = (before.mean(0), before[-1]) if place else (nothing, nothing)
        rows.append(np.concatenate([mean, last, [math.log1p(place)]]))
    return Study(
        np.array(rows),
        np.array([first is not None for first in firsts]),
        np.array([one.rating for one in examples], dtype=np.float64),
    )


ASSUMED = (
    "The estimate is causal only if everything that makes users both give the signal and rate "
    "lower was measured before the signal, if both kinds of dialogue occur among alike ones "
    "(see the overlap), and if the classifier recognises signals; the first cannot be tested."
)


@dataclass(frozen=True)
class HeadsEffect:
    """The paper's estimate: the difference between the heads of a CF-LSTM."""

    effect: float
    """Mean of outcome under the signal minus outcome without (ATE)."""
    factual_error: float
    """Mean squared error of the outcome that happened."""
    counterfactual_gap: float
    """Mean squared difference of the two outcomes."""


def heads_effect(outcomes: Array, treatments: NDArray[np.int64], ratings: Array) -> HeadsEffect:
    """From outcomes under no treatment and under one, (dialogues, 2)."""
    if outcomes.shape[1] != 2:
        raise CauserieError("the difference of heads is between two: fit a cf-lstm of two")
    without, under = outcomes.T
    happened = np.where(treatments > 0, under, without)
    other = np.where(treatments > 0, without, under)
    return HeadsEffect(
        float((under - without).mean()),
        float(((happened - ratings) ** 2).mean()),
        float(((happened - other) ** 2).mean()),
    )


def pearson(a: Array, b: Array) -> float:
    """Correlation; nan where one side does not vary."""
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 1e-12 else math.nan
