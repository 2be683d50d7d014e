"""CausalScore: how strongly a response is caused by what was said before it.

C_uncond finds the utterances that the response depends on; C_cond tests each of them given
each other; the score is the mean of the two mean probabilities (eq. 1), and the explanation is
the graph that was found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Score, Scores
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.formula import SCORES, CausalGraph, dependents_of
from causerie.metrics.causalscore.questions import Question
from causerie.metrics.trained import EncoderMetric, TrainingRun
from causerie.models.artifact import Artifact, damaged

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.causalscore.classifier import Classifier


class CausalScore(EncoderMetric):
    """Options: `artifact` (name or folder), `score` (mean as in the paper; its ablations
    unconditional, conditional and max; sum and noisy-or, which grow with the number of causes),
    `history` (turns before the response among which causes are sought)."""

    name: ClassVar[str] = "causalscore"
    summary: ClassVar[str] = "how strongly the context causes the response (CausalScore)"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type] = CausalScoreConfig
    annotated: ClassVar[bool] = True

    def __init__(
        self,
        engines: Engines,
        artifact: str | Artifact | None = None,
        score: str = "mean",
        history: int | None = None,
    ) -> None:
        if score not in SCORES:
            raise CauserieError(f"score is {', '.join(SCORES)}, not {score!r}")
        if history is not None and history < 1:
            raise CauserieError(f"history is at least 1, not {history}")
        from causerie.metrics.causalscore.classifier import restore

        super().__init__(engines, artifact)
        try:
            trained = CausalScoreConfig(**self.artifact.options)
            self.unconditional, self.conditional = restore(engines, self.artifact)
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise damaged(f"of {self.name}", error) from error
        self.history = history or trained.history
        self.variant = score
        self._comparable = self.history == trained.history
        """With another history, human scores would be others too."""

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        scores: list[Scores] = [(Score.unscored("no context"),)] * len(exchanges)
        scored = [index for index, exchange in enumerate(exchanges) if exchange.turn > 0]
        graphs = self.graphs([exchanges[index] for index in scored])
        for index, graph in zip(scored, graphs, strict=True):
            scores[index] = (self._score(graph, exchanges[index]),)
        return scores

    def graphs(self, exchanges: Sequence[Exchange]) -> list[CausalGraph]:
        """What the classifiers find about each response: two calls for all of them together."""
        windows = [[turn.text for turn in e.last(self.history)] for e in exchanges]
        responses = [exchange.response.text for exchange in exchanges]
        both = list(zip(windows, responses, strict=True))
        answers = iter(self._ask(self.unconditional, [Question(u, r) for w, r in both for u in w]))
        unconditional = [tuple(next(answers) for _ in window) for window in windows]
        # by place and not by text: two utterances may say the same
        pairs = [list(permutations(dependents_of(found), 2)) for found in unconditional]
        answers = iter(
            self._ask(
                self.conditional,
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

    def _ask(self, classifier: Classifier, questions: list[Question]) -> list[float]:
        return classifier.probabilities(questions).tolist() if questions else []

    def _score(self, graph: CausalGraph, exchange: Exchange) -> Score:
        if not all(map(math.isfinite, (*graph.unconditional, *graph.conditional.values()))):
            return Score.unscored("the classifiers give no number")
        value = SCORES[self.variant](graph)
        explanation = explain(graph, exchange.turn) if self.explain else None
        return self.calibrated_score(value, f"turn.{self._table}", explanation)

    @property
    def _table(self) -> str:
        return self.variant if self._comparable else "none"

    @property
    def dialogue_table(self) -> str:
        return f"dialogue.{self._table}"

    @property
    def signature(self) -> str:
        return f"{super().signature}|{self.unconditional.encoder.signature}"

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
        from causerie.metrics.causalscore.train import train

        return train(engines, run)


def explain(graph: CausalGraph, turn: int) -> dict[str, Any]:
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
