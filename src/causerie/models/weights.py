"""Tensors from verified bytes, without copying.

No file is opened here, so the tensors cannot come from another file than the one that was hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from causerie.io.verified import Content, Placed

_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def tensors_of(content: Content) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; raise ValueError if it is damaged.

    They share the memory of the content, which lives as long as any of them.
    """
    tensors = {name: _tensor(content, placed) for name, placed in content.arrays().items()}
    check_finite(tensors)
    return tensors


def unpickled_tensors_of(content: Content) -> dict[str, Tensor]:
    """Return the tensors of a pytorch_model.bin, read by torch's restricted unpickler."""
    from pickle import UnpicklingError

    try:
        tensors = torch.load(BytesIO(content.data), map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, KeyError) as error:
        raise ValueError(f"it holds no weights ({type(error).__name__})") from error
    named = isinstance(tensors, dict) and all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor)
        for name, tensor in tensors.items()
    )
    if not named:
        raise ValueError("it holds something other than weights")
    check_finite(tensors)
    return dict(tensors)


def _tensor(content: Content, placed: Placed) -> Tensor:
    dtype = _TYPES.get(placed.dtype)
    if dtype is None:
        raise ValueError(f"it has weights of type {placed.dtype}, which is not supported")
    if not placed.count:
        return torch.empty(placed.shape, dtype=dtype)
    data, start = content.data, placed.start
    if not placed.aligned:
        data, start = bytearray(data[start : placed.stop]), 0
    flat = torch.frombuffer(data, dtype=dtype, count=placed.count, offset=start)
    return flat.view(placed.shape)


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError that names the first tensor with NaN or infinite values."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            least, most = torch.aminmax(tensor)
            if not (torch.isfinite(least) and torch.isfinite(most)):
                raise ValueError(f"not every number in {name} is finite")
