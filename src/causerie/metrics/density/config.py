"""How `density` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from causerie.errors import CauserieError
from causerie.options import option
from causerie.training.config import EncoderConfig, LoopConfig

HEAD = ("interaction", "width", "history")
"""Settings that must agree for the weights of the head to fit."""


@dataclass(frozen=True)
class DensityConfig(EncoderConfig):
    interaction: Literal["cross", "towers", "views", "cosine"] = option(
        "cross",
        "cross: the encoder reads context and response together, as in the paper; towers: it reads "
        "each turn by itself and a small network compares them; views: likewise, but the network "
        "sees only cosines; cosine: the cosine alone, a baseline",
    )
    history: int = option(5, "number of context turns that two towers see", least=1)
    exchanges: int = option(
        8, "consecutive exchanges per dialogue in a batch, for two towers; cross takes one", least=1
    )
    width: int = option(
        128, "width of the features of towers and views; others have the encoder's", least=2
    )
    negatives: int = option(
        15,
        "random responses per context for cross; two towers use all responses of a batch",
        least=1,
    )
    attacks: float = option(
        0.0, "share of contexts with a corrupted true response among their negatives"
    )
    said: bool = option(
        False, "use turns of the context as negatives, too: repeating them is no answer"
    )
    mined: float = option(
        0.0,
        "share of hard negatives, near the true response by the encoder that training starts from; "
        "useful once a first training has learned the easy ones",
    )
    contrastive: float = option(1.0, "weight of the contrastive loss (lambda)")
    temperature: float = option(0.1, "temperature of the contrastive loss")
    batch: int = option(16, "rows of exchanges per batch, each from one dialogue", least=2)
    accumulate: int = option(1, "batches per step", least=1)
    epochs: float = option(10.0, "passes over the training data; each sees every exchange once")
    learning_rate: float = option(5e-5, "peak learning rate, reached after the warm-up")
    warmup_steps: int = option(1000, "warm-up steps; limited to a tenth of all steps", least=0)
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0)
    validate_every: int = option(1000, "steps between validations", least=1)
    stock: float = option(
        0.0, "weight of the untuned encoder when both are averaged after training"
    )
    unit: bool = option(
        False,
        "fit the Gaussian to unit-length features, as the contrastive loss compares them: their "
        "length grows with the number of context turns",
    )
    gaussian: int | None = option(
        None, "number of random training exchanges the Gaussian is fitted to [all]", least=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interaction == "towers" and self.width <= self.history:
            raise CauserieError(
                f"width must be above history ({self.history}), not {self.width}: the features "
                "hold a cosine for each turn"
            )
        if self.interaction == "cosine" and self.contrastive:
            raise CauserieError("a cosine has no features to contrast: set contrastive=0")
        if self.interaction == "cosine" and self.said:
            raise CauserieError("the cosine of a turn with itself is always 1: set said=false")
        if not (self.temperature > 0 and 0 <= self.stock < 1):
            raise CauserieError("temperature must be above 0, stock from 0 to below 1")
        if not all(0 <= share <= 1 for share in (self.attacks, self.mined)):
            raise CauserieError("attacks and mined must be shares, from 0 to 1")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(
            super().loop(batches_per_epoch),
            steps=max(1, round(self.epochs * batches_per_epoch / self.accumulate)),
            accumulate=self.accumulate,
            validate_every=self.validate_every,
        )
