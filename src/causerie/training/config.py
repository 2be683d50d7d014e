"""Training configurations, apart from the loop so that they can be read without torch.

A configuration is a frozen dataclass whose fields are options (`causerie.options`): types,
choices and lower bounds are declared with them, and `causerie train --set` changes them by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from causerie.engines.tuning import Kind, Tuning
from causerie.errors import CauserieError
from causerie.models import Pooling
from causerie.options import check_types, option

ENCODER = ("tuning", "rank", "layers", "pooling")
"""Settings that must agree for the weights of a tuned encoder to keep their meaning."""


@dataclass(frozen=True)
class LoopConfig:
    """Settings of the training loop, derived from a configuration by `TrainingConfig.loop`."""

    steps: int
    learning_rate: float = 5e-5
    warmup_steps: int = 1000
    """Warm-up steps; limited to a tenth of all steps."""
    weight_decay: float = 0.01
    clip: float = 1.0
    accumulate: int = 1
    """Number of batches per optimiser step."""
    validate_every: int = 500
    """Number of steps between validations."""
    patience: int | None = None
    """Number of validations without improvement after which training stops; None for never."""
    bfloat16: bool = False
    """Whether to compute in bfloat16 on a CPU, too; on a GPU this is always done."""
    seed: int = 0


@dataclass(frozen=True)
class TrainingConfig:
    """Options that every training has; each adds its own and sets its own defaults."""

    batch: int = option(16, "examples per step", least=1)
    epochs: float = option(10.0, "passes over the training data")
    learning_rate: float = option(1e-5, "peak learning rate, reached after the warm-up")
    warmup_steps: int = option(0, "warm-up steps; limited to a tenth of all steps", least=0)
    weight_decay: float = option(0.0, "weight decay of AdamW", least=0)
    clip: float = option(1.0, "maximum norm of the gradient")
    bfloat16: bool = option(
        False,
        "compute in bfloat16 on a CPU, too: more than twice as fast if the CPU supports it",
    )
    seed: int = option(0, "random seed", least=0)

    def __post_init__(self) -> None:
        check_types(self)
        if not self.epochs > 0:
            raise CauserieError(f"epochs must be above 0, not {self.epochs}")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        """Return the loop settings; validation follows every epoch."""
        return LoopConfig(
            steps=max(1, round(self.epochs * batches_per_epoch)),
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            weight_decay=self.weight_decay,
            clip=self.clip,
            validate_every=batches_per_epoch,
            bfloat16=self.bfloat16,
            seed=self.seed,
        )


@dataclass(frozen=True)
class EncoderConfig(TrainingConfig):
    """Options of all trainings on an encoder, whether the encoder is tuned or not."""

    tuning: Kind = option("full", "how the encoder is trained: full, adapter or frozen")
    rank: int = option(16, "rank of the adapter", least=1)
    layers: int | None = option(
        None, "number of the encoder's last layers that are tuned [all]", least=1
    )
    fixed: bool = option(
        False,
        "keep the encoder of --init unchanged and train only the heads, so that every text is "
        "encoded once",
    )
    pooling: Pooling = option("first", "vector of a text: the first token's, or the mean of all")
    window: int = option(256, "maximum input of the encoder in tokens", least=8)
    head_rate: float = option(1.0, "learning rate of the heads, as a multiple of the encoder's")
    patience: int | None = option(
        None, "validations without improvement after which training stops [never]", least=1
    )

    @property
    def encoder_tuning(self) -> Tuning:
        return Tuning(self.tuning, self.rank, self.layers)

    @property
    def learns_encoder(self) -> bool:
        return self.tuning != "frozen" and not self.fixed

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(super().loop(batches_per_epoch), patience=self.patience)
