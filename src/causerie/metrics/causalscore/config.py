"""How `causalscore` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from causerie.errors import CauserieError
from causerie.options import option
from causerie.training.config import EncoderConfig

HEAD = ("interaction", "width", "distance")
"""Settings that must agree for the weights of the heads to fit."""


@dataclass(frozen=True)
class CausalScoreConfig(EncoderConfig):
    interaction: Literal["cross", "towers"] = option(
        "cross",
        "cross: the encoder reads the texts of a tuple together, as in the paper, and each "
        "classifier has its own; towers: one encoder, tuned with the unconditional classifier, "
        "reads each text by itself, and small networks compare them",
    )
    width: int = option(64, "width of the small networks of towers", least=1)
    dropout: float = option(0.1, "dropout in the small networks")
    distance: bool = option(
        False,
        "give the conditional classifier of towers the distances of utterances from the response; "
        "in the paper it sees only texts",
    )
    history: int | None = option(
        6,
        "number of turns before the response searched for causes; null: all, as in the paper, with "
        "pairs growing quadratically",
        least=2,
    )
    causes: Literal["annotated", "weak", "preceding two"] = option(
        "annotated",
        "positives of the conditional classifier: annotated causes; weak: found by C_uncond and "
        "distance, the default without --annotations; preceding two (an ablation): the two turns "
        "before the response, against two of another conversation",
    )
    others: int = option(
        1,
        "negatives per positive for the unconditional classifier, from other conversations: with "
        "more of them it calls fewer responses dependent",
        least=1,
    )
    said: bool = option(
        False,
        "use each utterance as a negative response to itself, for the unconditional classifier: "
        "repeating is no answer",
    )
    negatives: Literal["history", "matched"] = option(
        "history",
        "negatives of the conditional classifier: one non-cause of the same history; matched: all "
        "of them, weighted so that distance does not predict the label",
    )
    dialogues: int | None = option(None, "dialogues drawn per unlabelled file [all]", least=2)
    exchanges: int = option(4, "exchanges drawn per unlabelled dialogue", least=0)
    rounds: int = option(5, "maximum number of rounds of self-training; 0: none", least=0)
    confidence: float = option(0.9, "probability above which an unlabelled tuple is a positive")
    curve: int = option(
        4, "number of points on the conditional classifier's learning curve; 0: none", least=0
    )
    batch: int = option(16, "examples per step", least=2)
    warmup_steps: int = option(10, "warm-up steps; limited to a tenth of all steps", least=0)
    weight_decay: float = option(0.0, "weight decay of AdamW; 0: Adam, as in the paper", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise CauserieError(f"dropout must be from 0 to below 1, not {self.dropout}")
        if self.distance and self.interaction == "cross":
            raise CauserieError("distance=true needs interaction=towers: cross reads only texts")
        if not 0.5 <= self.confidence < 1:
            raise CauserieError(f"confidence must be from 0.5 to below 1, not {self.confidence}")
