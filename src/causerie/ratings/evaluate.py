"""Cross-validation: how well models predict ratings of dialogues they were not fitted on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from causerie.errors import CauserieError
from causerie.progress import Progress, Watch, ignore
from causerie.ratings.calibration import FALSE_ALARMS, Calibration
from causerie.ratings.features import MeasuredLog
from causerie.ratings.fitting import (
    FitOptions,
    OutOfFold,
    Preparation,
    fitting,
    folds_of,
    predict_out_of_fold,
)
from causerie.ratings.log import five_class, is_low
from causerie.ratings.models import SENTINELS
from causerie.ratings.trend import Trend, trend
from causerie.stats import auc, pearson_r

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

AFTER = (1, 2, 4, 8)
"""Numbers of turn pairs after which the ratings of running dialogues are predicted."""
SHARES = (0.25, 0.5, 0.75)
"""Shares of a dialogue after which they are predicted, too; unknown while it is running."""
ALARMS = (FALSE_ALARMS, 0.1, 0.2)
"""Budgets of false alarms to evaluate."""
LEAST = 40
"""Minimum number of dialogues for a meaningful cross-validation."""


@dataclass(frozen=True)
class Correlations:
    """Pearson correlations of predictions and ratings, one for each fold.

    They are not pooled, because predictions of different folds come from different fits, and even
    the mean rating would correlate. NaN where nothing varies, None with too few days.
    """

    individual: tuple[float | None, ...]
    daily: tuple[float | None, ...]
    weekly: tuple[float | None, ...]


@dataclass(frozen=True)
class Foretold:
    """How well low ratings of running dialogues are predicted at some moment."""

    after: int | float
    """Number of turn pairs, or their share."""
    dialogues: int
    auc: tuple[float, ...]
    """Area under the ROC curve, in each fold with both low and other ratings."""
    brier: float
    """Mean squared error of the probability."""


@dataclass(frozen=True)
class Alarms:
    """Quality of alarms, at most one per dialogue, with limits learned on other folds."""

    budget: float
    """Allowed share of false alarms."""
    false: float
    """Share of the dialogues not rated low that had an alarm."""
    caught: float
    """Share of the low-rated dialogues that had an alarm."""
    ahead: float
    """Mean number of turn pairs left at the alarm of a low-rated dialogue."""


@dataclass(frozen=True)
class HeadsEffect:
    """The paper's estimate: the difference between the heads of a CF-LSTM."""

    effect: float
    """Mean outcome under the signal minus that without it (ATE)."""
    factual_error: float
    """Mean squared error of the factual outcome."""
    counterfactual_gap: float
    """Mean squared difference between factual and counterfactual outcome."""


@dataclass(frozen=True)
class Quality:
    """Results of one run of a cross-validation."""

    correlations: Correlations
    binary: float
    """Accuracy of predicting low ratings, at probability ½."""
    five: float
    """Accuracy of the class from 1 to 5."""
    heads: HeadsEffect | None
    """The effect implied by a model of two treatments."""
    inverted: Correlations | None
    """Correlations of its predictions with all treatments inverted."""
    foretold: tuple[Foretold, ...]
    """One for each of `AFTER`, then one for each of `SHARES`."""
    alarms: tuple[Alarms, ...]
    """One for each of `ALARMS`."""

    @property
    def early(self) -> tuple[float, ...]:
        """AUCs by fold, averaged over the moments in `AFTER`, by which models are chosen.

        Shares of a dialogue do not count: its length so far would reveal its final length.
        """
        moments = [one.auc for one in self.foretold if isinstance(one.after, int) and one.auc]
        folds = max(map(len, moments), default=0)
        whole = [one for one in moments if len(one) == folds]
        return tuple(float(np.mean(fold)) for fold in zip(*whole, strict=True))


@dataclass(frozen=True)
class Evaluation:
    """All models on one log."""

    dialogues: int
    features: tuple[str, ...]
    """Groups of features that models saw."""
    majority_binary: float
    majority_five: float
    treated: float
    """Share of dialogues in which a signal of a treatment fired."""
    models: Mapping[str, Sequence[Quality]]
    """Runs by model, one per seed."""
    days: int = 0
    """Number of different dates, on which L1d is based."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Models that could not be fitted, with the reason."""
    predicted: Mapping[str, OutOfFold] = field(default_factory=dict)
    """Predictions of each model with the first seed."""

    @property
    def best(self) -> str:
        """The model, except sentinels, with the highest early AUC, then correlation."""
        able = [name for name in self.models if name not in SENTINELS]
        if not able:
            raise CauserieError(next(iter(self.failed.values()), "there is no model to choose"))

        def worth(name: str) -> tuple[float, float]:
            runs = self.models[name]
            return (
                _mean([value for run in runs for value in run.early], 0.0),
                _mean([r or 0.0 for run in runs for r in run.correlations.individual], 0.0),
            )

        return max(able, key=worth)


def evaluate(
    log: MeasuredLog,
    options: FitOptions,
    models: Sequence[str],
    *,
    seeds: int = 3,
    by: str = "dialogue",
    watch: Watch = ignore,
) -> Evaluation:
    """Cross-validate over folds of dialogues, or of bots or users, which are then unseen."""
    ratings = log.ratings
    preparation = Preparation.of(log, range(len(log.raw)), options.treatments)
    treated = [one.treatment > 0 for one in preparation.examples(log)]
    found: dict[str, list[Quality]] = {}
    failed: dict[str, str] = {}
    first: dict[str, OutOfFold] = {}
    for number, name in enumerate(models):
        for seed in range(seeds):
            done = number * seeds + seed
            watch(Progress(f"fitting {name}, seed {seed}", done, len(models) * seeds, "runs"))
            chosen = replace(options, model=name, config=replace(options.config, seed=seed))
            fold = folds_of(log.dialogues, seed, by)
            try:
                predicted = predict_out_of_fold(log, fold, fitting(log, chosen))
            except CauserieError as why:
                failed[name] = str(why)
                break
            first.setdefault(name, predicted)
            found.setdefault(name, []).append(quality_of(predicted, log))
    lows = [is_low(rating) for rating in ratings]
    classes = Counter(map(five_class, ratings))
    return Evaluation(
        len(log.dialogues),
        (*log.extractor.names, *log.extractor.columns),
        max(sum(lows), len(lows) - sum(lows)) / len(lows),
        max(classes.values()) / len(lows),
        float(np.mean(treated)),
        found,
        len({one.day for one in log.dialogues} - {None}),
        failed,
        first,
    )


