"""What a signal costs in rating: a doubly robust estimate for those who gave it.

Each signal is compared with what alike dialogues were rated in which nothing fired at that
moment. The propensity and the outcome without the signal are fitted on other users than those
they are used on (cross-fitting); the estimate is right if either of the two models is. Then what
must not change an estimate is changed, to refute it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from causerie.errors import CauserieError
from causerie.metrics.odes import SIGNALS
from causerie.progress import Progress, Watch, ignore
from causerie.ratings.examples import Standardizer, fired_signals
from causerie.ratings.study import LEAST, Array, Observed, Study, study_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.features import MeasuredLog

FOLDS = 5
CLIP = 0.02
"""Propensities are kept this far from 1; how many had to be is reported."""
LEVEL = 0.95
"""Confidence level of intervals."""
PENALTY = 1.0
"""Penalty of squared weights, for standardised covariates."""
STEPS, SMALLEST = 100, 1e-6
"""Newton's method: how many steps at most, and the size at which it is done."""
REPEATS = 20
"""How often everything that is random is drawn."""
PLACEBO, CAUSE, SUBSETS = "placebo signals", "random common causes", "subsets"
EXPECTED = {
    PLACEBO: "intervals that hold 0 when signals fire at random, at least 80%",
    CAUSE: "largest change by a covariate of noise, in standard errors, at most 1",
    SUBSETS: "deviation among four fifths of the users, over what the interval promises, at most 2",
}
ANY = "any signal"


