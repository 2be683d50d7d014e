"""Utterances that are encoded each by itself, equal ones once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from causerie.dialogue import Exchange

if TYPE_CHECKING:
    from causerie.engines.encoder import EncoderInput


class Texts:
    """The distinct texts of some exchanges, by their places among the vectors to be made."""

    def __init__(self) -> None:
        self._places = {"": 0}

    @property
    def inputs(self) -> list[EncoderInput]:
        """To encode, in this order."""
        return [((text,),) for text in list(self._places)[1:]]

    def vectors(self, encoded: Tensor) -> Tensor:
        """By place; the first is 0, for turns that are not there."""
        return torch.cat([encoded.new_zeros(1, encoded.shape[1]), encoded])

    def places(self, texts: Iterable[str]) -> Tensor:
        return torch.tensor([self._place(text) for text in texts])

    def contexts(self, exchanges: Sequence[Exchange], history: int) -> Tensor:
        """Of each exchange the last `history` turns, the newest first."""
        rows = []
        for exchange in exchanges:
            row = [self._place(turn.text) for turn in reversed(exchange.last(history))]
            rows.append(row + [0] * (history - len(row)))
        return torch.tensor(rows)

    def _place(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))
