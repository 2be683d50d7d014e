"""From records to scores: a plan says what, a scorer computes it, in memory or file to file."""

from causerie.scoring.files import Inputs, Run
from causerie.scoring.plan import Plan
from causerie.scoring.result import Result, evaluate
from causerie.scoring.scorer import Batch, Scorer, load
from causerie.scoring.store import ScoreStore
from causerie.scoring.summary import Summary
from causerie.scoring.table import Layout

__all__ = [
    "Batch",
    "Inputs",
    "Layout",
    "Plan",
    "Result",
    "Run",
    "ScoreStore",
    "Scorer",
    "Summary",
    "evaluate",
    "load",
]
