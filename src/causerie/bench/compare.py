"""Is b better than a? Two sets of responses, many metrics, one answer each.

Where both sets answer the same turns, responses are compared in pairs, which detects much smaller
differences; otherwise the two sets of dialogues are compared as wholes. Either way intervals and
p-values account for the dependence of responses in one dialogue. An empty reply is the worst
reply: in columns with a direction it counts as the worst possible value, or the worst one seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causerie.bench import preference
from causerie.bench.pairing import (
    Example,
    Response,
    Responses,
    are_most,
    differ_most,
    partners,
    responses_of,
    worst_of_each,
)
from causerie.errors import CauserieError
from causerie.io import arrow_table, records_of
from causerie.metrics.base import EMPTY, Better, Column
from causerie.progress import Watch, ignore
from causerie.render.tables import Cell, Marked, Table, markdown_table
from causerie.scoring.gates import Condition, Verdict
from causerie.scoring.plan import DEFAULT_METRICS, Metrics
from causerie.scoring.result import columns_of, plan_of
from causerie.scoring.scorer import Batch, Scorer
from causerie.stats import Comparison, Estimate, FloatArray, compare_paired, compare_unpaired

if TYPE_CHECKING:
    import pyarrow

    from causerie.engines import Engines, Settings
    from causerie.metrics.judge import Judge
    from causerie.scoring.store import ScoreStore

_ARROWS: Mapping[Better | None, str] = {"higher": " ↑", "lower": " ↓", None: ""}


@dataclass(frozen=True)
class Side:
    """One of the two sets of responses."""

    source: str
    records: int
    rejected: int
    responses: int
    dialogues: int
    """Number of dialogues, or of different contexts in files of context and response rows."""
    empty: int
    """Number of responses without any text."""


@dataclass(frozen=True)
class ColumnComparison:
    """The comparison of one column of one metric."""

    column: str
    better: Better | None
    sentinel: bool
    mean_a: float | None
    mean_b: float | None
    difference: Estimate
    """Mean of b minus mean of a, on the metric's own scale."""
    p: float | None
    win_rate: Estimate
    """Share of comparisons that b wins (without a direction, by a larger value), ties half."""
    percentile_b: float | None
    """Mean percentile of b's responses among human ones, if the metric is calibrated."""
    unscored: Mapping[str, int]
    """Number of unscored responses of both sides, by reason."""
    unscored_b: float
    """Share of b's responses without a score, including empty ones."""
    clusters_a: int
    clusters_b: int
    """Number of b's dialogues or contexts behind the interval, as `clusters_a` is that of a's."""
    examples: tuple[Example, ...]
    """If paired, where the two differ most; otherwise the worst of a, then the worst of b."""

    @property
    def name(self) -> str:
        """The column with an arrow for its direction."""
        return self.column + _ARROWS[self.better]


