"""A paper's tables again, with our numbers where causerie has the metric and the user the data.

Which items, dimension and statistic stand behind a printed number is the column's protocol;
which metric, the row's. A cell that stays empty has a footnote that says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from causerie import metrics as registry
from causerie._version import __version__
from causerie.bench.catalogue import find_set
from causerie.bench.judged import JudgedSet, read_judged
from causerie.bench.judgement import judgement_of
from causerie.bench.printed import Column, Paper, Row, Table, printed_tables
from causerie.bench.protocols import Protocol, among_systems, apply, protocol
from causerie.bench.scores import Scored, ScoreStore, score_items
from causerie.bench.units import Units, units_of
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.progress import Watch, counting, ignore
from causerie.stats import Estimate, FloatArray, cont2cat, ignore_equal, pearson, spearman


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
    store: ScoreStore,
    engines: Engines,
    *,
    metrics: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    watch: Watch = ignore,
) -> Reproduction:
    """Every table of one of `PAPERS`, with our numbers on the judged sets of the folder.

    `metrics` restricts our numbers to some metrics; without it, all that the paper's rows
    name and that are installed are computed. `options`, by metric, come on top of those that
    a printed row asks for.
    """
    if not Path(folder).is_dir():
        raise CauserieError(f"there is no folder {folder}: name the one that holds the judged sets")
    for name in (*(metrics or ()), *(options or {})):
        registry.find(name)
    filling = _Filling(Path(folder), store, engines, metrics, options or {}, watch)
    printed = printed_tables(paper)
    tables = tuple(
        ReproducedTable(
            table,
            tuple(
                tuple(filling.row(row, block.columns) for row in block.rows)
                for block in table.blocks
            ),
        )
        for table in printed.tables
    )
    signature = " ".join([f"causerie|{__version__}", *filling.signatures()])
    return Reproduction(printed, tables, tuple(filling.footnotes), signature)


class _EmptyError(Exception):
    """Why a cell stays empty; without a text, the reader needs no reason."""


class _Filling:
    """Fills cells one by one; what several of them need is read and scored once."""

    def __init__(
        self,
        folder: Path,
        store: ScoreStore,
        engines: Engines,
        chosen: Sequence[str] | None,
        options: Mapping[str, Mapping[str, Any]],
        watch: Watch,
    ) -> None:
        self.folder, self.store, self.engines = folder, store, engines
        self.chosen, self.options, self.watch = chosen, options, watch
        self.footnotes: list[str] = []
        self._installed = frozenset(registry.names())
        self._metrics: dict[str, Metric] = {}
        """By name and options."""
        self._unusable: dict[str, str] = {}
        self._sets: dict[str, JudgedSet] = {}
        self._units: dict[str, Units] = {}
        self._scored: dict[tuple[str, str], Scored] = {}

    def signatures(self) -> list[str]:
        data = [f"{name}:{judged.sha256[:12]}" for name, judged in sorted(self._sets.items())]
        used = sorted({key for key, _ in self._scored})
        return [*(self._metrics[key].signature for key in used), *data]

    def row(self, row: Row, columns: Sequence[Column]) -> tuple[Ours, ...]:
        cells = [None if c.statistic == "average" else self._cell(row, c) for c in columns]
        values = [c.estimate.value if c.estimate else None for c in cells if c]
        known = [value for value in values if value is not None]
        whole = len(known) == len(values) > 0
        average = Ours(Estimate(sum(known) / len(known), len(known)) if whole else None)
        return tuple(cell or average for cell in cells)

    def _cell(self, row: Row, column: Column) -> Ours:
        try:
            key, recipe = self._asked(row, column)
            judged, estimate = self._estimate(row, column, key, recipe)
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
                beside = self._estimate(row, column, key, among_systems(recipe))[1]
        return Ours(estimate, footnote, beside)

    def _asked(self, row: Row, column: Column) -> tuple[str, Protocol]:
        """The metric (loaded, by its key) and the protocol that a cell is about."""
        if row.metric is None:
            raise _EmptyError
        name, _ = _split(row.metric)
        if self.chosen is not None and name not in self.chosen:
            raise _EmptyError
        if column.protocol is None:
            raise _EmptyError("The data behind this number is not public, or is no judged set.")
        key = self._metric(name, {**row.options, **self.options.get(name, {})})
        if row.variant is not None:
            raise _EmptyError(
                "A variant of the metric, which takes an option or a training of its own."
            )
        return key, protocol(column.protocol)

    def _estimate(
        self, row: Row, column: Column, key: str, recipe: Protocol
    ) -> tuple[JudgedSet, Estimate]:
        """The number and the items it rests on."""
        metric, judged = self._metrics[key], self._judged(recipe)
        dimension = _split(row.metric or "")[1]
        scored = self._scores(key, recipe, judged)
        place = _column(metric, scored.columns, dimension or recipe.dimension, dimension is None)
        if np.isnan(scored.values[place]).all():
            reasons = scored.reasons.get(scored.columns[place], {})
            most = max(reasons, key=lambda why: reasons[why], default="unknown")
            raise _EmptyError(f"`{metric.name}` has no scores here: {most}.")
        scores = scored.values[place] * (1 if metric.higher_is_better else -1)
        units = self._units_of(recipe, judged)
        estimate = _statistic(column.statistic, judged, units, scores, recipe)
        if estimate.value is None:
            raise _EmptyError(_sentence(estimate.reason or "undefined"))
        return judged, estimate

    def _metric(self, name: str, options: Mapping[str, Any]) -> str:
        """The key of a metric that is loaded."""
        key = json.dumps([name, options], sort_keys=True)
        if name not in self._installed:
            raise _EmptyError(f"The metric `{name}` is not installed.")
        if name in self._unusable:
            raise _EmptyError(self._unusable[name])
        if key not in self._metrics:
            with self._usable(name):
                self._metrics[key] = registry.load(name, self.engines, **options)
        return key

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

    def _scores(self, key: str, recipe: Protocol, judged: JudgedSet) -> Scored:
        metric, place = self._metrics[key], (key, _items_key(recipe))
        if place not in self._scored:
            with self._usable(metric.name):
                self._scored[place] = score_items(
                    metric,
                    self._units_of(recipe, judged).items,
                    self.store,
                    counting(self.watch, f"{metric.name} on {recipe.set}", "items"),
                )
        return self._scored[place]

    @contextmanager
    def _usable(self, name: str) -> Iterator[None]:
        """A metric that cannot run (missing weights, say) is tried once and told in a footnote."""
        try:
            yield
        except CauserieError as error:
            self._unusable[name] = f"`{name}` cannot be used: {error}."
            raise _EmptyError(self._unusable[name]) from None

    def _footnote(self, text: str) -> int:
        if text not in self.footnotes:
            self.footnotes.append(text)
        return self.footnotes.index(text) + 1


def _split(named: str) -> tuple[str, str | None]:
    """The metric of a row, and which of its dimensions if the row says so."""
    name, dot, dimension = named.partition(".")
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


def _column(metric: Metric, columns: Sequence[str], dimension: str, or_overall: bool) -> int:
    """The place of the column about a dimension, or else of the metric's `overall`."""
    if len(columns) == 1:
        return 0
    known = [_letters(column.removeprefix(f"{metric.name}.")) for column in columns]
    for wanted in (dimension, "overall") if or_overall else (dimension,):
        if _letters(wanted) in known:
            return known.index(_letters(wanted))
    raise _EmptyError(f"`{metric.name}` has no dimension for {dimension!r}.")


def _letters(name: str) -> str:
    """ "Semantically appropriate" and "semantically-appropriate" are one dimension."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _items_key(recipe: Protocol) -> str:
    return json.dumps([recipe.set, recipe.filters])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
