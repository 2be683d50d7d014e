"""GRADE: how coherently a response follows, from utterances and from the topics in them.

An encoder compares the utterances; a graph network looks at their keywords, connected by how
far they are from each other in a commonsense graph. The explanation is that topic graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from causerie.dialogue import Exchange
from causerie.metrics.base import Score, Scores
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.trained import EncoderMetric, TrainingRun
from causerie.models.artifact import Artifact, damaged

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.grade.scorer import Judged, Pair
    from causerie.metrics.grade.topics import Topics


class Grade(EncoderMetric):
    """Options: `artifact` (name or folder), `graph` (folder of the commonsense graph that it was
    trained with, if that has moved)."""

    name: ClassVar[str] = "grade"
    summary: ClassVar[str] = "how coherently the response follows, by topics too (GRADE)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type] = GradeConfig

    def __init__(
        self,
        engines: Engines,
        artifact: str | Artifact | None = None,
        graph: str | None = None,
    ) -> None:
        from causerie.metrics.grade.scorer import restore

        super().__init__(engines, artifact)
        try:
            self.scorer = restore(engines, self.artifact, graph)
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise damaged(f"of {self.name}", error) from error

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        nothing = Score.unscored("no context"), Score.unscored("empty response")
        scores: list[Scores] = [(nothing[exchange.turn > 0],) for exchange in exchanges]
        scored = [i for i, e in enumerate(exchanges) if e.turn > 0 and e.response.text.strip()]
        pairs = self.scorer.pairs([exchanges[index] for index in scored])
        for index, pair, judged in zip(scored, pairs, self.scorer.judge(pairs), strict=True):
            explanation = explain(pair, judged, self.scorer.topics) if self.explain else None
            scores[index] = (self.calibrated_score(judged.score, "turn", explanation),)
        return scores

    @property
    def signature(self) -> str:
        return f"{super().signature}|{self.scorer.encoder.signature}"

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
        from causerie.metrics.grade.train import train

        return train(engines, run)


def explain(pair: Pair, judged: Judged, topics: Topics) -> dict[str, Any]:
    """The topic graph as plain JSON.

    `topics` are the words of both sides; of each edge between them, by their places among those:
    `hops`, the shortest `path` (both None where there is none), the `weight` of eq. 4 and the
    `attention` (mean over both directions, layers and heads).
    """
    graph, word = pair.graph, topics.graph.word
    here = len(graph.context)
    edges = []
    for i, one in enumerate(graph.context):
        for j, other in enumerate(graph.response):
            path = topics.hops.path(one, other)
            edge: dict[str, Any] = {
                "context": i,
                "response": j,
                "hops": int(graph.hops[i, j]) if path else None,
                "path": [word(node) for node in path] if path else None,
                "weight": round(float(graph.weights[i, j]), 4),
            }
            if judged.attention is not None:
                both = judged.attention[i, here + j] + judged.attention[here + j, i]
                edge["attention"] = round(float(both) / 2, 4)
            edges.append(edge)
    return {
        "topics": {
            "context": [word(node) for node in graph.context],
            "response": [word(node) for node in graph.response],
        },
        "edges": edges,
    }