@dataclass(frozen=True, repr=False)
class CompareResult:
    """The results of a comparison."""

    a: Side
    b: Side
    pairs: int | None
    """Number of compared pairs; None if the comparison is unpaired."""
    columns: tuple[ColumnComparison, ...]
    seed: int
    signature: str
    confidence: float = 0.95
    """Confidence level of the intervals."""

    def column(self, name: str) -> ColumnComparison:
        """Return the comparison of a column by its name."""
        for column in self.columns:
            if column.column == name:
                return column
        known = ", ".join(column.column for column in self.columns)
        raise CauserieError(f"the comparison has no column {name!r}: it has {known}")

    @property
    def how(self) -> str:
        """How the two were compared, in words."""
        if self.pairs is None:
            return "unpaired: most responses have no partner that answers the same in the other"
        left_out = self.a.responses + self.b.responses - 2 * self.pairs
        others = f"; {left_out} responses without a partner are left out" if left_out else ""
        return f"paired: {self.pairs} pairs of responses that answer the same{others}"

    @property
    def table(self) -> pyarrow.Table:
        """The comparison as an Arrow table with one row per column."""
        rows = (
            {
                "column": one.column,
                "better": one.better,
                "a": one.mean_a,
                "b": one.mean_b,
                "difference": one.difference.value,
                "low": one.difference.low,
                "high": one.difference.high,
                "p": one.p,
                "b_wins": one.win_rate.value,
                "n": one.difference.n,
            }
            for one in self.columns
        )
        kinds = dict.fromkeys(("a", "b", "difference", "low", "high", "p", "b_wins"), float)
        return arrow_table(rows, {"column": str, "better": str, **kinds, "n": int})

    def rendered(self) -> Table:
        """Return a table for display: means, difference with its interval, p and b's win rate."""
        rows: list[list[Cell]] = []
        for one in self.columns:
            name = Marked(one.name, "emphasis") if one.sentinel else one.name
            p = None if one.p is None else f"{one.p:.4f}"
            wins = None if one.win_rate.value is None else f"{one.win_rate.value:.1%}"
            rows.append([name, one.mean_a, one.mean_b, one.difference, p, wins])
        title = f"{self.a.source} (a) against {self.b.source} (b)"
        difference = f"b - a [{100 * self.confidence:g}%]"
        return Table(["metric", "a", "b", difference, "p", "b wins"], rows, title, digits=4)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        content = asdict(self)
        for column in content["columns"]:
            column["higher_is_better"] = column["better"] != "lower"
        return content

    def judge(self, condition: Condition, *, significant: bool = False) -> Verdict:
        """Evaluate a gate condition; all quantities except differences are those of b.

        If `significant`, a difference passes a limit only with its whole interval.
        """
        if condition.column is None:
            return condition.judge(self.b.rejected / self.b.records)
        column = self.column(condition.column)
        if condition.quantity == "difference":
            estimate, value = column.difference, column.difference.value
            if significant:
                value = estimate.high if condition.operator == "<" else estimate.low
            return condition.judge(value, estimate.reason or "it has no interval")
        values = {
            "mean": column.mean_b,
            "percentile": column.percentile_b,
            "unscored": column.unscored_b,
        }
        return condition.judge(values[condition.quantity], "nothing is scored")

    def _repr_markdown_(self) -> str:
        return f"{self.how}\n\n{markdown_table(self.rendered())}"

    def __repr__(self) -> str:
        return self._repr_markdown_()


def compare(
    a: object,
    b: object,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    speaker: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    columns: Mapping[str, str] | str | None = None,
    settings: Settings | None = None,
    engines: Engines | None = None,
    store: ScoreStore | None = None,
    judge: Judge | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    watch: Watch = ignore,
) -> CompareResult:
    """Compare the responses of an old system a and a new system b on every metric.

    Both can be anything that `causerie.evaluate` takes: dialogues, messages, dictionaries, tables,
    paths. `metrics`, `speaker`, `options`, `columns` and `settings` are the same as there;
    `confidence` is that of the intervals. A `judge` (`causerie.metrics.judge.Judge`) adds a
    column, `preference`: which of two replies is better. Comparisons given the same `engines`
    share their networks.

    >>> old, new = [["Hi!", "Go away."]] * 3, [["Hi!", "Hello, nice to meet you."]] * 3
    >>> compare(old, new, "length").column("length").difference.value
    3.0
    """
    if not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise CauserieError(f"confidence must be a number between 0 and 1, not {confidence!r}")
    if not isinstance(seed, Integral) or seed < 0:
        raise CauserieError(f"seed must be a whole number, 0 or more, not {seed!r}")
    plan = plan_of(metrics, options, settings, engines, speaker=speaker)
    named = columns_of(columns)
    scorer = Scorer(plan, store, engines=engines)
    old, new = (
        responses_of(records_of(data, named), _name(data, name), speaker)
        for name, data in (("a", a), ("b", b))
    )
    return compare_responses(
        old, new, scorer, judge=judge, confidence=confidence, seed=seed, watch=watch
    )


def _name(data: object, otherwise: str) -> str:
    return str(data) if isinstance(data, (str, Path)) else otherwise


