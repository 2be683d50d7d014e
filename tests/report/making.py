"""Pages of made-up scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import Column, Score
from causerie.report import Page, Shown
from causerie.scoring.scorer import Batch
from causerie.scoring.summary import Summary
from causerie.scoring.table import by_dialogue

Rows = Mapping[int, Mapping[str, Any]]
"""By turn and column: a number, a whole `Score`, or None for unscored."""


def score_of(value: Any) -> Score:
    if isinstance(value, Score):
        return value
    return Score.unscored("no value") if value is None else Score(value)


def batch_of(dialogue: Dialogue, rows: Rows, columns: Mapping[str, Column]) -> Batch:
    items = tuple(Exchange(dialogue, turn) for turn in sorted(rows))
    scores = {c: tuple(score_of(rows[i.turn].get(c)) for i in items) for c in columns}
    plan: Any = None
    return Batch(plan, items, scores, records=1)


def page_of(
    stream: Iterable[tuple[Dialogue, Rows]],
    columns: Mapping[str, Column],
    *,
    title: str = "t",
    signature: str = "s",
    drawings: Mapping[str, str] | None = None,
) -> Page:
    summary, shown, talks = Summary(columns), Shown(), []
    for dialogue, rows in stream:
        batch = batch_of(dialogue, rows, columns)
        for number, (talk, scored) in enumerate(by_dialogue(batch), summary.dialogues):
            if found := shown.add(number, talk, scored):
                talks.append(found)
        summary.add(batch)
    return Page(
        title,
        signature,
        columns,
        summary.groups,
        summary.columns,
        talks,
        summary.dialogues,
        summary.items,
        drawings or {},
        summary.notes(),
    )
