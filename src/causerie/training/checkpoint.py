"""Checkpoints: weights, optimiser and progress in one safetensors file, replaced in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from causerie.errors import CauserieError

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Checkpoint:
    """The state of one training run in its folder."""

    def __init__(
        self,
        folder: Path,
        trainable: Mapping[str, nn.Parameter],
        optimizer: torch.optim.AdamW,
        config: Mapping[str, Any],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._trainable, self._optimizer = trainable, optimizer
        self._config = json.dumps(config, sort_keys=True)
        self._latest = folder / "checkpoint.safetensors"
        self._best = folder / "best.safetensors"

    def exists(self) -> bool:
        return self._latest.exists()

    def save(self, progress: Mapping[str, Any]) -> None:
        tensors = {f"weight/{n}": p.detach() for n, p in self._trainable.items()}
        for name, parameter in self._trainable.items():
            for moment, value in self._optimizer.state[parameter].items():
                tensors[f"{moment}/{name}"] = value
        metadata = {"config": self._config, "progress": json.dumps(progress)}
        _replace(self._latest, tensors, metadata)

    def load(self) -> dict[str, Any]:
        """Put weights and optimiser back; returns the progress that was saved with them."""
        try:
            with safe_open(str(self._latest), framework="pt") as file:
                metadata = file.metadata()
            tensors = load_file(self._latest)
            saved, progress = metadata["config"], json.loads(metadata["progress"])
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise _damaged(self._latest, error) from error
        if saved != self._config:
            raise CauserieError(
                f"{self._latest} was written with other settings or data: use the same, or remove "
                f"{self._latest.parent}"
            )
        with torch.no_grad():
            for name, parameter in self._trainable.items():
                parameter.copy_(tensors[f"weight/{name}"])
                self._optimizer.state[parameter] = {
                    moment: tensors[f"{moment}/{name}"].to(
                        parameter.device if moment != "step" else "cpu"
                    )
                    for moment in _MOMENTS
                    if f"{moment}/{name}" in tensors
                }
        return dict(progress)

    def save_best(self) -> None:
        _replace(self._best, {n: p.detach() for n, p in self._trainable.items()}, {})

    def load_best(self) -> None:
        try:
            best = load_file(self._best)
            with torch.no_grad():
                for name, parameter in self._trainable.items():
                    parameter.copy_(best[name])
        except (SafetensorError, OSError, KeyError) as error:
            raise _damaged(self._best, error) from error


def _damaged(path: Path, error: Exception) -> CauserieError:
    return CauserieError(
        f"{path} is damaged: remove {path.parent} and train anew ({type(error).__name__}: {error})"
    )


def _replace(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    temporary = path.with_suffix(".tmp")
    save_file({n: t.contiguous() for n, t in tensors.items()}, temporary, metadata)
    os.replace(temporary, path)
