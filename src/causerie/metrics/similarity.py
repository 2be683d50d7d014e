"""Cosine similarity of vectors, shared by all metrics that compare embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.dialogue import Exchange
    from causerie.engines.encoder import Encoder

Floats: TypeAlias = "NDArray[np.float32]"

# Number of rows compared at a time, so that two long texts do not need a huge matrix.
_ROWS = 1024


def cosine(a: Floats, b: Floats) -> float:
    """Return the cosine of the angle between two vectors; NaN if one is zero."""
    norm = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / norm if norm else math.nan


def untrained_cosines(encoder: Encoder, exchanges: Sequence[Exchange]) -> NDArray[Any]:
    """Return the cosine of each response with the two turns before it, without any training."""
    contexts = [(tuple(turn.text for turn in exchange.last(2)),) for exchange in exchanges]
    responses = [((exchange.response.text,),) for exchange in exchanges]
    vectors = encoder.encode([*contexts, *responses])
    pairs = zip(vectors, vectors[len(exchanges) :], strict=False)
    return np.array([cosine(context, response) for context, response in pairs])


def best_cosines(rows: Floats, others: Floats) -> Floats:
    """Return the cosine of every row with the most similar of the others."""
    rows, others = _unit(rows), _unit(others)
    parts = [rows[i : i + _ROWS] @ others.T for i in range(0, len(rows), _ROWS)]
    return np.concatenate([part.max(axis=1) for part in parts])


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    norms[norms == 0] = 1
    unit: Floats = vectors / norms
    return unit
