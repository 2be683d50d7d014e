"""Fitting rating models on logs, and their out-of-fold predictions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causerie.errors import CauserieError
from causerie.ratings.calibration import Calibration
from causerie.ratings.examples import Example, Standardizer, Treatments, prefixes, split
from causerie.ratings.features import Extractor, Floats, MeasuredLog
from causerie.ratings.models import CfLstm, ModelConfig, Neural, RatingModel, build
from causerie.ratings.pairs import TurnPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.log import RatedDialogue

DEFAULT_MODEL = CfLstm.name
AUTO = ("mlp", "lstm", CfLstm.name)
"""Models that are tried if none is named."""
FOLDED = ("dialogue", "bot", "user")
"""Units of folds: by bot or by user, those held out are unseen."""
FOLDS = 5


@dataclass(frozen=True)
class FitOptions:
    """The model to fit and its options."""

    model: str = DEFAULT_MODEL
    treatments: Treatments = field(default_factory=Treatments)
    config: ModelConfig = field(default_factory=ModelConfig)


class Preparation:
    """Turns raw features into examples, with the statistics of the fitted log."""

    def __init__(
        self, extractor: Extractor, standardizer: Standardizer, treatments: Treatments
    ) -> None:
        self.extractor, self.standardizer, self.treatments = extractor, standardizer, treatments

    @classmethod
    def of(cls, log: MeasuredLog, rows: Iterable[int], treatments: Treatments) -> Preparation:
        """Return a preparation with the statistics of some dialogues of a log."""
        raw = [log.raw[index] for index in rows]
        standardizer = Standardizer.of(log.extractor.features, raw)
        return cls(log.extractor, standardizer, treatments)

    def example(
        self, pairs: Sequence[TurnPair], raw: Floats, rating: float = float("nan")
    ) -> Example:
        return Example(
            self.standardizer(raw),
            self.treatments.of_pairs(self.extractor.signals(raw)),
            tuple(pair.text for pair in pairs),
            rating,
        )

    def examples(self, log: MeasuredLog) -> list[Example]:
        """Return all dialogues of a log as examples."""
        return [
            self.example(one.pairs, raw, rating)
            for one, raw, rating in zip(log.dialogues, log.raw, log.ratings.tolist(), strict=True)
        ]


Fit: TypeAlias = Callable[[Sequence[int]], tuple[Preparation, RatingModel]]
"""Fits a model on some dialogues of a log, given by their indices."""


def new_model(options: FitOptions, extractor: Extractor) -> RatingModel:
    """Return an unfitted model."""
    return build(
        options.model,
        options.config,
        features=len(extractor.features),
        treatments=options.treatments.count,
        engines=extractor.engines,
    )


def fitting(log: MeasuredLog, options: FitOptions) -> Fit:
    """Return a function that fits models on parts of a log."""

    def fit(rows: Sequence[int]) -> tuple[Preparation, RatingModel]:
        preparation = Preparation.of(log, rows, options.treatments)
        examples = preparation.examples(log)
        model = new_model(options, log.extractor)
        fit_model(model, [examples[row] for row in rows])
        return preparation, model

    return fit


def fit_model(model: RatingModel, examples: Sequence[Example]) -> None:
    """Fit a model on dialogues and, if it has a network, on their prefixes (3.3.3).

    The paper's prefixes fine-tune a model of whole dialogues; ours are learned together with the
    whole ones.
    """
    config = model.config
    train, held = split(examples, config.seed)
    if isinstance(model, Neural) and config.masking == "random":
        train, held = with_prefixes(train, held, config)
    model.fit(train, held)
    if isinstance(model, Neural) and config.masking == "paper":
        model.fine_tune(*with_prefixes(train, held, config))


def with_prefixes(
    train: Sequence[Example], held: Sequence[Example], config: ModelConfig
) -> tuple[list[Example], list[Example]]:
    """Add prefixes of their own dialogues to both sides."""
    first, second = (
        [*some, *prefixes(some, config.masking, config.seed)] for some in (train, held)
    )
    return first, second


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Out-of-fold predictions for every dialogue of a log."""

    fold: NDArray[np.int64]
    """The fold of each dialogue."""
    treatments: NDArray[np.int64]
    """The treatment of each dialogue."""
    outcomes: NDArray[np.float64]
    """Predictions of whole dialogues under every treatment that the model distinguishes."""
    running: tuple[NDArray[np.float64], ...]
    """Predictions of each dialogue after each of its pairs, while it is running."""

    @property
    def whole(self) -> NDArray[np.float64]:
        """Predictions of whole dialogues under their own treatments."""
        had = self.treatments if self.outcomes.shape[1] > 1 else np.zeros_like(self.treatments)
        found: NDArray[np.float64] = self.outcomes[np.arange(len(had)), had]
        return found

    def calibration(
        self, ratings: NDArray[np.float64], rows: Sequence[int] | None = None
    ) -> Calibration:
        """Calibrate predictions on all dialogues or on some."""
        rows = range(len(ratings)) if rows is None else rows
        some = np.asarray(rows)
        return Calibration.of(self.whole[some], [self.running[row] for row in rows], ratings[some])


def folds_of(
    dialogues: Sequence[RatedDialogue], seed: int, by: str = "dialogue"
) -> NDArray[np.int64]:
    """Return the fold of each dialogue; `by` keeps all dialogues of a bot or user in one fold."""
    if by == "dialogue":
        keys: list[str | None] = [str(index) for index in range(len(dialogues))]
    else:
        keys = [one.bot if by == "bot" else one.user for one in dialogues]
        if None in keys or len(set(keys)) < 2:
            raise CauserieError(
                f"folds by {by} need the {by} of every dialogue, and at least two different ones"
            )
    distinct = sorted({key for key in keys if key is not None})
    order = random.Random(seed).sample(distinct, len(distinct))
    count = min(FOLDS, len(distinct))
    places = {key: place % count for place, key in enumerate(order)}
    return np.array([places[key or ""] for key in keys], dtype=np.int64)


def predict_out_of_fold(log: MeasuredLog, fold: NDArray[np.int64], fit: Fit) -> OutOfFold:
    """Predict each fold with a model fitted on the others."""
    treatments = np.zeros(len(fold), dtype=np.int64)
    outcomes: dict[int, NDArray[np.float64]] = {}
    running: dict[int, NDArray[np.float64]] = {}
    for number in np.unique(fold):
        inside, out = (np.flatnonzero(rows).tolist() for rows in (fold != number, fold == number))
        preparation, model = fit(inside)
        every = preparation.examples(log)
        examples = [every[row] for row in out]
        treatments[out] = [one.treatment for one in examples]
        outcomes.update(zip(out, model.outcomes(examples), strict=True))
        begun = [one.cut(pairs) for one in examples for pairs in range(1, one.pairs + 1)]
        ends = np.cumsum([one.pairs for one in examples])
        running.update(zip(out, np.split(model.predict(begun), ends[:-1]), strict=True))
    places = range(len(fold))
    return OutOfFold(
        fold,
        treatments,
        np.stack([outcomes[place] for place in places]),
        tuple(running[place] for place in places),
    )
