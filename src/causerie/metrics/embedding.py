"""Static word vectors of response and reference, compared in three ways (Liu et al., 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.metrics.similarity import Floats, best_cosines, cosine
from causerie.options import option
from causerie.text.vectors import WordVectors

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder


@dataclass(frozen=True)
class Embedding(ReferenceMetric):
    vectors: str | None = option(
        None,
        "text file of word vectors in GloVe's format [the encoder's input embeddings]",
        file=True,
    )

    name = "embedding"
    summary = "cosine of word vectors with the best reference: average, extrema, greedy"
    needs = frozenset({"encoder", "references"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return tuple(
            Column(name, f"cosine with the best reference by {name}", range=(-1.0, 1.0))
            for name in COMPARISONS
        )

    @property
    def uses(self) -> frozenset[str]:
        return frozenset() if self.vectors else super().uses

    def signature(self, engines: Engines) -> str:
        own = "|".join([self._with_options(), *self._code()])
        return own if self.vectors else super().signature(engines)

    def _source(self, engines: Engines) -> WordVectors | Encoder:
        if self.vectors is None:
            return engines.encoder
        path = Path(self.vectors)
        return engines.shared(("word vectors", path), lambda: WordVectors.read(path))

    def compare(self, comparisons: Sequence[Comparison], engines: Engines) -> Iterator[Scores]:
        texts = [text for c in comparisons for text in c.texts]
        vectors = self._source(engines).word_vectors(texts)
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
    """Return the cosine of the mean word vectors."""
    return cosine(a.mean(axis=0), b.mean(axis=0))


def extrema(a: Floats, b: Floats) -> float:
    """Return the cosine of the vectors of each dimension's value farthest from zero."""
    return cosine(_farthest(a), _farthest(b))


def greedy(a: Floats, b: Floats) -> float:
    """Return the mean cosine of each word with its most similar one, over both directions."""
    return float(best_cosines(a, b).mean() + best_cosines(b, a).mean()) / 2


def _farthest(vectors: Floats) -> Floats:
    rows = np.abs(vectors).argmax(axis=0)
    farthest: Floats = vectors[rows, np.arange(vectors.shape[1])]
    return farthest


COMPARISONS = {"average": average, "extrema": extrema, "greedy": greedy}
