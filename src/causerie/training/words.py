"""Vectors of words by an encoder, made small: what the nodes of a graph carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causerie.graph.vectors import WordVector, reduced
from causerie.progress import Progress, Watch, ignore

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder

DIMENSION = 64
_CHUNK = 2048


def word_vectors(
    encoder: Encoder,
    words: Sequence[str],
    dimension: int = DIMENSION,
    watch: Watch = ignore,
) -> Iterator[WordVector]:
    """Each word with the encoder's vector of it, reduced to `dimension` principal components."""
    vectors = np.empty((len(words), encoder.dimension), dtype=np.float32)
    for start in range(0, len(words), _CHUNK):
        chunk = words[start : start + _CHUNK]
        vectors[start : start + len(chunk)] = encoder.encode([((word,),) for word in chunk])
        watch(Progress("encoding words", start + len(chunk), len(words), "words"))
    yield from zip(words, reduced(vectors, dimension), strict=True)
