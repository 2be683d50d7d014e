"""ODES, open-domain dialogue evaluation signals: what a user's utterance says about the system.

The 14 classes of the paper's table 1 (disinterest, critique, requests to stop, compliments...)
as probabilities, each by itself: an utterance may give several signals. The paper's 8,000
annotated utterances are private; causerie's are templates that come with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from causerie.dialogue import Exchange, Turn
from causerie.metrics.base import Better, Column, Level, Score, Scores
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import (
    CLASSES,
    OTHER,
    PRECISION,
    SIGNALS,
    THRESHOLD,
    TREATMENTS,
    Utterance,
)
from causerie.metrics.trained import TrainedMetric
from causerie.models.artifact import Artifact
from causerie.training.config import TrainingConfig
from causerie.training.trainable import Source, Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.odes.classifier import Classifier

BETTER: Final[Mapping[str, Better | None]] = {"compliment": "higher", OTHER: None}
"""Praise is good; no signal is neither good nor bad; all else tells of trouble."""

__all__ = [
    "CLASSES",
    "OTHER",
    "PRECISION",
    "SIGNALS",
    "THRESHOLD",
    "TREATMENTS",
    "Odes",
    "Utterance",
]


@dataclass(frozen=True)
class Odes(TrainedMetric):
    name: ClassVar[str] = "odes"
    summary: ClassVar[str] = "signals in a user's utterance: critique, insult, request to stop..."
    needs: ClassVar[frozenset[str]] = frozenset({"encoder", "token vectors"})
    learns_from: ClassVar[Source] = "templates"
    reads: ClassVar[str | None] = "all"
    config: ClassVar[type[TrainingConfig]] = OdesConfig

    def columns(self, level: Level) -> tuple[Column, ...]:
        return tuple(
            Column(
                name,
                f"probability that the user's utterance shows {name.replace('_', ' ')}",
                BETTER.get(name, "lower"),
                (0.0, 1.0),
            )
            for name in CLASSES
        )

    def restore(self, engines: Engines, artifact: Artifact) -> Classifier:
        from causerie.metrics.odes.classifier import restore

        return restore(engines, artifact)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        _, classifier = self.restored(engines)
        unscored = (Score.unscored("a turn of the system: odes reads users"),) * len(CLASSES)
        scores: list[Scores] = [unscored] * len(exchanges)
        users = [i for i, e in enumerate(exchanges) if e.response.role != "system"]
        rows = classifier.probabilities([utterance_of(exchanges[index]) for index in users])
        for index, row in zip(users, rows, strict=True):
            scores[index] = tuple(Score.of(float(p)) for p in row)
        return scores

    def join_turns(self, turns: Sequence[Scores], empty: int, engines: Engines) -> Scores:
        """The strongest signal of each class; of `other` the weakest: that no turn gave any."""

        def strongest(place: int) -> Score:
            values = [value for scores in turns if (value := scores[place].value) is not None]
            if not values:
                return Score.unscored("no turn of a user to read")
            return Score.of(min(values) if CLASSES[place] == OTHER else max(values))

        return tuple(strongest(place) for place in range(len(CLASSES)))

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.metrics.odes.train import train

        return train(engines, run)


def utterance_of(exchange: Exchange) -> Utterance:
    """The response as what a user says, with the other speaker's turn right before it."""
    said: Turn = exchange.response
    before = [turn for turn in exchange.last(1) if turn.speaker != said.speaker]
    return Utterance(said.text, before[0].text if before else None)
