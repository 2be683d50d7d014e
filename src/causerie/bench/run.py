"""A benchmark run: judged sets x metrics, planned in advance, resumable, written at the end."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from causerie import metrics as registry
from causerie._version import __version__
from causerie.bench.analysis import ScoredColumn, analyse
from causerie.bench.results import MetricFacts, RunOptions, RunResult, SetResult
from causerie.bench.sets.catalogue import catalogue, default_sets, entry_for, find_set
from causerie.bench.sets.judged import JudgedSet, read_judged, tell_rejected
from causerie.bench.sets.units import Units, level_of, sampled, units_of
from causerie.dialogue import Dialogue
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.base import Level
from causerie.progress import Progress, Watch, ignore
from causerie.render.numbers import counted
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.store import Item, ScoreStore

SENTINELS = ("length", "turns", "overlap")
"""Metrics of every run: one that does not beat them has learned nothing about conversation."""

_TRIED = 8
_STATISTICS_SECONDS = 0.6
"""Approximate seconds for one column on 1,000 items with 1,000 resamples."""


def run_bench(
    folder: str | Path,
    sets: str = "default",
    metrics: str = "all",
    *,
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
    options: RunOptions | None = None,
    store: ScoreStore | None = None,
    refresh: bool = False,
    watch: Watch = ignore,
) -> RunResult:
    """Compare metrics with human judgement on the judged sets of a folder.

    `sets` and `metrics` are lists of names; see `choose_sets` and `choose_metrics`. Notes to
    `watch` say what is left out and how long the run should take.
    """
    options = options or RunOptions()
    read, absent = choose_sets(sets, Path(folder))
    for one in read:
        tell_rejected(one, watch)
    judged, others = sets_with_dimension(options.dimension, read)
    chosen = choose_metrics(metrics, metric_options, settings)
    for line in (*absent, *others, *chosen.left_out):
        watch(Progress("planning", note=f"left out: {line}"))
    run = BenchRun.of(judged, chosen.plan, options, chosen.optional)
    return execute(run, store, refresh=refresh, watch=watch)


@dataclass(frozen=True)
class Part:
    """One set as used in a run."""

    judged: JudgedSet
    whole: JudgedSet
    """The set that `judged` was sampled from."""
    units: Units

    @property
    def level(self) -> Level:
        return level_of(self.judged)


@dataclass(frozen=True)
class BenchRun:
    """The plan of a run: samples, metrics and options."""

    parts: tuple[Part, ...]
    plan: Plan
    """The plan for turns; dialogues are scored with the same metrics."""
    options: RunOptions
    optional: frozenset[str] = frozenset()
    """Metrics that are left out if they cannot be used."""

    @classmethod
    def of(
        cls,
        sets: Sequence[JudgedSet],
        plan: Plan,
        options: RunOptions,
        optional: Collection[str] = (),
    ) -> BenchRun:
        """Return a run with samples drawn from the sets."""
        parts = []
        for judged in sets:
            drawn = sampled(judged, options.max_items, options.seed)
            parts.append(Part(drawn, judged, units_of(drawn)))
        return cls(tuple(parts), plan, options, frozenset(optional))


@dataclass(frozen=True)
class Chosen:
    """The metrics chosen for a run."""

    plan: Plan
    optional: frozenset[str]
    """Metrics chosen by "all", which may be left out."""
    left_out: tuple[str, ...]
    """Metrics already left out, each with the reason."""


def choose_sets(names: str, folder: Path) -> tuple[list[JudgedSet], list[str]]:
    """Read the sets in a list such as "fed_turn,fed_dialog", which may include "default" and "all".

    Named sets must exist and be readable; of "default" and "all" unavailable sets are left out,
    and the second result gives the reasons.
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


def sets_with_dimension(
    dimension: str | None, sets: Sequence[JudgedSet]
) -> tuple[list[JudgedSet], list[str]]:
    """Return the sets in which the dimension was judged, and why the others are left out."""
    if dimension is None:
        return list(sets), []
    found = [judged for judged in sets if _named(judged, dimension)]
    if not found:
        known = ", ".join(dict.fromkeys(d for judged in sets for d in judged.dimensions))
        raise CauserieError(f"no set has the dimension {dimension!r}: they have {known}")
    others = [judged for judged in sets if judged not in found]
    return found, [f"{judged.name}: nobody judged {dimension!r} there" for judged in others]


