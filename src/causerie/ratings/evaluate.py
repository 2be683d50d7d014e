"""How well models predict ratings of dialogues that they were not fitted on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from causerie.errors import CauserieError
from causerie.ratings.effect import HeadsEffect, heads_effect, pearson
from causerie.ratings.examples import Example
from causerie.ratings.features import Extractor, Floats, Standard
from causerie.ratings.models import CfLstm
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


@dataclass(frozen=True, eq=False)
class Held:
    """Predictions of one model for every dialogue, by fits that had not seen it."""

    rating: NDArray[np.float64]
    low: NDArray[np.float64]
    five: NDArray[np.float64]
    heads: HeadsEffect | None
    """Of a CF-LSTM of two treatments."""


@dataclass(frozen=True)
class Quality:
    """One run of a cross-validation."""

    pearson: float
    """Of predictions and ratings within a fold, averaged over folds: between folds, predictions
    differ by what else was fitted on."""
    trend: Trend
    binary: float
    """Accuracy of telling low ratings, at probability ½."""
    five: float
    """Accuracy of the class."""
    heads: HeadsEffect | None


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
    watch: Callable[[str, float, float], None] = lambda what, done, total: None,
) -> Evaluation:
    """Cross-validate: folds of dialogues, or of bots, which are then all unknown."""
    raw = extractor([one.pairs for one in dialogues])
    ratings = ratings_of(dialogues)
    found: dict[str, list[Quality]] = {}
    treated = 0.0
    for number, name in enumerate(models):
        for seed in range(seeds):
            watch(f"{name}, seed {seed}", number * seeds + seed, len(models) * seeds)
            chosen = replace(options, model=name, config=replace(options.config, seed=seed))
            fold = folds_of(dialogues, seed, by_bot=by_bot)
            held, examples = _held_out(dialogues, raw, fold, extractor, engines, chosen)
            treated = float(np.mean([one.treatment > 0 for one in examples]))
            found.setdefault(name, []).append(_quality(held, dialogues, ratings, fold))
    lows = [is_low(rating) for rating in ratings]
    classes = Counter(map(five_class, ratings))
    return Evaluation(
        len(dialogues),
        max(sum(lows), len(lows) - sum(lows)) / len(lows),
        max(classes.values()) / len(lows),
        treated,
        found,
    )


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
) -> tuple[Held, list[Example]]:
    columns = {name: np.empty(len(dialogues)) for name in ("rating", "low", "class")}
    outcomes = np.empty((len(dialogues), 2))
    seen: dict[int, Example] = {}
    for number in np.unique(fold):
        inside, out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        standard = Standard.of(extractor.features, [raw[i] for i in inside.tolist()])
        preparation = Preparation(extractor, standard, options.treatments)
        examples = examples_of(preparation, dialogues, raw)
        models = new_models(options, len(extractor.features), engines)
        fit_models(models, [examples[i] for i in inside], options.config.seed)
        asked = [examples[i] for i in out]
        seen.update(zip(out.tolist(), asked, strict=True))
        for name, model in models.items():
            columns[name][out] = model.predict(asked)
        if models["rating"].heads == outcomes.shape[1]:
            outcomes[out] = models["rating"].outcomes(asked)
    ordered = [seen[index] for index in range(len(dialogues))]
    heads = None
    if options.model == CfLstm.name and options.treatments.count == outcomes.shape[1]:
        had = np.array([one.treatment for one in ordered])
        heads = heads_effect(outcomes, had, ratings_of(dialogues))
    return Held(columns["rating"], columns["low"], columns["class"], heads), ordered


def _quality(
    held: Held,
    dialogues: Sequence[RatedDialogue],
    ratings: NDArray[np.float64],
    fold: NDArray[np.int64],
) -> Quality:
    within = [pearson(held.rating[fold == n], ratings[fold == n]) for n in np.unique(fold)]
    low = np.array([is_low(rating) for rating in ratings])
    five = np.array([five_class(rating) for rating in ratings])
    return Quality(
        float(np.mean(within)),
        trend([one.day for one in dialogues], ratings.tolist(), held.rating.tolist()),
        float(((held.low > 0.5) == low).mean()),
        float((held.five == five).mean()),
        held.heads,
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
    heads = [run.heads for run in found.models.get(CfLstm.name, ()) if run.heads]
    if heads:
        lines += [
            "",
            "| cf-lstm | original treatments | inverted |",
            "|---|---|---|",
            f"| individual | {_spread([h.correlation for h in heads])} "
            f"| {_spread([h.inverted for h in heads])} |",
            "",
            f"Difference of the heads (the paper's effect): {_spread([h.effect for h in heads])}; "
            f"squared error of what happened {_spread([h.factual_error for h in heads])}, squared "
            f"gap to what did not {_spread([h.counterfactual_gap for h in heads])}.",
        ]
    return "\n".join([*lines, ""])


def _spread(values: Sequence[float], *, percent: bool = False) -> str:
    """Mean and standard deviation over seeds."""
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "–"
    mean, deviation = float(np.mean(known)), float(np.std(known))
    return f"{mean:.1%} ± {deviation:.1%}" if percent else f"{mean:.3f} ± {deviation:.3f}"


def _days(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return _spread(known) if known else "too few days"
