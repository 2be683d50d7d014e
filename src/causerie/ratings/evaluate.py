"""How well models predict ratings of dialogues that they were not fitted on."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from causerie._version import __version__
from causerie.errors import CauserieError
from causerie.ratings.effect import HeadsEffect, heads_effect, within_folds
from causerie.ratings.features import Extractor, Floats, Kept, Standard, content_key
from causerie.ratings.models import CfLstm, Transformer
from causerie.ratings.predictor import (
    FitOptions,
    Preparation,
    examples_of,
    fit_models,
    new_models,
    ratings_of,
)
from causerie.ratings.scale import five_class, is_low
from causerie.ratings.trend import Trend, trend

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.ratings.log import RatedDialogue

FOLDS = 5
LEAST = 40
"""Dialogues from which on a cross-validation says something."""


@dataclass(frozen=True, eq=False)
class Held:
    """Predictions of one model for every dialogue, by fits that had not seen it: a row each."""

    values: NDArray[np.float64]

    COLUMNS: ClassVar = ("rating", "low", "class")

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
    def outcomes(self) -> NDArray[np.float64]:
        """The rating under every treatment that the model tells apart."""
        return self.values[:, len(self.COLUMNS) :]


@dataclass(frozen=True)
class Quality:
    """One run of a cross-validation."""

    pearson: float
    """Of predictions and ratings, within folds."""
    trend: Trend
    binary: float
    """Accuracy of telling low ratings, at probability ½."""
    five: float
    """Accuracy of the class."""
    heads: HeadsEffect | None
    """Of a model that tells two treatments apart."""
    inverted: Trend | None
    """Of its predictions with all treatments inverted."""


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


def evaluate(
    dialogues: Sequence[RatedDialogue],
    extractor: Extractor,
    engines: Engines,
    options: FitOptions,
    models: Sequence[str],
    *,
    seeds: int = 3,
    by_bot: bool = False,
    kept: Kept | None = None,
    watch: Callable[[str, float, float], None] = lambda what, done, total: None,
) -> Evaluation:
    """Cross-validate: folds of dialogues, or of bots, which are then all unknown.

    Features are measured once for all models and seeds; what was predicted before is in `kept`.
    """
    raw = extractor([one.pairs for one in dialogues])
    ratings = ratings_of(dialogues)
    standard = Standard.of(extractor.features, raw)
    preparation = Preparation(extractor, standard, options.treatments)
    had = np.array([one.treatment for one in examples_of(preparation, dialogues, raw)])
    found: dict[str, list[Quality]] = {}
    for number, name in enumerate(models):
        for seed in range(seeds):
            watch(f"{name}, seed {seed}", number * seeds + seed, len(models) * seeds)
            chosen = replace(options, model=name, config=replace(options.config, seed=seed))
            fold = folds_of(dialogues, seed, by_bot=by_bot)
            key = _key(dialogues, fold, extractor, engines, chosen)
            known = kept.get([key]) if kept else {}
            if key in known:
                held = Held(np.frombuffer(known[key]).reshape(len(dialogues), -1))
            else:
                held = _held_out(dialogues, raw, fold, extractor, engines, chosen)
                if kept:
                    kept.put({key: held.values.tobytes()})
            found.setdefault(name, []).append(_quality(held, dialogues, ratings, had, fold))
    lows = [is_low(rating) for rating in ratings]
    classes = Counter(map(five_class, ratings))
    return Evaluation(
        len(dialogues),
        max(sum(lows), len(lows) - sum(lows)) / len(lows),
        max(classes.values()) / len(lows),
        float((had > 0).mean()),
        found,
    )


def _key(
    dialogues: Sequence[RatedDialogue],
    fold: NDArray[np.int64],
    extractor: Extractor,
    engines: Engines,
    options: FitOptions,
) -> str:
    """Of all that decides what is predicted."""
    reader = engines.encoder.signature if options.model == Transformer.name else ""
    digest = hashlib.sha256(f"{__version__} {options} {reader}".encode())
    for one in dialogues:
        digest.update(f"{content_key(extractor.signature, one.pairs)} {one.rating} ".encode())
    digest.update(fold.tobytes())
    return f"held {digest.hexdigest()}"


def folds_of(
    dialogues: Sequence[RatedDialogue], seed: int, *, by_bot: bool = False
) -> NDArray[np.int64]:
    """A fold for each dialogue; all dialogues of a bot are in one if `by_bot`."""
    if by_bot:
        keys = [one.bot for one in dialogues]
        if None in keys or len(set(keys)) < 2:
            raise CauserieError("folds by bot need the bot of every dialogue, and two of them")
    else:
        keys = [str(index) for index in range(len(dialogues))]
    distinct = sorted({key for key in keys if key is not None})
    order = random.Random(seed).sample(distinct, len(distinct))
    count = min(FOLDS, len(distinct))
    places = {key: place % count for place, key in enumerate(order)}
    return np.array([places[key or ""] for key in keys], dtype=np.int64)


def _held_out(
    dialogues: Sequence[RatedDialogue],
    raw: Sequence[Floats],
    fold: NDArray[np.int64],
    extractor: Extractor,
    engines: Engines,
    options: FitOptions,
) -> Held:
    parts: dict[int, NDArray[np.float64]] = {}
    for number in np.unique(fold):
        inside, out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        standard = Standard.of(extractor.features, [raw[i] for i in inside.tolist()])
        preparation = Preparation(extractor, standard, options.treatments)
        examples = examples_of(preparation, dialogues, raw)
        models = new_models(options, len(extractor.features), engines)
        fit_models(models, [examples[i] for i in inside], options.config.seed)
        asked = [examples[i] for i in out]
        predicted = [models[name].predict(asked) for name in Held.COLUMNS]
        rows = np.column_stack([*predicted, models["rating"].outcomes(asked)])
        parts.update(zip(out.tolist(), rows, strict=True))
    return Held(np.stack([parts[index] for index in range(len(dialogues))]))


def _quality(
    held: Held,
    dialogues: Sequence[RatedDialogue],
    ratings: NDArray[np.float64],
    had: NDArray[np.int64],
    fold: NDArray[np.int64],
) -> Quality:
    low = np.array([is_low(rating) for rating in ratings])
    five = np.array([five_class(rating) for rating in ratings])

    def by_day(predicted: NDArray[np.float64]) -> Trend:
        return trend([one.day for one in dialogues], ratings.tolist(), predicted.tolist())

    heads, inverted = None, None
    if held.outcomes.shape[1] == 2:
        heads = heads_effect(held.outcomes, had, ratings, fold)
        without, under = held.outcomes.T
        inverted = by_day(np.where(had > 0, without, under))
    return Quality(
        within_folds(held.rating, ratings, fold),
        by_day(held.rating),
        float(((held.low > 0.5) == low).mean()),
        float((held.five == five).mean()),
        heads,
        inverted,
    )


def evaluation_markdown(name: str, found: Evaluation) -> str:
    """Shape of the paper's tables 2 and 3, with spread over seeds."""
    lines = [
        f"### {name}",
        "",
        f"{found.dialogues:,} dialogues, a signal in {found.treated:.0%} of them; accuracy of the "
        f"majority: {found.majority_binary:.1%} (binary), {found.majority_five:.1%} (5-class).",
        "",
        "| model | individual | L1d | L7d | binary | 5-class |",
        "|---|---|---|---|---|---|",
    ]
    for model, runs in found.models.items():
        cells = [
            _spread([run.pearson for run in runs]),
            _days([run.trend.daily for run in runs]),
            _days([run.trend.weekly for run in runs]),
            _spread([run.binary for run in runs], percent=True),
            _spread([run.five for run in runs], percent=True),
        ]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    lines += ["", heads_markdown(found.models.get(CfLstm.name, ()))]
    return "\n".join(lines)


