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
from causerie.metrics.density.extractor import EXTRACTORS
from causerie.metrics.density.gaussian import Gaussian
from causerie.metrics.trained import TrainedMetric, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines

DISTANCES = ("mahalanobis", "euclidean", "classifier")


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
        artifact: str | None = None,
        distance: str = "mahalanobis",
        dialogue: str = "mean",
    ) -> None:
        super().__init__(engines, artifact)
        if distance not in DISTANCES:
            raise CauserieError(f"distance is one of {', '.join(DISTANCES)}, not {distance!r}")
        if dialogue not in ("mean", "rms"):
            raise CauserieError(f"dialogue is mean or rms, not {dialogue!r}")
        self.distance, self.dialogue = distance, dialogue
        encoder = engines.tuned_encoder(self.artifact)
        config = DensityConfig(**self.artifact.options)
        self.extractor = EXTRACTORS[config.interaction](encoder, config)
        head = {
            key.removeprefix("head."): tensor
            for key, tensor in self.artifact.network.items()
            if key.startswith("head.")
        }
        self.extractor.head.load_state_dict(head)
        self.extractor.head.eval()
        statistics = {k: t.numpy() for k, t in self.artifact.statistics.items()}
        self.gaussian = Gaussian(statistics["mean"], statistics["whitening"])

    @property
    def signature(self) -> str:
        return f"{super().signature},{self.distance},{self.dialogue}"

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        scores: list[Scores] = [(Score.unscored("no context"),)] * len(exchanges)
        scored = [index for index, exchange in enumerate(exchanges) if exchange.turn > 0]
        if not scored:
            return scores
        features = self.extractor.features([exchanges[i] for i in scored])
        logits = self.extractor.logits(features)
        values = {
            "mahalanobis": lambda: -self.gaussian.mahalanobis(features),
            "euclidean": lambda: -self.gaussian.euclidean(features),
            "classifier": lambda: logits,
        }[self.distance]()
        for index, value, logit in zip(scored, values, logits, strict=True):
            probability = 1 / (1 + math.exp(-float(logit)))
            scores[index] = (self._score(float(value), probability),)
        return scores

    def _score(self, value: float, probability: float) -> Score:
        explanation = {"classifier": round(probability, 4)}
        if self.distance != "mahalanobis":  # the calibration is of the default
            return Score.of(value, explanation)
        return self.calibrate(value, explanation)

    def score_dialogues(
        self, dialogues: Sequence[Dialogue], speaker: str | None = None
    ) -> list[Scores]:
        if self.dialogue == "mean":
            return super().score_dialogues(dialogues, speaker)
        groups = [dialogue.exchanges(speaker) for dialogue in dialogues]
        scores = iter(self.score_exchanges([e for group in groups for e in group]))
        return [(_root_mean_square([next(scores)[0] for _ in group]),) for group in groups]

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Mapping[str, Any]:
        from causerie.metrics.density.train import train

        return train(engines, run)


def _root_mean_square(scores: Sequence[Score]) -> Score:
    values = [score.value for score in scores if score.value is not None]
    if not values:
        return Score.unscored("no exchange to score")
    return Score.of(-math.sqrt(math.fsum(v * v for v in values) / len(values)))
