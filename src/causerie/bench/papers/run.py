"""A paper's tables with our numbers, where causerie has the metric and the user has the data.

The column's protocol says which items, dimension and statistic are behind a printed number; the
row says which metric. Empty cells have a footnote with the reason.
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
from causerie.bench.ranking import RankingResult, run_ranking
from causerie.bench.run import plan_for
from causerie.bench.sets.catalogue import entry_for, find_set
from causerie.bench.sets.judged import JudgedSet, read_judged, tell_rejected
from causerie.bench.sets.units import Units, level_of, units_of
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.metrics.trained import TrainedMetric
from causerie.options import changed
from causerie.progress import Watch, ignore
from causerie.render.numbers import NONE
from causerie.scoring.plan import Metrics, Plan, metrics_by_alias
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.store import ScoreStore
from causerie.stats import (
    Estimate,
    FloatArray,
    cont2cat,
    cont2cat_of_clusters,
    correlation_of_clusters,
    ignore_equal,
    ignore_equal_points,
    pearson,
    spearman,
    with_intervals,
)
from causerie.training.corpus import Corpus

SEED, RESAMPLES = 0, 200
"""Seed of intervals, and resamples for alpha, which takes long to resample."""
OWN = "not in the paper"
"""Group name of the rows that were added to a table."""


@dataclass(frozen=True)
class Ours:
    """Our number for a printed one.

    It has neither number nor footnote if causerie has no such method or the caller left it out.
    """

    estimate: Estimate | None = None
    """Our number with its 95% interval, by dialogue or context."""
    footnotes: tuple[int, ...] = ()
    """Numbers (from 1) of notes: why no number is given, its basis, the metric's training data."""
    among_systems: Estimate | None = None
    """Our number without pairs that contain a human-written response, for sets of pairs."""
    significant: bool = False
    """Whether the interval of a correlation excludes 0 (p < 0.05)."""


@dataclass(frozen=True)
class ReproducedTable:
    printed: Table
    """The table as in the paper, with rows added for metrics that the paper does not have."""
    ours: tuple[tuple[tuple[Ours, ...], ...], ...]
    """Our numbers by block, row and column of the printed table."""


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
    variants: Mapping[str, str] | None = None,
    watch: Watch = ignore,
) -> Reproduction:
    """Return every table of one of `PAPERS`, with our numbers on the judged sets in the folder.

    `metrics` restricts our numbers to some metrics; by default all installed metrics named by the
    paper's rows are computed. A metric that the paper does not have, or that has an alias, gets a
    row of its own in every table with public data. `options` are by alias; options of a printed
    row take precedence. `variants` maps the variants that some rows need ("without graph") to
    their trained artifacts. Reproductions given the same `engines` share their networks.
    """
    if not Path(folder).is_dir():
        raise CauserieError(f"there is no folder {folder}: name the one with the judged sets")
    printed = printed_tables(paper)
    check_variants(variants or {}, [printed])
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
        variants or {},
        watch,
    )
    known = {_split(row.metric)[0] for t in printed.tables for b in t.blocks for row in b.rows}
    added = [] if metrics is None else [a for a, m in own.items() if a not in known or m.name != a]
    tables = []
    for table in printed.tables:
        table = replace(table, blocks=tuple(_with_rows(block, added) for block in table.blocks))
        filling.models = table.models
        ours = (
            tuple(filling.row(row, block.columns) for row in block.rows) for block in table.blocks
        )
        tables.append(ReproducedTable(table, tuple(ours)))
    signature = " ".join([f"causerie|{__version__}", *filling.signatures()])
    return Reproduction(printed, tuple(tables), tuple(filling.footnotes), signature)


def check_variants(variants: Mapping[str, str], papers: Sequence[Paper]) -> None:
    """Raise an error for a variant that no row of the papers needs."""
    known = [name for paper in papers for name in paper.variants]
    for name in variants:
        if name not in known:
            raise CauserieError(
                f"no row uses the variant {name!r}: there are {', '.join(known) or 'none'}"
            )


def _with_rows(block: Block, aliases: Sequence[str]) -> Block:
    """Return the block with a row added for each of these metrics, if its data is public."""
    if not any(column.protocol or column.corpus for column in block.columns):
        return block
    nothing = tuple(Cell(NONE, None, None, None) for _ in block.columns)
    rows = (Row(alias, alias, nothing, group=OWN) for alias in aliases)
    return replace(block, rows=(*block.rows, *rows))


class _EmptyError(Exception):
    """Why a cell stays empty; without text, no reason needs to be given."""


