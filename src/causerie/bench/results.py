"""The results of a benchmark run, as plain data that is written to JSON and read back.

A missing number is an `Estimate` without a value whose `reason` says why; there is never a NaN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from causerie.errors import CauserieError
from causerie.stats import Estimate

STATISTICS: Mapping[str, str] = {
    "spearman": "Spearman's rho",
    "pearson": "Pearson's r",
    "kendall": "Kendall's tau-b",
    "accuracy": "pairwise accuracy with calibrated ties (acc*)",
    "within-context": "mean Spearman's rho among responses to one context",
    "within-context-accuracy": "mean acc* among responses to one context",
    "system": "soft pairwise accuracy of systems (SPA)",
    "system-means": "Spearman's rho of the systems' means",
    "partial": "Spearman's rho given the response's length",
    "without-humans": "Spearman's rho without human-written responses",
}
"""Statistics of responses and dialogues, by their key in `MetricRow.statistics`."""

PAIR_STATISTICS: Mapping[str, str] = {
    "voting.spearman": "Spearman's rho with the share of votes a response got (Voting)",
    "voting.pearson": "Pearson's r with the share of votes a response got (Voting)",
    "ignore-equal.point-biserial": "point-biserial correlation with preferences (IgnoreEqual)",
    "cont2cat.alpha": "Krippendorff's alpha with the metric as an annotator (Cont2Cat)",
    "within-context": "mean Spearman's rho among responses to one context",
    "within-context-accuracy": "mean acc* among responses to one context",
    "system": "soft pairwise accuracy of systems (SPA)",
    "system-means": "Spearman's rho of the systems' means",
    "partial": "Spearman's rho (Voting) given the response's length",
    "without-humans": "Spearman's rho (Voting) among pairs without human-written responses",
}
"""Statistics of sets of pairs, by key."""


ROW_TYPES: Mapping[str, type] = {
    "set": str,
    "level": str,
    "dimension": str,
    "fails": int,
    "column": str,
    "metric": str,
    "kind": str,
    "statistic": str,
    "value": float,
    "low": float,
    "high": float,
    "n": int,
    "reason": str,
    "cluster": int,
    "seconds_per_1000": float,
    "truncated": float,
}
"""Columns and types of `rows_of`."""


@dataclass(frozen=True)
class MetricFacts:
    """A metric's description of itself."""

    name: str
    """The alias that names its columns."""
    summary: str
    signature: str
    needs: tuple[str, ...]
    sentinel: bool


@dataclass(frozen=True)
class MetricRow:
    """One column of one metric on one set."""

    column: str
    metric: str
    sentinel: bool
    higher_is_better: bool
    """If False, scores were negated first, so that larger statistics are better for every row."""
    statistics: Mapping[str, Estimate]
    """Estimates by the keys of `SetResult.statistics`, with 95% intervals where possible."""
    dimensions: Mapping[str, Mapping[str, Estimate]]
    """The main statistics for every dimension of the set, without intervals."""
    cluster: int | None
    """Rank: no metric is significantly better than another of its rank; None without a number."""
    seconds_per_1000: float | None
    """Seconds per 1,000 turns on the machine that computed the scores."""
    truncated: float | None
    """Share of the inputs cut to the network's window; None if it uses no network."""
    scored: int
    unscored: Mapping[str, int]
    """Number of unscored items by reason."""


@dataclass(frozen=True)
class Significance:
    """Tests of all pairs of columns, as matrices in the order of `columns`; None means no test."""

    statistic: str
    columns: tuple[str, ...]
    p: tuple[tuple[float | None, ...], ...]
    """p of the paired permutation test, Holm-corrected over all pairs."""
    wins: tuple[tuple[bool, ...], ...]
    """Whether the row's metric is significantly better (p <= 0.05) than the column's."""


@dataclass(frozen=True)
class Histogram:
    edges: tuple[float, ...]
    """Bin edges, one more than counts; empty if nothing was counted."""
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """Points for a scatter plot: a fixed sample of the items, on the metrics' own scales."""

    ids: tuple[str, ...]
    systems: tuple[str, ...]
    human_written: tuple[bool, ...]
    judgement: tuple[float, ...]
    """Mean rating; for pairs, the response's share of votes."""
    scores: Mapping[str, tuple[float | None, ...]]
    """Scores by column, None where unscored."""


@dataclass(frozen=True)
class Reliability:
    """Whether the judgements of a set are more than chance."""

    consistency: Estimate
    """Reliability of an item's mean judgement over annotators (for pairs, over the comparisons of a
    response): Cronbach's alpha, or ICC(1, k), where 0 is chance."""
    cyclic: Estimate
    """Share of cyclic triples of responses, for sets of pairs; chance is 1/4."""
    failures: tuple[str, ...]
    """Why the set fails; empty if it passes or cannot be tested."""


