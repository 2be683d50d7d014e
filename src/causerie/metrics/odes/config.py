"""How `odes` is trained: a small network on an encoder that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass

from causerie.errors import CauserieError
from causerie.training.config import LoopConfig

_LEAST = {"width": 1, "hidden": 1, "utterances": 1, "folds": 2, "batch": 2}
"""The least that each can be."""


@dataclass(frozen=True)
class OdesConfig:
    width: int = 128
    """Patterns of three tokens that are looked for."""
    hidden: int = 256
    dropout: float = 0.4
    utterances: int = 4
    """Of each template at most."""
    folds: int = 5
    """One template in so many is kept for testing."""
    batch: int = 64
    epochs: float = 8.0
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for key, least in _LEAST.items():
            if getattr(self, key) < least:
                raise CauserieError(f"{key} is at least {least}, not {getattr(self, key)}")
        if not (0 <= self.dropout < 1 and self.epochs > 0):
            raise CauserieError("dropout is from 0 to below 1, epochs above 0")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        steps = max(1, round(self.epochs * batches_per_epoch))
        return LoopConfig(
            steps=steps,
            learning_rate=self.learning_rate,
            warmup_steps=0,
            weight_decay=self.weight_decay,
            clip=self.clip,
            # once, at the end: weights chosen by the tested templates would flatter them
            validate_every=steps,
            seed=self.seed,
        )
