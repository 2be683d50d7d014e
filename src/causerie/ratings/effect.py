"""The effect of a signal on the rating: a doubly robust estimate for those who gave it (ATT).

Dialogues with a signal are compared with similar ones in which nothing fired at that moment. The
propensity and the outcome without the signal are cross-fitted by user; the estimate is consistent
if either model is right. Moments without comparable controls are left out, and an effect that
rests on too few users is refused. Refuters then check that the estimate survives changes that
must not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from causerie.errors import CauserieError
from causerie.metrics.odes import PRECISION, SIGNALS, TREATMENTS
from causerie.progress import Progress, Watch, ignore
from causerie.ratings.examples import NEGATIVE, Standardizer, fired_signals
from causerie.ratings.log import group_of
from causerie.ratings.study import LEAST, Array, Observed, Study, study_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.features import MeasuredLog

FOLDS = 5
LIKELY = 0.9
"""Moments with a higher propensity are left out, as there is too little to compare with. One
control can then weigh 9 at most."""
LEVEL = 0.95
"""Confidence level of intervals."""
PENALTY = 1.0
"""Penalty on squared weights, for standardised covariates."""
STEPS, SMALLEST = 100, 1e-6
"""Newton's method: maximum number of steps, and step size at convergence."""
REPEATS = 20
"""Number of repetitions of everything random."""
PLACEBO, CAUSE, SUBSETS = "placebo signals", "random common causes", "subsets"
WIDTH = "width of the interval"
EXPECTED = {
    PLACEBO: "intervals that hold 0 when signals fire at random, at least 80%",
    CAUSE: "largest change by a covariate of noise, in standard errors, at most 1",
    SUBSETS: "deviation among four fifths of the users, over what the interval promises, at most 2",
    WIDTH: "half of it, in standard deviations of the ratings, at most 1: wider ones say nothing",
}
ANY_NEGATIVE = "any negative signal"
ANY = "any signal, as in the paper"
"""Name of the effect of any signal, compliments and insults alike."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The average effect of a signal on the ratings of those who gave it (ATT)."""

    estimate: float
    error: float
    """Standard error."""
    low: float
    """Lower end of the 95% interval."""
    high: float
    naive: float
    """Difference between the mean ratings of dialogues with and without the signal."""
    signalled: int
    """Number of dialogues whose first signal it was, including those left out."""
    dialogues: int
    propensities: Array
    """Out-of-fold propensity of the signal at every landmark."""
    treated: NDArray[np.bool_]
    """Whether it fired at each landmark."""
    left_out: float
    """Share of the dialogues with the signal that had no comparable control."""
    effective: float
    """Effective number of weighted users without the signal."""
    spread: float
    """Standard deviation of the ratings."""

    @property
    def e_value(self) -> float:
        """E-value: how strong a confounder would have to be to explain the estimate away.

        It is a risk ratio with signal and rating, of a standardised effect (VanderWeele and Ding).
        """
        return _e_value(abs(self.estimate) / self.spread)

    @property
    def e_value_of_interval(self) -> float:
        """E-value of the end of the interval that is nearer to 0; 1 if the interval has 0."""
        if self.low <= 0 <= self.high:
            return 1.0
        return _e_value(min(abs(self.low), abs(self.high)) / self.spread)


def _e_value(difference: float) -> float:
    ratio = math.exp(0.91 * difference)
    return ratio + math.sqrt(ratio * (ratio - 1))


def doubly_robust(study: Study, seed: int = 0) -> Effect:
    """Return the cross-fitted augmented inverse propensity estimate with its interval."""
    _check_users(study, "")
    effect = estimated(study, seed)
    kept = study.part(comparable(effect.propensities, study.treated))
    _check_users(kept, f" once the {effect.left_out:.0%} without comparable ones are left out")
    if effect.effective < LEAST:
        raise CauserieError(
            f"no overlap: comparable users without the signal count as only "
            f"{effect.effective:.0f} users, and an effect needs {LEAST}"
        )
    return effect


def _check_users(study: Study, when: str) -> None:
    for kind, has in ((study.treated, "the signal"), (~study.treated, "none")):
        count = len(np.unique(study.unit[kind]))
        if count < LEAST:
            raise CauserieError(
                f"only {count} users (or dialogues, where users are unknown) with {has}{when}: "
                f"an effect needs at least {LEAST}"
            )


