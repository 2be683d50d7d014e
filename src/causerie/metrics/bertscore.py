"""BERTScore (Zhang et al., 2020): tokens matched greedily by their contextual vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.metrics.similarity import best_cosines

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import TokenVectors


@dataclass(frozen=True)
class BertScore(ReferenceMetric):
    """F1 of the best reference on the encoder's last layer, not weighted by idf, not rescaled."""

    name = "bertscore"
    summary = "BERTScore F1 of the best reference: greedy matching of contextual vectors"
    needs = frozenset({"encoder", "token vectors", "references"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(-1.0, 1.0)),)

    def compare(self, comparisons: Sequence[Comparison], engines: Engines) -> Iterator[Scores]:
        texts = [text for c in comparisons for text in c.texts]
        tokens = engines.encoder.tokens([((text,),) for text in texts])
        for comparison in comparisons:
            response, *references = [next(tokens) for _ in comparison.texts]
            references = [r for r in references if not r.special.all()]
            if response.special.all():
                yield (Score.unscored("no words in the response"),)
            elif not references:
                yield (Score.unscored("no words in the reference"),)
            else:
                yield (Score.of(max(f1(response, r) for r in references)),)


def f1(response: TokenVectors, reference: TokenVectors) -> float:
    precision, recall = share_found(response, reference), share_found(reference, response)
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def share_found(text: TokenVectors, other: TokenVectors) -> float:
    """Return the mean of the best cosines of the text's tokens with the other's.

    Special tokens are not averaged over but, as in the authors' package, can be the best match.
    """
    return float(best_cosines(text.vectors[~text.special], other.vectors).mean())
