"""Everything a benchmark run found, as plain data that goes to JSON and back.

Numbers that could not be given are `Estimate`s without a value whose `reason` says why; no
NaN is ever in here.
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
"""The statistics of responses and dialogues, by the key they have in `MetricRow.statistics`."""

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
"""Likewise of sets of pairs."""


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
"""The columns of `rows_of`."""


@dataclass(frozen=True)
class MetricFacts:
    """What a metric says about itself."""

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
    """If not, its scores were negated first: every statistic reads alike, larger is better."""
    statistics: Mapping[str, Estimate]
    """By the keys of `SetResult.statistics`, with 95% intervals where they can be given."""
    dimensions: Mapping[str, Mapping[str, Estimate]]
    """The main statistics for every dimension of the set, without intervals."""
    cluster: int | None
    """Rank: no metric of a rank is significantly better than one below it; None: no number."""
    seconds_per_1000: float | None
    """Seconds per 1,000 turns on the machine that computed the scores."""
    truncated: float | None
    """Share of the inputs cut to the network's window; None if it uses no network."""
    scored: int
    unscored: Mapping[str, int]
    """Why items have no score, and how many each time."""


@dataclass(frozen=True)
class Significance:
    """All pairs of columns; matrices in the order of `columns`, None where there is no test."""

    statistic: str
    columns: tuple[str, ...]
    p: tuple[tuple[float | None, ...], ...]
    """Of the paired permutation test, after Holm's correction over all pairs."""
    wins: tuple[tuple[bool, ...], ...]
    """Whether the row's column is significantly better (p <= 0.05) than the column's."""


@dataclass(frozen=True)
class Histogram:
    edges: tuple[float, ...]
    """One more than counts; empty if there is nothing to count."""
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """Points for a scatter plot: a fixed sample of the items, on the metrics' own scales."""

    ids: tuple[str, ...]
    systems: tuple[str, ...]
    human_written: tuple[bool, ...]
    judgement: tuple[float, ...]
    """Mean rating; of pairs, the share of votes the response got."""
    scores: Mapping[str, tuple[float | None, ...]]
    """By column."""


@dataclass(frozen=True)
class Reliability:
    """Whether the judgements of a set are more than chance."""

    consistency: Estimate
    """Alpha of an item's mean judgement over its annotators (of pairs: over the comparisons of a
    response), 0 being chance: Cronbach's, or ICC(1, k)."""
    cyclic: Estimate
    """Of pairs, the share of triples of responses that are preferred in a circle; chance: 1/4."""
    failures: tuple[str, ...]
    """Why the set fails; empty if it passes, or if nothing can be told."""


@dataclass(frozen=True)
class SetResult:
    """One dimension of one judged set: what people said, and how every metric agrees with it."""

    name: str
    title: str
    level: Literal["turn", "dialogue", "pair"]
    dimension: str
    items: int
    """Responses or dialogues that were analysed; `pairs` of them are compared in a pair set."""
    pairs: int
    of_items: int
    """How many items (of a pair set: pairs) the whole set has."""
    clusters: int
    """Dialogues or contexts: what is independent."""
    systems: int
    annotators: str
    """How many people judged an item, such as "3" or "8 to 11"."""
    human_written: int
    licence: str
    paper: str
    url: str
    sha256: str
    notes: tuple[str, ...]
    """What a reader has to know to read the numbers right."""
    problems: tuple[str, ...]
    """What of the file could not be used."""
    statistics: tuple[str, ...]
    """Keys of the rows' statistics, in order of display; the first is the main one."""
    ceiling: Mapping[str, Estimate]
    """How well one person does in the metrics' place, for the statistics that allow it."""
    alpha: Estimate
    """Agreement of the annotators: Krippendorff's alpha (interval; of pairs nominal)."""
    kappa: Estimate
    """The same as Fleiss' kappa, for which ratings are categories without an order."""
    reliability: Reliability
    """If it fails, no number of this set means anything: it has no ranks and is in no summary."""
    rows: tuple[MetricRow, ...]
    """By rank and main statistic, the best first; sentinels among them."""
    significance: Significance
    sample: Sample
    judgement_histogram: Histogram
    histograms: Mapping[str, Histogram]
    """Of the scores, by column."""
    limit: Mapping[str, Estimate] = field(default_factory=dict)
    """About the most any metric can reach, because the mean of a few annotators is noisy: the
    square root of its split-half reliability, by statistic."""
    floor: Mapping[str, Estimate] = field(default_factory=dict)
    """What a metric that knows nothing gets, for statistics where that is not plain: Cont2Cat
    of pairs, in which the annotators' own agreement lifts every metric."""

    @property
    def main(self) -> str:
        """The statistic that rows are ranked by."""
        return self.statistics[0]

    @property
    def fails(self) -> bool:
        """Whether the judgements are not known to be better than chance."""
        return bool(self.reliability.failures)

    def row(self, column: str) -> MetricRow | None:
        return next((row for row in self.rows if row.column == column), None)


@dataclass(frozen=True)
class RunOptions:
    """What a run can be told."""

    max_items: int = 1000
    """At most this many items of a set (of a pair set: pairs), whole dialogues or contexts."""
    resamples: int = 1000
    """For intervals."""
    permutations: int = 10_000
    """For significance, at least: many metrics take more."""
    seed: int = 0
    dimension: str | None = None
    """What people judged, in any case of letters; None: the main dimension of each set."""


@dataclass(frozen=True)
class RunResult:
    """Sets x metrics."""

    signature: str
    """Version, metrics with their weights, data and seed: what makes the run repeatable."""
    version: str
    created: str
    """ISO 8601, UTC."""
    machine: str
    options: RunOptions
    metrics: tuple[MetricFacts, ...]
    sets: tuple[SetResult, ...]

    def columns(self) -> tuple[str, ...]:
        """Every column of the run: metrics first, sentinels last, otherwise as registered."""
        order = {facts.name: (facts.sentinel, i) for i, facts in enumerate(self.metrics)}
        found = {row.column: row.metric for result in self.sets for row in result.rows}
        return tuple(sorted(found, key=lambda c: (*order[found[c]], c)))


def rows_of(result: RunResult) -> Iterator[dict[str, object]]:
    """Yield one row per set, dimension, column and statistic.

    What people reach is a column `human`, what a metric that knows nothing gets a column
    `constant`.
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
    """The run that `to_json` wrote."""
    try:
        return cast(RunResult, _decoded(RunResult, json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CauserieError(
            f"these are not the results of a benchmark run ({error}): "
            "give the results.json that `causerie bench run` wrote"
        ) from error


def _decoded(kind: Any, data: Any) -> Any:
    """JSON as an instance of a type made of the kinds that occur above."""
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
