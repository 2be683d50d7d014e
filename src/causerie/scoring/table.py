"""From records to rows: chunks of records go through every metric, one row per item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import Level, Metric, Score

CHUNK_EXCHANGES = 1024
"""Enough for engines to sort by length and share work; little enough to stay small in memory."""

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """What a table of scores has: which metrics, at which level, with which extra columns."""

    metrics: tuple[Metric, ...]
    level: Level = "turn"
    speaker: str | None = None
    percentiles: bool = False
    explain: bool = False

    @property
    def key_types(self) -> dict[str, type]:
        if self.level == "dialogue":
            return {"dialogue_id": str}
        return {"dialogue_id": str, "turn": int, "speaker": str}

    @property
    def score_columns(self) -> tuple[str, ...]:
        return tuple(c for metric in self.metrics for c in metric.columns(self.level))

    @property
    def types(self) -> dict[str, type]:
        """Every column in order, with the type of its values."""
        types = self.key_types
        for metric in self.metrics:
            for column in metric.columns(self.level):
                types[column] = float
                if self.percentiles and metric.calibrated:
                    types[f"{column}.percentile"] = float
        if self.explain:
            types["explanation"] = dict
        return types

    def row(self, item: Dialogue | Exchange, scores: Sequence[Score]) -> Row:
        """The output row of one item; `scores` in the order of `score_columns`."""
        if isinstance(item, Exchange):
            row: Row = {
                "dialogue_id": item.dialogue.id,
                "turn": item.turn,
                "speaker": item.response.speaker,
            }
        else:
            row = {"dialogue_id": item.id}
        named = dict(zip(self.score_columns, scores, strict=True))
        for column in self.types:
            if column in named:
                row[column] = named[column].value
            elif column.endswith(".percentile"):
                row[column] = named[column.removesuffix(".percentile")].percentile
        if self.explain:
            row["explanation"] = {c: e for c, score in named.items() if (e := _explain(score))}
        return row


def _explain(score: Score) -> dict[str, Any]:
    return {"unscored": score.reason} if score.value is None else dict(score.explanation or {})


def score_chunk(
    records: Sequence[Dialogue | Exchange], layout: Layout
) -> Iterator[tuple[Dialogue | Exchange, tuple[Score, ...]]]:
    """Every item of the records (exchanges or dialogues, by level) with its scores."""
    items: Sequence[Dialogue | Exchange]
    if layout.level == "turn":
        exchanges = [e for record in records for e in exchanges_of(record, layout.speaker)]
        items, results = exchanges, [m.score_exchanges(exchanges) for m in layout.metrics]
    else:
        dialogues = [r.dialogue if isinstance(r, Exchange) else r for r in records]
        items = dialogues
        results = [m.score_dialogues(dialogues, layout.speaker) for m in layout.metrics]
    for item, *scores in zip(items, *results, strict=True):
        yield item, tuple(score for group in scores for score in group)


def exchanges_of(record: Dialogue | Exchange, speaker: str | None) -> list[Exchange]:
    """What is scored of a record: of a context/response row only the response."""
    if isinstance(record, Dialogue):
        return record.exchanges(speaker)
    wanted = speaker is None or speaker in (record.response.speaker, record.response.role)
    return [record] if wanted else []


def chunks(records: Iterable[Dialogue | Exchange]) -> Iterator[list[Dialogue | Exchange]]:
    """Whole records, about `CHUNK_EXCHANGES` exchanges at a time."""
    chunk: list[Dialogue | Exchange] = []
    size = 0
    for record in records:
        chunk.append(record)
        size += len(record.turns) if isinstance(record, Dialogue) else 1
        if size >= CHUNK_EXCHANGES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
