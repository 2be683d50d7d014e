"""Rows of scores: what a table holds about each response, or about each dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io.tables import KEYS
from causerie.metrics.base import Score
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Batch
from causerie.scoring.store import Item

Row: TypeAlias = dict[str, Any]

PERCENTILE = ".percentile"


@dataclass(frozen=True)
class Layout:
    """Which columns a table of a plan's scores has."""

    plan: Plan
    percentiles: bool = False
    explain: bool = False
    text: bool = True
    """Whether rows hold what was said."""

    def __post_init__(self) -> None:
        if taken := sorted(self.plan.columns.keys() & {*KEYS, "explanation"}):
            raise CauserieError(
                f"a table has a column {taken[0]} already: name that metric otherwise, with "
                "ALIAS=METRIC"
            )
        if self.percentiles and not any(c.calibrated for c in self.plan.columns.values()):
            raise CauserieError(
                f"none of {', '.join(self.plan.metrics)} has percentiles: leave --percentiles out"
            )

    @cached_property
    def types(self) -> Mapping[str, type]:
        """Every column in order, with the type of its values."""
        types: dict[str, type] = {"dialogue_id": str, "file": str, "system": str}
        if self.plan.level == "turn":
            types = {name: kind for name, kind in KEYS.items() if name != "text" or self.text}
        for name, column in self.plan.columns.items():
            types[name] = float
            if self.percentiles and column.calibrated:
                types[name + PERCENTILE] = float
        if self.explain:
            types["explanation"] = dict
        return types

    def rows(self, batch: Batch) -> Iterator[Row]:
        """One row per item of a batch."""
        ranked = [c for c in self.plan.columns if c + PERCENTILE in self.types]
        for item, scores in batch.rows():
            row = self._key(item)
            for name, score in scores.items():
                row[name] = score.value
            for name in ranked:
                row[name + PERCENTILE] = scores[name].percentile
            if self.explain:
                row["explanation"] = {n: e for n, s in scores.items() if (e := _explained(s))}
            yield {name: row[name] for name in self.types}

    def _key(self, item: Item) -> Row:
        """What says which item a row is about."""
        if isinstance(item, Dialogue):
            return {"dialogue_id": item.id, "file": item.source, "system": item.system}
        dialogue, response = item.dialogue, item.response
        return {
            "dialogue_id": dialogue.id,
            "turn": item.turn,
            "speaker": response.speaker,
            "file": dialogue.source,
            "system": dialogue.system,
            "message": response.message,
            "text": response.text,
        }


def by_dialogue(batch: Batch) -> Iterator[tuple[Dialogue, dict[int, dict[str, Score]]]]:
    """The scored turns of each conversation, whose exchanges follow each other in a batch."""
    dialogue: Dialogue | None = None
    scored: dict[int, dict[str, Score]] = {}
    for item, scores in batch.rows():
        assert isinstance(item, Exchange)
        if dialogue is not None and item.dialogue is not dialogue:
            yield dialogue, scored
            scored = {}
        dialogue = item.dialogue
        scored[item.turn] = scores
    if dialogue is not None:
        yield dialogue, scored


def _explained(score: Score) -> dict[str, Any]:
    return {"unscored": score.reason} if score.value is None else dict(score.explanation or {})
