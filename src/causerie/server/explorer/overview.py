"""Figures of a run: how good each system is, how scores are distributed, where replies fail.

A run never changes (a changed file is another run), so its figures are computed only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from causerie.report.charts import BARS_PER_STEP, BarAxis
from causerie.server.explorer.filters import REASON, reason_values
from causerie.server.explorer.runs import ScoredRun, Scores
from causerie.server.explorer.tables import Tables, Values, place_of, rows_of, source
from causerie.stats import ClusterMoments, Estimate, difference, holm

MAX_SYSTEMS = 12
"""Most systems shown by name: those with the most rows."""
CELLS = 2048
LONGEST = 40
"""Most turns of a conversation that are shown one by one."""
STEPS = 7


@dataclass(frozen=True)
class System:
    """The figures of one system in a run."""

    name: str | None
    """Name of the system; None if rows name none."""
    rows: int
    dialogues: int
    moments: Mapping[str, ClusterMoments]
    """Moments by column; an empty reply counts as the worst."""
    unscored: Mapping[str, int]
    """Number of rows without a value by column, including empty replies."""
    faults: Mapping[str, float | None]
    """Share of replies with a fault, by the fault's column."""


@dataclass(frozen=True)
class Ranking:
    """Systems by one column, best first, each compared with the best."""

    systems: Sequence[System]
    """The systems that have a value."""
    behind: Sequence[tuple[Estimate, float | None]]
    """Mean minus that of the first, and Holm-corrected p-value, of all systems but the first."""


@lru_cache(maxsize=64)
def systems(tables: Tables, run: ScoredRun) -> list[System]:
    """Return the systems of a run, those with the most rows first."""
    profile = tables.profile(run)
    per_dialogue, sums, values = [], [], source(run)
    for i, scores in enumerate(run.scores.values()):
        counted, needed = tables.counted(run, scores)
        shift = profile.means[scores.name] or 0.0
        values |= {**needed, f"shift{i}": shift, f"limit{i}": scores.limit}
        per_dialogue.append(f"count({counted}) AS n{i}, sum({counted} - $shift{i}) AS s{i}, ")
        per_dialogue.append(f"count(m{i}) AS k{i}, count_if(m{i} > $limit{i}) AS f{i}, ")
        sums.append(
            f", count_if(n{i} > 0), sum(n{i}), sum(s{i}), sum(s{i} * s{i}), sum(s{i} * n{i}), "
            f"sum(n{i} * n{i}), sum(k{i}), sum(f{i})"
        )
    found = tables.ask(
        f"SELECT system, sum(rows), count(*){''.join(sums)} FROM (SELECT {''.join(per_dialogue)}"
        f"system, count(*) AS rows FROM {rows_of(run)} GROUP BY system, dialogue, file) "
        f"GROUP BY system ORDER BY sum(rows) DESC, system LIMIT {MAX_SYSTEMS}",
        values,
    )
    return [_system(run, profile.means, row) for row in found]


def _system(run: ScoredRun, shifts: Mapping[str, float | None], row: tuple[Any, ...]) -> System:
    name, rows, dialogues, *rest = row
    told = {scores: rest[8 * i : 8 * i + 8] for i, scores in enumerate(run.scores)}
    return System(
        name,
        int(rows),
        int(dialogues),
        {s: ClusterMoments.of_sums(t[0], t[1:6], shifts[s] or 0.0) for s, t in told.items()},
        {s: int(rows - t[6]) for s, t in told.items()},
        {s: t[7] / t[6] if t[6] else None for s, t in told.items() if run.scores[s].is_fault},
    )


def ranking(found: Sequence[System], scores: Scores) -> Ranking:
    """Return the systems by one column, best first; without a direction, highest first."""
    known = [system for system in found if system.moments[scores.name].n]
    known.sort(key=lambda s: -scores.about.sign * s.moments[scores.name].mean)
    if not known:
        return Ranking([], [])
    best = known[0].moments[scores.name]
    gaps = [difference(best, system.moments[scores.name]) for system in known[1:]]
    tested = [p for _, p in gaps if p is not None]
    corrected = iter(holm(tested)) if tested else iter(())
    behind = [(gap, None if p is None else float(next(corrected))) for gap, p in gaps]
    return Ranking(known, behind)


def moments(tables: Tables, rows: str, value: str, values: Values) -> ClusterMoments:
    """Return the clustered moments of an SQL expression over rows named a, by dialogue."""
    ((shift,),) = tables.ask(f"SELECT coalesce(avg({value}), 0) FROM {rows}", values)
    ((k, *sums),) = tables.ask(
        "SELECT count(*), sum(n), sum(s), sum(s * s), sum(s * n), sum(n * n) FROM "
        f"(SELECT count(*) AS n, sum({value} - $shift) AS s FROM {rows} "
        "GROUP BY a.dialogue, a.file)",
        {**values, "shift": shift},
    )
    return ClusterMoments.of_sums(k, sums, shift)


