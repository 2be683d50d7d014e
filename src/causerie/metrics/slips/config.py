"""How `slips` is trained: an encoder reads context and reply together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from causerie.models import Pooling
from causerie.options import option
from causerie.training.config import EncoderConfig, LoopConfig


@dataclass(frozen=True)
class SlipsConfig(EncoderConfig):
    history: int = option(4, "turns of context that are read", least=1)
    hidden: int = option(192, "width of the layer below the faults", least=1)
    dropout: float = option(0.1, "of that layer")
    good: float = option(0.4, "share of the replies that are left as they are")
    exchanges: int | None = option(None, "exchanges that an epoch draws at most [all]", least=1)
    batch: int = option(32, "replies per step", least=2)
    epochs: float = option(1.0, "passes over the exchanges; each time other faults are made")
    learning_rate: float = option(1e-4, "highest learning rate, after the warm-up")
    head_rate: float = option(5.0, "learning rate of the head, as a multiple of the encoder's")
    warmup_steps: int = option(200, "steps of warm-up, at most a tenth of all", least=0)
    weight_decay: float = option(0.01, "of AdamW", least=0)
    pooling: Pooling = option("mean", "vector of an input: the first token's, or the mean")
    window: int = option(112, "tokens that the encoder sees at most", least=8)
    stock: float = option(
        0.0, "share of the untuned encoder in the average of both that is kept", least=0
    )
    validate_every: int = option(500, "steps between validations", least=1)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(super().loop(batches_per_epoch), validate_every=self.validate_every)
