"""One pass over scored conversations: statistics of all, the worst responses, the first in full."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from causerie.dialogue import Dialogue, Turn
from causerie.render.page import data_block
from causerie.report.distribution import Distribution
from causerie.text.obscenity import mask

Rows: TypeAlias = Mapping[int, Mapping[str, object]]
"""Turn index to its score row: column to number or None, `column.percentile`, `explanation`."""

MAX_DIALOGUES = 500
MAX_CHARACTERS = 8_000_000
MAX_SYSTEMS = 12
MAX_TEXT = 4_000
MAX_QUOTE = 600
WORST = 6


@dataclass(frozen=True)
class ColumnInfo:
    """What a reader of the page is told about a column of scores."""

    name: str
    summary: str
    higher_is_better: bool = True
    sentinel: bool = False


@dataclass
class Group:
    """One system: its name and, per column, its distribution and its worst responses."""

    label: str
    distributions: list[Distribution]
    worst: list[list[tuple[float, int, dict[str, Any]]]]


@dataclass
class Gathered:
    """Everything the page shows. Its size has a bound, however long the input."""

    columns: Sequence[ColumnInfo]
    groups: list[Group] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    """Conversations in full, each as JSON text."""
    dialogues: int = 0
    responses: int = 0
    _index: dict[str | None, int] = field(default_factory=dict)
    _characters: int = 0

    @classmethod
    def of(
        cls, dialogues: Iterable[tuple[Dialogue, Rows]], columns: Sequence[ColumnInfo]
    ) -> Gathered:
        gathered = cls(columns)
        for dialogue, rows in dialogues:
            gathered.add(dialogue, rows)
        if set(gathered._index) == {None}:
            gathered.groups[0].label = "all conversations"
        return gathered

    def add(self, dialogue: Dialogue, rows: Rows) -> None:
        system = self._group_of(dialogue.system)
        self.dialogues += 1
        place = self._show(dialogue, rows, system)
        for turn in sorted(rows):
            self.responses += 1
            values = self._values(rows[turn])
            for index, value in enumerate(values):
                self.groups[system].distributions[index].add(value)
                if value is not None:
                    self._keep_if_bad(system, index, value, dialogue, turn, place)

    def _group_of(self, system: str | None) -> int:
        """The first systems have a group each; any that follow share one."""
        if system in self._index:
            return self._index[system]
        if len(self._index) < MAX_SYSTEMS:
            self._index[system] = len(self.groups)
            self._add_group("unnamed system" if system is None else system)
        elif len(self.groups) == MAX_SYSTEMS:
            self._add_group("all other systems")
        return self._index.get(system, MAX_SYSTEMS)

    def _add_group(self, label: str) -> None:
        columns = range(len(self.columns))
        self.groups.append(Group(label, [Distribution() for _ in columns], [[] for _ in columns]))

    def _values(self, row: Mapping[str, object]) -> list[float | None]:
        return [_number(row.get(column.name)) for column in self.columns]

    def _show(self, dialogue: Dialogue, rows: Rows, system: int) -> int | None:
        """The conversation's place on the page, or None if there is no room for it."""
        if len(self.shown) == MAX_DIALOGUES:
            return None
        note = dialogue.metadata.get("note")
        text = data_block(
            {
                "id": dialogue.id,
                "system": system,
                "note": cut(note) if isinstance(note, str) else None,
                "turns": [
                    self._turn(turn, dialogue.role_of(turn), rows.get(index))
                    for index, turn in enumerate(dialogue.turns)
                ],
            }
        )
        if self._characters + len(text) > MAX_CHARACTERS:
            return None
        self._characters += len(text)
        self.shown.append(text)
        return len(self.shown) - 1

    def _turn(self, turn: Turn, side: str, row: Mapping[str, object] | None) -> dict[str, Any]:
        shown: dict[str, Any] = {"speaker": turn.speaker, "text": cut(turn.text), "side": side}
        if row is None:
            return shown
        percentiles = [_number(row.get(f"{column.name}.percentile")) for column in self.columns]
        return shown | {
            "scores": self._values(row),
            "percentiles": percentiles if any(p is not None for p in percentiles) else None,
            "references": [cut(reference) for reference in turn.references],
            "explanation": plain(row.get("explanation")),
        }

    def _keep_if_bad(
        self,
        system: int,
        column: int,
        value: float,
        dialogue: Dialogue,
        turn: int,
        place: int | None,
    ) -> None:
        """Keep the response if it is among the worst of its system; of equals, the earlier."""
        badness = -value if self.columns[column].higher_is_better else value
        heap = self.groups[system].worst[column]
        if len(heap) == WORST and badness <= heap[0][0]:
            return
        before = dialogue.turns[turn - 1].text if turn else ""
        response = {
            "system": system,
            "id": dialogue.id,
            "place": place,
            "turn": turn,
            "before": cut(before, MAX_QUOTE),
            "text": cut(dialogue.turns[turn].text, MAX_QUOTE),
            "value": value,
        }
        # The number of the response makes every entry unique, so dictionaries are never compared.
        heapq.heappush(heap, (badness, -self.responses, response))
        if len(heap) > WORST:
            heapq.heappop(heap)

    def data(self) -> str:
        """What the page's script needs, as JSON text that may stand in an HTML script element."""
        columns = [
            {"name": c.name, "higher": c.higher_is_better, "sentinel": c.sentinel}
            for c in self.columns
        ]
        worst = [
            [
                response
                for *_, response in sorted(
                    (kept for group in self.groups for kept in group.worst[column]), reverse=True
                )
            ]
            for column in range(len(self.columns))
        ]
        systems = [group.label for group in self.groups]
        head = data_block({"columns": columns, "systems": systems, "worst": worst})
        return f'{head[:-1]},"dialogues":[{",".join(self.shown)}]}}'


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """The text without obscenities, or its beginning and a remark if it is long."""
    if len(text) <= limit:
        return mask(text)
    return f"{mask(text[:limit])}… [cut: {len(text):,} characters in all]"


def plain(value: object) -> Any:
    """The value as JSON can hold it: what is not a finite number, text, list or mapping is text."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None
