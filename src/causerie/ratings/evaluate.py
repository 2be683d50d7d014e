"""How well models predict ratings of dialogues that they were not fitted on."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from causerie.errors import CauserieError
from causerie.progress import Progress, Watch, ignore
from causerie.ratings.features import MeasuredLog
from causerie.ratings.log import five_class, is_low
from causerie.ratings.monitor import LIMIT
from causerie.ratings.predictor import FitOptions, Preparation, fit_models, new_models
from causerie.ratings.trend import Trend, trend
from causerie.stats import auc, pearson_r

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from causerie.ratings.log import RatedDialogue

FOLDED = ("dialogue", "bot", "user")
"""What folds can be made of: those of bots, or of users, are then unseen."""
FOLDS = 5
SEEN = (0.25, 0.5, 0.75)
"""Shares of a dialogue after which it is asked how it will be rated."""
LEAST = 40
"""Dialogues from which on a cross-validation says something."""


@dataclass(frozen=True, eq=False)
class OutOfFoldPredictions:
    """What one model predicts for every dialogue, by fits that had not seen it: a row each."""

    values: NDArray[np.float64]

    COLUMNS: ClassVar = ("rating", "low", "class", *(f"low at {share:.0%}" for share in SEEN))

    @property
    def rating(self) -> NDArray[np.float64]:
        return self.values[:, 0]

    @property
    def low(self) -> NDArray[np.float64]:
        return self.values[:, 1]

    @property
    def five(self) -> NDArray[np.float64]:
        return self.values[:, 2]

    @property
    def early(self) -> NDArray[np.float64]:
        """The probability of a low rating when so much was `SEEN`, a column each."""
        return self.values[:, 3 : len(self.COLUMNS)]

    @property
    def outcomes(self) -> NDArray[np.float64]:
        """The rating under every treatment that the model tells apart."""
        return self.values[:, len(self.COLUMNS) :]


@dataclass(frozen=True)
class Correlations:
    """Pearson's, of predictions and ratings, one for each fold.

    Between folds, predictions differ by what else was fitted on, and even the mean of the others
    would correlate. nan where nothing varies, None where there are too few days.
    """

    individual: tuple[float | None, ...]
    daily: tuple[float | None, ...]
    weekly: tuple[float | None, ...]


@dataclass(frozen=True)
class Warnings:
    """How well a low rating is foretold while a dialogue still runs."""

    seen: float
    """Share of its turn pairs."""
    auc: float
    """Area under the ROC curve in a fold, averaged over folds with both low and other ratings."""
    brier: float
    """Mean squared error of the probability."""
    caught: float
    """Share of the low-rated dialogues for which there is an alarm."""
    false: float
    """Share of the others for which there is one."""
    ahead: float
    """Turn pairs that were still to come where a low rating was foretold, on average."""


@dataclass(frozen=True)
class HeadsEffect:
    """The paper's estimate: the difference between the heads of a CF-LSTM."""

    effect: float
    """Mean of outcome under the signal minus outcome without (ATE)."""
    factual_error: float
    """Mean squared error of the outcome that happened."""
    counterfactual_gap: float
    """Mean squared difference of the two outcomes."""


@dataclass(frozen=True)
class Quality:
    """One run of a cross-validation."""

    correlations: Correlations
    binary: float
    """Accuracy of telling low ratings, at probability ½."""
    five: float
    """Accuracy of the class."""
    heads: HeadsEffect | None
    """The effect that a model which tells two treatments apart implies."""
    inverted: Correlations | None
    """Correlations of its predictions with all treatments inverted."""
    warnings: tuple[Warnings, ...]
    """One for each share that was `SEEN`."""


@dataclass(frozen=True)
class Evaluation:
    """All models on one log."""

    dialogues: int
    majority_binary: float
    majority_five: float
    treated: float
    """Share of dialogues in which a signal fired."""
    models: Mapping[str, Sequence[Quality]]
    """A run per seed."""
    days: int = 0
    """Different dates of dialogues: what L1d rests on."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Models that could not be fitted, and why."""


def evaluate(
    log: MeasuredLog,
    options: FitOptions,
    models: Sequence[str],
    *,
    seeds: int = 3,
    by: str = "dialogue",
    watch: Watch = ignore,
) -> Evaluation:
    """Cross-validate: folds of dialogues, of bots or of users, which are then all unknown."""
    ratings = log.ratings
    preparation = Preparation.of(log, range(len(log.raw)), options.treatments)
    had = np.array([one.treatment for one in preparation.examples(log)])
    found: dict[str, list[Quality]] = {}
    failed: dict[str, str] = {}
    for number, name in enumerate(models):
        for seed in range(seeds):
            done = number * seeds + seed
            watch(Progress(f"fitting {name}, seed {seed}", done, len(models) * seeds, "runs"))
            chosen = replace(options, model=name, config=replace(options.config, seed=seed))
            fold = folds_of(log.dialogues, seed, by)
            try:
                predicted = predict_out_of_fold(log, fold, chosen)
            except CauserieError as why:
                failed[name] = str(why)
                break
            found.setdefault(name, []).append(quality_of(predicted, log, had, fold))
    lows = [is_low(rating) for rating in ratings]
    classes = Counter(map(five_class, ratings))
    return Evaluation(
        len(log.dialogues),
        max(sum(lows), len(lows) - sum(lows)) / len(lows),
        max(classes.values()) / len(lows),
        float((had > 0).mean()),
        found,
        len({one.day for one in log.dialogues} - {None}),
        failed,
    )


