"""How trainings are configured. Apart from the loop, so that settings can be read without torch.

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
"""Settings that must agree for the weights of a tuned encoder to mean what they did."""


@dataclass(frozen=True)
class LoopConfig:
    """What the loop has to know; every configuration can say it (`TrainingConfig.loop`)."""

    steps: int
    learning_rate: float = 5e-5
    warmup_steps: int = 1000
    """At most a tenth of the steps."""
    weight_decay: float = 0.01
    clip: float = 1.0
    accumulate: int = 1
    """Batches per step."""
    validate_every: int = 500
    """Steps between two validations."""
    patience: int | None = None
    """Stop after this many validations without a better score."""
    bfloat16: bool = False
    """Compute in bfloat16 on a CPU, too, as is always done on a GPU."""
    seed: int = 0


@dataclass(frozen=True)
class TrainingConfig:
    """What every training can be told; each adds its own options and has its own defaults."""

    batch: int = option(16, "examples per step", least=1)
    epochs: float = option(10.0, "passes over the training data")
    learning_rate: float = option(1e-5, "highest learning rate, after the warm-up")
    warmup_steps: int = option(0, "steps of warm-up, at most a tenth of all", least=0)
    weight_decay: float = option(0.0, "of AdamW", least=0)
    clip: float = option(1.0, "largest norm of a gradient")
    bfloat16: bool = option(
        False,
        "compute in bfloat16 on a CPU, too: more than twice as fast where it has the instructions",
    )
    seed: int = option(0, "random seed", least=0)

    def __post_init__(self) -> None:
        check_types(self)
        if not self.epochs > 0:
            raise CauserieError(f"epochs are above 0, not {self.epochs}")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        """The loop that it describes; validation comes after every epoch."""
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
    """What trainings on an encoder have in common, whether it is tuned with them or not."""

    tuning: Kind = option("full", "what is trained of the encoder: full, adapter or frozen")
    rank: int = option(16, "rank of the adapter", least=1)
    layers: int | None = option(
        None, "tune only the last so many layers of the encoder [all]", least=1
    )
    fixed: bool = option(
        False,
        "leave the encoder as --init has it and train only what stands on it: every text is then "
        "encoded once",
    )
    pooling: Pooling = option("first", "vector of a text: the first token's, or the mean")
    window: int = option(256, "tokens that the encoder sees at most", least=8)
    head_rate: float = option(
        1.0, "learning rate of what stands on the encoder, as a multiple of the encoder's"
    )
    patience: int | None = option(
        None, "stop after so many validations without a better score [never]", least=1
    )

    @property
    def encoder_tuning(self) -> Tuning:
        return Tuning(self.tuning, self.rank, self.layers)

    @property
    def learns_encoder(self) -> bool:
        return self.tuning != "frozen" and not self.fixed

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(super().loop(batches_per_epoch), patience=self.patience)