def heads_markdown(runs: Sequence[Quality]) -> str:
    """The paper's estimate of the effect, and its table 3: nothing without a CF-LSTM of two."""
    heads = [run.heads for run in runs if run.heads]
    inverted = [run.inverted for run in runs if run.inverted]
    if not heads:
        return ""
    return "\n".join(
        [
            "| cf-lstm | original treatments | inverted |",
            "|---|---|---|",
            f"| individual | {_spread([h.correlation for h in heads])} "
            f"| {_spread([h.inverted for h in heads])} |",
            f"| L1d | {_days([run.trend.daily for run in runs])} "
            f"| {_days([one.daily for one in inverted])} |",
            f"| L7d | {_days([run.trend.weekly for run in runs])} "
            f"| {_days([one.weekly for one in inverted])} |",
            "",
            f"Difference of the heads (the paper's effect): {_spread([h.effect for h in heads])}; "
            f"squared error of what happened {_spread([h.factual_error for h in heads])}, squared "
            f"gap to what did not {_spread([h.counterfactual_gap for h in heads])}.",
            "",
        ]
    )


def _spread(values: Sequence[float], *, percent: bool = False) -> str:
    """Mean over seeds, and standard deviation where there are several."""
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "–"
    shown = [np.mean(known), np.std(known)][: len(known)]
    return " ± ".join(f"{value:.1%}" if percent else f"{value:.3f}" for value in shown)


def _days(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return _spread(known) if known else "too few days"
