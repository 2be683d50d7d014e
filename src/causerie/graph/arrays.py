"""Arrays in memory-mapped safetensors files.

The safetensors library copies whole files into memory; the format itself (the length of a JSON
header, the header, the bytes of the arrays) is simple enough to be mapped without copying.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from causerie.io.verified import Content

Shapes: TypeAlias = Mapping[str, tuple[str, tuple[int, ...]]]
"""The type (as safetensors names it) and the shape of each array."""

_TYPES: dict[str, type[np.generic]] = {
    "I64": np.int64,
    "I32": np.int32,
    "F32": np.float32,
    "F16": np.float16,
    "U8": np.uint8,
    "I8": np.int8,
}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def write_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays in order; for aligned access, put those with the largest elements first."""
    shapes = {name: (_NAMES[array.dtype], array.shape) for name, array in arrays.items()}
    with file.open("wb") as stream:
        write_header(stream, shapes)
        for array in arrays.values():
            array.tofile(stream)


def write_header(stream: BinaryIO, shapes: Shapes) -> dict[str, int]:
    """Write the header of a file; return the offset at which each array begins."""
    header: dict[str, Any] = {}
    end = 0
    for name, (kind, shape) in shapes.items():
        start, end = end, end + math.prod(shape) * np.dtype(_TYPES[kind]).itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays are aligned
    stream.write(len(text).to_bytes(8, "little") + text)
    base = 8 + len(text)
    stream.truncate(base + end)
    return {name: base + about["data_offsets"][0] for name, about in header.items()}


def arrays_in(content: Content, expected: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return the arrays in a file's content, uncopied; `expected` names them with their types.

    Raises ValueError that says what is wrong with the file.
    """
    placed = content.arrays()
    arrays: dict[str, NDArray[Any]] = {}
    for name, kind in expected.items():
        if name not in placed or placed[name].dtype != kind:
            raise ValueError(f"it has no array {name} of type {kind}")
        one = placed[name]
        flat = np.frombuffer(content.data, _TYPES[kind], one.count, one.start)
        if kind.startswith("F") and not np.isfinite(flat).all():
            raise ValueError(f"not every number in {name} is finite")
        arrays[name] = flat.reshape(one.shape)
    return arrays
