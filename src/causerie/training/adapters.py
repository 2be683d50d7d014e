"""Which weights of a backbone are trained: all of them, or a low-rank adapter beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causerie.errors import CauserieError

TUNING = ("full", "adapter", "frozen")


def prepare(model: Any, tuning: str, rank: int) -> Any:
    """The backbone with just those weights trainable."""
    if tuning == "full":
        return model.requires_grad_(True)
    model.requires_grad_(False)
    if tuning == "frozen":
        return model
    if tuning == "adapter":
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
        return get_peft_model(model, config)
    raise CauserieError(f"unknown tuning {tuning!r}: use one of {', '.join(TUNING)}")


def save_adapter(model: Any, folder: Path) -> None:
    """Write the adapter of a prepared backbone, in float16."""
    import torch
    from safetensors.torch import load_file, save_file

    model.save_pretrained(folder)
    weights = folder / "adapter_model.safetensors"
    save_file({k: t.to(torch.float16) for k, t in load_file(weights).items()}, weights)
    (folder / "README.md").unlink(missing_ok=True)  # the artifact has a card of its own
