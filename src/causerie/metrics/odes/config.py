"""How `odes` is trained: a small network on an encoder that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from causerie.errors import CauserieError
from causerie.options import option
from causerie.training.config import LoopConfig, TrainingConfig


@dataclass(frozen=True)
class OdesConfig(TrainingConfig):
    width: int = option(128, "patterns of three tokens that are looked for", least=1)
    hidden: int = option(256, "of the layer below the classes", least=1)
    members: int = option(1, "networks, each learned by itself; the mean of their logits", least=1)
    dropout: float = option(0.4, "of that layer; half of it of the tokens")
    utterances: int = option(4, "of each template at most", least=1)
    folds: int = option(5, "one template in so many is kept for testing", least=2)
    batch: int = option(64, "utterances per step", least=2)
    epochs: float = option(8.0, "passes over the utterances")
    learning_rate: float = option(1e-3, "highest learning rate, after the warm-up")
    weight_decay: float = option(0.05, "of AdamW", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise CauserieError(f"dropout is from 0 to below 1, not {self.dropout}")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        loop = super().loop(batches_per_epoch)
        # once, at the end: weights chosen by the tested templates would flatter them
        return replace(loop, validate_every=loop.steps)
