"""Trivial metrics: a metric that does not beat them has learned nothing about conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from causerie.dialogue import Dialogue, Exchange, Turn
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

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        return [_quotient(len(words(exchange.response.text)), 1) for exchange in exchanges]


@dataclass(frozen=True)
class Turns(Sentinel):
    name = "turns"
    summary = "number of turns before the response; for a dialogue, of all its turns"
    unit = "turns"

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        return [_quotient(exchange.turn, 1) for exchange in exchanges]

    def score_dialogues(
        self,
        dialogues: Sequence[Dialogue],
        engines: Engines,
        *,
        speaker: str | None = None,
        explain: bool = False,
    ) -> list[Scores]:
        return [_quotient(len(dialogue.turns), 1) for dialogue in dialogues]


@dataclass(frozen=True)
class Overlap(Sentinel):
    name = "overlap"
    summary = "share of the response's distinct words that were said before"
    most: ClassVar[float | None] = 1.0

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        # One pass over each dialogue, so that the cost does not grow with its length squared.
        last: dict[int, Exchange] = {}
        for exchange in exchanges:
            before = last.setdefault(id(exchange.dialogue), exchange)
            if before.turn < exchange.turn:
                last[id(exchange.dialogue)] = exchange
        shares = {key: _shares(one.dialogue.turns[: one.turn + 1]) for key, one in last.items()}
        return [shares[id(exchange.dialogue)][exchange.turn] for exchange in exchanges]


def _shares(turns: Sequence[Turn]) -> list[Scores]:
    """Return the share of each turn's words that occur in earlier turns."""
    shares: list[Scores] = []
    said: set[str] = set()
    for turn in turns:
        own, known = set(words(turn.text)), len(said)
        said |= own
        if not known:
            shares.append((Score.unscored("no words in the context"),))
        elif not own:
            shares.append((Score.unscored("no words in the response"),))
        else:
            shares.append(_quotient(known + len(own) - len(said), len(own)))
    return shares


@lru_cache(4096)
def _quotient(part: int, whole: int) -> Scores:
    """Return a quotient as a score, cached because many items share few values."""
    return (Score.of(part / whole),)
