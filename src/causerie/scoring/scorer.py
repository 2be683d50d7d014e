"""The one place where numbers are made: a scorer carries out a plan, batch by batch.

`score`, `evaluate`, `compare`, the bench, ratings and the reports all take their numbers from
here. Whatever is known about a batch is in the batch: items, values, percentiles, reasons,
explanations, what was cut and how long it took. Nothing is counted on shared objects, so several
threads may use one scorer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, overload

from causerie._version import __version__
from causerie.dialogue import Dialogue, Exchange, exchanges_of
from causerie.engines import Cuts, Engines, counted_cuts
from causerie.engines.cache import add_cuts
from causerie.errors import CauserieError
from causerie.metrics import load_metric
from causerie.metrics.base import EMPTY, Metric, Score, Scores
from causerie.progress import Progress, Watch, ignore
from causerie.scoring.plan import Plan
from causerie.scoring.store import Item, Kept, ScoreStore, digest_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from causerie.engines import Settings

FIRST_BATCH, LARGEST_BATCH = 32, 1024
"""Exchanges: a small batch first, so that an interruption never costs much; then, while they
are quick, larger ones, in which engines sort by length and share work."""
BATCH_SECONDS = 10.0
BATCH_TURNS = 4096
"""Of all dialogues of a batch: no more distinct texts than an encoder remembers."""
BATCH_CHARACTERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Batch:
    """Items with all their scores."""

    plan: Plan
    items: tuple[Item, ...]
    scores: Mapping[str, tuple[Score, ...]]
    """By column, in the order of the items."""
    cuts: Mapping[str, Cuts] = field(default_factory=dict)
    """By alias of the metric: what engines had to cut for it now."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By alias: how long the scores took when they were computed."""
    records: int = 0
    """How many records the items came from."""
    without: int = 0
    """How many of the records had nothing to score."""
    cut_shares: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """By alias: shares of the inputs that engines cut, summed over so many items; those of kept
    scores, too."""

    def __len__(self) -> int:
        return len(self.items)

    def rows(self) -> Iterator[tuple[Item, dict[str, Score]]]:
        """Every item with its score in each column."""
        for place, item in enumerate(self.items):
            yield item, {column: scores[place] for column, scores in self.scores.items()}

    def values(self, column: str) -> NDArray[np.float64]:
        """One column as numbers, NaN where unscored."""
        import numpy as np

        scores = self.scores[column]
        return np.array([np.nan if s.value is None else s.value for s in scores], np.float64)

    def reasons(self, column: str) -> dict[str, int]:
        """Why items of a column are unscored, and how many each time."""
        return dict(Counter(s.reason for s in self.scores[column] if s.reason is not None))

    def cut_share(self, alias: str) -> float | None:
        """Share of a metric's inputs that engines cut; None if it uses none."""
        total, items = self.cut_shares.get(alias, (0.0, 0))
        return total / items if items else None

    def all_cuts(self) -> Cuts:
        """By engine, what all metrics together had cut."""
        total: Cuts = {}
        for cuts in self.cuts.values():
            add_cuts(total, cuts)
        return total

    @classmethod
    def joined(cls, plan: Plan, batches: Iterable[Batch]) -> Batch:
        """Several batches of one plan as one."""
        parts = list(batches)
        cuts: dict[str, Cuts] = {}
        seconds: Counter[str] = Counter()
        shares: dict[str, tuple[float, int]] = {}
        for part in parts:
            seconds.update(part.seconds)
            for alias, (total, items) in part.cut_shares.items():
                before = shares.get(alias, (0.0, 0))
                shares[alias] = before[0] + total, before[1] + items
            for alias, own in part.cuts.items():
                add_cuts(cuts.setdefault(alias, {}), own)
        return cls(
            plan,
            tuple(item for part in parts for item in part.items),
            {c: tuple(s for part in parts for s in part.scores[c]) for c in plan.columns},
            cuts,
            dict(seconds),
            sum(part.records for part in parts),
            sum(part.without for part in parts),
            shares,
        )


