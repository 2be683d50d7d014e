"""How `causalscore` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from causerie.errors import CauserieError
from causerie.training.encoderconfig import EncoderConfig

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
class CausalScoreConfig(EncoderConfig):
    interaction: Literal["cross", "towers"] = "cross"
    """`cross`: the encoder reads the texts of a tuple together, as in the paper; each classifier
    has its own. `towers`: it reads each by itself and small networks compare them; it is tuned
    with the unconditional classifier, and both stand on it."""
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
    warmup_steps: int = 10
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        self.check(_CHOICES, _LEAST)
        if not 0 <= self.dropout < 1:
            raise CauserieError(f"dropout is from 0 to below 1, not {self.dropout}")
        if not 0.5 <= self.confidence < 1:
            raise CauserieError(f"confidence is from 0.5 to below 1, not {self.confidence}")
