"""How `odes` is trained; the defaults are for the default encoder."""

from __future__ import annotations

from dataclasses import dataclass

from causerie.engines.tuning import Kind, Tuning
from causerie.errors import CauserieError
from causerie.models import Pooling
from causerie.training.config import LoopConfig

_LEAST = {"window": 8, "width": 1, "utterances": 1, "folds": 2, "batch": 2}
"""The least that each can be."""


@dataclass(frozen=True)
class OdesConfig:
    tuning: Kind = "adapter"
    """What is trained of the encoder: `full`, `adapter` (low-rank) or `frozen`."""
    rank: int = 16
    """Of the adapter."""
    layers: int | None = None
    """Tune only the last so many layers of the encoder."""
    pooling: Pooling = "mean"
    """Which output is the vector of a text: the `first` token's or the `mean`."""
    window: int = 64
    """Tokens that the encoder sees at most."""
    width: int = 128
    """Of the hidden layer that stands on the encoder."""
    dropout: float = 0.3
    utterances: int = 6
    """Of each template at most."""
    folds: int = 5
    """One template in so many is kept for testing."""
    batch: int = 32
    epochs: float = 6.0
    learning_rate: float = 5e-4
    head_rate: float = 4.0
    """Learning rate of what stands on the encoder, as a multiple of the encoder's."""
    warmup_steps: int = 50
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self.encoder_tuning
        for key, least in _LEAST.items():
            if getattr(self, key) < least:
                raise CauserieError(f"{key} is at least {least}, not {getattr(self, key)}")
        if not (0 <= self.dropout < 1 and self.epochs > 0):
            raise CauserieError("dropout is from 0 to below 1, epochs above 0")

    @property
    def encoder_tuning(self) -> Tuning:
        return Tuning(self.tuning, self.rank, self.layers)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        steps = max(1, round(self.epochs * batches_per_epoch))
        return LoopConfig(
            steps=steps,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            weight_decay=self.weight_decay,
            clip=self.clip,
            # once, at the end: weights chosen by the tested templates would flatter them
            validate_every=steps,
            seed=self.seed,
        )
