"""Rows of scores: what a table holds about each response, or about each dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
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
EXPLANATION = "explanation"
CONVERSATION = "conversation"
OBJECTS: Mapping[str, type] = {EXPLANATION: dict, CONVERSATION: dict}
"""The columns whose cells are JSON objects."""


@dataclass(frozen=True)
class Layout:
    """Which columns a table of a plan's scores has."""

    plan: Plan
    percentiles: bool = False
    explain: bool = False
    text: bool = True
    """Whether rows hold what was said."""
    conversations: bool = False
    """Whether rows hold the turns around the scored ones, too."""

    def __post_init__(self) -> None:
        if self.conversations and (self.plan.level != "turn" or not self.text):
            raise CauserieError(
                "--conversations keeps the turns around scored replies: leave "
                f"{'--no-text' if self.plan.level == 'turn' else '--level dialogue'} out"
            )
        if taken := sorted(self.plan.columns.keys() & {*KEYS, *OBJECTS}):
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
            types[EXPLANATION] = dict
        if self.conversations:
            types[CONVERSATION] = dict
        return types

    def about(self) -> dict[str, Any]:
        """What a table says about itself: its plan, and what each of its columns is."""
        drawings = self.plan.drawings
        return {
            "level": self.plan.level,
            "speaker": self.plan.speaker,
            "signature": self.plan.signature,
            "columns": {
                name: {**asdict(column), "drawing": drawings.get(name)}
                for name, column in self.plan.columns.items()
            },
        }

    def rows(self, batch: Batch) -> Iterator[Row]:
        """One row per item of a batch."""
        ranked = [c for c in self.plan.columns if c + PERCENTILE in self.types]
        around = _around(batch.items) if self.conversations else None
        for item, scores in batch.rows():
            row = self._key(item)
            for name, score in scores.items():
                row[name] = score.value
            for name in ranked:
                row[name + PERCENTILE] = scores[name].percentile
            if self.explain:
                row[EXPLANATION] = {n: e for n, s in scores.items() if (e := _explained(s))}
            if around is not None:
                row[CONVERSATION] = next(around)
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


def _around(items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """Of each exchange its side and the turns before it that no row before it has.

    The last one of a dialogue has those after it, too, so rows hold every turn once.
    """
    before: Exchange | None = None
    for item, after in zip_longest(items, items[1:]):
        assert isinstance(item, Exchange)
        dialogue = item.dialogue
        follows = before is not None and before.dialogue is dialogue and before.turn < item.turn
        last = not (isinstance(after, Exchange) and after.dialogue is dialogue)
        told = {
            "side": dialogue.role_of(item.response),
            "before": _said(dialogue, before.turn + 1 if before and follows else 0, item.turn),
        }
        if last and (rest := _said(dialogue, item.turn + 1, len(dialogue.turns))):
            told["after"] = rest
        yield told
        before = item


def _said(dialogue: Dialogue, start: int, end: int) -> list[dict[str, Any]]:
    turns = dialogue.turns[start:end]
    return [{"speaker": t.speaker, "side": dialogue.role_of(t), "text": t.text} for t in turns]


def _explained(score: Score) -> dict[str, Any]:
    return {"unscored": score.reason} if score.value is None else dict(score.explanation or {})
