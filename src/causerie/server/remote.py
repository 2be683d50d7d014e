"""`causerie score --server`: a scorer whose numbers come from a server.

It is used by the same run as any other scorer, so journal, tables, pages and gates are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import Column, Level, Metric, Score
from causerie.scoring import Batch, Plan, Scorer
from causerie.scoring.store import Item
from causerie.scoring.table import PERCENTILE
from causerie.server.client import Client, ServerError

AT_ONCE = 256
"""Most items per request, unless a single conversation has more."""
_TOO_MUCH = (413, 504)


@dataclass(frozen=True)
class RemoteMetric(Metric):
    """A metric of a server, described by the columns that the server reports."""

    told: tuple[Column, ...] = ()
    drawn: Literal["arcs", "graph"] | None = None

    name = "remote"
    summary = "computed by a server"

    def __post_init__(self) -> None:
        """Skip the checks of options, as there are none."""

    @property
    def drawing(self) -> Literal["arcs", "graph"] | None:  # type: ignore[override]
        return self.drawn

    def columns(self, level: Level) -> tuple[Column, ...]:
        return self.told


@dataclass(frozen=True)
class RemotePlan(Plan):
    """The plan that a server will carry out."""

    told: str = ""

    @cached_property
    def signature(self) -> str:
        """The signature of the server, which computes the numbers."""
        return self.told


class RemoteScorer(Scorer):
    """A scorer that sends its items to a server."""

    def __init__(self, client: Client, plan: RemotePlan) -> None:
        super().__init__(plan)
        self._client = client

    def score_items(self, items: Sequence[Item], *, explain: bool = False) -> Batch:
        rows = [row for part in _parts(items) for row in self._rows(part, explain)]
        scores = {
            column: tuple(_score(row, column, explain) for row in rows)
            for column in self.plan.columns
        }
        return Batch(self.plan, tuple(items), scores)

    def _rows(self, items: Sequence[Item], explain: bool) -> list[dict[str, Any]]:
        """Return the server's rows; halve the request if it is too large for the server."""
        plan = self.plan
        groups = [list(own) for _, own in groupby(items, key=lambda item: id(_dialogue(item)))]
        options: dict[str, Any] = {"level": plan.level, "explain": explain, "text": False}
        options["percentiles"] = any(column.calibrated for column in plan.columns.values())
        if plan.level == "turn":
            turns = [[i.turn for i in own if isinstance(i, Exchange)] for own in groups]
            options |= {"speaker": "all", "turns": turns}
        elif plan.speaker is not None:
            options["speaker"] = plan.speaker
        records = [replace(_dialogue(own[0]), metadata={}) for own in groups]
        try:
            rows: list[dict[str, Any]] = self._client.score(records, list(plan.metrics), **options)
        except ServerError as error:
            if error.status not in _TOO_MUCH or len(items) == 1:
                raise
            half = len(items) // 2
            return self._rows(items[:half], explain) + self._rows(items[half:], explain)
        return rows


def remote_scorer(
    client: Client, metrics: str | None, level: str, speaker: str | None
) -> RemoteScorer:
    """Return a scorer of the server's metrics with these aliases, by default of all."""
    options = {} if speaker is None else {"speaker": speaker}
    answer = client.plan(metrics, level=level, **options)
    found = {one["alias"]: _metric(one) for one in answer["metrics"]}
    of_level: Level = level  # type: ignore[assignment] # the server has checked it
    plan = RemotePlan(found, level=of_level, speaker=speaker, told=answer["signature"])
    return RemoteScorer(client, plan)


def _metric(about: dict[str, Any]) -> RemoteMetric:
    prefix = len(about["alias"]) + 1
    columns = tuple(
        Column(
            one["column"][prefix:],
            one["help"],
            one["better"],
            tuple(one["range"]),
            one["sentinel"],
            one["calibrated"],
            one["unit"],
            one["limit"],
        )
        for one in about["columns"]
    )
    return RemoteMetric(columns, about["drawing"])


def _score(row: dict[str, Any], column: str, explain: bool) -> Score:
    reason = row["unscored"].get(column)
    explanation = row["explanation"].get(column) if explain and reason is None else None
    return Score(row[column], row.get(column + PERCENTILE), explanation, reason)


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield the items for one request at a time; those of one conversation stay together."""
    part: list[Item] = []
    for _, own in groupby(items, key=lambda item: id(_dialogue(item))):
        group = list(own)
        if part and len(part) + len(group) > AT_ONCE:
            yield part
            part = []
        part += group
    if part:
        yield part


def _dialogue(item: Item) -> Dialogue:
    return item.dialogue if isinstance(item, Exchange) else item