class _Filling:
    """Fills cells one by one; data and scores that several cells need are computed once."""

    def __init__(
        self,
        folder: Path,
        own: Mapping[str, Metric],
        others_too: bool,
        engines: Engines,
        store: ScoreStore | None,
        refresh: bool,
        variants: Mapping[str, str],
        watch: Watch,
    ) -> None:
        self.folder, self.own, self.others_too = folder, own, others_too
        self.engines, self.store, self.refresh, self.watch = engines, store, refresh, watch
        self.variants = variants
        self.models: Mapping[str, Mapping[str, str]] = {}
        self.footnotes: list[str] = []
        self._installed = frozenset(registry.names())
        self._unusable: dict[Metric, str] = {}
        self._sets: dict[str, JudgedSet] = {}
        self._units: dict[str, Units] = {}
        self._scored: dict[tuple[Metric, str], Batch] = {}
        self._rankings: dict[tuple[Metric, str], RankingResult] = {}

    def signatures(self) -> list[str]:
        data = [f"{name}:{judged.sha256[:12]}" for name, judged in sorted(self._sets.items())]
        used = {metric.signature(self.engines) for metric, _ in self._scored}
        ranked = {result.signature for result in self._rankings.values()}
        return [*sorted(used), *data, *sorted(ranked)]

    def row(self, row: Row, columns: Sequence[Column]) -> tuple[Ours, ...]:
        cells = [None if c.statistic == "average" else self._cell(row, c) for c in columns]
        values = [c.estimate.value if c.estimate else None for c in cells if c]
        known = [value for value in values if value is not None]
        whole = len(known) == len(values) > 0
        average = Ours(Estimate(sum(known) / len(known), len(known)) if whole else None)
        return tuple(cell or average for cell in cells)

    def _cell(self, row: Row, column: Column) -> Ours:
        try:
            if column.corpus is not None:
                return self._ranked(row, column, column.corpus)
            metric, recipe = self._asked(row, column)
            judged, estimate = self._estimate(row, column, metric, recipe)
        except _EmptyError as gap:
            return Ours(footnotes=self._footnotes(*map(str, gap.args)))
        notes = []
        if len(judged) != recipe.items:
            notes.append(
                f"On {len(judged)} items of `{recipe.set}`; the protocol keeps {recipe.items} of "
                "the published file."
            )
        beside = None
        if any(any(pair.humans) for pair in judged.pairs):
            with suppress(_EmptyError):
                beside = self._estimate(row, column, metric, among_systems(recipe))[1]
        if unreliable := entry_for(recipe.set).unreliable:
            notes.append(f"`{recipe.set}` fails the reliability gate: {unreliable}.")
        footnotes = self._footnotes(*notes, *_seen(metric, recipe.set))
        return Ours(estimate, footnotes, beside, _apart_from_0(column.statistic, estimate))

    def _ranked(self, row: Row, column: Column, corpus: str) -> Ours:
        """Return how often the true response of dialogues is found, which needs no judgement."""
        metric = self._chosen(row, "")
        name = f"{corpus}.jsonl.gz"
        path = next((f for p in ("", "corpora") if (f := self.folder / p / name).is_file()), None)
        if path is None:
            raise _EmptyError(f"`{name}` is not in the folder of the data or its `corpora`.")
        if (metric, corpus) not in self._rankings:
            plan = Plan({metric.name: metric}, self.engines.settings, speaker="all")
            scorer = Scorer(plan, self.store, engines=self.engines, refresh=self.refresh)
            try:
                found = run_ranking(scorer, Corpus.read([path]), watch=self.watch)
            except CauserieError as error:
                raise _EmptyError(f"`{metric.name}` cannot be used: {error}.") from None
            self._rankings[metric, corpus] = found
        result = self._rankings[metric, corpus]
        ranking = result.columns[0].ranking
        estimate = ranking.recall if column.statistic == "recall@1" else ranking.mrr
        if estimate.value is None:
            raise _EmptyError(_sentence(estimate.reason or "undefined"))
        drawn = f"On {result.items:,} of {result.of_items:,} exchanges of `{corpus}`."
        return Ours(estimate, self._footnotes(drawn))

    def _asked(self, row: Row, column: Column) -> tuple[Metric, Protocol]:
        """Return the metric and the protocol of a cell."""
        if row.metric is None or not self._wanted(row):
            raise _EmptyError
        if column.protocol is None:
            raise _EmptyError("The data behind this number is not public, or is no judged set.")
        recipe = protocol(column.protocol)
        return self._chosen(row, recipe.set), recipe

    def _wanted(self, row: Row) -> bool:
        return row.group == OWN or self._fills(_split(row.metric)[0])

    def _chosen(self, row: Row, judged: str) -> Metric:
        """Return the metric of a row: the caller's own, or the one the row and the table name."""
        if row.metric is None or not self._wanted(row):
            raise _EmptyError
        if row.group == OWN:
            return self._as_settings_ask(self.own[row.metric])
        name, _ = _split(row.metric)
        asked = dict(row.options)
        if row.variant is not None:
            if row.variant not in self.variants:
                raise _EmptyError(
                    "A variant of the metric, which takes a training of its own: give the artifact "
                    "with --variant."
                )
            asked["artifact"] = self.variants[row.variant]
        elif self.engines.settings.research and "artifact" not in asked:
            model = self.models.get(name, {}).get(judged)
            asked |= {"artifact": model} if model else {}
        return self._as_settings_ask(self._metric(name, asked))

    def _as_settings_ask(self, metric: Metric) -> Metric:
        try:
            return metric.for_research() if self.engines.settings.research else metric
        except CauserieError as error:
            raise _EmptyError(f"`{metric.name}` cannot be used: {error}.") from None

    def _fills(self, name: str) -> bool:
        """Return whether rows of that metric are to be filled."""
        return self.others_too or (name in self.own and self.own[name].name == name)

    def _estimate(
        self, row: Row, column: Column, metric: Metric, recipe: Protocol
    ) -> tuple[JudgedSet, Estimate]:
        """Return the items of a number, and the number."""
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
        estimate = _statistic(column.statistic, judged, units, scores, recipe.dimension)
        if estimate.value is None:
            raise _EmptyError(_sentence(estimate.reason or "undefined"))
        return judged, estimate

    def _metric(self, name: str, options: Mapping[str, Any]) -> Metric:
        """Return the metric of a printed row, whose options take precedence over the caller's."""
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
                tell_rejected(self._sets[recipe.set], self.watch)
            return apply(recipe, self._sets[recipe.set])
        except CauserieError as error:
            raise _EmptyError(_sentence(str(error))) from None

    def _units_of(self, recipe: Protocol, judged: JudgedSet) -> Units:
        """Return the units, which protocols on the same items share, as no dimension matters."""
        key = _items_key(recipe)
        if key not in self._units:
            self._units[key] = units_of(judged)
        return self._units[key]

    def _scores(self, metric: Metric, recipe: Protocol, judged: JudgedSet) -> Batch:
        """Return scores, computed once; an unusable metric (missing weights, say) is tried once."""
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

    def _footnotes(self, *texts: str) -> tuple[int, ...]:
        self.footnotes += [text for text in dict.fromkeys(texts) if text not in self.footnotes]
        return tuple(self.footnotes.index(text) + 1 for text in texts)