def quality_of(predicted: OutOfFold, log: MeasuredLog) -> Quality:
    """Compare predictions with ratings; each fold is calibrated on the others."""
    dialogues, ratings, fold = log.dialogues, log.ratings, predicted.fold
    low = np.array([is_low(rating) for rating in ratings])
    five = np.array([five_class(rating) for rating in ratings])
    outcomes = np.empty_like(predicted.outcomes)
    rating, probability, classes = (np.empty(len(fold)) for _ in range(3))
    running: list[NDArray[np.float64]] = [np.empty(0)] * len(fold)
    meant: list[Calibration] = []
    for number in np.unique(fold):
        inside, out = (np.flatnonzero(rows).tolist() for rows in (fold != number, fold == number))
        calibration = predicted.calibration(ratings, inside)
        meant.append(calibration)
        whole = predicted.whole[out]
        outcomes[out] = calibration.whole.rating(predicted.outcomes[out])
        rating[out] = calibration.whole.rating(whole)
        probability[out], classes[out] = calibration.whole.low(whole), calibration.whole.five(whole)
        for row in out:
            running[row] = calibration.running.low(predicted.running[row])

    def correlations(values: NDArray[np.float64]) -> Correlations:
        individual: list[float | None] = []
        days: list[Trend] = []
        for number in np.unique(fold):
            rows = np.flatnonzero(fold == number)
            some, rated = values[rows], ratings[rows]
            individual.append(pearson_r(some, rated))
            days.append(
                trend([dialogues[i].day for i in rows.tolist()], rated.tolist(), some.tolist())
            )
        daily, weekly = ([one.daily for one in days], [one.weekly for one in days])
        return Correlations(tuple(individual), tuple(daily), tuple(weekly))

    heads, inverted = None, None
    if outcomes.shape[1] == 2:
        heads = heads_effect(outcomes, predicted.treatments, ratings)
        without, under = outcomes.T
        inverted = correlations(np.where(predicted.treatments > 0, without, under))
    limits = [meant[place] for place in np.unique(fold, return_inverse=True)[1]]
    return Quality(
        correlations(rating),
        float(((probability > 0.5) == low).mean()),
        float((classes == five).mean()),
        heads,
        inverted,
        tuple(_foretold(after, running, low, fold) for after in (*AFTER, *SHARES)),
        tuple(_alarms(budget, running, low, limits) for budget in ALARMS),
    )


def heads_effect(
    outcomes: NDArray[np.float64], treatments: NDArray[np.int64], ratings: NDArray[np.float64]
) -> HeadsEffect:
    """Return the effect implied by outcomes without and with treatment, (dialogues, 2)."""
    if outcomes.shape[1] != 2:
        raise CauserieError(
            "the effect needs a model with two heads: fit a cf-lstm with one group of signals"
        )
    without, under = outcomes.T
    happened = np.where(treatments > 0, under, without)
    other = np.where(treatments > 0, without, under)
    return HeadsEffect(
        float((under - without).mean()),
        float(((happened - ratings) ** 2).mean()),
        float(((happened - other) ** 2).mean()),
    )


def pairs_seen(pairs: int, share: float) -> int:
    """Return the number of turn pairs in a share of a dialogue, at least one."""
    return max(1, int(pairs * share))


def _foretold(
    after: int | float,
    running: Sequence[NDArray[np.float64]],
    low: NDArray[np.bool_],
    fold: NDArray[np.int64],
) -> Foretold:
    """Measure one moment; after a number of pairs, dialogues that have ended do not count."""
    lengths = np.array([len(one) for one in running])
    at = np.array([pairs_seen(n, after) if isinstance(after, float) else after for n in lengths])
    rows = (lengths > at) | isinstance(after, float)
    probability = np.array([running[row][at[row] - 1] for row in np.flatnonzero(rows).tolist()])
    some, within = low[rows], fold[rows]
    areas = [
        auc(probability[within == number], some[within == number])
        for number in np.unique(within)
        if 0 < some[within == number].mean() < 1
    ]
    return Foretold(after, int(rows.sum()), tuple(areas), _mean((probability - some) ** 2))


def _alarms(
    budget: float,
    running: Sequence[NDArray[np.float64]],
    low: NDArray[np.bool_],
    meant: Sequence[Calibration],
) -> Alarms:
    raised = np.zeros(len(running), dtype=bool)
    ahead = np.zeros(len(running))
    for row, (values, calibration) in enumerate(zip(running, meant, strict=True)):
        limits = [calibration.limit(pairs, budget) for pairs in range(1, len(values) + 1)]
        over = np.flatnonzero(values > limits)
        if len(over):
            raised[row], ahead[row] = True, len(values) - 1 - over[0]
    return Alarms(budget, _mean(raised[~low]), _mean(raised[low]), _mean(ahead[raised & low]))


def _mean(values: ArrayLike, nothing: float = math.nan) -> float:
    """Return the mean of the finite numbers; `nothing` if there are none."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    return float(numbers.mean()) if len(numbers) else nothing
