"""Training options of `slips`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from causerie.models import Pooling
from causerie.options import option
from causerie.training.config import EncoderConfig, LoopConfig


@dataclass(frozen=True)
class SlipsConfig(EncoderConfig):
    history: int = option(4, "number of context turns that the encoder reads", least=1)
    hidden: int = option(192, "width of the hidden layer", least=1)
    dropout: float = option(0.1, "dropout after the hidden layer")
    good: float = option(0.4, "share of replies that are left unchanged")
    exchanges: int | None = option(None, "maximum number of exchanges per epoch [all]", least=1)
    batch: int = option(32, "replies per step", least=2)
    epochs: float = option(1.0, "passes over the exchanges, with new faults in each")
    learning_rate: float = option(1e-4, "peak learning rate, reached after the warm-up")
    head_rate: float = option(5.0, "learning rate of the head, as a multiple of the encoder's")
    warmup_steps: int = option(200, "warm-up steps; limited to a tenth of all steps", least=0)
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0)
    pooling: Pooling = option("mean", "vector of an input: the first token's, or the mean of all")
    window: int = option(112, "maximum input of the encoder in tokens", least=8)
    stock: float = option(
        0.0, "weight of the untuned encoder when both are averaged after training", least=0
    )
    validate_every: int = option(500, "steps between validations", least=1)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(super().loop(batches_per_epoch), validate_every=self.validate_every)
