"""A fitted predictor of ratings: features, their statistics, treatments, a model per target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.errors import CauserieError
from causerie.metrics.odes import CLASSES
from causerie.models.artifact import Artifact, damaged, load_artifact
from causerie.ratings.examples import Example, masked, split
from causerie.ratings.extract import Extractor, Standard
from causerie.ratings.features import FAST, Feature, Floats, groups_of
from causerie.ratings.kept import Kept
from causerie.ratings.models import AT_ONCE, CfLstm, ModelConfig, Neural, RatingModel, build
from causerie.ratings.pairs import TurnPair
from causerie.ratings.targets import TARGETS
from causerie.ratings.treatments import Treatments, signals_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.ratings.log import RatedDialogue

NAME = "ratings"
DEFAULT_MODEL = CfLstm.name


@dataclass(frozen=True)
class FitOptions:
    """What is fitted."""

    model: str = DEFAULT_MODEL
    features: tuple[str, ...] = FAST
    """Names of groups."""
    columns: tuple[str, ...] = ()
    """Numbers on turns that are features."""
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
    """From turn pairs to examples, with the statistics of the fitted log."""

    def __init__(self, extractor: Extractor, standard: Standard, treatments: Treatments) -> None:
        self.extractor, self.standard, self.treatments = extractor, standard, treatments
        names = [feature.name for feature in extractor.features]
        self._odes = [names.index(f"odes.{name}") for name in CLASSES]

    def raw(self, dialogues: Sequence[Sequence[TurnPair]]) -> list[Floats]:
        return self.extractor(dialogues)

    def example(
        self, pairs: Sequence[TurnPair], raw: Floats, rating: float | None = None
    ) -> Example:
        return Example(
            self.standard(raw),
            self.treatments.of_pairs(self.signals(raw)),
            tuple(text_of(pair) for pair in pairs),
            float("nan") if rating is None else rating,
        )

    def signals(self, raw: Floats) -> Floats:
        """The columns of odes."""
        return raw[:, self._odes]

    @property
    def covariates(self) -> list[int]:
        """Features that are no signals."""
        return [i for i, f in enumerate(self.extractor.features) if f.source != "odes"]


class RatingPredictor:
    """Predicts ratings of dialogues; made by `fit_predictor` or `RatingPredictor.load`."""

    def __init__(
        self, preparation: Preparation, models: Mapping[str, RatingModel], options: FitOptions
    ) -> None:
        self.preparation, self.models, self.options = preparation, models, options

    def predict(self, dialogues: Sequence[Sequence[TurnPair]]) -> list[Prediction]:
        """Of each dialogue, given as turn pairs."""
        raw = self.preparation.raw(dialogues)
        return self.predict_raw(dialogues, raw)

    def predict_raw(
        self, dialogues: Sequence[Sequence[TurnPair]], raw: Sequence[Floats]
    ) -> list[Prediction]:
        """The same where features have been measured."""
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
                signals_in(self.preparation.signals(raw[i])),
            )
            for i, one in enumerate(examples)
        ]

    def predict_log(
        self, dialogues: Iterable[RatedDialogue]
    ) -> Iterator[tuple[RatedDialogue, Prediction]]:
        """Of each dialogue of a log of any length, some of them in memory at a time."""
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
        extractor, standard = self.preparation.extractor, self.preparation.standard
        preparation = Preparation(extractor, standard, treatments)
        raw = preparation.raw([one.pairs for one in dialogues])
        seed = self.options.config.seed
        train, held = split(examples_of(preparation, dialogues, raw), seed)
        models: dict[str, RatingModel] = {}
        for name, model in self.models.items():
            if not isinstance(model, CfLstm):
                raise CauserieError(f"{model.name} tells no treatments apart: fit a cf-lstm")
            models[name] = larger = model.transferred(treatments.count, train, held)
            if name == "low":
                tune_on_prefixes(larger, train, held, seed)
        return RatingPredictor(preparation, models, replace(self.options, treatments=treatments))

    def artifact(self, card: str, licence: str) -> Artifact:
        """All of it, to be saved."""
        options, standard = self.options, self.preparation.standard
        signature = self.preparation.extractor.signature
        return Artifact(
            metric=NAME,
            backbone="features",
            backbone_sha256=hashlib.sha256(signature.encode()).hexdigest(),
            options={
                **asdict(options),
                "treatments": [list(group) for group in options.treatments.groups],
                "names": [feature.name for feature in self.preparation.extractor.features],
            },
            network={
                f"{name}.{key}": tensor
                for name, model in self.models.items()
                for key, tensor in model.tensors().items()
            },
            statistics={
                "mean": torch.from_numpy(standard.mean),
                "deviation": torch.from_numpy(standard.deviation),
                "fill": torch.from_numpy(standard.fill),
            },
            card=card,
            licence=licence,
        )

    @classmethod
    def load(cls, name: str, engines: Engines, kept: Kept | None = None) -> RatingPredictor:
        """A shipped predictor by its name, or one by its folder."""
        return cls.of(load_artifact(name, NAME), engines, kept)

    @classmethod
    def of(cls, artifact: Artifact, engines: Engines, kept: Kept | None = None) -> RatingPredictor:
        try:
            options = _options(artifact.options)
            extractor = Extractor(groups_of(options.features, engines, options.columns), kept)
            _check_same(extractor.features, artifact.options["names"])
            numbers = [artifact.statistics[key].numpy() for key in ("mean", "deviation", "fill")]
            if any(one.shape != (len(extractor.features),) for one in numbers):
                raise ValueError("its statistics are of other features")
            models = new_models(options, len(extractor.features), engines)
            for target, model in models.items():
                model.load(artifact.part(target))
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise damaged(f"of {NAME}", error) from error
        signature = hashlib.sha256(extractor.signature.encode()).hexdigest()
        if signature != artifact.backbone_sha256:
            raise CauserieError(
                "these ratings were fitted on features of other weights: fit them again with "
                "`causerie ratings fit`, or give the --encoder and --lm of then"
            )
        return cls(Preparation(extractor, Standard(*numbers), options.treatments), models, options)


def text_of(pair: TurnPair) -> str:
    """What was said in a pair."""
    return " ".join(text for text in (pair.user, pair.answer) if text)


def new_models(options: FitOptions, features: int, engines: Engines) -> dict[str, RatingModel]:
    """One model per target, not fitted."""
    return {
        name: build(
            options.model,
            target,
            options.config,
            features=features,
            treatments=options.treatments.count,
            engines=engines,
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
    dialogues: Sequence[RatedDialogue],
    engines: Engines,
    options: FitOptions | None = None,
    kept: Kept | None = None,
    *,
    card: str = "",
    licence: str = "not stated",
) -> tuple[RatingPredictor, Artifact]:
    """Fit on rated dialogues; what is returned is as it will be after saving and loading."""
    options = options or FitOptions()
    extractor = Extractor(groups_of(options.features, engines, options.columns), kept)
    pairs = [one.pairs for one in dialogues]
    raw = extractor(pairs)
    standard = Standard.of(extractor.features, raw)
    preparation = Preparation(extractor, standard, options.treatments)
    examples = examples_of(preparation, dialogues, raw)
    models = new_models(options, len(extractor.features), engines)
    fit_models(models, examples, options.config.seed)
    fitted = RatingPredictor(preparation, models, options)
    artifact = fitted.artifact(card, licence)
    return RatingPredictor.of(artifact, engines, kept), artifact


def examples_of(
    preparation: Preparation, dialogues: Sequence[RatedDialogue], raw: Sequence[Floats]
) -> list[Example]:
    return [
        preparation.example(one.pairs, rows, one.rating)
        for one, rows in zip(dialogues, raw, strict=True)
    ]


def _options(saved: Mapping[str, Any]) -> FitOptions:
    groups = tuple(tuple(group) for group in saved["treatments"])
    return FitOptions(
        model=saved["model"],
        features=tuple(saved["features"]),
        columns=tuple(saved["columns"]),
        treatments=Treatments(groups),
        config=ModelConfig(**saved["config"]),
    )


def _check_same(features: Sequence[Feature], names: Sequence[str]) -> None:
    if [feature.name for feature in features] != list(names):
        raise ValueError("its features are others")


def ratings_of(dialogues: Sequence[RatedDialogue]) -> NDArray[np.float64]:
    """nan where a dialogue has none."""
    return np.array([np.nan if one.rating is None else one.rating for one in dialogues])
