"""A paper's tables again, with our numbers where causerie has the metric and the user the data.

Which items, dimension and statistic stand behind a printed number is the column's protocol;
which metric, the row's. A cell that stays empty has a footnote that says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from causerie import metrics as registry
from causerie._version import __version__
from causerie.bench.judgement import judgement_of
from causerie.bench.papers.printed import Block, Cell, Column, Paper, Row, Table, printed_tables
from causerie.bench.papers.protocols import Protocol, among_systems, apply, protocol
from causerie.bench.run import plan_for
from causerie.bench.sets.catalogue import find_set
from causerie.bench.sets.judged import JudgedSet, read_judged
from causerie.bench.sets.units import Units, level_of, units_of
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.options import changed
from causerie.progress import Watch, ignore
from causerie.render.numbers import NONE
from causerie.scoring.plan import Metrics, Plan, metrics_by_alias
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.store import ScoreStore
from causerie.stats import Estimate, FloatArray, cont2cat, ignore_equal, pearson, spearman

OWN = "not in the paper"
"""The group of rows that were added."""


@dataclass(frozen=True)
class Ours:
    """Our number for a printed one.

    Without number and footnote, causerie has no such method, or the caller left it out.
    """

    estimate: Estimate | None = None
    footnote: int | None = None
    """Counted from 1: why there is no number, or on what other items it rests."""
    among_systems: Estimate | None = None
    """Of pairs, the same without those in which a person wrote one of the responses."""


@dataclass(frozen=True)
class ReproducedTable:
    printed: Table
    """Rows as in the paper; metrics that it does not have stand in rows of their own."""
    ours: tuple[tuple[tuple[Ours, ...], ...], ...]
    """By block, row and column of the printed table."""


@dataclass(frozen=True)
class Reproduction:
    """The tables of one paper, printed and ours."""

    paper: Paper
    tables: tuple[ReproducedTable, ...]
    footnotes: tuple[str, ...]
    signature: str


def reproduce(
    paper: str,
    folder: str | Path,
    *,
    metrics: Metrics | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
    engines: Engines | None = None,
    store: ScoreStore | None = None,
    refresh: bool = False,
    watch: Watch = ignore,
) -> Reproduction:
    """Every table of one of `PAPERS`, with our numbers on the judged sets of the folder.

    `metrics` restricts our numbers to some metrics; without it, all that the paper's rows
    name and that are installed are computed. A metric that no row of the paper is about, or that
    goes by an alias, has a row of its own in every table with public data. `options` are by
    alias; where a printed row asks for others, the row's are used. Scorers that are given the
    same `engines` share their networks.
    """
    if not Path(folder).is_dir():
        raise CauserieError(f"there is no folder {folder}: name the one that holds the judged sets")
    printed = printed_tables(paper)
    if metrics is None:
        own = {name: registry.load_metric(name, **own) for name, own in (options or {}).items()}
    else:
        own = metrics_by_alias(metrics, options or {})
    filling = _Filling(
        Path(folder),
        own,
        metrics is None,
        engines or Engines(settings),
        store,
        refresh,
        watch,
    )
    known = {_split(row.metric)[0] for t in printed.tables for b in t.blocks for row in b.rows}
    added = [] if metrics is None else [a for a, m in own.items() if a not in known or m.name != a]
    tables = []
    for table in printed.tables:
        table = replace(table, blocks=tuple(_with_rows(block, added) for block in table.blocks))
        ours = (
            tuple(filling.row(row, block.columns) for row in block.rows) for block in table.blocks
        )
        tables.append(ReproducedTable(table, tuple(ours)))
    signature = " ".join([f"causerie|{__version__}", *filling.signatures()])
    return Reproduction(printed, tuple(tables), tuple(filling.footnotes), signature)


def _with_rows(block: Block, aliases: Sequence[str]) -> Block:
    """The block, and below it a row for every metric of these if its data is public."""
    if not any(column.protocol for column in block.columns):
        return block
    nothing = tuple(Cell(NONE, None, None, None) for _ in block.columns)
    rows = (Row(alias, alias, nothing, group=OWN) for alias in aliases)
    return replace(block, rows=(*block.rows, *rows))


class _EmptyError(Exception):
    """Why a cell stays empty; without a text, the reader needs no reason."""


class _Filling:
    """Fills cells one by one; what several of them need is read and scored once."""

    def __init__(
        self,
        folder: Path,
        own: Mapping[str, Metric],
        others_too: bool,
        engines: Engines,
        store: ScoreStore | None,
        refresh: bool,
        watch: Watch,
    ) -> None:
        self.folder, self.own, self.others_too = folder, own, others_too
        self.engines, self.store, self.refresh, self.watch = engines, store, refresh, watch
        self.footnotes: list[str] = []
        self._installed = frozenset(registry.names())
        self._unusable: dict[Metric, str] = {}
        self._sets: dict[str, JudgedSet] = {}
        self._units: dict[str, Units] = {}
        self._scored: dict[tuple[Metric, str], Batch] = {}

    def signatures(self) -> list[str]:
        data = [f"{name}:{judged.sha256[:12]}" for name, judged in sorted(self._sets.items())]
        used = {metric.signature(self.engines) for metric, _ in self._scored}
        return [*sorted(used), *data]

    def row(self, row: Row, columns: Sequence[Column]) -> tuple[Ours, ...]:
        cells = [None if c.statistic == "average" else self._cell(row, c) for c in columns]
        values = [c.estimate.value if c.estimate else None for c in cells if c]
        known = [value for value in values if value is not None]
        whole = len(known) == len(values) > 0
        average = Ours(Estimate(sum(known) / len(known), len(known)) if whole else None)
        return tuple(cell or average for cell in cells)

    def _cell(self, row: Row, column: Column) -> Ours:
        try:
            metric, recipe = self._asked(row, column)
            judged, estimate = self._estimate(row, column, metric, recipe)
        except _EmptyError as gap:
            return Ours(footnote=self._footnote(str(gap.args[0])) if gap.args else None)
        footnote = None
        if len(judged) != recipe.items:
            footnote = self._footnote(
                f"On {len(judged)} items of `{recipe.set}`; the protocol keeps {recipe.items} of "
                "the published file."
            )
        beside = None
        if any(any(pair.humans) for pair in judged.pairs):
            with suppress(_EmptyError):
                beside = self._estimate(row, column, metric, among_systems(recipe))[1]
        return Ours(estimate, footnote, beside)

    def _asked(self, row: Row, column: Column) -> tuple[Metric, Protocol]:
        """The metric and the protocol that a cell is about."""
        if row.metric is None:
            raise _EmptyError
        name, _ = _split(row.metric)
        if row.group != OWN and not self._fills(name):
            raise _EmptyError
        if column.protocol is None:
            raise _EmptyError("The data behind this number is not public, or is no judged set.")
        metric = self.own[row.metric] if row.group == OWN else self._metric(name, row.options)
        if row.variant is not None:
            raise _EmptyError(
                "A variant of the metric, which takes an option or a training of its own."
            )
        return metric, protocol(column.protocol)

    def _fills(self, name: str) -> bool:
        """Whether rows of that metric are to be filled."""
        return self.others_too or (name in self.own and self.own[name].name == name)

    def _estimate(
        self, row: Row, column: Column, metric: Metric, recipe: Protocol
    ) -> tuple[JudgedSet, Estimate]:
        """The number and the items it rests on."""
        judged = self._judged(recipe)
        dimension = None if row.group == OWN else _split(row.metric or "")[1]
        batch = self._scores(metric, recipe, judged)
        about = batch.plan.columns
        name = _column(metric, list(about), dimension or recipe.dimension, dimension is None)
        values = batch.values(name)
        if np.isnan(values).all():
            reasons = batch.reasons(name)
            most = max(reasons, key=lambda why: reasons[why], default="unknown")
            raise _EmptyError(f"`{metric.name}` has no scores here: {most}.")
        units = self._units_of(recipe, judged)
        scores = about[name].sign * values
        estimate = _statistic(column.statistic, judged, units, scores, recipe)
        if estimate.value is None:
            raise _EmptyError(_sentence(estimate.reason or "undefined"))
        return judged, estimate

    def _metric(self, name: str, options: Mapping[str, Any]) -> Metric:
        """The metric of a printed row; what the row asks for wins over what the caller chose."""
        if name not in self._installed:
            raise _EmptyError(f"The metric `{name}` is not installed.")
        chosen = changed(self.own[name]) if name in self.own else {}
        try:
            return registry.load_metric(name, **{**chosen, **options})
        except CauserieError as error:
            raise _EmptyError(f"`{name}` cannot be used: {error}.") from None

    def _judged(self, recipe: Protocol) -> JudgedSet:
        try:
            if recipe.set not in self._sets:
                self._sets[recipe.set] = read_judged(find_set(recipe.set, self.folder))
            return apply(recipe, self._sets[recipe.set])
        except CauserieError as error:
            raise _EmptyError(_sentence(str(error))) from None

    def _units_of(self, recipe: Protocol, judged: JudgedSet) -> Units:
        """They do not depend on the dimension, so protocols on the same items share them."""
        key = _items_key(recipe)
        if key not in self._units:
            self._units[key] = units_of(judged)
        return self._units[key]

    def _scores(self, metric: Metric, recipe: Protocol, judged: JudgedSet) -> Batch:
        """Scored once; a metric that cannot run (missing weights, say) is tried once."""
        place = (metric, _items_key(recipe))
        if metric in self._unusable:
            raise _EmptyError(self._unusable[metric])
        if place not in self._scored:
            plan = Plan({metric.name: metric}, self.engines.settings)
            plan = plan_for(plan, level_of(judged))
            scorer = Scorer(plan, self.store, engines=self.engines, refresh=self.refresh)
            items = self._units_of(recipe, judged).items
            task = f"{metric.name} on {recipe.set}"
            try:
                self._scored[place] = scorer.score_all(items, task=task, watch=self.watch)
            except CauserieError as error:
                self._unusable[metric] = f"`{metric.name}` cannot be used: {error}."
                raise _EmptyError(self._unusable[metric]) from None
        return self._scored[place]

    def _footnote(self, text: str) -> int:
        if text not in self.footnotes:
            self.footnotes.append(text)
        return self.footnotes.index(text) + 1


def _split(named: str | None) -> tuple[str, str | None]:
    """The metric of a row, and which of its dimensions if the row says so."""
    name, dot, dimension = (named or "").partition(".")
    return name, dimension if dot else None


def _statistic(
    name: str, judged: JudgedSet, units: Units, scores: FloatArray, recipe: Protocol
) -> Estimate:
    """One of `protocols.STATISTICS` of one column; `scores` with higher being better."""
    judgement = judgement_of(judged, units, recipe.dimension)
    if name.endswith("pearson"):
        return pearson(scores, judgement.points)[0]
    if name.endswith("spearman"):
        return spearman(scores, judgement.points)[0]
    differences = scores[units.first] - scores[units.second]
    schema = {"ignore-equal.point-biserial": ignore_equal, "cont2cat.alpha": cont2cat}[name]
    return schema(differences, judgement.votes)[0]


def _column(metric: Metric, columns: Sequence[str], dimension: str, or_overall: bool) -> str:
    """The column about a dimension, or else the metric's `overall`."""
    if len(columns) == 1:
        return columns[0]
    known = {_letters(column.removeprefix(f"{metric.name}.")): column for column in columns}
    for wanted in (dimension, "overall") if or_overall else (dimension,):
        if _letters(wanted) in known:
            return known[_letters(wanted)]
    raise _EmptyError(f"`{metric.name}` has no dimension for {dimension!r}.")


def _letters(name: str) -> str:
    """ "Semantically appropriate" and "semantically-appropriate" are one dimension."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _items_key(recipe: Protocol) -> str:
    return json.dumps([recipe.set, recipe.filters])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
