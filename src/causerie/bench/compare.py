"""Is b better than a? Two files of responses, many metrics, one answer each.

Where both files answer the same things, responses are compared in pairs, which shows much
smaller differences; otherwise the two sets of dialogues are compared as they are. Either way
intervals and p-values treat the responses of one dialogue as belonging together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from causerie._version import __version__
from causerie.bench.pairing import Response, Responses, are_most, partners
from causerie.bench.scores import ScoreStore, score_items
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.stats import Comparison, Estimate, FloatArray, compare_paired, compare_unpaired
from causerie.text.obscenity import mask

EXAMPLES = 5


@dataclass(frozen=True)
class Side:
    """One of the two files."""

    source: str
    records: int
    rejected: int
    responses: int
    dialogues: int
    """Dialogues, or different contexts where the file has context and response rows."""


@dataclass(frozen=True)
class Example:
    """A pair of responses that differ much, or one bad response of one file."""

    dialogue_id: str
    turn: int
    context: str
    """The turn before the response."""
    a: str | None
    b: str | None
    score_a: float | None
    score_b: float | None


@dataclass(frozen=True)
class ColumnComparison:
    """What one column of one metric says."""

    column: str
    higher_is_better: bool
    sentinel: bool
    mean_a: float | None
    mean_b: float | None
    difference: Estimate
    """Mean of b minus mean of a, on the metric's own scale."""
    p: float | None
    win_rate: Estimate
    """Share of comparisons in which b is better, ties counting half."""
    unscored: Mapping[str, int]
    """Why responses have no score, and how many each time; of both files together."""
    examples: tuple[Example, ...]
    """Paired: where the two differ most. Otherwise the worst of a, then the worst of b."""


@dataclass(frozen=True)
class CompareResult:
    """Everything `causerie compare` found."""

    a: Side
    b: Side
    pairs: int | None
    """How many pairs were compared; None if the comparison is unpaired."""
    columns: tuple[ColumnComparison, ...]
    seed: int
    signature: str

    def column(self, name: str) -> ColumnComparison:
        return next(column for column in self.columns if column.column == name)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    a: Responses,
    b: Responses,
    metrics: Sequence[Metric],
    store: ScoreStore,
    *,
    seed: int = 0,
    watch: Callable[[str, int, int], None] = lambda metric, done, total: None,
) -> CompareResult:
    """Compare the responses of two files, column by column of every metric.

    Paired if at least half of the responses of either file have a partner in the other
    (responses without one are then left out), unpaired otherwise.
    """
    for side in (a, b):
        if not side.items:
            raise CauserieError(
                f"{side.source} has no response to compare "
                f"({side.records} records, {len(side.rejected)} of them bad): "
                "check the file and --speaker"
            )
    pairs = partners(a.items, b.items)
    paired = are_most(pairs, a.items, b.items)
    items_a, items_b = a.items, b.items
    if paired:
        items_a = tuple(a.items[i] for i, _ in pairs)
        items_b = tuple(b.items[j] for _, j in pairs)
    columns: list[ColumnComparison] = []
    for metric in metrics:
        columns += _compare_metric(metric, items_a, items_b, paired, store, seed, watch)
    return CompareResult(
        _side(a),
        _side(b),
        len(pairs) if paired else None,
        tuple(columns),
        seed,
        " ".join([f"causerie|{__version__}", f"seed|{seed}", *(m.signature for m in metrics)]),
    )


def _compare_metric(
    metric: Metric,
    a: Sequence[Response],
    b: Sequence[Response],
    paired: bool,
    store: ScoreStore,
    seed: int,
    watch: Callable[[str, int, int], None],
) -> list[ColumnComparison]:
    scored = score_items(
        metric,
        [item.exchange for item in (*a, *b)],
        store,
        lambda done, total: watch(metric.name, done, total),
    )
    values_a, values_b = scored.values[:, : len(a)], scored.values[:, len(a) :]
    sign = 1.0 if metric.higher_is_better else -1.0
    clusters_a, clusters_b = [item.cluster for item in a], [item.cluster for item in b]
    # The statistics' first system is ours to judge, so that it is b whose wins are counted.
    found = (
        compare_paired(sign * values_b, sign * values_a, clusters_a, seed=seed)
        if paired
        else compare_unpaired(sign * values_b, clusters_b, sign * values_a, clusters_a, seed=seed)
    )
    examples = _differ_most if paired else _worst_of_each
    return [
        ColumnComparison(
            column,
            metric.higher_is_better,
            metric.sentinel,
            *_means(values_a[row], values_b[row], paired),
            _on_own_scale(comparison, sign),
            comparison.p,
            comparison.win_rate,
            scored.reasons.get(column, {}),
            examples(a, b, values_a[row], values_b[row], sign),
        )
        for row, (column, comparison) in enumerate(zip(scored.columns, found, strict=True))
    ]


def _on_own_scale(comparison: Comparison, sign: float) -> Estimate:
    difference = comparison.difference
    if sign > 0:
        return difference
    value, low, high = (
        None if number is None else -number
        for number in (difference.value, difference.low, difference.high)
    )
    return replace(difference, value=value, low=high, high=low)


def _means(a: FloatArray, b: FloatArray, paired: bool) -> tuple[float | None, float | None]:
    """Of what is compared: in a paired comparison, of the pairs that both have a score."""
    if paired:
        missing = np.isnan(a) | np.isnan(b)
        a, b = np.where(missing, np.nan, a), np.where(missing, np.nan, b)
    return _mean(a), _mean(b)


def _mean(values: FloatArray) -> float | None:
    scored = values[~np.isnan(values)]
    return float(scored.mean()) if len(scored) else None


def _differ_most(
    a: Sequence[Response], b: Sequence[Response], x: FloatArray, y: FloatArray, sign: float
) -> tuple[Example, ...]:
    gap = np.abs(x - y)
    order = [i for i in np.argsort(-gap, kind="stable").tolist() if gap[i] > 0][:EXAMPLES]
    return tuple(
        _example(a[i], a[i], b[i], score_a=float(x[i]), score_b=float(y[i])) for i in order
    )


def _worst_of_each(
    a: Sequence[Response], b: Sequence[Response], x: FloatArray, y: FloatArray, sign: float
) -> tuple[Example, ...]:
    def worst(values: FloatArray) -> list[int]:
        order = np.argsort(sign * values, kind="stable").tolist()
        return [i for i in order if not np.isnan(values[i])][:EXAMPLES]

    return (
        *(_example(a[i], a[i], None, score_a=float(x[i])) for i in worst(x)),
        *(_example(b[i], None, b[i], score_b=float(y[i])) for i in worst(y)),
    )


def _example(
    place: Response,
    a: Response | None,
    b: Response | None,
    score_a: float | None = None,
    score_b: float | None = None,
) -> Example:
    exchange = place.exchange
    before = exchange.last(1)
    return Example(
        exchange.dialogue.id,
        exchange.turn,
        mask(before[0].text) if before else "",
        mask(a.exchange.response.text) if a else None,
        mask(b.exchange.response.text) if b else None,
        score_a,
        score_b,
    )


def _side(responses: Responses) -> Side:
    return Side(
        responses.source,
        responses.records,
        len(responses.rejected),
        len(responses.items),
        responses.clusters,
    )
