"""Turns a request into scores: its records, their responses, and the metrics to compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, TimeoutError
from functools import lru_cache
from threading import Event
from typing import Any

from fastapi import HTTPException

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.io import Rejected, records_of
from causerie.metrics.base import Level
from causerie.scoring import Batch, Layout, Plan, Scorer
from causerie.scoring.store import Item
from causerie.server.api.batching import Batcher, ClosedError, Kind
from causerie.server.api.models import ScoreRequest, Skipped

PLANS = 64
"""Number of different plans that are cached."""
_LOADED_BY = Exchange(
    Dialogue("first", (Turn("A", "Any plans?"), Turn("B", "We hike.", references=("We walk.",)))), 1
)


class Offer:
    """The metrics that this server offers, with their networks; clients choose among them.

    Clients name only aliases: options of metrics may name files, and every choice of networks
    takes memory.
    """

    def __init__(self, plan: Plan, told: Callable[[int, float], None], limit: int) -> None:
        self.plan = plan
        self.engines = Engines(plan.settings)
        self.batcher = Batcher(self._score, limit=limit, told=told)
        self._plan = lru_cache(PLANS)(self._new_plan)
        self._scorer = lru_cache(PLANS)(self._new_scorer)

    def plan_of(
        self, metrics: Sequence[str] | None, level: Level = "turn", speaker: str | None = None
    ) -> Plan:
        """Return the plan that a client asks for."""
        return self._plan(tuple(metrics or self.plan.metrics), level, speaker)

    def _new_plan(self, metrics: tuple[str, ...], level: Level, speaker: str | None) -> Plan:
        offered = self.plan.metrics
        if unknown := [name for name in metrics if name not in offered]:
            raise CauserieError(
                f"this server offers {', '.join(offered)}, not {unknown[0]!r}: restart it with "
                "--metrics to offer more"
            )
        return Plan({n: offered[n] for n in metrics}, self.plan.settings, level, speaker)

    def load(self) -> None:
        """Load all networks by scoring an example with every metric."""
        kind = Kind(tuple(self.plan.metrics))
        self.batcher.submit(kind, [[_LOADED_BY]], patient=True).result()

    def _score(self, kind: Kind, items: Sequence[Item]) -> Batch:
        return self._scorer(kind).score_items(items, explain=kind.explain)

    def _new_scorer(self, kind: Kind) -> Scorer:
        plan = self.plan_of(kind.metrics, kind.level, kind.speaker)
        return Scorer(plan, engines=self.engines)


def kind_of(plan: Plan, explain: bool) -> Kind:
    """Return what determines the scores of an item; at turn level, a speaker only selects items."""
    speaker = plan.speaker if plan.level == "dialogue" else None
    return Kind(tuple(plan.metrics), plan.level, speaker, explain)


class QueuedScorer(Scorer):
    """A scorer whose batches wait in the server's queue, between those of others."""

    def __init__(self, offer: Offer, plan: Plan, stop: Event) -> None:
        super().__init__(plan, engines=offer.engines)
        self._batcher, self._stop = offer.batcher, stop

    def score_items(self, items: Sequence[Item], *, explain: bool = False) -> Batch:
        future = self._batcher.submit(
            kind_of(self.plan, explain), list(_by_dialogue(items)), patient=True
        )
        while True:
            try:
                return Batch.joined(self.plan, future.result(timeout=0.2))
            except CancelledError:
                raise ClosedError from None
            except TimeoutError:
                if future.done():  # raised by the metric itself
                    raise
                if self._stop.is_set():
                    future.cancel()


