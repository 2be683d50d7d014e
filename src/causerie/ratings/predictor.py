"""A fitted predictor of ratings: features, their statistics, treatments, a model per target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import torch

from causerie.errors import CauserieError
from causerie.models.artifact import Artifact, damaged, load_artifact
from causerie.ratings.examples import (
    Example,
    Standardizer,
    Treatments,
    masked,
    signals_in,
    split,
)
from causerie.ratings.features import Extractor, Floats, MeasuredLog
from causerie.ratings.models import AT_ONCE, CfLstm, ModelConfig, Neural, RatingModel, build
from causerie.ratings.networks import TARGETS
from causerie.ratings.pairs import TurnPair

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.ratings.log import RatedDialogue
    from causerie.scoring.store import ScoreStore

NAME = "ratings"
DEFAULT_MODEL = CfLstm.name


@dataclass(frozen=True)
class FitOptions:
    """What is fitted."""

    model: str = DEFAULT_MODEL
    treatments: Treatments = field(default_factory=Treatments)
    config: ModelConfig = field(default_factory=ModelConfig)


@dataclass(frozen=True)
class Prediction:
    """What users would have rated."""

    rating: float
    low: float
    """Probability that the rating is low, below 3."""
    five: int
    """Class, 1 to 5."""
    treatment: int
    under: tuple[float, ...]
    """The rating under every treatment, where the model tells them apart."""
    signals: tuple[str, ...]
    """That fired somewhere in the dialogue."""


class Preparation:
    """Turns raw features into examples, with the statistics of the fitted log."""

    def __init__(
        self, extractor: Extractor, standardizer: Standardizer, treatments: Treatments
    ) -> None:
        self.extractor, self.standardizer, self.treatments = extractor, standardizer, treatments

    @classmethod
    def of(cls, log: MeasuredLog, rows: Iterable[int], treatments: Treatments) -> Preparation:
        """Return the preparation with the statistics of some dialogues of a log."""
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


class RatingPredictor:
    """Predicts ratings of dialogues; made by `fit_predictor` or `RatingPredictor.load`."""

    def __init__(
        self, preparation: Preparation, models: Mapping[str, RatingModel], options: FitOptions
    ) -> None:
        self.preparation, self.models, self.options = preparation, models, options

    def predict(self, dialogues: Sequence[Sequence[TurnPair]]) -> list[Prediction]:
        """Predict the rating of each dialogue, given as turn pairs."""
        return self.predict_raw(dialogues, self.preparation.extractor(dialogues))

    def predict_raw(
        self, dialogues: Sequence[Sequence[TurnPair]], raw: Sequence[Floats]
    ) -> list[Prediction]:
        """Predict where features have been measured."""
        examples = [
            self.preparation.example(pairs, rows)
            for pairs, rows in zip(dialogues, raw, strict=True)
        ]
        rating = self.models["rating"]
        ratings, under = rating.predict(examples), rating.outcomes(examples)
        low = self.models["low"].predict(examples)
        five = self.models["class"].predict(examples)
        return [
            Prediction(
                float(ratings[i]),
                float(low[i]),
                int(five[i]),
                one.treatment,
                tuple(under[i].tolist()) if rating.heads > 1 else (),
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

    def transferred(
        self, treatments: Treatments, dialogues: Sequence[RatedDialogue]
    ) -> RatingPredictor:
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
        extractor, standardizer = self.preparation.extractor, self.preparation.standardizer
        preparation = Preparation(extractor, standardizer, treatments)
        seed = self.options.config.seed
        train, held = split(preparation.examples(extractor.measured(dialogues)), seed)
        models: dict[str, RatingModel] = {}
        for name, model in self.models.items():
            if not isinstance(model, CfLstm):
                raise CauserieError(f"{model.name} tells no treatments apart: fit a cf-lstm")
            models[name] = larger = model.transferred(treatments.count, train, held)
            if name == "low":
                tune_on_prefixes(larger, train, held, seed)
        return RatingPredictor(preparation, models, replace(self.options, treatments=treatments))

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
            network={
                f"{name}.{key}": tensor
                for name, model in self.models.items()
                for key, tensor in model.tensors().items()
            },
            statistics={
                "mean": torch.from_numpy(standardizer.mean),
                "deviation": torch.from_numpy(standardizer.deviation),
                "fill": torch.from_numpy(standardizer.fill),
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
            models = new_models(options, extractor)
            for target, model in models.items():
                model.load(artifact.part(target))
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise damaged(f"of {NAME}", error) from error
        if digest_of(extractor) != artifact.backbone_sha256:
            raise CauserieError(
                "these ratings were fitted on features of other weights, or by another version of "
                "causerie: fit them again with `causerie ratings fit`, or give the --encoder and "
                "--lm of then"
            )
        preparation = Preparation(extractor, Standardizer(*numbers), options.treatments)
        return cls(preparation, models, options)


def digest_of(extractor: Extractor) -> str:
    """Return the digest of all that decides features, which a predictor is saved with."""
    return hashlib.sha256(extractor.signature.encode()).hexdigest()


def new_models(options: FitOptions, extractor: Extractor) -> dict[str, RatingModel]:
    """Return one model per target, not fitted."""
    return {
        name: build(
            options.model,
            target,
            options.config,
            features=len(extractor.features),
            treatments=options.treatments.count,
            engines=extractor.engines,
        )
        for name, target in TARGETS.items()
    }


def fit_models(models: Mapping[str, RatingModel], examples: Sequence[Example], seed: int) -> None:
    """Fit every target; whether a rating is low is tuned on masked dialogues too (3.3.3).

    Dialogues are split once, so that prefixes of one are on the side on which it is.
    """
    train, held = split(examples, seed)
    for name, model in models.items():
        model.fit(train, held)
        if name == "low" and isinstance(model, Neural):
            tune_on_prefixes(model, train, held, seed)


def tune_on_prefixes(
    model: Neural, train: Sequence[Example], held: Sequence[Example], seed: int
) -> None:
    if more := masked(train, seed):
        model.fine_tune([*train, *more], [*held, *masked(held, seed)])


def fit_predictor(
    log: MeasuredLog,
    options: FitOptions | None = None,
    *,
    card: str = "",
    licence: str = "not stated",
) -> tuple[RatingPredictor, Artifact]:
    """Fit on rated dialogues; what is returned is as it will be after saving and loading."""
    options = options or FitOptions()
    preparation = Preparation.of(log, range(len(log.raw)), options.treatments)
    models = new_models(options, log.extractor)
    fit_models(models, preparation.examples(log), options.config.seed)
    artifact = RatingPredictor(preparation, models, options).artifact(card, licence)
    return RatingPredictor.of(artifact, log.extractor), artifact


def _options(saved: Mapping[str, Any]) -> FitOptions:
    groups = tuple(tuple(group) for group in saved["treatments"])
    return FitOptions(saved["model"], Treatments(groups), ModelConfig(**saved["config"]))
