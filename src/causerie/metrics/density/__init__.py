"""DEnsity: how likely a response is among human responses.

A response selection model computes features g(c, r), a Gaussian is fitted to those of human
exchanges, and the score is the negative Mahalanobis distance to it (eq. 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Score, Scores, mean_scores
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
    """A restored artifact: the feature extractor and the distribution of human features."""

    extractor: Extractor
    gaussian: Gaussian
    random_logit: float
    """Mean logit of random responses, at which the classifier's probability is one half."""


@dataclass(frozen=True)
class Density(TrainedMetric):
    distance: Literal["mahalanobis", "euclidean", "classifier"] = option(
        "mahalanobis", "mahalanobis (paper), euclidean, or the selection model's own score"
    )
    dialogue: Literal["mean", "rms"] = option(
        "mean", "mean of the turns' scores, or rms: the negative root mean square distance"
    )

    name: ClassVar[str] = "density"
    research: ClassVar[str] = "density-dailydialog"
    summary: ClassVar[str] = "how likely the response is among human responses (DEnsity)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type[TrainingConfig]] = DensityConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dialogue == "rms" and self.distance == "classifier":
            raise CauserieError("dialogue=rms needs a distance: the classifier's score has a sign")

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

    def join_turns(self, turns: Sequence[Scores], empty: int, engines: Engines) -> Scores:
        (score,) = mean_scores(turns, self.columns("dialogue"), empty)
        if score.value is None:
            return (score,)
        artifact, _ = self.restored(engines)
        said = [turn.explanation for (turn,) in turns if turn.explanation]
        mean = math.fsum(one["classifier probability"] for one in said) / len(said)
        explanation = {"mean classifier probability": round(mean, 4)}
        value, table = score.value, "dialogue"
        if self.dialogue == "rms":
            squares = [(Score.of(-(turn.value**2)),) for (turn,) in turns if turn.value is not None]
            (mean_square,) = mean_scores(squares, self.columns("dialogue"), empty)
            value, table = -math.sqrt(-(mean_square.value or 0.0)), "rms"
        return (calibrated_score(artifact, value, f"{table}.{self.distance}", explanation),)

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.metrics.density.train import train

        return train(engines, run)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0
