"""A benchmark run: judged sets x metrics, planned beforehand, resumable, written at the end."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from causerie import metrics as registry
from causerie._version import __version__
from causerie.bench.analysis import Column, analyse
from causerie.bench.results import MetricFacts, RunOptions, RunResult, SetResult
from causerie.bench.scores import (
    Item,
    ScoreStore,
    expected_seconds,
    score_items,
)
from causerie.bench.sets.catalogue import catalogue, default_sets, find_set
from causerie.bench.sets.judged import JudgedSet, read_judged
from causerie.bench.sets.units import sampled, units_of
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.metrics.base import Metric

SENTINELS = ("length", "turns", "overlap")
"""In every run: a metric that does not beat them has learned nothing about conversation."""

Watch: TypeAlias = Callable[[str, float, float], None]
"""Told what is going on, how many seconds of the expected work are done, and of how many."""

_PROBED = 8
_STATISTICS_SECONDS = 0.6
"""Of one column on 1,000 items with 1,000 resamples, about."""


@dataclass(frozen=True)
class Part:
    """One set as it is used in a run."""

    judged: JudgedSet
    of_items: int
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Plan:
    """What a run will do, and how long each step should take."""

    parts: tuple[Part, ...]
    metrics: tuple[Metric, ...]
    options: RunOptions
    scoring: tuple[tuple[float, ...], ...]
    """Seconds, metrics x parts; 0 where every score is already known."""
    statistics: tuple[float, ...]
    """Seconds, by part."""

    @property
    def seconds(self) -> float:
        return sum(map(sum, self.scoring)) + sum(self.statistics)


def choose_sets(names: str, folder: Path) -> tuple[list[JudgedSet], list[str]]:
    """Read the sets of a list such as "fed_turn,fed_dialog"; "default" and "all" may be in it.

    Sets that were named must be there and readable; of "default" and "all" those that are,
    and the second result says what is left out and why.
    """
    groups = {
        "default": default_sets(),
        "all": tuple(entry.name for entry in catalogue().values() if entry.level != "attack"),
    }
    named = _names(names)
    wanted = dict.fromkeys(name for word in named for name in groups.get(word, (word,)))
    if not wanted:
        raise CauserieError("--sets names no set: `causerie bench sets` lists them")
    read, left_out = [], []
    for name in wanted:
        try:
            read.append(read_judged(find_set(name, folder)))
        except CauserieError as error:
            if name in named or not folder.is_dir():
                raise
            left_out.append(str(error))
    if not read:
        raise CauserieError(
            f"none of the judged sets is in {folder}: `causerie bench sets` says where "
            "they are published"
        )
    return read, left_out


def about(dimension: str | None, sets: Sequence[JudgedSet]) -> tuple[list[JudgedSet], list[str]]:
    """The sets in which people judged the dimension, and why the others are left out."""
    if dimension is None:
        return list(sets), []
    found = [judged for judged in sets if _named(judged, dimension)]
    if not found:
        known = ", ".join(dict.fromkeys(d for judged in sets for d in judged.dimensions))
        raise CauserieError(f"no set has the dimension {dimension!r}: they have {known}")
    others = [judged for judged in sets if judged not in found]
    return found, [f"{judged.name}: nobody judged {dimension!r} there" for judged in others]


def choose_metrics(
    names: str, engines: Engines, options: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[list[Metric], list[str]]:
    """Load the metrics of a list such as "cosine,bleu", or "all"; sentinels are always added.

    Metrics that were named must be usable; of "all" those that are, and the second result
    says what is left out and why. `options` are by metric.
    """
    options = options or {}
    wanted = list(registry.names()) if names == "all" else _names(names)
    if not wanted:
        raise CauserieError("--metrics names no metric: `causerie metrics` lists them")
    chosen = [name for name in wanted if name not in SENTINELS]
    if unused := options.keys() - {*chosen, *SENTINELS}:
        raise CauserieError(f"--set names {', '.join(sorted(unused))}, which --metrics does not")
    loaded, left_out = [], []
    for name in (*chosen, *SENTINELS):
        try:
            metric = registry.load(name, engines, **options.get(name, {}))
            metric.signature  # noqa: B018 - loads its weights, so that what is missing shows now
        except CauserieError as error:
            if names != "all" or name in options:
                raise
            left_out.append(f"{name}: {error}")
            continue
        loaded.append(metric)
    return loaded, left_out


def plan(
    sets: Sequence[JudgedSet],
    metrics: Sequence[Metric],
    store: ScoreStore,
    options: RunOptions,
    watch: Watch = lambda what, done, total: None,
) -> Plan:
    """Draw the samples and estimate the time; a metric that never ran here scores a few items."""
    parts = []
    for judged in sets:
        drawn = sampled(judged, options.max_items, options.seed)
        parts.append(Part(drawn, len(judged), units_of(drawn).items))
    scoring = []
    for number, metric in enumerate(metrics):
        watch(f"trying {metric.name}", number, len(metrics))
        scoring.append(_expected(metric, parts, store))
    columns = sum(len(metric.columns("turn")) for metric in metrics)
    per_item = _STATISTICS_SECONDS * columns * options.resamples / 1e6
    statistics = tuple(per_item * len(part.items) for part in parts)
    return Plan(tuple(parts), tuple(metrics), options, tuple(scoring), statistics)


def execute(
    plan: Plan, store: ScoreStore, watch: Watch = lambda what, done, total: None
) -> RunResult:
    """Score what the store lacks, then compare everything with people."""
    columns: list[list[Column]] = [[] for _ in plan.parts]
    done = 0.0
    for metric, expected in zip(plan.metrics, plan.scoring, strict=True):
        facts = facts_of(metric)
        for place, part in enumerate(plan.parts):
            step = _Step(f"{metric.name} on {part.judged.name}", done, expected[place])
            scored = score_items(metric, part.items, store, step.told(watch, plan.seconds))
            done += expected[place]
            columns[place] += [
                Column(
                    name,
                    facts,
                    row,
                    scored.reasons[name],
                    scored.seconds_per_1000,
                    scored.truncated,
                )
                for name, row in zip(scored.columns, scored.values, strict=True)
            ]
    results: list[SetResult] = []
    for part, own, seconds in zip(plan.parts, columns, plan.statistics, strict=True):
        watch(f"statistics of {part.judged.name}", done, plan.seconds)
        dimension = _named(part.judged, plan.options.dimension)
        results.append(analyse(part.judged, own, plan.options, dimension, of_items=part.of_items))
        done += seconds
    watch("done", plan.seconds, plan.seconds)
    return RunResult(
        signature=signature(plan),
        version=__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}",
        options=plan.options,
        metrics=tuple(facts_of(metric) for metric in plan.metrics),
        sets=tuple(results),
    )


@dataclass(frozen=True)
class _Step:
    what: str
    before: float
    seconds: float

    def told(self, watch: Watch, whole: float) -> Callable[[int, int], None]:
        """Items done of this step as seconds done of the whole."""
        return lambda done, total: watch(
            self.what, self.before + self.seconds * done / max(1, total), whole
        )


def facts_of(metric: Metric) -> MetricFacts:
    return MetricFacts(
        metric.name,
        metric.summary,
        metric.signature,
        tuple(sorted(metric.needs)),
        metric.higher_is_better,
        metric.sentinel,
    )


def signature(plan: Plan) -> str:
    """Version | metrics with their weights | data | what drew random numbers."""
    options = plan.options
    return " | ".join(
        [
            f"causerie {__version__}",
            "metrics " + " ".join(metric.signature for metric in plan.metrics),
            "data " + " ".join(f"{p.judged.name}:{p.judged.sha256[:12]}" for p in plan.parts),
            f"max-items {options.max_items} resamples {options.resamples} "
            f"permutations {options.permutations} seed {options.seed}"
            + (f" dimension {options.dimension}" if options.dimension else ""),
        ]
    )


def _expected(metric: Metric, parts: Sequence[Part], store: ScoreStore) -> tuple[float, ...]:
    known = [expected_seconds(metric, part.items, store) for part in parts]
    new = [part for part, seconds in zip(parts, known, strict=True) if seconds != 0]
    if new:
        # The first item pays for what a metric loads on first use: its time is not remembered.
        with ScoreStore(":memory:") as scratch:
            score_items(metric, new[0].items[:1], scratch)
    return tuple(
        _probed(metric, part.items, store) if seconds is None else seconds
        for part, seconds in zip(parts, known, strict=True)
    )


def _probed(metric: Metric, items: Sequence[Item], store: ScoreStore) -> float:
    """Scores a few items, spread over the set, and expects the same of the others."""
    score_items(metric, items[:: max(1, len(items) // _PROBED)][:_PROBED], store)
    return expected_seconds(metric, items, store) or 0.0


def _named(judged: JudgedSet, dimension: str | None) -> str | None:
    """The dimension as the set writes it."""
    wanted = (dimension or "").casefold()
    return next((d for d in judged.dimensions if d.casefold() == wanted), None)


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