class Scorer:
    """Turns dialogues or exchanges into batches of scores, as a plan says.

    With a store, what networks have scored before is taken from there; `refresh` computes it
    again. Scorers that are given the same `engines` share their networks.
    """

    def __init__(
        self,
        plan: Plan,
        store: ScoreStore | None = None,
        *,
        engines: Engines | None = None,
        refresh: bool = False,
    ) -> None:
        if not isinstance(plan, Plan):
            raise CauserieError("a scorer carries out a plan: make one with `Plan.of`")
        if engines is not None and engines.settings != plan.settings:
            raise CauserieError("the engines were made with other settings than the plan's")
        self.plan, self.store, self.refresh = plan, store, refresh
        self.engines = engines or Engines(plan.settings)

    def items_of(self, record: Dialogue | Exchange) -> list[Item]:
        """What is scored of a record: of a context/response row only the response."""
        if self.plan.level == "dialogue":
            if isinstance(record, Exchange):
                raise CauserieError(
                    "--level dialogue needs whole dialogues, not a context with a response"
                )
            return [record]
        return list(exchanges_of(record, self.plan.speaker))

    def batches(
        self,
        records: Iterable[Dialogue | Exchange],
        *,
        explain: bool = False,
        first: int = FIRST_BATCH,
    ) -> Iterator[Batch]:
        """Score records as they come, whole records together, in order.

        `first` is how many items the first batch has.
        """
        pending: list[Item] = []
        size, count, without = first, 0, 0
        turns = characters = 0
        for record in records:
            found = self.items_of(record)
            pending += found
            count, without = count + 1, without + (not found)
            dialogue = record if isinstance(record, Dialogue) else record.dialogue
            turns += len(dialogue.turns)
            characters += sum(len(turn.text) for turn in dialogue.turns)
            # Dialogues are scored as a whole, so their turns are what counts.
            done = len(pending) if self.plan.level == "turn" else turns
            if done >= size or turns >= BATCH_TURNS or characters >= BATCH_CHARACTERS:
                batch = self.score_items(pending, explain=explain)
                size = _next_size(size, sum(batch.seconds.values()))
                yield replace(batch, records=count, without=without)
                pending, count, without, turns, characters = [], 0, 0, 0, 0
        if count:
            batch = self.score_items(pending, explain=explain)
            yield replace(batch, records=count, without=without)

    def score_items(self, items: Sequence[Item], *, explain: bool = False) -> Batch:
        """Score these exchanges, or dialogues, as one batch."""
        level = self.plan.level
        if wrong := [i for i in items if isinstance(i, Dialogue) != (level == "dialogue")]:
            raise CauserieError(
                f"a plan of level {level} cannot score {type(wrong[0]).__name__.lower()}s"
            )
        empty = [_is_empty(item) for item in items]
        asked = [item for item, nothing in zip(items, empty, strict=True) if not nothing]
        work = _Work(self, asked, explain)
        # Token vectors first: from them the vectors of whole texts are known, too.
        order = sorted(self.plan.metrics, key=lambda a: "token vectors" not in self._needs(a))
        done = {alias: work.scored(alias) for alias in order}
        scores: dict[str, tuple[Score, ...]] = {}
        for alias in self.plan.metrics:
            rows = iter(done[alias])
            columns = self.plan.columns_of(alias)
            filled = [(EMPTY,) * len(columns) if none else next(rows) for none in empty]
            by_column = zip(*filled, strict=True) if filled else repeat(())
            scores.update(zip(columns, by_column, strict=bool(filled)))
        return Batch(
            self.plan,
            tuple(items),
            scores,
            work.cuts,
            work.seconds,
            len(items),
            cut_shares=work.cut_shares,
        )

    def score_all(
        self,
        records: Sequence[Dialogue | Exchange],
        *,
        task: str = "scoring",
        watch: Watch = ignore,
    ) -> Batch:
        """Score records batch by batch, each kept as it is done, and return all of them."""
        parts, done = [], 0
        watch(Progress(task, 0, len(records), "records"))
        for batch in self.batches(records):
            parts.append(batch)
            done += batch.records
            watch(Progress(task, done, len(records), "records"))
        return Batch.joined(self.plan, parts)

    @overload
    def score(self, item: Exchange, *, explain: bool = ...) -> dict[str, Score]: ...
    @overload
    def score(self, item: Dialogue, *, explain: bool = ...) -> list[dict[str, Score]]: ...
    def score(
        self, item: Exchange | Dialogue, *, explain: bool = True
    ) -> dict[str, Score] | list[dict[str, Score]]:
        """Score one exchange, or every exchange of one dialogue: column name to score.

        For many dialogues, `causerie.evaluate` is faster: it fills whole batches. At dialogue
        level the list has one entry.
        """
        if not isinstance(item, (Dialogue, Exchange)):
            raise CauserieError(
                f"one dialogue or exchange is scored, not {type(item).__name__}: make one with "
                "Dialogue.from_messages or Dialogue.from_texts, or use causerie.evaluate"
            )
        batch = self.score_items(self.items_of(item), explain=explain)
        rows = [scores for _, scores in batch.rows()]
        return rows[0] if isinstance(item, Exchange) and rows else rows

    def key_of(self, alias: str) -> str:
        """Under which key the store keeps a metric's scores: all that decides them but the item."""
        plan = self.plan
        parts = [f"causerie|{__version__}", self._signatures[alias], plan.level]
        if plan.level == "dialogue" and plan.speaker is not None:
            parts.append(plan.speaker)
        return " ".join(parts)

    def missing(self, alias: str, items: Sequence[Item]) -> list[Item]:
        """The different items whose scores would have to be computed now."""
        by_digest = {digest_of(item): item for item in items if not _is_empty(item)}
        if self.store is not None and self.is_kept(alias) and not self.refresh:
            width = len(self.plan.columns_of(alias))
            for digest in self.store.find(self.key_of(alias), by_digest, False, width):
                del by_digest[digest]
        return list(by_digest.values())

    def expected_seconds(self, alias: str, items: Sequence[Item]) -> float | None:
        """How long the items that the store lacks will take; None if the metric never ran here."""
        if self.store is None or not self.is_kept(alias):
            return 0.0
        missing = self.missing(alias, items)
        if not missing:
            return 0.0
        rate = self.store.seconds_per_character(self.key_of(alias))
        return None if rate is None else rate * sum(map(size_of, missing))

    def is_kept(self, alias: str) -> bool:
        """Whether a metric runs networks, so that its scores are worth keeping."""
        return bool(self._needs(alias) - {"references"})

    def _needs(self, alias: str) -> frozenset[str]:
        return self.plan.metrics[alias].needs

    @cached_property
    def _signatures(self) -> dict[str, str]:
        return {a: m.signature(self.engines) for a, m in self.plan.metrics.items()}


