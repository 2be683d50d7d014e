"""Vectors of texts in training: with gradients, or computed once where the encoder is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from causerie.engines.encoder import Encoder, EncoderInput, pool
from causerie.models import Pooling

TEXTS_AT_ONCE = 16
"""Encoded together: similar lengths, little padding."""


class Vectors(Protocol):
    """One vector per input, in order."""

    def __call__(self, inputs: Sequence[EncoderInput]) -> Tensor: ...


class LearnedVectors:
    """From an encoder that is being trained; equal inputs are encoded once."""

    def __init__(self, encoder: Encoder, pooling: Pooling) -> None:
        self._encoder, self._pooling = encoder, pooling

    def __call__(self, inputs: Sequence[EncoderInput]) -> Tensor:
        distinct = list(dict.fromkeys(inputs))
        rows = self._encoder.input.rows(distinct)
        order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
        parts = []
        for start in range(0, len(order), TEXTS_AT_ONCE):
            group = order[start : start + TEXTS_AT_ONCE]
            batch = self._encoder.input.collate([rows[index] for index in group])
            hidden = self._encoder.forward(batch)
            parts.append(pool(hidden, batch["attention_mask"], self._pooling))
        places = {distinct[index]: place for place, index in enumerate(order)}
        return torch.cat(parts)[[places[one] for one in inputs]]


class FixedVectors:
    """From an encoder that stays as it is: every input is encoded once in all."""

    def __init__(self, encoder: Encoder, pooling: Pooling) -> None:
        self._encoder, self._pooling = encoder, pooling
        self._known: dict[EncoderInput, Tensor] = {}

    def __call__(self, inputs: Sequence[EncoderInput]) -> Tensor:
        new = [one for one in dict.fromkeys(inputs) if one not in self._known]
        if new:
            vectors = torch.from_numpy(self._encoder.encode(new, self._pooling))
            self._known.update(zip(new, vectors, strict=True))
        return torch.stack([self._known[one] for one in inputs]).to(self._encoder.device)
