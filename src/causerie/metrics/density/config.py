"""How `density` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass

from causerie.engines.tuning import Kind, Tuning
from causerie.errors import CauserieError
from causerie.models import Pooling
from causerie.training.config import LoopConfig

INTERACTIONS = ("cross", "towers", "cosine")
_COUNTS = {
    "window": 8,
    "history": 1,
    "exchanges": 1,
    "width": 2,
    "negatives": 1,
    "batch": 2,
    "accumulate": 1,
    "validate_every": 1,
    "patience": 1,
    "gaussian": 2,
}
"""The least that each can be."""


@dataclass(frozen=True)
class DensityConfig:
    interaction: str = "cross"
    """`cross`: the encoder reads context and response together, as in the paper.
    `towers`: it reads each turn by itself and a small network compares them.
    `cosine`: likewise, compared by the cosine alone; a baseline."""
    tuning: Kind = "full"
    """What is trained of the encoder: `full`, `adapter` (low-rank) or `frozen`."""
    rank: int = 16
    """Of the adapter."""
    layers: int | None = None
    """Tune only the last so many layers of the encoder."""
    pooling: Pooling = "first"
    """Which output is the vector of a text: the `first` token's or the `mean`."""
    window: int = 256
    """Tokens that the encoder sees at most."""
    history: int = 5
    """Turns of context that two towers see."""
    exchanges: int = 8
    """In a row, per dialogue and step, for two towers; `cross` takes one."""
    width: int = 128
    """Of the features of `towers`; those of the others have the encoder's."""
    negatives: int = 15
    """Random responses per context for `cross`; two towers use all responses of a batch."""
    attacks: float = 0.0
    """Share of the contexts that have a corrupted true response among their negatives."""
    contrastive: float = 1.0
    """Weight of the contrastive loss (lambda)."""
    temperature: float = 0.1
    batch: int = 16
    """Dialogues per step."""
    accumulate: int = 1
    """Batches per step."""
    epochs: float = 10.0
    """In one, every dialogue is seen once."""
    learning_rate: float = 5e-5
    head_rate: float = 1.0
    """Learning rate of the head, as a multiple of the encoder's."""
    warmup_steps: int = 1000
    """At most a tenth of all steps."""
    weight_decay: float = 0.01
    clip: float = 1.0
    validate_every: int = 1000
    patience: int | None = None
    unit: bool = False
    """Fit the Gaussian to the directions of the features, which are what the contrastive loss
    compares: their lengths grow with the turns of the context."""
    gaussian: int | None = None
    """Fit the Gaussian to so many training exchanges, drawn at random; None: to all."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.interaction not in INTERACTIONS:
            raise CauserieError(
                f"interaction is {' or '.join(INTERACTIONS)}, not {self.interaction!r}"
            )
        _ = self.encoder_tuning
        if self.interaction == "towers" and self.width <= self.history:
            raise CauserieError(
                f"width is above history ({self.history}), not {self.width}: the features hold "
                "a cosine for each turn"
            )
        if self.interaction == "cosine" and self.contrastive:
            raise CauserieError("a cosine has no features to contrast: set contrastive=0")
        if not (self.temperature > 0 and self.epochs > 0 and 0 <= self.attacks <= 1):
            raise CauserieError("temperature and epochs are above 0, attacks from 0 to 1")
        for key in _COUNTS:
            value = getattr(self, key)
            if value is not None and value < _COUNTS[key]:
                raise CauserieError(f"{key} is at least {_COUNTS[key]}, not {value}")

    @property
    def encoder_tuning(self) -> Tuning:
        return Tuning(self.tuning, self.rank, self.layers)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return LoopConfig(
            steps=max(1, round(self.epochs * batches_per_epoch / self.accumulate)),
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            weight_decay=self.weight_decay,
            clip=self.clip,
            accumulate=self.accumulate,
            validate_every=self.validate_every,
            patience=self.patience,
            seed=self.seed,
        )
