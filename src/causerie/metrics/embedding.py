"""Static word vectors of response and reference, compared in three ways (Liu et al., 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causerie.metrics.base import Level, Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.metrics.similarity import Floats, best_cosines, cosine
from causerie.text.vectors import WordVectors

if TYPE_CHECKING:
    from causerie.engines import Engines


class Embedding(ReferenceMetric):
    name = "embedding"
    summary = "cosine of word vectors with the best reference: average, extrema, greedy"
    needs = frozenset({"encoder", "references"})

    def __init__(self, engines: Engines, vectors: str | Path | None = None) -> None:
        """`vectors` is a text file in the format of GloVe; without one, the word vectors are
        those that the encoder looks up for its tokens.
        """
        super().__init__(engines)
        self._file = None if vectors is None else Path(vectors)

    @cached_property
    def _vectors(self) -> WordVectors | None:
        return WordVectors.read(self._file) if self._file else None

    @property
    def signature(self) -> str:
        if self._vectors is None:
            return super().signature
        return f"{self.name}|vectors:{self._vectors.sha256[:12]}"

    def dimensions(self, level: Level) -> tuple[str, ...]:
        return tuple(COMPARISONS)

    def compare(self, comparisons: Sequence[Comparison]) -> Iterator[Scores]:
        texts = [text for c in comparisons for text in c.texts]
        source = self._vectors or self.engines.encoder
        vectors = source.word_vectors(texts)
        for comparison in comparisons:
            response, *references = [next(vectors) for _ in comparison.texts]
            references = [r for r in references if len(r)]
            if len(response) and references:
                yield tuple(
                    Score.of(max(compare(response, r) for r in references))
                    for compare in COMPARISONS.values()
                )
            else:
                where = "reference" if len(response) else "response"
                reason = f"no word of the {where} has a vector"
                yield tuple(Score.unscored(reason) for _ in COMPARISONS)


def average(a: Floats, b: Floats) -> float:
    """The means of the word vectors."""
    return cosine(a.mean(axis=0), b.mean(axis=0))


def extrema(a: Floats, b: Floats) -> float:
    """In each dimension the value farthest from zero."""
    return cosine(_farthest(a), _farthest(b))


def greedy(a: Floats, b: Floats) -> float:
    """Every word with its most similar one on the other side, in both directions."""
    return float(best_cosines(a, b).mean() + best_cosines(b, a).mean()) / 2


def _farthest(vectors: Floats) -> Floats:
    rows = np.abs(vectors).argmax(axis=0)
    farthest: Floats = vectors[rows, np.arange(vectors.shape[1])]
    return farthest


COMPARISONS = {"average": average, "extrema": extrema, "greedy": greedy}
