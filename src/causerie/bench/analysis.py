"""Analysis of one dimension of a judged set: every metric's statistics, or why they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from causerie.bench.judgement import Judgement, judgement_of, points_of, reliability_of
from causerie.bench.measures import Measures, ranks
from causerie.bench.results import (
    PAIR_STATISTICS,
    STATISTICS,
    Histogram,
    MetricRow,
    RunOptions,
    Sample,
    SetResult,
)
from causerie.bench.sets.catalogue import entry_for
from causerie.bench.sets.judged import JudgedSet
from causerie.bench.sets.units import Units, units_of
from causerie.dialogue import Exchange
from causerie.metrics.base import Column
from causerie.stats import (
    Estimate,
    FloatArray,
    cont2cat,
    correlation_of_clusters,
    ignore_equal,
    ignore_equal_points,
    krippendorff_alpha,
    pearson,
    spearman,
    unit_of,
    vote_codes,
    with_intervals,
)

MOST_PROBLEMS = 20
MOST_POINTS = 500
_BINS = 20
_TAIL = 0.005


@dataclass(frozen=True)
class ScoredColumn:
    """One column of one metric: its score of every unit of the set."""

    name: str
    metric: str
    """The alias of the metric."""
    about: Column
    values: FloatArray
    """Scores on the metric's own scale, NaN where unscored."""
    unscored: Mapping[str, int]
    """Number of unscored units by reason."""
    seconds_per_1000: float | None = None
    truncated: float | None = None

    @property
    def oriented(self) -> FloatArray:
        """The values, negated if lower is better."""
        return self.about.sign * self.values


def analyse(
    judged: JudgedSet,
    columns: Sequence[ScoredColumn],
    options: RunOptions,
    dimension: str | None = None,
    *,
    units: Units | None = None,
    whole: JudgedSet | None = None,
) -> SetResult:
    """Return how the columns, whose values are in the order of the units, agree with people.

    The dimension defaults to the set's main one; `units` are the set's, if already known. `whole`
    is the set that `judged` was sampled from, if any: all of its judgements decide whether they
    are reliable. Partial correlations control for the column `length`.
    """
    entry = entry_for(judged.name)
    dimension = dimension or main_dimension(judged)
    units = units or units_of(judged)
    judgement = judgement_of(judged, units, dimension)
    # No statistic depends on the scale of a metric's scores.
    oriented = [column.oriented / unit_of(column.values) for column in columns]
    scores = np.array(oriented, dtype=np.float64).reshape(len(columns), len(units))
    measures = Measures(scores, judgement.points, units, options)
    length = next((c.values for c in columns if c.name == "length"), np.full(len(units), np.nan))
    if judged.level == "pair":
        names = tuple(PAIR_STATISTICS)
        found = _of_pairs(judged, measures, judgement, length)
    else:
        names = tuple(STATISTICS)
        found = _of_items(measures, length)
    significance = measures.significance([column.name for column in columns], names[0])
    reliability = reliability_of(whole or judged, dimension, options)
    clusters = ranks(found[names[0]], significance)
    if reliability.failures:
        clusters = [None] * len(columns)
    by_dimension = _by_dimension(judged, units, scores)
    rows = [
        MetricRow(
            column=column.name,
            metric=column.metric,
            sentinel=column.about.sentinel,
            higher_is_better=column.about.better != "lower",
            statistics={
                name: _explained(found[name][i], column, judgement.reason) for name in names
            },
            dimensions={
                d: {name: _explained(row[i], column, reason) for name, row in estimates.items()}
                for d, (reason, estimates) in by_dimension.items()
            },
            cluster=clusters[i],
            seconds_per_1000=column.seconds_per_1000,
            truncated=column.truncated,
            scored=int((~np.isnan(column.values)).sum()),
            unscored=dict(column.unscored),
        )
        for i, column in enumerate(columns)
    ]
    total = len(whole or judged)
    return SetResult(
        name=judged.name,
        title=entry.title,
        level=judged.level,
        dimension=dimension,
        items=len(units),
        pairs=len(judged.pairs),
        of_items=total,
        clusters=len(set(units.clusters)),
        systems=len(set(units.systems) - {""}),
        annotators=judgement.annotators,
        human_written=sum(units.human_written),
        licence=entry.licence,
        paper=entry.paper,
        url=entry.url,
        sha256=judged.sha256,
        notes=(
            *_notes(judged, units, columns, total, options.seed),
            *_of_annotators(judged, judgement),
            *entry.notes,
        ),
        problems=_shortened(judged.problems),
        statistics=names,
        ceiling=judgement.ceiling(),
        alpha=judgement.alpha(),
        kappa=judgement.kappa(),
        reliability=reliability,
        rows=tuple(sorted(rows, key=lambda row: _order(row, names[0]))),
        significance=significance,
        sample=sample(units, judgement.points, {c.name: c.values for c in columns}, options.seed),
        judgement_histogram=histogram(judgement.points),
        histograms={column.name: histogram(column.values) for column in columns},
        limit=judgement.limit(),
        floor=judgement.floor(),
    )


