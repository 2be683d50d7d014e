"""Learning to rank true responses above false ones (eq. 12), and how well that is done."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from causerie.metrics.grade.network import margin_loss
from causerie.metrics.grade.scorer import Pair, Scorer
from causerie.metrics.grade.topics import Topics
from causerie.metrics.grade.tuples import RankingTuple
from causerie.stats import ClusteredRatio
from causerie.training.corpus import EpochBatches
from causerie.training.loop import Task
from causerie.training.vectors import LearnedVectors


@dataclass(frozen=True, eq=False)
class Example:
    """A tuple with its topic graphs."""

    true: Pair
    false: Pair
    kind: str
    dialogue: int


def examples_of(topics: Topics, tuples: Sequence[RankingTuple]) -> list[Example]:
    """Keywords and hops are computed here, once; a pair that comes again is the same."""
    known: dict[tuple[tuple[str, ...], str], Pair] = {}

    def pair(one: RankingTuple, response: str) -> Pair:
        key = one.context, response
        if key not in known:
            exchange = one.exchange(response)
            (graph,) = topics.graphs([exchange], len(one.context))
            known[key] = Pair(exchange, graph)
        return known[key]

    return [Example(pair(t, t.true), pair(t, t.false), t.kind, t.dialogue) for t in tuples]


class Ranking(Task):
    """The margin ranking loss on tuples; an epoch sees each of them once."""

    def __init__(
        self, scorer: Scorer, examples: Sequence[Example], valid: Sequence[Example]
    ) -> None:
        self.scorer, self.examples, self.valid = scorer, examples, valid
        self.config = scorer.config
        self.encoder = scorer.encoder
        parts = {"head": scorer.network}
        if self.config.learns_encoder:
            parts["encoder"] = self.encoder.model
        self.module = nn.ModuleDict(parts)
        self._vectors = (
            LearnedVectors(self.encoder, self.config.pooling)
            if self.config.learns_encoder
            else scorer.vectors
        )
        self.batches = EpochBatches(len(examples), self.config.batch, self._shuffled)

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> Sequence[Example]:
        return self.batches[index]

    def _shuffled(self, epoch: int) -> list[Example]:
        examples = list(self.examples)
        random.Random(f"{self.config.seed}/{epoch}").shuffle(examples)
        return examples

    def loss(self, batch: Sequence[Example]) -> Tensor:
        # Dropout is the paper's for its full tuning; an adapter sees each text a few times.
        self.encoder.model.train(self.config.learns_encoder and self.config.tuning == "full")
        pairs = [example.true for example in batch] + [example.false for example in batch]
        true, false = self.scorer.outputs(pairs, self._vectors).scores.chunk(2)
        return margin_loss(true, false, self.config.margin)

    def validate(self) -> dict[str, float]:
        if self.config.learns_encoder:
            self.encoder.forget()  # what it remembers is from other weights
        won = wins(*scores_of(self.scorer, self.valid))
        kinds = np.array([example.kind for example in self.valid])
        return {
            "accuracy": float(won.mean()),
            **{kind: float(won[kinds == kind].mean()) for kind in sorted(set(kinds.tolist()))},
        }


def scores_of(
    scorer: Scorer, examples: Sequence[Example]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float32]], ...]:
    """Of the true responses, and of the false ones."""
    true = scorer.scores([example.true for example in examples])
    return true, scorer.scores([example.false for example in examples])


def wins(true: ArrayLike, false: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """1 where the true response scores higher, ½ where both score the same."""
    above = np.asarray(true, dtype=np.float64) - np.asarray(false, dtype=np.float64)
    return (1 + np.sign(above)) / 2


def accuracy(won: ArrayLike, dialogues: Sequence[int]) -> ClusteredRatio:
    """Ranking accuracy, with the dialogue as what could have been another."""
    _, places = np.unique(dialogues, return_inverse=True)
    return ClusteredRatio(
        np.bincount(places, weights=np.asarray(won)), np.bincount(places).astype(np.float64)
    )
