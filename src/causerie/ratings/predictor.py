"""A fitted predictor of ratings: features, statistics, treatments, a model, its calibration."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import torch

from causerie.errors import CauserieError
from causerie.models.artifact import Artifact, damaged, load_artifact
from causerie.ratings.calibration import Calibration
from causerie.ratings.examples import Standardizer, Treatments, signals_in, split
from causerie.ratings.features import Extractor, Floats, MeasuredLog
from causerie.ratings.fitting import (
    FitOptions,
    OutOfFold,
    Preparation,
    fitting,
    folds_of,
    new_model,
    predict_out_of_fold,
    with_prefixes,
)
from causerie.ratings.models import AT_ONCE, CfLstm, ModelConfig, RatingModel
from causerie.ratings.pairs import TurnPair

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.ratings.log import RatedDialogue
    from causerie.scoring.store import ScoreStore

NAME = "ratings"


@dataclass(frozen=True)
class Prediction:
    """What users would have rated; rating, probability and class are of one distribution."""

    rating: float
    """Its mean."""
    low: float
    """Probability that the rating is low, below 3."""
    five: int
    """Class of its median, 1 to 5."""
    treatment: int
    under: tuple[float, ...]
    """The rating under every treatment, where the model tells them apart; the first without."""
    signals: tuple[str, ...]
    """That fired somewhere in the dialogue."""


class RatingPredictor:
    """Predicts ratings of dialogues; made by `fit_predictor` or `RatingPredictor.load`."""

    def __init__(
        self,
        preparation: Preparation,
        model: RatingModel,
        calibration: Calibration,
        options: FitOptions,
    ) -> None:
        self.preparation, self.model = preparation, model
        self.calibration, self.options = calibration, options

    def predict(
        self, dialogues: Sequence[Sequence[TurnPair]], *, running: bool = False
    ) -> list[Prediction]:
        """Predict the rating of each dialogue, given as turn pairs, at its end or as it runs."""
        raw = self.preparation.extractor(dialogues)
        return self.predict_raw(dialogues, raw, running=running)

    def predict_raw(
        self,
        dialogues: Sequence[Sequence[TurnPair]],
        raw: Sequence[Floats],
        *,
        running: bool = False,
    ) -> list[Prediction]:
        """Predict where features have been measured."""
        examples = [
            replace(self.preparation.example(pairs, rows), running=running)
            for pairs, rows in zip(dialogues, raw, strict=True)
        ]
        meant = self.calibration.running if running else self.calibration.whole
        predicted, outcomes = self.model.predict(examples), self.model.outcomes(examples)
        ratings, low, five = meant.rating(predicted), meant.low(predicted), meant.five(predicted)
        under = meant.rating(outcomes)
        return [
            Prediction(
                float(ratings[i]),
                float(low[i]),
                int(five[i]),
                one.treatment,
                tuple(under[i].tolist()) if self.model.heads > 1 else (),
                signals_in(self.preparation.extractor.signals(raw[i])),
            )
            for i, one in enumerate(examples)
        ]

    def predict_log(
        self, dialogues: Iterable[RatedDialogue]
    ) -> Iterator[tuple[RatedDialogue, Prediction]]:
        """Predict a log of any length, with some dialogues in memory at a time."""
        rest = iter(dialogues)
        while some := list(islice(rest, AT_ONCE)):
            yield from zip(some, self.predict([one.pairs for one in some]), strict=True)

    def extended(self, treatments: Treatments, log: MeasuredLog) -> RatingPredictor:
        """A predictor for more treatments (3.3.4), from rated dialogues in which they occur.

        The groups of signals that it knows come first, each as it is or without those signals
        that get a treatment of their own.
        """
        known = self.options.treatments.groups
        lost = set(chain(*known)) - set(chain(*treatments.groups))
        more = any(set(a) - set(b) for a, b in zip(treatments.groups, known, strict=False))
        if lost or more or len(treatments.groups) <= len(known):
            raise CauserieError(
                f"the {len(known)} known groups of signals come first, with no signal more, and "
                "new ones after them: give such treatments, or fit anew"
            )
        smaller = self.model
        if not isinstance(smaller, CfLstm):
            raise CauserieError(f"{smaller.name} tells no treatments apart: fit a cf-lstm")
        preparation = Preparation(log.extractor, self.preparation.standardizer, treatments)
        examples = preparation.examples(log)
        config = self.options.config

        def fit(rows: Sequence[int]) -> tuple[Preparation, RatingModel]:
            train, held = split([examples[row] for row in rows], config.seed)
            learned = with_prefixes(train, held, config)
            return preparation, smaller.transferred(treatments.count, *learned)

        fold = folds_of(log.dialogues, config.seed)
        calibration = predict_out_of_fold(log, fold, fit).calibration(log.ratings)
        _, model = fit(range(len(examples)))
        options = replace(self.options, treatments=treatments)
        return RatingPredictor(preparation, model, calibration, options)

    def artifact(self, card: str, licence: str) -> Artifact:
        """Return all of it, to be saved."""
        options, preparation = self.options, self.preparation
        extractor, standardizer = preparation.extractor, preparation.standardizer
        return Artifact(
            metric=NAME,
            backbone="features",
            backbone_sha256=digest_of(extractor),
            options={
                "model": options.model,
                "features": list(extractor.names),
                "columns": list(extractor.columns),
                "treatments": [list(group) for group in options.treatments.groups],
                "config": asdict(options.config),
                "names": [feature.name for feature in extractor.features],
            },
            network=self.model.tensors(),
            statistics={
                "mean": torch.from_numpy(standardizer.mean),
                "deviation": torch.from_numpy(standardizer.deviation),
                "fill": torch.from_numpy(standardizer.fill),
                **{f"calibration.{k}": v for k, v in self.calibration.tensors().items()},
            },
            card=card,
            licence=licence,
        )

    @classmethod
    def load(
        cls,
        name: str,
        engines: Engines | None = None,
        store: ScoreStore | None = None,
        *,
        refresh: bool = False,
    ) -> RatingPredictor:
        """Load a shipped predictor by its name, or one by its folder."""
        artifact = load_artifact(name, NAME)
        try:
            names, columns = artifact.options["features"], artifact.options["columns"]
        except KeyError as error:
            raise damaged(f"of {NAME}", error) from error
        extractor = Extractor.of(names, engines, store, columns=columns, refresh=refresh)
        return cls.of(artifact, extractor)

    @classmethod
    def of(cls, artifact: Artifact, extractor: Extractor) -> RatingPredictor:
        """Return the predictor of an artifact whose features an extractor measures."""
        try:
            options = _options(artifact.options)
            if [feature.name for feature in extractor.features] != artifact.options["names"]:
                raise ValueError("its features are others")
            numbers = [artifact.statistics[key].numpy() for key in ("mean", "deviation", "fill")]
            if any(one.shape != (len(extractor.features),) for one in numbers):
                raise ValueError("its statistics are of other features")
            model = new_model(options, extractor)
            model.load(artifact.network)
            prefix = "calibration."
            calibration = Calibration.load(
                {k.removeprefix(prefix): v for k, v in artifact.statistics.items() if prefix in k}
            )
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise damaged(f"of {NAME}", error) from error
        if digest_of(extractor) != artifact.backbone_sha256:
            raise CauserieError(
                "these ratings were fitted on features of other weights, or by another version of "
                "causerie: fit them again with `causerie ratings fit`, or give the --encoder and "
                "--lm of then"
            )
        preparation = Preparation(extractor, Standardizer(*numbers), options.treatments)
        return cls(preparation, model, calibration, options)


def digest_of(extractor: Extractor) -> str:
    """Return the digest of all that decides features, which a predictor is saved with."""
    return hashlib.sha256(extractor.signature.encode()).hexdigest()


def fit_predictor(
    log: MeasuredLog,
    options: FitOptions | None = None,
    predicted: OutOfFold | None = None,
    *,
    card: str = "",
    licence: str = "not stated",
) -> tuple[RatingPredictor, Artifact]:
    """Fit on rated dialogues; what is returned is as it will be after saving and loading.

    `predicted` is what the same model predicts out of fold, if that is known: what predictions
    mean is learned from it.
    """
    options = options or FitOptions()
    fit = fitting(log, options)
    preparation, model = fit(range(len(log.raw)))
    if predicted is None:
        predicted = predict_out_of_fold(log, folds_of(log.dialogues, options.config.seed), fit)
    calibration = predicted.calibration(log.ratings)
    artifact = RatingPredictor(preparation, model, calibration, options).artifact(card, licence)
    return RatingPredictor.of(artifact, log.extractor), artifact


def _options(saved: Mapping[str, Any]) -> FitOptions:
    groups = tuple(tuple(group) for group in saved["treatments"])
    return FitOptions(saved["model"], Treatments(groups), ModelConfig(**saved["config"]))
