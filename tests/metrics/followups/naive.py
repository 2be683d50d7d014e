"""The oracle of the follow-up metrics: the papers' formulas, one sequence per forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from causerie.dialogue import Exchange


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass
class Sequences:
    """A model that scores one sequence at a time, implemented naively."""

    model: Any
    tokenizer: Any
    turns: str
    _known: dict[Any, list[list[float]]] = field(default_factory=dict)

    def __call__(self, said: list[tuple[str, str]]) -> list[list[float]]:
        """Return the log-likelihoods of every scored token of every turn."""
        key = tuple(said)
        if key not in self._known:
            self._known[key] = self._forward(said)
        return self._known[key]

    @torch.inference_mode()
    def _forward(self, said: list[tuple[str, str]]) -> list[list[float]]:
        def ids(text: str) -> list[int]:
            return self.tokenizer(text, add_special_tokens=False)["input_ids"]

        tokens: list[int] = []
        scored: list[range] = []
        if self.turns in ("eos", "published"):
            tokens.append(self.tokenizer.eos_token_id)
        if self.turns == "plain":
            tokens.append(self.tokenizer.bos_token_id)
        for role, text in said:
            if self.turns == "plain":
                tokens += ids("B:" if role == "system" else "A:")
                start = len(tokens)
                tokens += ids(" " + " ".join(text.splitlines())) + ids("\n")
                scored.append(range(start, len(tokens)))
                continue
            if self.turns == "published":  # "<eos> one <eos> two <eos> three"
                start = len(tokens)
                tokens += [*ids(" "), self.tokenizer.eos_token_id] if scored else []
                tokens += ids(" " + text)
                scored.append(range(start, len(tokens)))
                continue
            if self.turns == "chat":
                tokens += ids(f"<|im_start|>{'assistant' if role == 'system' else 'user'}\n")
            start = len(tokens)
            tokens += [*ids(text), self.tokenizer.eos_token_id]
            scored.append(range(start, len(tokens)))
            if self.turns == "chat":
                tokens += ids("\n")
        log_probs = self.model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
        return [[float(log_probs[i - 1, tokens[i]]) for i in turn] for turn in scored]


@dataclass
class Naive:
    """Compute the metrics as the papers print them."""

    sequences: Sequences
    average: str = "sequence"
    history: int = 1000

    def score(self, metric: str, exchange: Exchange, sides: dict[str, list[str]]) -> float:
        def total(hypotheses: list[str]) -> float:
            return mean([self.scorer(metric, exchange, h) for h in hypotheses])

        return total(sides.get("negative", [])) - total(sides.get("positive", []))

    def scorer(self, metric: str, exchange: Exchange, hypothesis: str) -> float:
        c, r, h = self.parts(exchange, hypothesis)
        if metric == "fed":
            return -self.ll(c + r + h)
        one = self.ll(c + r + h) + self.ll(h) - self.ll(c + h) - self.ll(r + h)
        if metric == "cpmi":
            return one
        other = self.ll(r + c + h) + self.ll(h) - self.ll(r + h) - self.ll(c + h)
        return (one + other) / 2

    def change(self, exchange: Exchange, hypothesis: str) -> float:
        c, r, h = self.parts(exchange, hypothesis)
        return mean(self.sequences(c + r + h)[-1]) - mean(self.sequences(c + h)[-1])

    def parts(self, exchange: Exchange, hypothesis: str):
        said = [(exchange.role_of(turn), turn.text) for turn in exchange.context]
        role = exchange.role_of(exchange.response)
        return (
            said[-self.history :],
            [(role, exchange.response.text)],
            [("user" if role == "system" else "system", hypothesis)],
        )

    def ll(self, said: list[tuple[str, str]]) -> float:
        turns = self.sequences(said)
        if self.average == "hypothesis":
            return mean(turns[-1])
        return mean([value for turn in turns for value in turn])
