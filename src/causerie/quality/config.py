"""How `quality` is learned from judgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from causerie.options import option
from causerie.training.config import TrainingConfig
from causerie.training.judgements import Terms

Tier: TypeAlias = Literal["fast", "standard"]
"""What is at hand: the encoders, or the default language model, too."""
LIMITS_OF_FAULTS = "limits"
"""The option of an artifact that says, by fault, above which probability it counts as found."""


@dataclass(frozen=True)
class QualityConfig(TrainingConfig):
    terms: Terms = option(
        "default",
        "which judgements are learned from: strict (explicit licences for commercial use), default "
        "(nobody forbids it) or research (all)",
    )
    per_set: int = option(1500, "replies of a judged set at most, whole contexts", least=20)
    trees: int = option(200, "boosted trees", least=1)
    leaves: int = option(8, "leaves of a tree", least=2)
    penalty: float = option(300.0, "of the squared weights of the line")
    bank: int = option(240, "replies of the dialogues that cosines are compared with", least=20)
    made: int = option(
        5000, "replies of each half of the dialogues, every other one made faulty", least=40
    )