def main_dimension(judged: JudgedSet) -> str:
    """Return the catalogue's main dimension; for unknown sets, "overall" or else the last one."""
    overall = [d for d in judged.dimensions if d.casefold() == "overall"]
    known = entry_for(judged.name).main
    return known or (overall or list(judged.dimensions) or ["overall"])[-1]


def _of_items(measures: Measures, length: FloatArray) -> dict[str, list[Estimate]]:
    return {
        "spearman": measures.spearman(),
        "pearson": measures.pearson(),
        "kendall": measures.kendall(),
        "accuracy": measures.accuracy(),
        **_views(measures, length),
        "without-humans": measures.without_humans(),
    }


def _of_pairs(
    judged: JudgedSet, measures: Measures, judgement: Judgement, length: FloatArray
) -> dict[str, list[Estimate]]:
    return {
        "voting.spearman": measures.spearman(),
        "voting.pearson": measures.pearson(),
        "ignore-equal.point-biserial": _ignore_equal(judged, measures, judgement),
        "cont2cat.alpha": cont2cat(_differences(measures), judgement.votes),
        **_views(measures, length),
        "without-humans": _pairs_without_humans(judged, measures, judgement),
    }


def _views(measures: Measures, length: FloatArray) -> dict[str, list[Estimate]]:
    return {
        "within-context": measures.within_context(),
        "within-context-accuracy": measures.within_context_accuracy(),
        "system": measures.system(),
        "system-means": measures.system_means(),
        "partial": measures.partial(length),
    }


def _differences(measures: Measures) -> FloatArray:
    """Return metrics x pairs: the score of A minus that of B."""
    difference: FloatArray = (
        measures.scores[:, measures.units.first] - measures.scores[:, measures.units.second]
    )
    return difference


def _ignore_equal(judged: JudgedSet, measures: Measures, judgement: Judgement) -> list[Estimate]:
    differences = _differences(measures)
    pair, prefers_a = ignore_equal_points(judgement.votes)
    return with_intervals(
        ignore_equal(differences, judgement.votes),
        correlation_of_clusters(
            differences[:, pair], prefers_a, [judged.pairs[p].cluster for p in pair]
        ),
        resamples=measures.options.resamples,
        seed=measures.options.seed,
    )


def _pairs_without_humans(
    judged: JudgedSet, measures: Measures, judgement: Judgement
) -> list[Estimate]:
    """Count votes only where both responses are a system's."""
    written = [any(pair.humans) for pair in judged.pairs]
    if not any(written):
        return measures.none("no response is known to be written by a person")
    votes = [() if human else row for row, human in zip(judgement.votes, written, strict=True)]
    return replace(measures, judgement=points_of(votes, measures.units)).spearman()


def _by_dimension(
    judged: JudgedSet, units: Units, scores: FloatArray
) -> dict[str, tuple[str | None, dict[str, list[Estimate]]]]:
    """Return, per dimension, why there is no result, and the main statistics without intervals."""
    result = {}
    for dimension in judged.dimensions:
        judgement = judgement_of(judged, units, dimension)
        voting = "voting." if judged.level == "pair" else ""
        found = {
            f"{voting}spearman": spearman(scores, judgement.points),
            f"{voting}pearson": pearson(scores, judgement.points),
        }
        if judged.level == "pair":
            differences = scores[:, units.first] - scores[:, units.second]
            found["ignore-equal.point-biserial"] = ignore_equal(differences, judgement.votes)
            found["cont2cat.alpha"] = cont2cat(differences, judgement.votes)
        result[dimension] = (judgement.reason, found)
    return result


def _explained(estimate: Estimate, column: ScoredColumn, no_judgement: str | None) -> Estimate:
    """Add the most basic reason: nobody judged the set, or the metric did not score it."""
    if estimate.value is not None:
        return estimate
    if no_judgement:
        return replace(estimate, reason=no_judgement)
    if np.isnan(column.values).all():
        reason = max(column.unscored, key=lambda why: column.unscored[why], default="unknown")
        return replace(estimate, reason=f"unscored: {reason}")
    return estimate