def comparable(propensities: Array, treated: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which landmarks have a propensity that is not too high and that a control reaches."""
    reached = float(propensities[~treated].max(initial=0.0))
    found: NDArray[np.bool_] = propensities <= min(LIKELY, reached)
    return found


def estimated(study: Study, seed: int = 0) -> Effect:
    """Estimate the effect without checking the number of users."""
    propensity, without = np.empty(len(study.ratings)), np.empty(len(study.ratings))
    fold, x = _folds(study, seed), _standard(study.covariates)
    start = logistic(x, study.treated).weights  # a start from which the fits converge quickly
    for number in range(FOLDS):
        out, inside = fold == number, fold != number
        controls = inside & ~study.treated
        propensity[out] = logistic(x[inside], study.treated[inside], start)(x[out])
        without[out] = ridge(x[controls], study.ratings[controls])(x[out])
    kept = comparable(propensity, study.treated)
    treated, unit, p = study.treated[kept], study.unit[kept], propensity[kept]
    count = int(treated.sum())
    if not 0 < count < len(treated):
        raise CauserieError(
            "no overlap: no landmark without the signal is comparable to one with it"
        )
    weights = np.where(treated, 0.0, p / (1 - p))
    each = np.where(treated, 1.0, -weights) * (study.ratings - without)[kept]
    estimate = float(each.sum()) / count
    influence = np.bincount(unit, each - estimate * treated) / count
    error = math.sqrt(float((influence**2).sum()))
    # degrees of freedom of the rarer side: a normal interval would be too narrow for few users
    few = min(len(np.unique(unit[kind])) for kind in (treated, ~treated))
    margin = float(stats.t.ppf((1 + LEVEL) / 2, max(1, few - 1))) * error
    dialogues, rows = np.unique(study.dialogue, return_index=True)
    ratings, had = study.ratings[rows], np.isin(dialogues, study.dialogue[study.treated])
    signalled, by_user = int(study.treated.sum()), np.bincount(unit, weights)
    return Effect(
        estimate,
        error,
        estimate - margin,
        estimate + margin,
        float(ratings[had].mean() - ratings[~had].mean()),
        signalled,
        len(dialogues),
        propensity,
        study.treated,
        1 - count / signalled,
        float(by_user.sum() ** 2 / max((by_user**2).sum(), 1e-12)),
        float(ratings.std()) or 1.0,
    )


class Linear:
    """A linear or logistic model: an intercept and a weight per covariate."""

    def __init__(self, weights: Array, *, logistic: bool) -> None:
        self.weights, self._logistic = weights, logistic

    def __call__(self, x: Array) -> Array:
        values: Array = self.weights[0] + x @ self.weights[1:]
        return _sigmoid(values) if self._logistic else values


def ridge(x: Array, y: Array) -> Linear:
    """Fit ridge regression; the intercept is not penalised."""
    design, penalty = _design(x)
    weights = np.linalg.solve(design.T @ design + np.diag(penalty), design.T @ y)
    return Linear(weights.astype(np.float64), logistic=False)


def logistic(x: Array, treated: NDArray[np.bool_], start: Array | None = None) -> Linear:
    """Fit penalised logistic regression by Newton's method, optionally from given weights.

    A step that does not lower the loss is halved: with probabilities near 0 the curvature is
    unreliable, and full steps overshoot.
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
    raise CauserieError("the propensity model did not converge: the effect cannot be estimated")


def _design(x: Array) -> tuple[Array, Array]:
    """Return covariates with a column for the intercept, and the penalty of each weight."""
    penalty = np.full(x.shape[1] + 1, PENALTY)
    penalty[0] = 0.0
    return np.column_stack([np.ones(len(x)), x]), penalty


def _sigmoid(x: Array) -> Array:
    values: Array = special.expit(x)
    return values


def _standard(x: Array) -> Array:
    """Return z-scores; those of a constant are 0."""
    deviation = x.std(0)
    z: Array = (x - x.mean(0)) / np.where(deviation > 1e-9, deviation, 1.0)
    return z


def _folds(study: Study, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row: by user, with an equal share of signals in each."""
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
    """The result of one refuter; `EXPECTED` says what it should be."""

    name: str
    found: float
    passed: bool


def refute(
    dialogues: Sequence[Observed], signals: Sequence[int], effect: Effect, seed: int = 0
) -> list[Refutation]:
    """Run all refuters in `EXPECTED`, in that order."""
    rng = np.random.default_rng(seed)
    study = study_of(dialogues, signals)
    holding = _placebo(dialogues, float(study.treated.mean()), rng)
    change = _random_cause(study, effect, seed, rng)
    excess = _subsets(study, effect, seed, rng)
    width = (effect.high - effect.low) / 2 / effect.spread
    return [
        Refutation(PLACEBO, holding, holding >= 0.8),
        Refutation(CAUSE, change, change <= 1.0),
        Refutation(SUBSETS, excess, excess <= 2.0),
        Refutation(WIDTH, width, width <= 1.0),
    ]


def _placebo(dialogues: Sequence[Observed], rate: float, rng: np.random.Generator) -> float:
    """Return the share of intervals that contain 0 for random signals at the true rate.

    Random signals have no cause and no effect, so an effect found nevertheless is due to how
    dialogues are selected and compared.
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
    """Return the largest change caused by a random trait of users, in standard errors."""
    changes = []
    for _ in range(REPEATS):
        noise = rng.standard_normal(study.unit.max() + 1)[study.unit]
        more = replace(study, covariates=np.column_stack([study.covariates, noise]))
        changes.append(abs(estimated(more, seed).estimate - effect.estimate))
    return max(changes) / effect.error


def _subsets(study: Study, effect: Effect, seed: int, rng: np.random.Generator) -> float:
    """Return the deviation of estimates from four fifths of the users, relative to the expected.

    The estimate from a share s of a sample, drawn without replacement, deviates from the whole
    one's by sqrt(1/s - 1) standard errors: one half.
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
    """The effects of signals, jointly and individually."""

    effects: dict[str, Effect]
    refused: dict[str, str]
    """Signals without an estimate, with the reason."""
    refutations: dict[str, list[Refutation]]
    """Results of the refuters, by effect."""

    def stands(self, name: str) -> bool:
        """Whether an effect passed all refuters."""
        return all(one.passed for one in self.refutations[name])


def effects_of(
    log: MeasuredLog,
    seed: int = 0,
    watch: Watch = ignore,
    *,
    pooled: bool = False,
    by: str | None = None,
) -> EffectReport:
    """Estimate doubly robust effects of the signals that are precise enough; try to refute them.

    `pooled` adds that of any signal, compliments included; `by` adds, for every bot (or value of
    another field), that of any negative signal in its own dialogues.
    """
    observed = _observed(log)
    wanted: dict[str, tuple[Sequence[Observed], Sequence[str]]] = {
        **({ANY: (observed, SIGNALS)} if pooled else {}),
        ANY_NEGATIVE: (observed, NEGATIVE),
        **{name: (observed, (name,)) for name in TREATMENTS},
    }
    groups = [None if by is None else group_of(one, by) for one in log.dialogues]
    for group in sorted({group for group in groups if group is not None}):
        part = [one for one, its in zip(observed, groups, strict=True) if its == group]
        wanted[f"{ANY_NEGATIVE}, {by} {group}"] = part, NEGATIVE
    effects: dict[str, Effect] = {}
    refused = {
        name: f"no treatment: where it fires with real users it is right in {PRECISION[name]:.0%}"
        for name in SIGNALS
        if name not in TREATMENTS
    }
    refutations: dict[str, list[Refutation]] = {}
    for number, (name, (dialogues, signals)) in enumerate(wanted.items()):
        watch(Progress(f"effect of {name}", number, len(wanted), "effects"))
        columns = [SIGNALS.index(signal) for signal in signals]
        try:
            effect = doubly_robust(study_of(dialogues, columns), seed)
            refutations[name] = refute(dialogues, columns, effect, seed)
            effects[name] = effect
        except CauserieError as why:
            refused[name] = str(why)
    return EffectReport(effects, refused, refutations)


def _observed(log: MeasuredLog) -> list[Observed]:
    extractor = log.extractor
    if np.isnan(log.ratings).any():
        raise CauserieError("effects need ratings: omit the dialogues without one")
    standardize = Standardizer.of(extractor.features, log.raw)
    found = []
    for one, rating, raw in zip(log.dialogues, log.ratings.tolist(), log.raw, strict=True):
        signals = extractor.signals(raw)
        features = standardize(raw)[:, extractor.covariates].astype(np.float64)
        fired = fired_signals(signals)[:, : len(SIGNALS)]
        spoke = ~np.isnan(signals[:, 0])
        found.append(Observed(features, spoke, fired, rating, one.bot, one.user))
    return found