class _Work:
    """The computing of one batch."""

    def __init__(self, scorer: Scorer, items: Sequence[Item], explain: bool) -> None:
        self._scorer, self._items, self._explain = scorer, items, explain
        self.cuts: dict[str, Cuts] = {}
        self.seconds: dict[str, float] = {}
        self.cut_shares: dict[str, tuple[float, int]] = {}

    def scored(self, alias: str) -> list[Scores]:
        """One row per item: from the store, or computed and then kept there."""
        scorer, store = self._scorer, self._scorer.store
        metric = scorer.plan.metrics[alias]
        if store is None or not scorer.is_kept(alias):
            rows, self.seconds[alias], self.cuts[alias] = self._compute(metric, self._items)
            share = _cut_share(self.cuts[alias])
            if share is not None:
                self.cut_shares[alias] = share * len(rows), len(rows)
            return rows
        key = scorer.key_of(alias)
        width = len(scorer.plan.columns_of(alias))
        known = {} if scorer.refresh else store.find(key, self._digests, self._explain, width)
        missing = {d: i for d, i in zip(self._digests, self._items, strict=True) if d not in known}
        if missing:
            rows, seconds, cuts = self._compute(metric, list(missing.values()))
            total = sum(map(size_of, missing.values()))
            share = _cut_share(cuts)
            fresh = {
                digest: Kept(row, size_of(i), seconds * size_of(i) / total, share)
                for (digest, i), row in zip(missing.items(), rows, strict=True)
            }
            store.put(key, fresh, self._explain)
            known = {**known, **fresh}
            self.cuts[alias] = cuts
        kept = [known[digest] for digest in self._digests]
        self.seconds[alias] = sum(k.seconds for k in kept)
        shares = [k.cut for k in kept if k.cut is not None]
        self.cut_shares[alias] = sum(shares), len(shares)
        return [k.scores for k in kept]

    def _compute(self, metric: Metric, items: Sequence[Any]) -> tuple[list[Scores], float, Cuts]:
        scorer, engines = self._scorer, self._scorer.engines
        if not items:
            return [], 0.0, {}
        with engines.computing(), counted_cuts() as cuts:
            start, loading = time.perf_counter(), engines.loading_seconds
            if scorer.plan.level == "turn":
                rows = metric.score_exchanges(items, engines, explain=self._explain)
            else:
                rows = metric.score_dialogues(
                    items, engines, speaker=scorer.plan.speaker, explain=self._explain
                )
            seconds = time.perf_counter() - start - (engines.loading_seconds - loading)
        check_rows(metric, rows, len(items), len(metric.columns(scorer.plan.level)))
        if not self._explain and any(s.explanation is not None for s in chain.from_iterable(rows)):
            rows = [tuple(_bare(score) for score in row) for row in rows]
        return rows, seconds, cuts

    @cached_property
    def _digests(self) -> list[bytes]:
        return [digest_of(item) for item in self._items]