@dataclass(frozen=True, eq=False)
class Effect:
    """What a signal changed in the ratings of those who gave it, on average (ATT)."""

    estimate: float
    error: float
    """Standard error."""
    low: float
    """Lower end of the 95% interval."""
    high: float
    naive: float
    """The plain difference of mean ratings, of dialogues with the signal and without."""
    signalled: int
    """Dialogues whose first signal it was."""
    dialogues: int
    propensities: Array
    """Probability of the signal at each landmark, by models that had not seen its user."""
    treated: NDArray[np.bool_]
    """The landmarks at which it fired."""
    clipped: int
    """Landmarks whose propensity was nearer to 1 than is allowed."""
    spread: float
    """Standard deviation of the ratings."""

    @property
    def e_value(self) -> float:
        """How strongly an unseen cause would have to act on signal and rating, as risk ratios,
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
    for kind, has in ((study.treated, "the signal"), (~study.treated, "none")):
        count = len(np.unique(study.unit[kind]))
        if count < LEAST:
            raise CauserieError(
                f"only {count} users (or dialogues, where users are unknown) with {has}: "
                f"an effect needs at least {LEAST}"
            )
    return estimated(study, seed)


def estimated(study: Study, seed: int = 0) -> Effect:
    """Estimate it however few users there are."""
    treated, y = study.treated, study.ratings
    propensity, without = np.empty(len(y)), np.empty(len(y))
    fold, x = _folds(study, seed), _standard(study.covariates)
    start = logistic(x, treated).weights  # so that the fits below need a step or two
    for number in range(FOLDS):
        out, inside = fold == number, fold != number
        controls = inside & ~treated
        propensity[out] = logistic(x[inside], treated[inside], start)(x[out])
        without[out] = ridge(x[controls], y[controls])(x[out])
    p = np.minimum(propensity, 1 - CLIP)
    count = int(treated.sum())
    each = np.where(treated, 1.0, -p / (1 - p)) * (y - without)
    estimate = float(each.sum()) / count
    influence = np.bincount(study.unit, each - estimate * treated) / count
    error = math.sqrt(float((influence**2).sum()))
    # as many degrees of freedom as the rarer side has: a normal interval is too narrow for few
    few = min(len(np.unique(study.unit[kind])) for kind in (treated, ~treated))
    margin = float(stats.t.ppf((1 + LEVEL) / 2, max(1, few - 1))) * error
    dialogues, rows = np.unique(study.dialogue, return_index=True)
    ratings, had = y[rows], np.isin(dialogues, study.dialogue[treated])
    return Effect(
        estimate,
        error,
        estimate - margin,
        estimate + margin,
        float(ratings[had].mean() - ratings[~had].mean()),
        count,
        len(dialogues),
        propensity,
        treated,
        int((p != propensity).sum()),
        float(ratings.std()) or 1.0,
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
    weights = np.linalg.solve(design.T @ design + np.diag(penalty), design.T @ y)
    return Linear(weights.astype(np.float64), logistic=False)


def logistic(x: Array, treated: NDArray[np.bool_], start: Array | None = None) -> Linear:
    """Penalised logistic regression by Newton's method, from some weights if they are given.

    A step that does not lower the loss is halved: where probabilities are near 0 the curvature
    says little, and whole steps leap to weights for which everything is impossible.
    """
    design, penalty = _design(x)
    if start is None:
        share = float(np.clip(treated.mean(), 1e-6, 1 - 1e-6))
        start = np.zeros(design.shape[1])
        start[0] = math.log(share / (1 - share))

    def loss(weights: Array) -> float:
        z = design @ weights
        return float((np.logaddexp(0, z) - treated * z).sum() + (penalty * weights**2).sum() / 2)

    weights, least = start, loss(start)
    for _ in range(STEPS):
        p = _sigmoid(design @ weights)
        gradient = design.T @ (p - treated) + penalty * weights
        curvature = (design.T * (p * (1 - p))) @ design + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        while np.abs(step).max() >= SMALLEST and not loss(weights - step) <= least:
            step = step / 2
        weights = weights - step
        least = loss(weights)
        if np.abs(step).max() < SMALLEST:
            return Linear(weights, logistic=True)
    raise CauserieError("the probability of the signal cannot be fitted: it did not settle")


def _design(x: Array) -> tuple[Array, Array]:
    """Return covariates with a column for the intercept, and the penalty of each weight."""
    penalty = np.full(x.shape[1] + 1, PENALTY)
    penalty[0] = 0.0
    return np.column_stack([np.ones(len(x)), x]), penalty


def _sigmoid(x: Array) -> Array:
    values: Array = special.expit(x)
    return values


def _standard(x: Array) -> Array:
    """Z-scores; a constant is 0."""
    deviation = x.std(0)
    z: Array = (x - x.mean(0)) / np.where(deviation > 1e-9, deviation, 1.0)
    return z


def _folds(study: Study, seed: int) -> NDArray[np.int64]:
    """A fold for each row: a user's are in one, and every fold has its share of signals."""
    rng = np.random.default_rng(seed)
    ever = np.bincount(study.unit, study.treated) > 0
    fold = np.zeros(len(ever), dtype=np.int64)
    for kind in (True, False):
        units = rng.permutation(np.unique(study.unit[ever[study.unit] == kind]))
        fold[units] = np.arange(len(units)) % FOLDS
    return fold[study.unit]


ASSUMED = (
    "The effect is that of the signal on those who gave it, against no signal at that moment; "
    "signals that follow count as consequences, in either case. It is causal only if everything "
    "that makes users both give the signal and rate lower was measured before the signal, if there "
    "are alike moments without one (see the propensities), if the rating without a signal, or the "
    "log-odds of a signal, is a straight line over what was measured, and if the classifier "
    "recognises signals; the first cannot be tested."
)


@dataclass(frozen=True)
class Refutation:
    """One try to refute an effect; what is expected of it is in `EXPECTED`."""

    name: str
    found: float
    passed: bool


def refute(
    dialogues: Sequence[Observed], signals: Sequence[int], effect: Effect, seed: int = 0
) -> list[Refutation]:
    """Placebo signals, random common causes, and subsets of the users, in that order."""
    rng = np.random.default_rng(seed)
    study = study_of(dialogues, signals)
    holding = _placebo(dialogues, float(study.treated.mean()), rng)
    change = _random_cause(study, effect, seed, rng)
    excess = _subsets(study, effect, seed, rng)
    return [
        Refutation(PLACEBO, holding, holding >= 0.8),
        Refutation(CAUSE, change, change <= 1.0),
        Refutation(SUBSETS, excess, excess <= 2.0),
    ]


