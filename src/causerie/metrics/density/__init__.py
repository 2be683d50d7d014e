"""DEnsity: how likely a response is among human responses.

A response selection model gives features g(c, r); a Gaussian is fitted to those of human
exchanges; the score is the negative Mahalanobis distance (eq. 3) to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import (
    EMPTY,
    Column,
    Level,
    Score,
    Scores,
    empty_responses,
    scorable,
    with_empty,
)
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.gaussian import Gaussian, distances
from causerie.metrics.trained import TrainedMetric, calibrated_score, with_context
from causerie.models.artifact import Artifact
from causerie.options import option
from causerie.training.config import TrainingConfig
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.density.extractor import Extractor


@dataclass(frozen=True, eq=False)
class HumanDensity:
    """What an artifact knows: features of exchanges, and where those of people lie."""

    extractor: Extractor
    gaussian: Gaussian
    random_logit: float
    """The classifier's score of a random response, which has a probability of one half."""


@dataclass(frozen=True)
class Density(TrainedMetric):
    distance: Literal["mahalanobis", "euclidean", "classifier"] = option(
        "mahalanobis", "mahalanobis (paper), euclidean, or the selection model's own score"
    )
    dialogue: Literal["mean", "rms"] = option(
        "mean", "of the turns' scores, or rms: minus the root of the mean squared distance"
    )

    name: ClassVar[str] = "density"
    summary: ClassVar[str] = "how likely the response is among human responses (DEnsity)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type[TrainingConfig]] = DensityConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dialogue == "rms" and self.distance == "classifier":
            raise CauserieError("dialogue=rms is for distances: the classifier's score has a sign")

    def columns(self, level: Level) -> tuple[Column, ...]:
        bound = None if self.distance == "classifier" else 0.0
        return (Column(help=self.summary, range=(None, bound), calibrated=True),)

    def restore(self, engines: Engines, artifact: Artifact) -> HumanDensity:
        from causerie.metrics.density.extractor import restore

        extractor, statistics = restore(engines, artifact), artifact.statistics
        width = extractor.head.classifier.in_features
        gaussian = Gaussian(
            statistics["mean"].numpy().reshape(width),
            statistics["whitening"].numpy().reshape(width, width),
        )
        return HumanDensity(extractor, gaussian, float(statistics["random_logit"]))

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        return with_context(exchanges, lambda scored: self._score(scored, engines))

    def _score(self, exchanges: Sequence[Exchange], engines: Engines) -> list[Score]:
        artifact, human = self.restored(engines)
        features = human.extractor.features(exchanges)
        by = distances(human.gaussian, human.extractor, features)
        scores = []
        for value, logit in zip(by[self.distance], by["classifier"], strict=True):
            probability = _logistic(float(logit) - human.random_logit)
            explanation = {"classifier probability": round(probability, 4)}
            table = f"turn.{self.distance}"
            scores.append(calibrated_score(artifact, float(value), table, explanation))
        return scores

    def score_dialogues(
        self,
        dialogues: Sequence[Dialogue],
        engines: Engines,
        *,
        speaker: str | None = None,
        explain: bool = False,
    ) -> list[Scores]:
        groups = [scorable(dialogue, speaker) for dialogue in dialogues]
        turns = iter(self.score_exchanges([e for group in groups for e in group], engines))
        artifact, _ = self.restored(engines)
        empty = [empty_responses(dialogue, speaker) for dialogue in dialogues]
        return [
            (self._whole(artifact, [next(turns)[0] for _ in group], silent),)
            for group, silent in zip(groups, empty, strict=True)
        ]

    def _whole(self, artifact: Artifact, turns: Sequence[Score], empty: int) -> Score:
        """The score of a dialogue from those of its turns."""
        values = [score.value for score in turns if score.value is not None]
        if not values:
            return EMPTY if empty else Score.unscored("no exchange to score")
        values = with_empty(values, self.columns("dialogue")[0], empty)
        probabilities = [s.explanation["classifier probability"] for s in turns if s.explanation]
        mean = math.fsum(probabilities) / len(probabilities)
        explanation = {"mean classifier probability": round(mean, 4)}
        if self.dialogue == "rms":
            value = -math.sqrt(math.fsum(v * v for v in values) / len(values))
            return calibrated_score(artifact, value, f"rms.{self.distance}", explanation)
        value = math.fsum(values) / len(values)
        return calibrated_score(artifact, value, f"dialogue.{self.distance}", explanation)

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.metrics.density.train import train

        return train(engines, run)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0