def folds_of(
    dialogues: Sequence[RatedDialogue], seed: int, by: str = "dialogue"
) -> NDArray[np.int64]:
    """A fold for each dialogue; all dialogues of a bot, or of a user, are in one if asked."""
    if by == "dialogue":
        keys: list[str | None] = [str(index) for index in range(len(dialogues))]
    else:
        keys = [one.bot if by == "bot" else one.user for one in dialogues]
        if None in keys or len(set(keys)) < 2:
            raise CauserieError(f"folds by {by} need the {by} of every dialogue, and two of them")
    distinct = sorted({key for key in keys if key is not None})
    order = random.Random(seed).sample(distinct, len(distinct))
    count = min(FOLDS, len(distinct))
    places = {key: place % count for place, key in enumerate(order)}
    return np.array([places[key or ""] for key in keys], dtype=np.int64)


def predict_out_of_fold(
    log: MeasuredLog, fold: NDArray[np.int64], options: FitOptions
) -> OutOfFoldPredictions:
    """Predict each fold by models that were fitted on the others."""
    parts: dict[int, NDArray[np.float64]] = {}
    for number in np.unique(fold):
        inside, out = (np.flatnonzero(rows).tolist() for rows in (fold != number, fold == number))
        examples = Preparation.of(log, inside, options.treatments).examples(log)
        models = new_models(options, log.extractor)
        fit_models(models, [examples[i] for i in inside], options.config.seed)
        asked = [examples[i] for i in out]
        predicted = [models[name].predict(asked) for name in ("rating", "low", "class")]
        begun = [[one.cut(pairs_seen(one.pairs, share)) for one in asked] for share in SEEN]
        early = [models["low"].predict(some) for some in begun]
        rows = np.column_stack([*predicted, *early, models["rating"].outcomes(asked)])
        parts.update(zip(out, rows, strict=True))
    return OutOfFoldPredictions(np.stack([parts[index] for index in range(len(fold))]))


def pairs_seen(pairs: int, share: float) -> int:
    """How many turn pairs that share of a dialogue is; at least one."""
    return max(1, int(pairs * share))


def quality_of(
    predicted: OutOfFoldPredictions,
    log: MeasuredLog,
    had: NDArray[np.int64],
    fold: NDArray[np.int64],
) -> Quality:
    """Compare predictions with ratings, given the treatment and the fold of each dialogue."""
    dialogues, ratings = log.dialogues, log.ratings
    low = np.array([is_low(rating) for rating in ratings])
    five = np.array([five_class(rating) for rating in ratings])

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
    if predicted.outcomes.shape[1] == 2:
        heads = heads_effect(predicted.outcomes, had, ratings)
        without, under = predicted.outcomes.T
        inverted = correlations(np.where(had > 0, without, under))
    return Quality(
        correlations(predicted.rating),
        float(((predicted.low > 0.5) == low).mean()),
        float((predicted.five == five).mean()),
        heads,
        inverted,
        tuple(
            _warnings(share, probability, low, fold, [len(one.pairs) for one in dialogues])
            for share, probability in zip(SEEN, predicted.early.T, strict=True)
        ),
    )


def heads_effect(
    outcomes: NDArray[np.float64], treatments: NDArray[np.int64], ratings: NDArray[np.float64]
) -> HeadsEffect:
    """Return the effect that outcomes under no treatment and under one, (dialogues, 2), imply."""
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


def _warnings(
    share: float,
    probability: NDArray[np.float64],
    low: NDArray[np.bool_],
    fold: NDArray[np.int64],
    pairs: Sequence[int],
) -> Warnings:
    alarm = probability > LIMIT
    ahead = np.array([count - pairs_seen(count, share) for count in pairs])
    within = [fold == number for number in np.unique(fold)]
    return Warnings(
        share,
        _mean([auc(probability[rows], low[rows]) for rows in within if 0 < low[rows].mean() < 1]),
        float(((probability - low) ** 2).mean()),
        _mean(alarm[low]),
        _mean(alarm[~low]),
        _mean(ahead[alarm & low]),
    )


def _mean(values: ArrayLike) -> float:
    """nan of nothing."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()) if len(numbers) else math.nan
