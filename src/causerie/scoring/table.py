"""Rows of scores: what a table holds about each response, or about each dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io.tables import KEYS, Block
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
        return rows_of(self.block(batch))

    def block(self, batch: Batch) -> Block:
        """The rows of a batch, column by column."""
        block = _keys(batch.items)
        for name, scores in batch.scores.items():
            block[name] = [score.value for score in scores]
            if name + PERCENTILE in self.types:
                block[name + PERCENTILE] = [score.percentile for score in scores]
        if self.explain:
            names = tuple(batch.scores)
            block[EXPLANATION] = [
                {n: e for n, s in zip(names, row, strict=True) if (e := _explained(s))}
                for row in zip(*batch.scores.values(), strict=True)
            ]
        if self.conversations:
            block[CONVERSATION] = list(_around(batch.items))
        return {name: block[name] for name in self.types}


def rows_of(block: Block) -> Iterator[Row]:
    """The rows of a block, one after the other."""
    for values in zip(*block.values(), strict=True):
        yield dict(zip(block, values, strict=True))


def _keys(items: Sequence[Item]) -> dict[str, list[Any]]:
    """What says which items rows are about."""
    dialogues = [item if isinstance(item, Dialogue) else item.dialogue for item in items]
    keys: dict[str, list[Any]] = {
        "dialogue_id": [dialogue.id for dialogue in dialogues],
        "file": [dialogue.source for dialogue in dialogues],
        "system": [dialogue.system for dialogue in dialogues],
    }
    responses = [item.response for item in items if isinstance(item, Exchange)]
    if responses or not items:
        keys["turn"] = [item.turn for item in items if isinstance(item, Exchange)]
        keys["speaker"] = [response.speaker for response in responses]
        keys["message"] = [response.message for response in responses]
        keys["text"] = [response.text for response in responses]
    return keys


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
