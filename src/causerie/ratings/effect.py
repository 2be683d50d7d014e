"""What a signal costs in rating: a doubly robust estimate for those who gave it.

Each signal is compared with what alike dialogues were rated in which nothing fired at that
moment. The propensity and the outcome without the signal are fitted on other users than those
they are used on (cross-fitting); the estimate is right if either of the two models is. Moments
at which nobody alike stays without the signal are left out, and an effect that rests on too few
of the others is refused. Then what must not change an estimate is changed, to refute it.
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
"""Moments at which the signal is likelier are left out: there is too little to compare with. One
control weighs 9 at most, then."""
LEVEL = 0.95
"""Confidence level of intervals."""
PENALTY = 1.0
"""Penalty of squared weights, for standardised covariates."""
STEPS, SMALLEST = 100, 1e-6
"""Newton's method: how many steps at most, and the size at which it is done."""
REPEATS = 20
"""How often everything that is random is drawn."""
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
"""Compliments and insults alike."""


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
    """Dialogues whose first signal it was, those left out among them."""
    dialogues: int
    propensities: Array
    """Probability of the signal at every landmark, by models that had not seen its user."""
    treated: NDArray[np.bool_]
    """The landmarks at which it fired."""
    left_out: float
    """Share of the dialogues with the signal that had nobody alike without."""
    effective: float
    """Effective number of users without the signal, whose weights differ."""
    spread: float
    """Standard deviation of the ratings."""

    @property
    def e_value(self) -> float:
        """How strongly an unseen cause would have to act to explain the estimate away.

        On signal and rating, as risk ratios (VanderWeele and Ding, for a standardised difference).
        """
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
    _check_users(study, "")
    effect = estimated(study, seed)
    kept = study.part(comparable(effect.propensities, study.treated))
    _check_users(kept, f" once the {effect.left_out:.0%} without anybody alike are left out")
    if effect.effective < LEAST:
        raise CauserieError(
            f"no overlap: those without the signal who are like those with it count as "
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
    """Landmarks with a propensity that is not too high, and that some control reaches."""
    reached = float(propensities[~treated].max(initial=0.0))
    found: NDArray[np.bool_] = propensities <= min(LIKELY, reached)
    return found


def estimated(study: Study, seed: int = 0) -> Effect:
    """Estimate it however few users there are."""
    propensity, without = np.empty(len(study.ratings)), np.empty(len(study.ratings))
    fold, x = _folds(study, seed), _standard(study.covariates)
    start = logistic(x, study.treated).weights  # so that the fits below need a step or two
    for number in range(FOLDS):
        out, inside = fold == number, fold != number
        controls = inside & ~study.treated
        propensity[out] = logistic(x[inside], study.treated[inside], start)(x[out])
        without[out] = ridge(x[controls], study.ratings[controls])(x[out])
    kept = comparable(propensity, study.treated)
    treated, unit, p = study.treated[kept], study.unit[kept], propensity[kept]
    count = int(treated.sum())
    if not 0 < count < len(treated):
        raise CauserieError("no overlap: nobody without the signal is like anybody with it")
    weights = np.where(treated, 0.0, p / (1 - p))
    each = np.where(treated, 1.0, -weights) * (study.ratings - without)[kept]
    estimate = float(each.sum()) / count
    influence = np.bincount(unit, each - estimate * treated) / count
    error = math.sqrt(float((influence**2).sum()))
    # as many degrees of freedom as the rarer side has: a normal interval is too narrow for few
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
    """Try all that is `EXPECTED`, in that order."""
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
    """Effects of signals, together and each by itself."""

    effects: dict[str, Effect]
    refused: dict[str, str]
    """Signals without an effect, and why."""
    refutations: dict[str, list[Refutation]]
    """What was tried, by effect."""

    def stands(self, name: str) -> bool:
        """Whether nothing that was tried has refuted an effect."""
        return all(one.passed for one in self.refutations[name])


def effects_of(
    log: MeasuredLog,
    seed: int = 0,
    watch: Watch = ignore,
    *,
    pooled: bool = False,
    by: str | None = None,
) -> EffectReport:
    """Estimate doubly robust effects of the signals that can be trusted; try to refute them.

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
