"""Trivial metrics: a metric that does not beat them has learned nothing about conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.text import words

if TYPE_CHECKING:
    from causerie.engines import Engines


@dataclass(frozen=True)
class Sentinel(Metric):
    """A trivial metric, for which neither direction is better."""

    unit: ClassVar[str] = ""
    most: ClassVar[float | None] = None

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (
            Column(
                help=self.summary,
                better=None,
                range=(0.0, self.most),
                sentinel=True,
                unit=self.unit,
            ),
        )


@dataclass(frozen=True)
class Length(Sentinel):
    name = "length"
    summary = "number of words in the response"
    unit = "words"

    def score_one(self, exchange: Exchange) -> float:
        return len(words(exchange.response.text))


@dataclass(frozen=True)
class Turns(Sentinel):
    name = "turns"
    summary = "number of turns before the response; for a dialogue, of all its turns"
    unit = "turns"

    def score_one(self, exchange: Exchange) -> float:
        return exchange.turn

    def score_dialogues(
        self,
        dialogues: Sequence[Dialogue],
        engines: Engines,
        *,
        speaker: str | None = None,
        explain: bool = False,
    ) -> list[Scores]:
        return [(Score.of(len(d.turns)),) for d in dialogues]


@dataclass(frozen=True)
class Overlap(Sentinel):
    name = "overlap"
    summary = "share of the response's distinct words that were said before"
    most: ClassVar[float | None] = 1.0

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        # One pass over each dialogue, so that the cost does not grow with its length squared.
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
