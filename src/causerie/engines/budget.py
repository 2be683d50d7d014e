"""What answers cost: counted as they arrive, and never more than somebody wants to spend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Condition, Event
from typing import Any, TypeAlias

from causerie.errors import CauserieError
from causerie.render.numbers import counted

_BESIDE = 100
"""Tokens that a chat template may add to what is sent."""
_LISTENING = 0.2  # seconds after which whoever waits looks whether all has stopped


Tokens: TypeAlias = tuple[int, int]
"""How many were sent, and how many answered."""
NOTHING: Tokens = (0, 0)


@dataclass(frozen=True)
class Price:
    """Of a million tokens that are sent, and that are answered."""

    sent: float
    answered: float

    def of(self, sent: float, answered: float) -> float:
        return (sent * self.sent + answered * self.answered) / 1e6


class Stopped(Exception):  # noqa: N818 - nothing is wrong with this question
    """Another question has failed, so this one is not asked."""


class Budget:
    """Counts answers, tokens and cost; `max_cost` is never exceeded.

    What a question may cost at most is set aside before it is asked: a token for every byte, and
    the longest answer. That is several times what it will cost, so whoever finds too little left
    waits until others are done.
    """

    def __init__(self, price: Price | None, max_cost: float | None) -> None:
        self.price, self.max_cost = price, max_cost
        self.requests = self.kept = self.sent = self.answered = 0
        self.spent = 0.0
        self.uncertain = 0
        """Requests whose tokens nobody told: they count with the most that they can be."""
        self._reserved, self._asking = 0.0, 0
        self._changed = Condition()

    def count_kept(self, answers: int) -> None:
        with self._changed:
            self.kept += answers

    def reserve(self, question: Mapping[str, Any], stopped: Event) -> Tokens:
        """Set aside what a question may cost; returns its tokens at most, for `settle`."""
        most = _most(question)
        cost = self._cost(most)
        with self._changed:
            while self.max_cost is not None and self.spent + self._reserved + cost > self.max_cost:
                if stopped.is_set():
                    raise Stopped
                if not self._asking:
                    raise CauserieError(
                        f"the judge has spent {self.spent:.4g} of --max-cost {self.max_cost:g}, "
                        f"and the next question may cost {cost:.2g}: what was answered is kept, "
                        "and with a higher --max-cost the same command goes on after it"
                    )
                self._changed.wait(_LISTENING)
            self._reserved += cost
            self._asking += 1
        return most

    def settle(self, most: Tokens, used: Tokens | None) -> None:
        """Take into account what became of a question: its tokens; None where nobody knows."""
        with self._changed:
            self._reserved -= self._cost(most)
            self._asking -= 1
            self.uncertain += used is None
            sent, answered = most if used is None else used
            self.requests += used != NOTHING
            self.sent += sent
            self.answered += answered
            self.spent += self._cost((sent, answered))
            self._changed.notify_all()

    def told(self) -> str:
        """In words, for whoever pays."""
        with self._changed:
            parts = [f"{counted(self.requests, 'request')}, {self.kept:,} answers from before"]
            parts.append(f"{self.sent:,} tokens sent, {self.answered:,} answered")
            parts.append(f"cost {self.spent:.4f}" if self.price else "no price is given")
            if self.uncertain:
                parts.append(
                    f"those of {counted(self.uncertain, 'request')} at most, since nobody told"
                )
        return "; ".join(parts)

    def _cost(self, tokens: Tokens) -> float:
        return self.price.of(*tokens) if self.price else 0.0


def _most(question: Mapping[str, Any]) -> Tokens:
    said = sum(
        len(text.encode()) if isinstance(text := one["content"], str) else len(json.dumps(text))
        for one in question["messages"]
    )
    return said + _BESIDE, question.get("max_tokens", 0) * question.get("n", 1)
