"""CausalScore: how strongly a response is caused by what was said before it.

C_uncond finds the utterances that the response depends on; C_cond tests each of them given
each other; the score is the mean of the two mean probabilities (eq. 1), and the explanation is
the graph that was found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.formula import SCORES, CausalGraph, dependents_of
from causerie.metrics.causalscore.questions import Question
from causerie.metrics.trained import EncoderMetric, TrainingRun, calibrated_score, with_context
from causerie.models.artifact import Artifact
from causerie.options import option

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.causalscore.classifier import Classifier


@dataclass(frozen=True)
class CausalScore(EncoderMetric):
    score: Literal["mean", "unconditional", "conditional", "max", "sum", "noisy-or"] = option(
        "mean",
        "mean (paper), its ablations unconditional, conditional and max, or sum and noisy-or, "
        "which grow with the number of causes",
    )
    history: int | None = option(
        None, "turns before the response among which causes are sought [as in training]"
    )

    name: ClassVar[str] = "causalscore"
    summary: ClassVar[str] = "how strongly the context causes the response (CausalScore)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    drawing = "arcs"
    config: ClassVar[type] = CausalScoreConfig
    annotated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.history is not None and self.history < 1:
            raise CauserieError(f"history is at least 1, not {self.history}")

    def columns(self, level: Level) -> tuple[Column, ...]:
        most = None if self.score == "sum" else 1.0
        return (Column(help=self.summary, range=(0.0, most), calibrated=True),)

    def restore(self, engines: Engines, artifact: Artifact) -> tuple[Classifier, Classifier]:
        from causerie.metrics.causalscore.classifier import restore

        return restore(engines, artifact)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        def judge(scored: list[Exchange]) -> list[Score]:
            artifact, _ = self.restored(engines)
            found = zip(self.graphs(scored, engines), scored, strict=True)
            return [self._score(graph, e, artifact, explain) for graph, e in found]

        return with_context(exchanges, judge)

    def graphs(self, exchanges: Sequence[Exchange], engines: Engines) -> list[CausalGraph]:
        """What the classifiers find about each response: two calls for all of them together."""
        _, (c_uncond, c_cond) = self.restored(engines)
        windows = [[turn.text for turn in e.last(self._history)] for e in exchanges]
        responses = [exchange.response.text for exchange in exchanges]
        both = list(zip(windows, responses, strict=True))
        answers = iter(_ask(c_uncond, [Question(u, r) for w, r in both for u in w]))
        unconditional = [tuple(next(answers) for _ in window) for window in windows]
        # by place and not by text: two utterances may say the same
        pairs = [list(permutations(dependents_of(found), 2)) for found in unconditional]
        answers = iter(
            _ask(
                c_cond,
                [
                    Question(window[i], response, window[j])
                    for (window, response), places in zip(both, pairs, strict=True)
                    for i, j in places
                ],
            )
        )
        return [
            CausalGraph(found, {place: next(answers) for place in places})
            for found, places in zip(unconditional, pairs, strict=True)
        ]

    def _score(
        self, graph: CausalGraph, exchange: Exchange, artifact: Artifact, explain: bool
    ) -> Score:
        if not all(map(math.isfinite, (*graph.unconditional, *graph.conditional.values()))):
            return Score.unscored("the classifiers give no number")
        value = SCORES[self.score](graph)
        explanation = explain_graph(graph, exchange.turn) if explain else None
        return calibrated_score(artifact, value, f"turn.{self._table}", explanation)

    @property
    def _history(self) -> int:
        return self.history or CausalScoreConfig(**self.info.options).history

    @property
    def _table(self) -> str:
        """With another history, human scores would be others too: then there is no table."""
        trained = CausalScoreConfig(**self.info.options).history
        return self.score if self._history == trained else "none"

    @property
    def dialogue_table(self) -> str:
        return f"dialogue.{self._table}"

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
        from causerie.metrics.causalscore.train import train

        return train(engines, run)


def _ask(classifier: Classifier, questions: list[Question]) -> list[float]:
    return classifier.probabilities(questions).tolist() if questions else []


def explain_graph(graph: CausalGraph, turn: int) -> dict[str, Any]:
    """The graph as plain JSON: dependents by turn, and their p (rows) given another (columns)."""
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