def choose_metrics(
    names: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
) -> Chosen:
    """Return the metrics in a list such as "cosine,b2=bleu:order=2", or "all", plus the sentinels.

    Named metrics must be usable; of "all" unusable ones are left out. `options` are by alias. No
    weights are loaded: missing weights are noticed when the metric is to score.
    """
    options, settings = options or {}, settings or Settings()
    engines, left_out, wanted = Engines(settings), [], list[str]()
    words = _names(names)
    optional = {*registry.names()} - {*words, *options} if "all" in words else set[str]()
    for name in (n for word in words for n in (registry.names() if word == "all" else (word,))):
        if name in optional:
            try:
                registry.load_metric(name).signature(engines)
            except CauserieError as error:
                left_out.append(f"{name}: {error}")
                continue
        wanted.append(name)
    if not wanted:
        raise CauserieError("--metrics names no metric: `causerie metrics` lists them")
    found = Plan.of(wanted, options={a: o for a, o in options.items() if a not in SENTINELS})
    added = Plan.of(SENTINELS, options={a: o for a, o in options.items() if a in SENTINELS})
    metrics = {a: m for a, m in found.metrics.items() if a not in SENTINELS}
    plan = Plan({**metrics, **added.metrics}, settings, speaker="all")
    if "all" not in words:  # "all" leaves out the metrics that cannot use a network
        plan.check_settings()
    return Chosen(
        plan,
        frozenset(optional),
        tuple(left_out),
    )


def plan_for(plan: Plan, level: Level) -> Plan:
    """Return the plan for a level.

    Judged responses are scored whoever gave them; in dialogues, the turns of the system (if known),
    because people judged the system.
    """
    return replace(plan, level=level, speaker="all" if level == "turn" else None)


def execute(
    run: BenchRun, store: ScoreStore | None = None, *, refresh: bool = False, watch: Watch = ignore
) -> RunResult:
    """Score what the store lacks, then compare all scores with human judgement."""
    engines, left_out = Engines(run.plan.settings), set[str]()
    scorers = {
        level: Scorer(plan_for(run.plan, level), store, engines=engines, refresh=refresh)
        for level in dict.fromkeys(part.level for part in run.parts)
    }
    for level, scorer in scorers.items():
        items = [i for part in run.parts if part.level == level for i in part.units.items]
        left_out |= unusable(scorer, items, run.optional, watch)
    scorers = {level: without(scorer, left_out) for level, scorer in scorers.items()}
    plan = plan_for(next(iter(scorers.values())).plan, "turn")
    expected = [_expected_seconds(scorers[part.level], part.units.items) for part in run.parts]
    statistics = [_statistics_seconds(scorers[p.level].plan, p, run.options) for p in run.parts]
    total, done = sum(expected) + sum(statistics), 0.0
    size = f"{counted(len(run.parts), 'set')}, {counted(len(plan.metrics), 'metric')}"
    watch(Progress("planning", note=f"{size}: about {_duration(total)}"))
    results: list[SetResult] = []
    for part, scoring, counting in zip(run.parts, expected, statistics, strict=True):
        batch = unseen(scorers[part.level], part.judged.name).score_all(
            part.units.items,
            task=f"scoring {part.judged.name}",
            watch=_in_seconds(watch, done, scoring, total),
        )
        done += scoring
        watch(Progress(f"statistics of {part.judged.name}", done, total, "seconds"))
        results.append(
            analyse(
                part.judged,
                scored_columns(batch),
                run.options,
                _named(part.judged, run.options.dimension),
                units=part.units,
                whole=part.whole,
            )
        )
        done += counting
    watch(Progress("done", total, total, "seconds"))
    return RunResult(
        signature=_signature(run, plan),
        version=__version__,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}",
        options=run.options,
        metrics=facts_of(plan),
        sets=tuple(results),
    )


def scored_columns(batch: Batch) -> list[ScoredColumn]:
    """Return scored columns, the input of the analysis of a set, from the scores of its units."""
    turns = sum(max(1, len(i.turns) - 1) if isinstance(i, Dialogue) else 1 for i in batch.items)
    columns = []
    for alias in batch.plan.metrics:
        seconds = 1000 * batch.seconds.get(alias, 0.0) / turns if turns else None
        for name, about in batch.plan.columns_of(alias).items():
            values, reasons = batch.values(name), batch.reasons(name)
            cut = batch.cut_share(alias)
            columns.append(ScoredColumn(name, alias, about, values, reasons, seconds, cut))
    return columns