@lru_cache(maxsize=256)
def whole(tables: Tables, run: ScoredRun, scores: Scores) -> ClusterMoments:
    """Return the moments of a column over all rows of a run."""
    counted, values = tables.counted(run, scores)
    rows = (
        f"(SELECT dialogue, file, {counted} AS value FROM {rows_of(run)}) AS a "
        "WHERE a.value IS NOT NULL"
    )
    return moments(tables, rows, "a.value", {**source(run), **values})


@dataclass(frozen=True)
class Distribution:
    """Shares of each system's replies in the bars of a common axis."""

    axis: BarAxis
    systems: Sequence[tuple[str | None, Sequence[float]]]


@lru_cache(maxsize=256)
def distribution(tables: Tables, run: ScoredRun, scores: Scores) -> Distribution | None:
    """Return the distribution of a column; None if it has no values."""
    ends = tables.profile(run).ends[scores.name]
    if ends is None:
        return None
    place = place_of(run, scores)
    low, high = ends
    width = (high - low) / CELLS or 1.0
    rows = f"FROM {rows_of(run)} WHERE m{place} IS NOT NULL GROUP BY"
    cells = tables.ask(
        f"SELECT floor((m{place} - $low) / $width) AS cell, count(*) {rows} cell ORDER BY cell",
        {**source(run), "low": low, "width": width},
    )
    axis = BarAxis.of([(min(high, low + (cell + 0.5) * width), count) for cell, count in cells])
    found = tables.ask(
        f"SELECT system, greatest(0, least($bars - 1, floor((m{place} / $step - $first) * "
        f"{BARS_PER_STEP}))) AS bar, count(*) {rows} system, bar",
        {**source(run), "bars": axis.bars, "step": axis.step, "first": axis.first},
    )
    shares = []
    for system in systems(tables, run):
        own = {int(bar): count for name, bar, count in found if name == system.name}
        if own:
            bars = [own.get(bar, 0) / sum(own.values()) for bar in range(axis.bars)]
            shares.append((system.name, bars))
    return Distribution(axis, shares)


@lru_cache(maxsize=256)
def along(
    tables: Tables, run: ScoredRun, scores: Scores
) -> list[tuple[str | None, int, float, int]]:
    """Return system, turn, mean and count for the first turns of conversations."""
    if not run.is_of_turns:
        return []
    counted, values = tables.counted(run, scores)
    found = tables.ask(
        f"SELECT system, turn, avg({counted}), count({counted}) FROM {rows_of(run)} "
        f"WHERE turn BETWEEN 0 AND {LONGEST} GROUP BY system, turn HAVING count({counted}) > 0 "
        "ORDER BY system, turn",
        {**source(run), **values},
    )
    named = {system.name for system in systems(tables, run)}
    return [row for row in found if row[0] in named]


@lru_cache(maxsize=256)
def reasons(tables: Tables, run: ScoredRun, scores: Scores) -> dict[str, int]:
    """Return the number of rows without a value by reason, the most frequent first."""
    if tables.profile(run).scored[scores.name] == run.rows:
        return {}
    found = tables.ask(
        f"SELECT {REASON} AS reason, count(*) FROM {rows_of(run)} "
        f"WHERE m{place_of(run, scores)} IS NULL GROUP BY reason ORDER BY count(*) DESC, reason "
        "LIMIT 20",
        {**source(run), **reason_values(scores)},
    )
    return dict(found)


@lru_cache(maxsize=256)
def steps(tables: Tables, run: ScoredRun, scores: Scores) -> list[float]:
    """Return the values that divide the run into equal shares, each of which has its own colour."""
    shares = [step / STEPS for step in range(1, STEPS)]
    ((cuts,),) = tables.ask(
        f"SELECT approx_quantile(m{place_of(run, scores)}, {shares}) FROM {rows_of(run)}",
        source(run),
    )
    return list(cuts or [])


@lru_cache(maxsize=64)
def speakers(tables: Tables, run: ScoredRun) -> list[str]:
    """Return the speakers of the rows, the most frequent first."""
    found = tables.ask(
        f"SELECT speaker FROM {rows_of(run)} WHERE speaker IS NOT NULL GROUP BY speaker "
        "ORDER BY count(*) DESC, speaker LIMIT 50",
        source(run),
    )
    return [speaker for (speaker,) in found]