def _placebo(dialogues: Sequence[Observed], rate: float, rng: np.random.Generator) -> float:
    """The share of intervals that hold 0 for signals that fire at random, at the rate of the true.

    Nothing in a dialogue causes them and they cost nothing: what is found all the same comes
    from how dialogues are chosen and compared.
    """
    holding = 0
    for _ in range(REPEATS):
        dealt = [
            replace(one, fired=((rng.random(len(one.spoke)) < rate) & one.spoke)[:, None])
            for one in dialogues
        ]
        found = estimated(study_of(dealt, [0]), int(rng.integers(2**31)))
        holding += found.low <= 0 <= found.high
    return holding / REPEATS


def _random_cause(study: Study, effect: Effect, seed: int, rng: np.random.Generator) -> float:
    """The largest change by a trait of users that is noise, in standard errors."""
    changes = []
    for _ in range(REPEATS):
        noise = rng.standard_normal(study.unit.max() + 1)[study.unit]
        more = replace(study, covariates=np.column_stack([study.covariates, noise]))
        changes.append(abs(estimated(more, seed).estimate - effect.estimate))
    return max(changes) / effect.error


def _subsets(study: Study, effect: Effect, seed: int, rng: np.random.Generator) -> float:
    """How much estimates from four fifths of the users differ, over how much they should.

    Without replacement, a share s of a sample has an estimate that deviates from the whole one's
    by sqrt(1/s - 1) standard errors: one half.
    """
    ever = np.bincount(study.unit, study.treated) > 0
    kinds = [np.unique(study.unit[ever[study.unit] == kind]) for kind in (True, False)]
    estimates = []
    for _ in range(REPEATS):
        kept = [rng.permutation(units)[: round(0.8 * len(units))] for units in kinds]
        part = study.part(np.isin(study.unit, np.concatenate(kept)))
        estimates.append(estimated(part, seed).estimate)
    return float(np.std(estimates, ddof=1)) / (0.5 * effect.error)


@dataclass(frozen=True, eq=False)
class EffectReport:
    """Effects of all signals together and of each by itself."""

    effects: dict[str, Effect]
    too_few: dict[str, str]
    """Signals without an effect, and why."""
    refutations: dict[str, list[Refutation]]
    """What was tried, by effect."""


def effects_of(log: MeasuredLog, seed: int = 0, watch: Watch = ignore) -> EffectReport:
    """Estimate the doubly robust effects of all signals, and try to refute them."""
    observed = _observed(log)
    effects: dict[str, Effect] = {}
    too_few: dict[str, str] = {}
    refutations: dict[str, list[Refutation]] = {}
    for number, name in enumerate((ANY, *SIGNALS)):
        watch(Progress(f"effect of {name}", number, 1 + len(SIGNALS), "effects"))
        columns = range(len(SIGNALS)) if name == ANY else [SIGNALS.index(name)]
        try:
            effects[name] = doubly_robust(study_of(observed, columns), seed)
        except CauserieError as why:
            too_few[name] = str(why)
            continue
        refutations[name] = refute(observed, columns, effects[name], seed)
    return EffectReport(effects, too_few, refutations)


def _observed(log: MeasuredLog) -> list[Observed]:
    extractor = log.extractor
    if np.isnan(log.ratings).any():
        raise CauserieError("effects are on ratings: leave out the dialogues without one")
    standardize = Standardizer.of(extractor.features, log.raw)
    found = []
    for one, rating, raw in zip(log.dialogues, log.ratings.tolist(), log.raw, strict=True):
        signals = extractor.signals(raw)
        features = standardize(raw)[:, extractor.covariates].astype(np.float64)
        fired = fired_signals(signals)[:, : len(SIGNALS)]
        spoke = ~np.isnan(signals[:, 0])
        found.append(Observed(features, spoke, fired, rating, one.bot, one.user))
    return found
