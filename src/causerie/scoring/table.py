"""From records to rows: chunks of records go through every metric, one row per item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Metric, Score

CHUNK_EXCHANGES = 1024
"""Enough for engines to sort by length and share work; little enough to stay small in memory."""
SLOW_CHUNK_EXCHANGES = 256
"""With a language model, so that an interruption costs a minute and the progress bar moves."""
CHUNK_CHARACTERS = 4_000_000

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """What a table of scores has: which metrics, at which level, with which extra columns."""

    metrics: tuple[Metric, ...]
    level: Level = "turn"
    speaker: str | None = None
    percentiles: bool = False
    explain: bool = False

    def __post_init__(self) -> None:
        columns = self.score_columns
        if twice := {c for c in columns if columns.count(c) > 1}:
            raise CauserieError(
                f"two metrics both give a column {min(twice)}: score them one after the other"
            )
        for metric in self.metrics:
            metric.explain = self.explain

    @property
    def chunk(self) -> int:
        """How many exchanges to score at a time."""
        slow = any("language model" in metric.needs for metric in self.metrics)
        return SLOW_CHUNK_EXCHANGES if slow else CHUNK_EXCHANGES

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
        items = dialogues = [record for record in records if isinstance(record, Dialogue)]
        if len(dialogues) < len(records):
            raise CauserieError(
                "a context with a response is no whole dialogue: leave --level dialogue out"
            )
        results = [m.score_dialogues(dialogues, layout.speaker) for m in layout.metrics]
    for item, *scores in zip(items, *results, strict=True):
        yield item, tuple(score for group in scores for score in group)


def exchanges_of(record: Dialogue | Exchange, speaker: str | None) -> list[Exchange]:
    """What is scored of a record: of a context/response row only the response."""
    if isinstance(record, Dialogue):
        return record.exchanges(speaker)
    wanted = speaker is None or speaker in (record.response.speaker, record.response.role)
    return [record] if wanted else []


def chunks(
    records: Iterable[Dialogue | Exchange], exchanges: int = CHUNK_EXCHANGES
) -> Iterator[list[Dialogue | Exchange]]:
    """Whole records, about so many exchanges at a time, fewer if their text is long."""
    chunk: list[Dialogue | Exchange] = []
    size = characters = 0
    for record in records:
        chunk.append(record)
        dialogue = record if isinstance(record, Dialogue) else record.dialogue
        size += len(dialogue.turns) if isinstance(record, Dialogue) else 1
        characters += sum(len(turn.text) for turn in dialogue.turns)
        if size >= exchanges or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size, characters = [], 0, 0
    if chunk:
        yield chunk
