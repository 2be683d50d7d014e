"""The rating predictor that users fit, save and load: features, model and calibration."""

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
    """A predicted rating; rating, probability and class come from one distribution."""

    rating: float
    """Mean of the distribution."""
    low: float
    """Probability that the rating is low, below 3."""
    five: int
    """Class of the median, 1 to 5."""
    treatment: int
    under: tuple[float, ...]
    """Ratings under every treatment, first without any, if the model distinguishes them."""
    signals: tuple[str, ...]
    """Signals that fired in the dialogue."""


class RatingPredictor:
    """Predicts ratings of dialogues; see `fit_predictor` and `RatingPredictor.load`."""

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
        """Predict the rating of each dialogue, given as turn pairs, at its end or while running."""
        raw = self.preparation.extractor(dialogues)
        return self.predict_raw(dialogues, raw, running=running)

    def predict_raw(
        self,
        dialogues: Sequence[Sequence[TurnPair]],
        raw: Sequence[Floats],
        *,
        running: bool = False,
    ) -> list[Prediction]:
        """Predict from features that were already computed."""
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
        """Predict a log of any length, keeping only some dialogues in memory."""
        rest = iter(dialogues)
        while some := list(islice(rest, AT_ONCE)):
            yield from zip(some, self.predict([one.pairs for one in some]), strict=True)

    def extended(self, treatments: Treatments, log: MeasuredLog) -> RatingPredictor:
        """Return a predictor for more treatments (3.3.4), from rated dialogues with them.

        The known groups of signals come first, each unchanged or without signals that get a
        treatment of their own.
        """
        known = self.options.treatments.groups
        lost = set(chain(*known)) - set(chain(*treatments.groups))
        more = any(set(a) - set(b) for a, b in zip(treatments.groups, known, strict=False))
        if lost or more or len(treatments.groups) <= len(known):
            raise CauserieError(
                f"the {len(known)} known groups of signals must come first, without additional "
                "signals, and new groups after them: change the treatments, or fit again"
            )
        smaller = self.model
        if not isinstance(smaller, CfLstm):
            raise CauserieError(f"{smaller.name} does not distinguish treatments: fit a cf-lstm")
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
        """Return the predictor as an artifact, to be saved."""
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
        """Return the predictor of an artifact, with the extractor of its features."""
        try:
            options = _options(artifact.options)
            if [feature.name for feature in extractor.features] != artifact.options["names"]:
                raise ValueError("its features are different ones")
            numbers = [artifact.statistics[key].numpy() for key in ("mean", "deviation", "fill")]
            if any(one.shape != (len(extractor.features),) for one in numbers):
                raise ValueError("its statistics belong to other features")
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
                "this predictor was fitted on features of other models, or by another version of "
                "causerie: fit it again with `causerie ratings fit`, or give the same --encoder "
                "and --lm as then"
            )
        preparation = Preparation(extractor, Standardizer(*numbers), options.treatments)
        return cls(preparation, model, calibration, options)


def digest_of(extractor: Extractor) -> str:
    """Return the digest of all that determines features, which a predictor stores."""
    return hashlib.sha256(extractor.signature.encode()).hexdigest()


def fit_predictor(
    log: MeasuredLog,
    options: FitOptions | None = None,
    predicted: OutOfFold | None = None,
    *,
    card: str = "",
    licence: str = "not stated",
) -> tuple[RatingPredictor, Artifact]:
    """Fit on rated dialogues; return the predictor as it will be after saving and loading.

    `predicted` has the out-of-fold predictions of the same model, if known, for calibration.
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
