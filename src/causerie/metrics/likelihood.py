"""How likely a language model finds a response: perplexity, and relevance to the history.

The model sees only the turns: background such as a persona or a system prompt is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from causerie.dialogue import Exchange
from causerie.engines.dialoguetree import DialogueTree, by_dialogue
from causerie.metrics.base import Column, Level, Metric, Score, Scores

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.likelihood import Likelihood

_NOTHING = Score.unscored("the response has no token that the language model can score")
_CUT = Score.unscored(
    "the response exceeds the language model's window, which shows less of it after the history "
    "than by itself"
)


@dataclass(frozen=True)
class Perplexity(Metric):
    """exp(-L(r | c)), where L is the mean log-likelihood per token of response r given history c.

    Background is no part of the history.
    """

    name = "perplexity"
    summary = "perplexity of the response given the turns before it (not the background)"
    needs = frozenset({"language model"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, better="lower", range=(1.0, None)),)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        engine = engines.likelihood

        def score(tree: DialogueTree, exchanges: Sequence[Exchange]) -> list[Scores]:
            responses = [tree.response(exchange) for exchange in exchanges]
            scores = engine.score(tree, segments=responses)
            found = [scores.segment(node) for node in responses]
            return [(Score.of(math.exp(-r.mean)) if r.count else _NOTHING,) for r in found]

        return by_dialogue(exchanges, engine.format, score)


@dataclass(frozen=True)
class Relevance(Metric):
    """L(r | c), and what the history adds to it: L(r | c) - L(r).

    Background is not part of the history. A response of which the model sees more by itself than
    after the history has no gain, because the two means would be over different tokens.
    """

    name = "relevance"
    summary = "log-likelihood per token given the turns before (not the background), and their gain"
    needs = frozenset({"language model"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (
            Column(
                "likelihood",
                "mean log-likelihood of the response per token",
                range=(None, 0.0),
                unit="nats",
            ),
            Column("gain", "what the history adds to it", unit="nats"),
        )

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        engine = engines.likelihood
        return by_dialogue(exchanges, engine.format, partial(self._score, engine))

    def _score(
        self, engine: Likelihood, tree: DialogueTree, exchanges: Sequence[Exchange]
    ) -> list[Scores]:
        responses = [tree.response(exchange) for exchange in exchanges]
        alone = [
            tree.say(tree.ROOT, exchange.role_of(exchange.response), exchange.response.text)
            for exchange in exchanges
        ]
        scores = engine.score(tree, segments=[*responses, *alone])

        def missing(node: int) -> int:
            """Return the number of the response's tokens that the model could not see."""
            segment = tree.segment(node)
            return segment.stop - segment.start - scores.segment(node).count

        def score(given_history: int, by_itself: int) -> Scores:
            response, unconditional = scores.segment(given_history), scores.segment(by_itself)
            likelihood = Score.of(response.mean) if response.count else _NOTHING
            if not (response.count and unconditional.count):
                return likelihood, _NOTHING
            if missing(given_history) != missing(by_itself):
                return likelihood, _CUT
            return likelihood, Score.of(response.mean - unconditional.mean)

        return [score(*nodes) for nodes in zip(responses, alone, strict=True)]
