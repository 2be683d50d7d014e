"""Compact vectors for the nodes of a graph: 8-bit integers with one scale per node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError
from causerie.graph.arrays import write_header

WordVector: TypeAlias = tuple[str, NDArray[np.float32]]
_ROWS = 1 << 14
"""Number of rows in double precision at a time."""


def write_vectors(
    file: Path, rows: int, row_of: Callable[[str], int | None], vectors: Iterable[WordVector]
) -> bool:
    """Write each vector to the row of its word; without vectors, write no file and return False.

    Words without a row are left out, rows without a word stay zero. Each row is written in place
    as it comes, so memory stays flat.
    """
    stream = iter(vectors)
    first = next(stream, None)
    if first is None:
        return False
    dimension = len(first[1])
    scales = np.zeros(rows, dtype=np.float32)
    shapes = {"scales": ("F32", (rows,)), "vectors": ("I8", (rows, dimension))}
    with file.open("wb") as out:
        begin = write_header(out, shapes)
        for word, vector in chain([first], stream):
            row = row_of(word)
            if row is None:
                continue
            if vector.shape != (dimension,):
                raise CauserieError(
                    f"the vector of {word!r} has {vector.size} numbers, that of {first[0]!r} has "
                    f"{dimension}: all vectors must have the same length"
                )
            scale = float(np.abs(vector).max(initial=0)) / 127
            scales[row] = scale
            if scale:
                out.seek(begin["vectors"] + row * dimension)
                out.write(np.rint(vector / scale).astype(np.int8).tobytes())
        out.seek(begin["scales"])
        scales.tofile(out)
    return True


def reduced(vectors: NDArray[np.float32], dimension: int) -> NDArray[np.float32]:
    """Project vectors onto their first `dimension` principal components."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    parts = [vectors[start : start + _ROWS] for start in range(0, len(vectors), _ROWS)]
    scatter = sum((part - mean).T @ (part - mean) for part in parts)
    _, directions = np.linalg.eigh(scatter)
    best = directions[:, ::-1][:, :dimension]
    # The sign of a direction is arbitrary: fix it so that builds are reproducible.
    best = best * np.sign(best[np.abs(best).argmax(axis=0), np.arange(best.shape[1])])
    return np.concatenate([((part - mean) @ best).astype(np.float32) for part in parts])
