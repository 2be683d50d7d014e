"""Cosine similarity of sentence embeddings: the untrained baseline of the trained metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from causerie.dialogue import Exchange
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.metrics.similarity import cosine

if TYPE_CHECKING:
    from causerie.engines import Engines

TURNS = 2
"""Number of context turns that are compared with the response."""


@dataclass(frozen=True)
class Cosine(Metric):
    name = "cosine"
    summary = "cosine between the embeddings of the last two turns and the response"
    needs = frozenset({"encoder"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(-1.0, 1.0)),)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        contexts = [tuple(turn.text for turn in e.last(TURNS)) for e in exchanges]
        responses = [(e.response.text,) for e in exchanges]
        vectors = engines.encoder.encode([(text,) for text in contexts + responses])
        pairs = zip(contexts, vectors, vectors[len(exchanges) :], strict=False)
        return [
            (Score.of(cosine(c, r)) if context else Score.unscored("no context"),)
            for context, c, r in pairs
        ]


@dataclass(frozen=True)
class CosineReference(ReferenceMetric):
    name = "cosine-ref"
    summary = "cosine between the embeddings of the best reference and the response"
    needs = frozenset({"encoder", "references"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(-1.0, 1.0)),)

    def compare(self, comparisons: Sequence[Comparison], engines: Engines) -> list[Scores]:
        texts = [text for c in comparisons for text in c.texts]
        vectors = iter(engines.encoder.encode([((text,),) for text in texts]))
        scores: list[Scores] = []
        for comparison in comparisons:
            response, *references = [next(vectors) for _ in comparison.texts]
            scores.append((Score.of(max(cosine(r, response) for r in references)),))
        return scores
