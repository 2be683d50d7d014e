"""How the loop optimises. Apart from it, so that settings can be read without torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoopConfig:
    """How to optimise; each metric's configuration starts from its paper's values."""

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
    seed: int = 0
