"""Trivial metrics. One that does not beat these has learned nothing about conversation."""

from __future__ import annotations

from collections.abc import Sequence

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import Metric, Score, Scores
from causerie.text import words


class Length(Metric):
    name = "length"
    summary = "number of words in the response"
    sentinel = True

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        return [(Score.of(len(words(e.response.text))),) for e in exchanges]


class Turns(Metric):
    name = "turns"
    summary = "number of turns before the response; of a dialogue, all its turns"
    sentinel = True

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        return [(Score.of(e.turn),) for e in exchanges]

    def score_dialogues(
        self, dialogues: Sequence[Dialogue], speaker: str | None = None
    ) -> list[Scores]:
        return [(Score.of(len(d.turns)),) for d in dialogues]


class Overlap(Metric):
    name = "overlap"
    summary = "share of the response's distinct words that were said before"
    sentinel = True

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        # One walk over each dialogue, so that a long one does not cost its length squared.
        walks: dict[int, list[int]] = {}
        for index, exchange in enumerate(exchanges):
            walks.setdefault(id(exchange.dialogue), []).append(index)
        scores: dict[int, Score] = {}
        for indices in walks.values():
            said: set[str] = set()
            walked = 0
            for index in sorted(indices, key=lambda i: exchanges[i].turn):
                exchange = exchanges[index]
                for turn in exchange.last(exchange.turn - walked):
                    said.update(words(turn.text))
                walked = exchange.turn
                scores[index] = _share(set(words(exchange.response.text)), said)
        return [(scores[index],) for index in range(len(exchanges))]


def _share(response: set[str], said: set[str]) -> Score:
    if not said:
        return Score.unscored("no words in the context")
    if not response:
        return Score.unscored("no words in the response")
    return Score.of(len(response & said) / len(response))
