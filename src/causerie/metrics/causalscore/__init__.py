"""CausalScore: how strongly a response is caused by what was said before it.

C_uncond finds the utterances that the response depends on, C_cond tests each of them given
another one, and the score is the average of the two mean probabilities (eq. 1). The explanation
is the causal graph found in this way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from causerie.dialogue import Exchange
from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.formula import SCORES, CausalGraph
from causerie.metrics.trained import MeanMetric, calibrated_score, with_context
from causerie.models.artifact import Artifact
from causerie.options import option
from causerie.training.config import TrainingConfig
from causerie.training.trainable import Source, Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.causalscore.classifier import Classifiers


@dataclass(frozen=True)
class CausalScore(MeanMetric):
    score: Literal["mean", "unconditional", "conditional", "max", "sum", "noisy-or"] = option(
        "mean",
        "mean (paper), its ablations unconditional, conditional and max, or sum and noisy-or, "
        "which grow with the number of causes",
    )
    history: int | None = option(
        None, "number of turns before the response searched for causes [as in training]", least=1
    )

    name: ClassVar[str] = "causalscore"
    research: ClassVar[str] = "causalscore-cgdialog"
    summary: ClassVar[str] = "how strongly the context causes the response (CausalScore)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    exact: ClassVar[bool] = True
    drawing = "arcs"
    config: ClassVar[type[TrainingConfig]] = CausalScoreConfig
    learns_from: ClassVar[Source] = "annotations"

    def columns(self, level: Level) -> tuple[Column, ...]:
        most = None if self.score == "sum" else 1.0
        return (Column(help=self.summary, range=(0.0, most), calibrated=True),)

    def restore(self, engines: Engines, artifact: Artifact) -> Classifiers:
        from causerie.metrics.causalscore.classifier import restore

        return restore(engines, artifact)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        def judge(scored: list[Exchange]) -> list[Score]:
            artifact, _ = self.restored(engines)
            table = f"turn.{self._table}"
            found = zip(self.graphs(scored, engines), scored, strict=True)
            return [self._score(graph, e, artifact, table, explain) for graph, e in found]

        return with_context(exchanges, judge)

    def graphs(self, exchanges: Sequence[Exchange], engines: Engines) -> list[CausalGraph]:
        """Return the causal graph of each response."""
        _, classifiers = self.restored(engines)
        found: list[CausalGraph] = classifiers.graphs(exchanges, self.history)
        return found

    def _score(
        self, graph: CausalGraph, exchange: Exchange, artifact: Artifact, table: str, explain: bool
    ) -> Score:
        if not all(map(math.isfinite, (*graph.unconditional, *graph.conditional.values()))):
            return Score.unscored("the classifiers give no number")
        value = SCORES[self.score](graph)
        explanation = explain_graph(graph, exchange.turn) if explain else None
        return calibrated_score(artifact, value, table, explanation)

    @property
    def _table(self) -> str:
        """Suffix of the calibration tables; with another history than in training there is none."""
        trained = CausalScoreConfig(**self.info.options).history
        return self.score if self.history in (None, trained) else "none"

    @property
    def dialogue_table(self) -> str:
        return f"dialogue.{self._table}"

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.metrics.causalscore.train import train

        return train(engines, run)


def explain_graph(graph: CausalGraph, turn: int) -> dict[str, Any]:
    """Return a graph as plain JSON: dependents, and their p (rows) given another (columns)."""
    first = turn - len(graph.unconditional)
    return {
        "dependents": [
            {
                "turn": first + i,
                "p": round(graph.unconditional[i], 4),
                "direct": i in graph.direct_causes,
            }
            for i in graph.dependents
        ],
        "conditional": [
            [None if i == j else round(graph.conditional[i, j], 4) for j in graph.dependents]
            for i in graph.dependents
        ],
    }