class Asked:
    """The validated request of a client: a plan, and the items to score."""

    def __init__(self, offer: Offer, wanted: ScoreRequest, most: int) -> None:
        self.plan = offer.plan_of(wanted.metrics, wanted.level, wanted.speaker)
        self.layout = Layout(self.plan, wanted.percentiles, wanted.explain, wanted.text)
        self.kind = kind_of(self.plan, wanted.explain)
        self.records: list[list[Item]] = []
        self.skipped: list[Skipped] = []
        scorer = Scorer(self.plan, engines=offer.engines)
        places = _places(wanted)
        for number, record in enumerate(_records(wanted)):
            if isinstance(record, Rejected):
                self.skipped.append(Skipped(record=record.line, reason=record.reason))
            else:
                self.records.append(places(number, record, scorer.items_of(record)))
        if isinstance(wanted.turns, list) and len(wanted.turns) != self.count:
            raise CauserieError(
                f"turns has {len(wanted.turns)} lists, but there are {self.count} records"
            )
        check_size(self.size, most)
        if not self.size:
            why = ", and no selected response"
            if self.skipped:
                why = f"; record {self.skipped[0].record}: {self.skipped[0].reason}"
            raise CauserieError(
                f"nothing to score: {self.count} records, {len(self.skipped)} of them bad{why}"
            )

    @property
    def count(self) -> int:
        return len(self.records) + len(self.skipped)

    @property
    def size(self) -> int:
        return sum(map(len, self.records))

    def answer(self, parts: Sequence[Batch]) -> dict[str, Any]:
        """Return the answer for the client, from the batches that its items were scored in.

        Batches are in the order of the records, and so are the rows.
        """
        batch = Batch.joined(self.plan, parts)
        unscored = ({c: s.reason for c, s in row.items() if s.reason} for _, row in batch.rows())
        rows = zip(self.layout.rows(batch), unscored, strict=True)
        return {
            "columns": list(self.layout.types),
            "rows": [{**row, "unscored": reasons} for row, reasons in rows],
            "skipped": [one.model_dump() for one in self.skipped],
            "signature": self.plan.signature,
        }


def check_size(size: int, most: int) -> None:
    """Refuse a request that is larger than the whole queue."""
    if size > most:
        raise HTTPException(
            413,
            f"{size:,} responses at once are too many (at most {most:,}): send fewer at a time, or "
            "a file to /v1/jobs",
        )


def records_in(data: object, columns: Mapping[str, str]) -> Iterator[Any]:
    """Return the records in a client's JSON, where a string is never taken for a file name."""
    if isinstance(data, list):
        if data and all(isinstance(item, str) for item in data):
            data = [data]
        elif wrong := [item for item in data if not isinstance(item, (dict, list))]:
            raise CauserieError(
                f"records must be objects or lists, not {type(wrong[0]).__name__}: see the examples"
            )
    return records_of(data, columns)


def _records(wanted: ScoreRequest) -> Iterator[Any]:
    if (wanted.messages is None) == (wanted.data is None):
        raise CauserieError("give either messages, for one conversation, or data")
    data = [{"messages": wanted.messages}] if wanted.data is None else wanted.data
    return records_in(data, wanted.columns)


def _places(wanted: ScoreRequest) -> Callable[[int, Dialogue | Exchange, list[Any]], list[Any]]:
    """Return a function that selects from the items of a record."""
    turns = wanted.turns
    if turns == "all":
        return lambda number, record, items: items
    if wanted.level == "dialogue":
        raise CauserieError("turns cannot be selected at level dialogue: omit turns")
    if turns == "last":
        return lambda number, record, items: items[-1:]

    def given(number: int, record: Dialogue | Exchange, items: list[Any]) -> list[Any]:
        if number >= len(turns):
            return []
        dialogue = record if isinstance(record, Dialogue) else record.dialogue
        wrong = [t for t in turns[number] if not 0 < t < len(dialogue.turns)]
        if wrong:
            raise CauserieError(
                f"turn {wrong[0]} of record {number + 1} is not a response: its responses are 1 "
                f"to {len(dialogue.turns) - 1}"
            )
        return [Exchange(dialogue, turn) for turn in turns[number]]

    return given


def _by_dialogue(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Group the items by conversation; those of one conversation follow each other."""
    group: list[Item] = []
    before: Dialogue | None = None
    for item in items:
        dialogue = item if isinstance(item, Dialogue) else item.dialogue
        if group and dialogue is not before:
            yield group
            group = []
        group.append(item)
        before = dialogue
    if group:
        yield group
