"""Which networks to use and how to run them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from causerie.errors import CauserieError

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")
BACKENDS = ("torch", "onednn", "onednn-bf16")
"""What may compute an encoder's layers."""
_DEVICE = re.compile(r"auto|cpu|cuda(:\d{1,4})?", re.ASCII)


@dataclass(frozen=True)
class Settings:
    """What a user can choose about the engines; the defaults work on any laptop."""

    encoder: str = "default"
    """Registry name, local folder, or hub name."""
    lm: str = "default"
    """Likewise, for the language model."""
    turn_format: str | None = None
    """How a dialogue becomes text for the language model; None: what fits the model."""
    device: str = "auto"
    """`auto` (CUDA if there is one), `cpu`, `cuda`, `cuda:1`..."""
    dtype: str = "float32"
    """`float32`, `bfloat16` or `float16`."""
    backend: str = "torch"
    """What computes encoders: one of `BACKENDS`, or `auto`, the quickest that is right here."""
    threads: int | None = None
    """CPU threads while networks compute; None leaves torch's own choice (the physical cores)."""
    models_dir: Path | None = None
    """The model store; None: the platform's cache folder."""
    offline: bool = False
    """Never touch the network."""
    research: bool = False
    """Use the artifacts that learned from data for research only, wherever there are any: they
    come with the package causerie-research."""

    def __post_init__(self) -> None:
        if not _DEVICE.fullmatch(self.device):
            raise CauserieError(f"unknown device {self.device!r}: use auto, cpu, cuda or cuda:N")
        if self.dtype not in DTYPES:
            raise CauserieError(f"unknown dtype {self.dtype!r}: use one of {', '.join(DTYPES)}")
        if self.backend not in (*BACKENDS, "auto"):
            choices = ", ".join(BACKENDS)
            raise CauserieError(f"unknown backend {self.backend!r}: use {choices} or auto")
        if self.backend in BACKENDS[1:] and (self.dtype != "float32" or "cuda" in self.device):
            raise CauserieError(
                f"--backend {self.backend} computes on the processor, in a precision of its own: "
                "leave out --device and --dtype, or --backend"
            )

    def torch_device(self) -> torch.device:
        import torch

        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise CauserieError(
                f"device {self.device!r} cannot be used here: use --device cpu"
            ) from error
        return device

    def torch_dtype(self) -> torch.dtype:
        import torch

        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype
