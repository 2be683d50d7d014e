"""The one place where numbers are made: plan, scorer, store."""

from __future__ import annotations

from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Batch, Scorer, load
from causerie.scoring.store import ScoreStore

__all__ = ["Batch", "Plan", "ScoreStore", "Scorer", "load"]
