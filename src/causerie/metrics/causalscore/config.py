"""How `causalscore` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from causerie.errors import CauserieError
from causerie.options import option
from causerie.training.config import EncoderConfig

HEAD = ("interaction", "width", "distance")
"""Settings that must agree for the weights of what stands on the encoder to fit."""


@dataclass(frozen=True)
class CausalScoreConfig(EncoderConfig):
    interaction: Literal["cross", "towers"] = option(
        "cross",
        "cross: the encoder reads the texts of a tuple together, as in the paper, and each "
        "classifier has its own; towers: it reads each by itself and small networks compare them, "
        "it is tuned with the unconditional classifier, and both stand on it",
    )
    width: int = option(64, "of the small networks of towers", least=1)
    dropout: float = option(0.1, "in the small networks")
    distance: bool = option(
        False,
        "tell the conditional classifier of towers how far from the response utterances were said; "
        "in the paper it sees texts alone",
    )
    history: int | None = option(
        6,
        "turns before the response among which causes are sought; null: all, as in the paper, and "
        "pairs grow with the square",
        least=2,
    )
    causes: Literal["annotated", "weak", "preceding two"] = option(
        "annotated",
        "positives of the conditional classifier; the others need no annotation: weak, which is "
        "taken without --annotations, are found by C_uncond and distance; preceding two, an "
        "ablation, are the two turns before the response against two of another conversation",
    )
    others: int = option(
        1,
        "responses of other conversations against each true one, for the unconditional classifier: "
        "with more of them it is surer before it calls a response dependent",
        least=1,
    )
    said: bool = option(
        False,
        "an utterance is a false response to itself, for the unconditional classifier: who repeats "
        "what was said does not answer",
    )
    negatives: Literal["history", "matched"] = option(
        "history",
        "negatives of the conditional classifier: a non-cause of the same history; matched: all of "
        "them, weighted so that place says nothing about the label",
    )
    dialogues: int | None = option(None, "drawn from every file of unlabelled ones [all]", least=2)
    exchanges: int = option(4, "drawn from every unlabelled dialogue", least=0)
    rounds: int = option(5, "of self-training at most; 0: none", least=0)
    confidence: float = option(0.9, "above which an unlabelled tuple becomes a positive")
    curve: int = option(
        4, "points of the learning curve of the conditional classifier; 0: none", least=0
    )
    batch: int = option(16, "examples per step", least=2)
    warmup_steps: int = option(10, "steps of warm-up, at most a tenth of all", least=0)
    weight_decay: float = option(0.0, "of AdamW; without any it is Adam, as in the paper", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise CauserieError(f"dropout is from 0 to below 1, not {self.dropout}")
        if self.distance and self.interaction == "cross":
            raise CauserieError("distance=true takes interaction=towers: cross reads texts alone")
        if not 0.5 <= self.confidence < 1:
            raise CauserieError(f"confidence is from 0.5 to below 1, not {self.confidence}")
