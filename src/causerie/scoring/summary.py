"""What a run found, in constant memory: mean, spread, the worst items, what was skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import Score

WORST = 5
EXCERPT = 90
"""Characters of a response shown in the summary."""


@dataclass(frozen=True)
class Worst:
    """One of the items that scored worst."""

    value: float
    dialogue_id: str
    turn: int | None
    text: str
    percentile: float | None = None
    """Share of human responses that score no better."""


@dataclass
class ColumnSummary:
    """Mean and spread of one column, and its worst items."""

    higher_is_better: bool
    scored: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    unscored: dict[str, int] = field(default_factory=dict)
    """Reason to number of items."""
    worst: list[Worst] = field(default_factory=list)

    @property
    def spread(self) -> float:
        """Standard deviation of the scored items."""
        return math.sqrt(self.squares / (self.scored - 1)) if self.scored > 1 else 0.0

    def add(self, item: Dialogue | Exchange, score: Score) -> None:
        if score.value is None:
            reason = score.reason or "no reason given"
            self.unscored[reason] = self.unscored.get(reason, 0) + 1
            return
        self.scored += 1
        delta = score.value - self.mean
        self.mean += delta / self.scored
        self.squares += delta * (score.value - self.mean)
        self.low, self.high = min(self.low, score.value), max(self.high, score.value)
        if len(self.worst) < WORST or self._rank(score.value) < self._rank(self.worst[-1].value):
            self.worst.append(_worst(item, score.value, score.percentile))
            self.worst.sort(key=lambda w: self._rank(w.value))
            del self.worst[WORST:]

    def _rank(self, value: float) -> float:
        return value if self.higher_is_better else -value


def _worst(item: Dialogue | Exchange, value: float, percentile: float | None) -> Worst:
    if isinstance(item, Dialogue):
        return Worst(value, item.id, None, _excerpt(item.turns[-1].text), percentile)
    return Worst(value, item.dialogue.id, item.turn, _excerpt(item.response.text), percentile)


def _excerpt(text: str) -> str:
    """The beginning as one line that cannot steer a terminal."""
    line = " ".join(text[: 4 * EXCERPT].split())
    line = "".join(c if c.isprintable() else "�" for c in line)
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


@dataclass
class Summary:
    """The whole run so far; it travels with the checkpoint, so a resumed run knows it all."""

    columns: dict[str, ColumnSummary]
    records: int = 0
    """Records read, good and bad."""
    rejected: int = 0
    items: int = 0
    """Rows written."""
    nothing: int = 0
    """Dialogues without a response to score: of one turn, or without the wanted speaker."""
    tool_messages: int = 0
    """Messages of tools, which are no turns and were left out."""
    speakers: list[str] = field(default_factory=list)
    """The first few seen, for a message when none of them was wanted."""
    truncated: dict[str, list[int]] = field(default_factory=dict)
    """Engine to [inputs cut to the model's window, inputs seen]."""

    @classmethod
    def empty(cls, directions: Mapping[str, bool]) -> Summary:
        """`directions`: column name to whether higher is better."""
        return cls({name: ColumnSummary(higher) for name, higher in directions.items()})

    def see(self, record: Dialogue | Exchange, responses: int) -> None:
        """Take note of a good record and of how many responses of it are scored."""
        dialogue = record.dialogue if isinstance(record, Exchange) else record
        self.nothing += responses == 0
        tools = dialogue.metadata.get("tool_messages", 0)
        self.tool_messages += tools if isinstance(tools, int) else 0
        for turn in dialogue.turns[:8]:
            if len(self.speakers) < 8 and turn.speaker not in self.speakers:
                self.speakers.append(turn.speaker)

    def add(self, item: Dialogue | Exchange, scores: Sequence[Score]) -> None:
        self.items += 1
        for column, score in zip(self.columns.values(), scores, strict=True):
            column.add(item, score)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Summary:
        columns = {
            name: ColumnSummary(**{**column, "worst": [Worst(**w) for w in column["worst"]]})
            for name, column in data["columns"].items()
        }
        return cls(**{**data, "columns": columns})
