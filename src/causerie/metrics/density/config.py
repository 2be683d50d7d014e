"""How `density` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass

from causerie.errors import CauserieError
from causerie.training.loop import LoopConfig


@dataclass(frozen=True)
class DensityConfig:
    interaction: str = "cross"
    """`cross`: the encoder reads context and response together, as in the paper.
    `towers`: it reads each turn once and a small network compares them."""
    tuning: str = "full"
    """`full`, `adapter` (low-rank) or `frozen`."""
    rank: int = 16
    """Of the adapter."""
    pooling: str = "first"
    """Which output is the vector of a text: the `first` token's or the `mean`."""
    history: int = 5
    """Turns of context that `towers` sees."""
    negatives: int = 15
    """Random responses per context for `cross`; `towers` uses all responses of its batch."""
    attacks: bool = False
    """One more negative per context: the true response, corrupted."""
    contrastive: float = 1.0
    """Weight of the contrastive loss (lambda)."""
    temperature: float = 0.1
    batch: int = 16
    """Contexts (`cross`) or dialogues (`towers`) per step."""
    epochs: float = 10.0
    learning_rate: float = 5e-5
    warmup_steps: int = 1000
    validate_every: int = 1000
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.interaction not in ("cross", "towers"):
            raise CauserieError(f"interaction is cross or towers, not {self.interaction!r}")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return LoopConfig(
            steps=max(1, round(self.epochs * batches_per_epoch)),
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            validate_every=self.validate_every,
            patience=self.patience,
            seed=self.seed,
        )