def _notes(
    judged: JudgedSet, units: Units, columns: Sequence[ScoredColumn], total: int, seed: int
) -> tuple[str, ...]:
    notes = []
    what = "pairs" if judged.level == "pair" else "items"
    if len(judged) < total:
        notes.append(
            f"a fixed sample: {len(judged):,} of {total:,} {what}, whole clusters, seed {seed}"
        )
    lower = [column.name for column in columns if column.about.better == "lower"]
    if lower:
        notes.append(f"lower is better for {', '.join(lower)}: negated, so larger agrees better")
    if judged.level == "dialogue":
        notes.append("turn-level metrics are averaged over the system's turns of a dialogue")
    own = sum(
        human and isinstance(item, Exchange) and item.response.text in item.references
        for item, human in zip(units.items, units.human_written, strict=True)
    )
    if own:
        notes.append(
            f"{own:,} human-written responses are their own reference, which flatters metrics "
            "that use one: compare those without human-written responses"
        )
    return tuple(notes)


def _of_annotators(judged: JudgedSet, judgement: Judgement) -> Iterator[str]:
    """Yield notes on agreement other than alpha, and on what it means for the metrics' numbers."""
    if (kappa := judgement.kappa()).value is not None:
        yield f"the annotators' kappa (Fleiss', ratings as categories) is {kappa.value:.3f}"
    for estimate in judgement.floor().values():
        if estimate.value is not None:
            floor = f"Cont2Cat {estimate.value:.3f}"
            yield f"a metric that knows nothing and always prefers B has {floor}: the floor"
    if judged.level == "pair":
        yield from _of_votes(judged)


def _of_votes(judged: JudgedSet) -> Iterator[str]:
    """Yield notes on how far votes agree over all dimensions, and where suspiciously well."""
    votes = {d: [[o.get(d) for o in p.judgements] for p in judged.pairs] for d in judged.dimensions}
    pooled = krippendorff_alpha(vote_codes([row for rows in votes.values() for row in rows]))
    if len(votes) > 1 and pooled.value is not None:
        together = f"all {len(votes)} dimensions together"
        yield f"the annotators' alpha over {together} is {pooled.value:.3f}"
    for dimension, rows in votes.items():
        cast = [[vote for vote in row if vote is not None] for row in rows]
        several = [row for row in cast if len(row) > 1]
        if several and all(len(set(row)) == 1 for row in several):
            yield (
                f"the annotators' votes for {dimension!r} agree on every pair, as if they were one "
                "vote written down several times: an agreement of 1 says nothing there"
            )


def sample(
    units: Units, judgement: FloatArray, scores: Mapping[str, FloatArray], seed: int
) -> Sample:
    """Draw at most `MOST_POINTS` of the judged units, keeping their order."""
    judged = np.flatnonzero(np.isfinite(judgement))
    if len(judged) > MOST_POINTS:
        generator = np.random.default_rng(seed)
        judged = np.sort(generator.choice(judged, MOST_POINTS, replace=False))
    places = judged.tolist()
    return Sample(
        ids=tuple(units.ids[i] for i in places),
        systems=tuple(units.systems[i] for i in places),
        human_written=tuple(units.human_written[i] for i in places),
        judgement=tuple(float(judgement[i]) for i in places),
        scores={
            name: tuple(float(row[i]) if np.isfinite(row[i]) else None for i in places)
            for name, row in scores.items()
        },
    )


def histogram(values: FloatArray) -> Histogram:
    """Return counts in equal bins; the outermost half per cent at either end is in the end bins."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Histogram((), ())
    unit = unit_of(finite)
    low, high = np.quantile(finite / unit, [_TAIL, 1 - _TAIL])
    if high - low <= 1e-9 * abs(high):
        # Almost equal values: bins must be wide enough to tell large numbers apart.
        width = max(0.5, 1e-6 * abs(high))
        low, high = low - width, high + width
    counts, edges = np.histogram(np.clip(finite / unit, low, high), bins=_BINS, range=(low, high))
    return Histogram(tuple((edges * unit).tolist()), tuple(counts.tolist()))


def _shortened(problems: tuple[str, ...]) -> tuple[str, ...]:
    more = len(problems) - MOST_PROBLEMS
    return problems if more <= 0 else (*problems[:MOST_PROBLEMS], f"and {more:,} more")


def _order(row: MetricRow, main: str) -> tuple[bool, int, float, str]:
    value = row.statistics[main].value
    return (value is None, row.cluster or 0, -(value or 0.0), row.column)
