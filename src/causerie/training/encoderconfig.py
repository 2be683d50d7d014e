"""Settings that trainings on an encoder have in common, whether it is tuned with them or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from causerie.engines.tuning import Kind, Tuning
from causerie.errors import CauserieError
from causerie.models import Pooling
from causerie.training.config import LoopConfig


@dataclass(frozen=True)
class EncoderConfig:
    """A metric's own configuration adds to it, and has its paper's values as defaults."""

    interaction: Literal["cross", "towers"] = "cross"
    """Whether the encoder reads the texts of an example together, or each by itself."""
    tuning: Kind = "full"
    """What is trained of the encoder: `full`, `adapter` (low-rank) or `frozen`."""
    rank: int = 16
    """Of the adapter."""
    layers: int | None = None
    """Tune only the last so many layers of the encoder."""
    fixed: bool = False
    """Leave the encoder as --init has it and train only what stands on it: every text is then
    encoded once."""
    pooling: Pooling = "first"
    """Which output is the vector of a text: the `first` token's or the `mean`."""
    window: int = 256
    """Tokens that the encoder sees at most."""
    batch: int = 16
    epochs: float = 10.0
    learning_rate: float = 1e-5
    head_rate: float = 1.0
    """Learning rate of what stands on the encoder, as a multiple of the encoder's."""
    warmup_steps: int = 0
    weight_decay: float = 0.0
    clip: float = 1.0
    patience: int | None = None
    """Stop after so many epochs without a better validation score."""
    seed: int = 0

    @property
    def encoder_tuning(self) -> Tuning:
        return Tuning(self.tuning, self.rank, self.layers)

    @property
    def learns_encoder(self) -> bool:
        return self.tuning != "frozen" and not self.fixed

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return LoopConfig(
            steps=max(1, round(self.epochs * batches_per_epoch)),
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            weight_decay=self.weight_decay,
            clip=self.clip,
            validate_every=batches_per_epoch,
            patience=self.patience,
            seed=self.seed,
        )

    def check(self, choices: Mapping[str, Sequence[str]], least: Mapping[str, int]) -> None:
        """Refuse what is none of its choices, or below the least that it can be."""
        _ = self.encoder_tuning
        for key, known in choices.items():
            if getattr(self, key) not in known:
                raise CauserieError(f"{key} is {' or '.join(known)}, not {getattr(self, key)!r}")
        for key, lowest in least.items():
            value = getattr(self, key)
            if value is not None and value < lowest:
                raise CauserieError(f"{key} is at least {lowest}, not {value}")
        if not self.epochs > 0:
            raise CauserieError(f"epochs are above 0, not {self.epochs}")
