"""Faults that a classifier finds in a reply and its context: an echo, gibberish, and so on.

The classifier was trained on good replies and on faulty versions of them, and returns the
log-odds of every fault. It sees wording rather than topics, which other metrics judge better;
`quality` and `faults` build on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from causerie.dialogue import Exchange
from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.slips.config import SlipsConfig
from causerie.metrics.trained import TrainedMetric
from causerie.models.artifact import Artifact
from causerie.training.config import TrainingConfig
from causerie.training.faulty import FAULTS, MEANINGS
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.slips.classifier import Classifier


@dataclass(frozen=True)
class Slips(TrainedMetric):
    name: ClassVar[str] = "slips"
    summary: ClassVar[str] = "log-odds of faults by a reader of context and reply; see faults"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type[TrainingConfig]] = SlipsConfig

    def columns(self, level: Level) -> tuple[Column, ...]:
        return tuple(
            Column(fault, f"log-odds that the reply {MEANINGS[fault]}", "lower") for fault in FAULTS
        )

    def restore(self, engines: Engines, artifact: Artifact) -> Classifier:
        from causerie.metrics.slips.classifier import restore

        return restore(engines, artifact)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        first = (Score.unscored("no context"),) * len(FAULTS)
        rows: list[Scores] = [first] * len(exchanges)
        after = [i for i, exchange in enumerate(exchanges) if exchange.turn > 0]
        if after:
            _, classifier = self.restored(engines)
            logits = classifier.logits([exchanges[i] for i in after])
            for i, found in zip(after, logits, strict=True):
                rows[i] = tuple(Score.of(float(value)) for value in found)
        return rows

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.metrics.slips.train import train

        return train(engines, run)