def _split(named: str | None) -> tuple[str, str | None]:
    """Return the metric of a row, and its dimension if the row names one."""
    name, dot, dimension = (named or "").partition(".")
    return name, dimension if dot else None


def _statistic(
    name: str, judged: JudgedSet, units: Units, scores: FloatArray, dimension: str
) -> Estimate:
    """Return one of `protocols.STATISTICS` for one column of `scores`, where higher is better."""
    judgement = judgement_of(judged, units, dimension)
    if name.endswith(("pearson", "spearman")):
        ranks = name.endswith("spearman")
        found = (spearman if ranks else pearson)(scores, judgement.points)
        by = correlation_of_clusters(scores, judgement.points, units.clusters, ranks=ranks)
        return with_intervals(found, by, seed=SEED)[0]
    differences = scores[units.first] - scores[units.second]
    clusters = [pair.cluster for pair in judged.pairs]
    if name == "cont2cat.alpha":
        found = cont2cat(differences, judgement.votes)
        by = cont2cat_of_clusters(differences, judgement.votes, clusters)
        return with_intervals(found, by, resamples=RESAMPLES, seed=SEED)[0]
    pair, prefers_a = ignore_equal_points(judgement.votes)
    by = correlation_of_clusters(differences[pair], prefers_a, [clusters[p] for p in pair])
    return with_intervals(ignore_equal(differences, judgement.votes), by, seed=SEED)[0]


def _apart_from_0(statistic: str, estimate: Estimate) -> bool:
    """Return whether a correlation is significant; for alpha, chance is not 0."""
    if statistic == "cont2cat.alpha" or estimate.low is None or estimate.high is None:
        return False
    return estimate.low > 0 or estimate.high < 0


def _seen(metric: Metric, judged: str) -> list[str]:
    """Return notes on training data of the metric that is related to a set."""
    corpus = entry_for(judged).corpus
    if corpus is None or not isinstance(metric, TrainedMetric):
        return []
    info = metric.info
    sources = [one.source for one in info.licences if corpus.casefold() in one.source.casefold()]
    return [
        f"`{info.folder.name}` learned from {source}; `{judged}` is made of {corpus}, too."
        for source in sources
    ]


def _column(metric: Metric, columns: Sequence[str], dimension: str, or_overall: bool) -> str:
    """Return the column for a dimension, or else the metric's `overall`."""
    if len(columns) == 1:
        return columns[0]
    known = {_letters(column.removeprefix(f"{metric.name}.")): column for column in columns}
    for wanted in (dimension, "overall") if or_overall else (dimension,):
        if _letters(wanted) in known:
            return known[_letters(wanted)]
    raise _EmptyError(f"`{metric.name}` has no dimension for {dimension!r}.")


def _letters(name: str) -> str:
    """Keep the letters: "Semantically appropriate" and "semantically-appropriate" are the same."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _items_key(recipe: Protocol) -> str:
    return json.dumps([recipe.set, recipe.filters])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