def facts_of(plan: Plan) -> tuple[MetricFacts, ...]:
    """Return the descriptions of the metrics of a plan."""
    return tuple(
        MetricFacts(
            alias,
            metric.summary,
            plan.signatures[alias],
            tuple(sorted(metric.needs)),
            all(column.sentinel for column in plan.columns_of(alias).values()),
        )
        for alias, metric in plan.metrics.items()
    )


def unusable(
    scorer: Scorer, items: Sequence[Item], optional: Collection[str], watch: Watch
) -> set[str]:
    """Return the optional metrics that cannot score these items; tell `watch` why.

    A metric whose scores are not all stored scores a few items first, which shows whether it works
    and, if it has never run, how long it takes.
    """
    left_out = set()
    for alias in scorer.plan.metrics:
        try:
            _start(scorer, alias, items, watch)
        except CauserieError as error:
            if alias not in optional:
                raise
            left_out.add(alias)
            watch(Progress("planning", note=f"left out: {alias}: {error}"))
    return left_out


def without(scorer: Scorer, aliases: Collection[str]) -> Scorer:
    """Return a scorer without these metrics, sharing the networks."""
    metrics = {a: m for a, m in scorer.plan.metrics.items() if a not in aliases}
    plan = replace(scorer.plan, metrics=metrics)
    return Scorer(plan, scorer.store, engines=scorer.engines, refresh=scorer.refresh)


def unseen(scorer: Scorer, judged_set: str) -> Scorer:
    """Return a scorer whose metrics have learned nothing from a judged set or its family."""
    names = {judged_set, entry_for(judged_set).family or judged_set}
    metrics = {alias: metric.unseen(names) for alias, metric in scorer.plan.metrics.items()}
    if metrics == scorer.plan.metrics:
        return scorer
    plan = replace(scorer.plan, metrics=metrics)
    return Scorer(plan, scorer.store, engines=scorer.engines, refresh=scorer.refresh)


def _start(scorer: Scorer, alias: str, items: Sequence[Item], watch: Watch) -> None:
    missing = scorer.missing(alias, items)
    if not missing:
        return
    watch(Progress(f"trying {alias}"))
    few = _TRIED if scorer.store is not None and scorer.is_kept(alias) else 1
    chosen = missing[:: max(1, len(missing) // few)][:few]
    without(scorer, scorer.plan.metrics.keys() - {alias}).score_items(chosen)


def _expected_seconds(scorer: Scorer, items: Sequence[Item]) -> float:
    return sum(scorer.expected_seconds(alias, items) or 0.0 for alias in scorer.plan.metrics)


def _statistics_seconds(plan: Plan, part: Part, options: RunOptions) -> float:
    return _STATISTICS_SECONDS * len(plan.columns) * options.resamples * len(part.units) / 1e6


def _in_seconds(watch: Watch, before: float, seconds: float, total: float) -> Watch:
    """Convert the records done in one step to seconds done of the whole run."""
    return lambda step: watch(
        Progress(step.task, before + seconds * (step.done / (step.total or 1)), total, "seconds")
    )


def _signature(run: BenchRun, plan: Plan) -> str:
    """Return version | metrics with their weights | data | everything that affects randomness."""
    options = run.options
    return " | ".join(
        [
            f"causerie {__version__}",
            "metrics " + " ".join(plan.signatures.values()),
            "data " + " ".join(f"{p.judged.name}:{p.judged.sha256[:12]}" for p in run.parts),
            f"max-items {options.max_items} resamples {options.resamples} "
            f"permutations {options.permutations} seed {options.seed}"
            + (f" dimension {options.dimension}" if options.dimension else ""),
        ]
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return counted(max(1, round(seconds)), "second")
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _named(judged: JudgedSet, dimension: str | None) -> str | None:
    """Return the dimension as spelled in the set."""
    wanted = (dimension or "").casefold()
    return next((d for d in judged.dimensions if d.casefold() == wanted), None)


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
