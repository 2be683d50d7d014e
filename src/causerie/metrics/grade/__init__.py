"""GRADE: how coherently a response follows, from utterances and from the topics in them.

An encoder compares the utterances; a graph network looks at their keywords, connected by how
far they are from each other in a commonsense graph. The explanation is that topic graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from causerie.dialogue import Exchange
from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.trained import MeanMetric, calibrated_score, with_context
from causerie.models.artifact import Artifact
from causerie.options import option
from causerie.training.config import TrainingConfig
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.grade.scorer import Judged, Pair, Scorer
    from causerie.metrics.grade.topics import Topics


@dataclass(frozen=True)
class Grade(MeanMetric):
    graph: str | None = option(
        None,
        "folder of the commonsense graph that it was trained with, if that has moved",
        file=True,
    )

    name: ClassVar[str] = "grade"
    research: ClassVar[str] = "grade-dailydialog"
    summary: ClassVar[str] = "how coherently the response follows, by topics too (GRADE)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    drawing = "graph"
    config: ClassVar[type[TrainingConfig]] = GradeConfig

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(0.0, 1.0), calibrated=True),)

    def restore(self, engines: Engines, artifact: Artifact) -> Scorer:
        from causerie.metrics.grade.scorer import restore

        return restore(engines, artifact, self.graph)

    @property
    def _restored_by(self) -> tuple[Any, ...]:
        return (self.graph,)

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        """The artifact names its graph by content, and no other is taken."""
        return frozenset({"artifact", "graph"})

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        def score(scored: list[Exchange]) -> list[Score]:
            artifact, scorer = self.restored(engines)
            pairs = scorer.pairs(scored)
            return [
                calibrated_score(
                    artifact,
                    judged.score,
                    "turn",
                    explain_topics(pair, judged, scorer.topics) if explain else None,
                )
                for pair, judged in zip(pairs, scorer.judge(pairs), strict=True)
            ]

        return with_context(exchanges, score)

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.metrics.grade.train import train

        return train(engines, run)


def explain_topics(pair: Pair, judged: Judged, topics: Topics) -> dict[str, Any]:
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
