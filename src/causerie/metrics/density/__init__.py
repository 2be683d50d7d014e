"""DEnsity: how likely a response is among human responses.

A response selection model gives features g(c, r); a Gaussian is fitted to those of human
exchanges; the score is minus the square root of the Mahalanobis distance (eq. 3) to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Score, Scores
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.gaussian import Gaussian, distances
from causerie.metrics.trained import TrainedMetric, TrainingRun
from causerie.models.artifact import Artifact, damaged

if TYPE_CHECKING:
    from causerie.engines import Engines

DISTANCES = ("mahalanobis", "euclidean", "classifier")
DIALOGUES = ("mean", "rms")


class Density(TrainedMetric):
    """Options: `artifact` (name or folder), `distance` (mahalanobis as in the paper, euclidean,
    or classifier: the selection model's own score), `dialogue` (mean of the turns' scores, or
    rms: minus the root of the mean squared distance)."""

    name: ClassVar[str] = "density"
    summary: ClassVar[str] = "how likely the response is among human responses (DEnsity)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type] = DensityConfig

    def __init__(
        self,
        engines: Engines,
        artifact: str | Artifact | None = None,
        distance: str = "mahalanobis",
        dialogue: str = "mean",
    ) -> None:
        if distance not in DISTANCES:
            raise CauserieError(f"distance is {', '.join(DISTANCES)}, not {distance!r}")
        if dialogue not in DIALOGUES:
            raise CauserieError(f"dialogue is {' or '.join(DIALOGUES)}, not {dialogue!r}")
        if dialogue == "rms" and distance == "classifier":
            raise CauserieError("dialogue=rms is for distances: the classifier's score has a sign")
        from causerie.metrics.density.extractor import restore

        super().__init__(engines, artifact)
        self.distance, self.dialogue = distance, dialogue
        try:
            self.extractor = restore(engines, self.artifact)
            statistics = self.artifact.statistics
            width = self.extractor.head.classifier.in_features
            self.gaussian = Gaussian(
                statistics["mean"].numpy().reshape(width),
                statistics["whitening"].numpy().reshape(width, width),
            )
            self.random_logit = float(statistics["random_logit"])
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise damaged(f"of {self.name}", error) from error

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        nothing = Score.unscored("no context"), Score.unscored("empty response")
        scores: list[Scores] = [(nothing[exchange.turn > 0],) for exchange in exchanges]
        scored = [i for i, e in enumerate(exchanges) if e.turn > 0 and e.response.text.strip()]
        if not scored:
            return scores
        features = self.extractor.features([exchanges[index] for index in scored])
        by = distances(self.gaussian, self.extractor, features)
        for index, value, logit in zip(scored, by[self.distance], by["classifier"], strict=True):
            probability = _logistic(float(logit) - self.random_logit)
            explanation = {"classifier probability": round(probability, 4)}
            scores[index] = (self.calibrated_score(float(value), self._table("turn"), explanation),)
        return scores

    def score_dialogues(
        self, dialogues: Sequence[Dialogue], speaker: str | None = None
    ) -> list[Scores]:
        groups = [dialogue.exchanges(speaker) for dialogue in dialogues]
        turns = iter(self.score_exchanges([exchange for group in groups for exchange in group]))
        return [(self._whole([next(turns)[0] for _ in group]),) for group in groups]

    def _whole(self, turns: Sequence[Score]) -> Score:
        """The score of a dialogue from those of its turns."""
        values = [score.value for score in turns if score.value is not None]
        if not values:
            return Score.unscored("no exchange to score")
        probabilities = [s.explanation["classifier probability"] for s in turns if s.explanation]
        mean = math.fsum(probabilities) / len(probabilities)
        explanation = {"mean classifier probability": round(mean, 4)}
        if self.dialogue == "rms":
            value = -math.sqrt(math.fsum(v * v for v in values) / len(values))
            return self.calibrated_score(value, self._table("rms"), explanation)
        value = math.fsum(values) / len(values)
        return self.calibrated_score(value, self._table("dialogue"), explanation)

    def _table(self, level: str) -> str:
        return f"{level}.{self.distance}"

    @property
    def signature(self) -> str:
        return f"{super().signature}|{self.extractor.encoder.signature}"

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
        from causerie.metrics.density.train import train

        return train(engines, run)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0