def check_rows(metric: Metric, rows: Any, items: int, columns: int) -> None:
    """Refuse what a metric returned if it is not a tuple of scores for every item."""
    tuples = {*map(type, rows)} <= {tuple}
    if not (tuples and {*map(type, chain.from_iterable(rows))} <= {Score}):
        for row in rows:
            if not (isinstance(row, tuple) and all(isinstance(one, Score) for one in row)):
                raise CauserieError(
                    f"metric {metric.name!r} returned {row!r} for an item: return a tuple of "
                    "causerie.Score, one per column"
                )
    if wrong := [row for row in rows if len(row) != columns]:
        raise CauserieError(
            f"metric {metric.name!r} returned {len(wrong[0])} scores for an item and has "
            f"{columns} columns"
        )
    if len(rows) != items:
        raise CauserieError(
            f"metric {metric.name!r} gave {len(rows)} rows of scores for {items} items"
        )


def _bare(score: Score) -> Score:
    """The score without an explanation, which nobody asked for."""
    return score if score.explanation is None else replace(score, explanation=None)


def load(name: str, settings: Settings | None = None, **options: Any) -> Scorer:
    """A scorer for one metric: `causerie.load("density").score(dialogue)`.

    Options are the metric's own, as in `load("bleu", order=2)`; the folder of an artifact stands
    for the metric that was trained there.
    """
    return Scorer(Plan.of(load_metric(name, **options), settings=settings, speaker="all"))


def size_of(item: Item) -> int:
    """Characters of an item: what its share of a batch's time is reckoned by."""
    turns = item.turns if isinstance(item, Dialogue) else (*item.context, item.response)
    return 1 + sum(len(turn.text) for turn in turns)


def _is_empty(item: Item) -> bool:
    return isinstance(item, Exchange) and not item.response.text.strip()


def _cut_share(cuts: Cuts) -> float | None:
    """Share of all inputs that were cut; None if no engine saw any."""
    seen = sum(inputs for _, inputs in cuts.values())
    return sum(cut for cut, _ in cuts.values()) / seen if seen else None


def _next_size(size: int, seconds: float) -> int:
    if seconds > 2 * BATCH_SECONDS:
        return max(1, size // 2)
    return min(2 * size, LARGEST_BATCH) if seconds < BATCH_SECONDS / 2 else size