@dataclass(frozen=True)
class SetResult:
    """One dimension of one judged set: the judgements, and how every metric agrees with them."""

    name: str
    title: str
    level: Literal["turn", "dialogue", "pair"]
    dimension: str
    items: int
    """Number of analysed responses or dialogues; for a set of pairs, of compared responses."""
    pairs: int
    of_items: int
    """Number of items (for a set of pairs, of pairs) in the whole set."""
    clusters: int
    """Number of independent dialogues or contexts."""
    systems: int
    annotators: str
    """Number of annotators per item, such as "3" or "8 to 11"."""
    human_written: int
    licence: str
    paper: str
    url: str
    sha256: str
    notes: tuple[str, ...]
    """What a reader needs to know to interpret the numbers."""
    problems: tuple[str, ...]
    """Records and fields of the file that could not be used."""
    statistics: tuple[str, ...]
    """Keys of the rows' statistics, in display order; the first is the main one."""
    ceiling: Mapping[str, Estimate]
    """What one person achieves in a metric's place, for the statistics that allow it."""
    alpha: Estimate
    """Agreement of the annotators: Krippendorff's alpha, interval or (for pairs) nominal."""
    kappa: Estimate
    """Agreement as Fleiss' kappa, which treats ratings as unordered categories."""
    reliability: Reliability
    """If it fails, the set's numbers mean nothing: it has no ranks and is left out of summaries."""
    rows: tuple[MetricRow, ...]
    """Rows by rank and main statistic, best first, sentinels among them."""
    significance: Significance
    sample: Sample
    judgement_histogram: Histogram
    histograms: Mapping[str, Histogram]
    """Histograms of the scores, by column."""
    limit: Mapping[str, Estimate] = field(default_factory=dict)
    """About the highest value any metric can reach, by statistic: the square root of the split-half
    reliability of the mean judgement."""
    floor: Mapping[str, Estimate] = field(default_factory=dict)
    """What an uninformative metric gets, for statistics where that is not obvious: Cont2Cat of
    pairs, where the annotators' own agreement raises every metric."""

    @property
    def main(self) -> str:
        """The statistic by which rows are ranked."""
        return self.statistics[0]

    @property
    def fails(self) -> bool:
        """Whether the judgements fail the reliability gate."""
        return bool(self.reliability.failures)

    def row(self, column: str) -> MetricRow | None:
        return next((row for row in self.rows if row.column == column), None)


@dataclass(frozen=True)
class RunOptions:
    """The options of a run."""

    max_items: int = 1000
    """Most items (or pairs) of a set; samples consist of whole dialogues or contexts."""
    resamples: int = 1000
    """Number of resamples for intervals."""
    permutations: int = 10_000
    """Fewest permutations for significance; many metrics need more."""
    seed: int = 0
    dimension: str | None = None
    """Judged dimension, in any case; None for the main dimension of each set."""


@dataclass(frozen=True)
class RunResult:
    """The results of a run: sets x metrics."""

    signature: str
    """Version, metrics with their weights, data and seed: everything needed to repeat the run."""
    version: str
    created: str
    """Time in ISO 8601, UTC."""
    machine: str
    options: RunOptions
    metrics: tuple[MetricFacts, ...]
    sets: tuple[SetResult, ...]

    def columns(self) -> tuple[str, ...]:
        """Return all columns of the run: metrics first, sentinels last, otherwise as registered."""
        order = {facts.name: (facts.sentinel, i) for i, facts in enumerate(self.metrics)}
        found = {row.column: row.metric for result in self.sets for row in result.rows}
        return tuple(sorted(found, key=lambda c: (*order[found[c]], c)))


def rows_of(result: RunResult) -> Iterator[dict[str, object]]:
    """Yield one row per set, dimension, column and statistic.

    Human values have the column `human`, those of an uninformative metric the column `constant`.
    """
    for judged in result.sets:
        for name, estimate in judged.ceiling.items():
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="ceiling")
        for name, estimate in judged.limit.items():
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="limit")
        for name, estimate in judged.floor.items():
            yield _row(judged, judged.dimension, name, estimate, column="constant", kind="floor")
        gate = judged.reliability
        for name, estimate in (("consistency", gate.consistency), ("cyclic", gate.cyclic)):
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="reliability")
        for name, estimate in (("alpha", judged.alpha), ("kappa", judged.kappa)):
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="agreement")
        for row in judged.rows:
            facts = {
                "column": row.column,
                "metric": row.metric,
                "kind": "sentinel" if row.sentinel else "metric",
                "seconds_per_1000": row.seconds_per_1000,
                "truncated": row.truncated,
            }
            for name, estimate in row.statistics.items():
                cluster = row.cluster if name == judged.main else None
                yield _row(judged, judged.dimension, name, estimate, cluster=cluster, **facts)
            for dimension, estimates in row.dimensions.items():
                if dimension != judged.dimension:
                    for name, estimate in estimates.items():
                        yield _row(judged, dimension, name, estimate, **facts)


def _row(
    judged: SetResult, dimension: str, statistic: str, estimate: Estimate, **more: object
) -> dict[str, object]:
    return {
        "set": judged.name,
        "level": judged.level,
        "dimension": dimension,
        "fails": int(judged.fails),
        "statistic": statistic,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "reason": estimate.reason,
        **more,
    }


def to_json(result: RunResult) -> str:
    return json.dumps(asdict(result), ensure_ascii=False, allow_nan=False, indent=1)


def from_json(text: str) -> RunResult:
    """Return the run that `to_json` wrote."""
    try:
        return cast(RunResult, _decoded(RunResult, json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CauserieError(
            f"these are not the results of a benchmark run ({error}): "
            "use the results.json that `causerie bench run` wrote"
        ) from error


def _decoded(kind: Any, data: Any) -> Any:
    """Return JSON as an instance of one of the types above."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if data is None else _decoded(arguments[0], data)
    if origin is tuple:
        return tuple(_decoded(arguments[0], value) for value in data)
    if origin is Mapping:
        return {key: _decoded(arguments[1], value) for key, value in data.items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{f.name: _decoded(hints[f.name], data[f.name]) for f in fields(kind)})  # type: ignore[operator]
    return data