def compare_responses(
    a: Responses,
    b: Responses,
    scorer: Scorer,
    *,
    judge: Judge | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    watch: Watch = ignore,
) -> CompareResult:
    """Compare responses column by column of every metric.

    They are paired if at least half of the responses of either side have a partner in the other
    (responses without a partner are left out), and unpaired otherwise.
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
    exchanges = [item.exchange for item in (*items_a, *items_b)]
    batch = scorer.score_all(exchanges, task="comparing", watch=watch)
    columns, signature = dict(scorer.plan.columns), f"{scorer.plan.signature} seed|{seed}"
    if judge is not None:
        if not paired:
            raise CauserieError(
                "a judge compares replies to the same turns, and most of these have no partner: "
                "omit --judge, or score both sides with the metric judge"
            )
        found = preference.preferences(items_a, items_b, judge, scorer.engines, watch)
        batch = replace(batch, scores={**batch.scores, preference.NAME: found})
        columns[preference.NAME] = preference.COLUMN
        signature += f" {preference.NAME}={judge.signature(scorer.engines)}"
    compared = _Compared(batch, items_a, items_b, paired, confidence, seed)
    return CompareResult(
        _side(a),
        _side(b),
        len(pairs) if paired else None,
        tuple(compared.column(name, about) for name, about in columns.items()),
        seed,
        signature,
        confidence,
    )


@dataclass(frozen=True)
class _Compared:
    """The scores of both sides: first those of a, then those of b."""

    batch: Batch
    a: Sequence[Response]
    b: Sequence[Response]
    paired: bool
    confidence: float
    seed: int

    def column(self, name: str, about: Column) -> ColumnComparison:
        values = with_worst(self.batch, name, about)
        own, other = values[: len(self.a)], values[len(self.a) :]
        # The statistics count the wins of their first system, so b is passed first.
        found = self._comparison(about.sign * other, about.sign * own)
        reasons = self.batch.reasons(name)
        if about.better is not None:
            reasons.pop(str(EMPTY.reason), None)
        examples = differ_most if self.paired else worst_of_each
        scores_b = self.batch.scores[name][len(self.a) :]
        return ColumnComparison(
            name,
            about.better,
            about.sentinel,
            *_means(own, other, self.paired),
            _on_own_scale(found.difference, about.sign),
            found.p,
            found.win_rate,
            _mean_percentile(self.batch, name, len(self.a)) if about.calibrated else None,
            reasons,
            sum(score.value is None for score in scores_b) / len(scores_b),
            *self._clusters(own, other),
            examples(self.a, self.b, own, other, about.sign),
        )

    def _clusters(self, a: FloatArray, b: FloatArray) -> tuple[int, int]:
        if self.paired:
            a = b = a + b  # a pair counts if both have a score
        counted = (
            {item.cluster for item, value in zip(items, values, strict=True) if value == value}
            for items, values in ((self.a, a), (self.b, b))
        )
        of_a, of_b = map(len, counted)
        return of_a, of_b

    def _comparison(self, b: FloatArray, a: FloatArray) -> Comparison:
        clusters_a, clusters_b = ([i.cluster for i in side] for side in (self.a, self.b))
        if self.paired:
            found = compare_paired(b, a, clusters_a, level=self.confidence, seed=self.seed)
        else:
            found = compare_unpaired(
                b, clusters_b, a, clusters_a, level=self.confidence, seed=self.seed
            )
        return found[0]


def with_worst(batch: Batch, name: str, about: Column) -> FloatArray:
    """Return a column's values; if it has a direction, empty replies have the worst value."""
    values = batch.values(name)
    seen = values[~np.isnan(values)].tolist()
    worst = about.empty_value(min(seen, default=None), max(seen, default=None))
    empty = [score.reason == EMPTY.reason for score in batch.scores[name]]
    return values if worst is None else np.where(empty, worst, values)


def _mean_percentile(batch: Batch, name: str, start: int) -> float | None:
    """Return the mean percentile from `start` on; an empty reply has percentile 0."""
    known = [
        0.0 if score.reason == EMPTY.reason else score.percentile
        for score in batch.scores[name][start:]
    ]
    found = [percentile for percentile in known if percentile is not None]
    return sum(found) / len(found) if found else None


def _on_own_scale(difference: Estimate, sign: int) -> Estimate:
    if sign > 0:
        return difference
    value, low, high = (
        None if number is None else -number
        for number in (difference.value, difference.low, difference.high)
    )
    return replace(difference, value=value, low=high, high=low)


def _means(a: FloatArray, b: FloatArray, paired: bool) -> tuple[float | None, float | None]:
    """Return both means; if paired, over the pairs that both sides have scored."""
    if paired:
        missing = np.isnan(a) | np.isnan(b)
        a, b = np.where(missing, np.nan, a), np.where(missing, np.nan, b)
    return _mean(a), _mean(b)


def _mean(values: FloatArray) -> float | None:
    scored = values[~np.isnan(values)]
    return float(scored.mean()) if len(scored) else None


def _side(responses: Responses) -> Side:
    return Side(
        responses.source,
        responses.records,
        len(responses.rejected),
        len(responses.items),
        responses.clusters,
        sum(not item.exchange.response.text.strip() for item in responses.items),
    )
