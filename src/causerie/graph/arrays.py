"""Arrays in safetensors files that are opened without being read.

The library for this format copies whole files into memory; the format itself (the length of a
JSON header, the header, the bytes of the arrays) is simple enough to be memory-mapped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError

Shapes: TypeAlias = Mapping[str, tuple[str, tuple[int, ...]]]
"""Of each array its type, as safetensors calls it, and its shape."""

_TYPES: dict[str, type[np.generic]] = {
    "I64": np.int64,
    "I32": np.int32,
    "F32": np.float32,
    "F16": np.float16,
    "U8": np.uint8,
    "I8": np.int8,
}
_LONGEST_HEADER = 1 << 20
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def write_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write them in order; for fast access those with the largest elements come first."""
    shapes = {name: (_NAMES[array.dtype], array.shape) for name, array in arrays.items()}
    with file.open("wb") as stream:
        write_header(stream, shapes)
        for array in arrays.values():
            array.tofile(stream)


def write_header(stream: BinaryIO, shapes: Shapes) -> dict[str, int]:
    """Begin a file; returns where in it each array is to begin."""
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


def open_arrays(file: Path, expected: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """The arrays of a file, memory-mapped; `expected` names them with their types."""
    try:
        with file.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            if size > min(file.stat().st_size, _LONGEST_HEADER):
                raise ValueError("it has no header")
            header = json.loads(stream.read(size))
        arrays = {}
        for name, kind in expected.items():
            about = header[name]
            if about["dtype"] != kind:
                raise ValueError(f"{name} is {about['dtype']}, not {kind}")
            shape = tuple(about["shape"])
            start, end = about["data_offsets"]
            if end - start != math.prod(shape) * np.dtype(_TYPES[kind]).itemsize:
                raise ValueError(f"{name} has another size than its shape says")
            arrays[name] = (
                np.memmap(file, _TYPES[kind], "r", 8 + size + start, shape)
                if math.prod(shape)
                else np.empty(shape, _TYPES[kind])
            )
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise CauserieError(
            f"{file} is damaged or not of a graph ({error}): build the graph again"
        ) from error
    return arrays
