"""How `causalscore` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from causerie.engines.tuning import Kind, Tuning
from causerie.errors import CauserieError
from causerie.models import Pooling
from causerie.training.config import LoopConfig

HEAD = ("interaction", "width")
"""Settings that must agree for the weights of what stands on the encoder to fit."""
_CHOICES = {
    "interaction": ("cross", "towers"),
    "causes": ("annotated", "preceding two"),
    "negatives": ("history", "matched"),
}
_LEAST = {
    "window": 8, "history": 2, "width": 1, "others": 1, "exchanges": 0, "rounds": 0, "curve": 0,
    "batch": 2, "patience": 1,
}  # fmt: skip
"""The least that each can be."""


@dataclass(frozen=True)
class CausalScoreConfig:
    interaction: Literal["cross", "towers"] = "cross"
    """`cross`: the encoder reads the texts of a tuple together, as in the paper; each classifier
    has its own. `towers`: it reads each by itself and small networks compare them; it is tuned
    with the unconditional classifier, and both stand on it."""
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
    width: int = 64
    """Of the small networks of `towers`."""
    dropout: float = 0.1
    """In the small networks."""
    history: int = 6
    """Turns before the response among which causes are sought: pairs grow with its square."""
    causes: Literal["annotated", "preceding two"] = "annotated"
    """Positives of the conditional classifier; `preceding two`, an ablation, needs no annotation:
    the two turns before the response against two of another conversation."""
    others: int = 1
    """Responses of other conversations against each true one, for the unconditional classifier:
    with more of them it is surer before it calls a response dependent."""
    negatives: Literal["history", "matched"] = "history"
    """Negatives of the conditional classifier: a non-cause of the same history, or one that is
    as far from its response as the positive, so that place says nothing."""
    exchanges: int = 4
    """Drawn from every unlabelled dialogue."""
    rounds: int = 5
    """Of self-training at most; 0: none."""
    confidence: float = 0.9
    """Above which an unlabelled tuple becomes a positive."""
    curve: int = 4
    """Points of the learning curve of the conditional classifier; 0: none."""
    batch: int = 16
    epochs: float = 10.0
    learning_rate: float = 1e-5
    head_rate: float = 1.0
    """Learning rate of what stands on the encoder, as a multiple of the encoder's."""
    warmup_steps: int = 10
    weight_decay: float = 0.01
    clip: float = 1.0
    patience: int | None = None
    """Stop after so many epochs without a better validation score."""
    seed: int = 0

    def __post_init__(self) -> None:
        for key, known in _CHOICES.items():
            if getattr(self, key) not in known:
                raise CauserieError(f"{key} is {' or '.join(known)}, not {getattr(self, key)!r}")
        if not (self.epochs > 0 and 0 <= self.dropout < 1):
            raise CauserieError("epochs are above 0, dropout from 0 to below 1")
        _ = self.encoder_tuning
        if not 0.5 <= self.confidence < 1:
            raise CauserieError(f"confidence is from 0.5 to below 1, not {self.confidence}")
        for key, least in _LEAST.items():
            value = getattr(self, key)
            if value is not None and value < least:
                raise CauserieError(f"{key} is at least {least}, not {value}")

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
