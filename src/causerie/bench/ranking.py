"""Does a metric find the human response among random ones? A test that needs no judgements.

Of dialogues between people, every metric scores the true response and 15 responses of other
dialogues in its place. R@1 is the share of contexts whose true response scores best, MRR the
mean of 1 / its rank; ties count against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from causerie._version import __version__
from causerie.bench.scores import ScoreStore, score_items
from causerie.metrics.base import Metric
from causerie.progress import Watch, counting, ignore
from causerie.render.svg import BLUE, RED, label, outline, picture
from causerie.render.tables import Table, markdown_table
from causerie.stats import Estimate, FloatArray, mean_of_clusters, means, with_intervals
from causerie.training.negatives import CANDIDATES, corpus_items
from causerie.training.corpus import Corpus

_UNSCORED = "no true response has a score"


@dataclass(frozen=True)
class RankedColumn:
    """How one column of one metric ranks the true responses."""

    name: str
    recall: Estimate
    """R@1."""
    mrr: Estimate
    above_random: Estimate
    """Share of true responses above one random response, ties counting half."""
    true: tuple[float, ...]
    """Scores of true responses, higher is better."""
    random: tuple[float, ...]
    """Of one random response for each."""


@dataclass(frozen=True)
class RankingResult:
    """Every column on the same items."""

    signature: str
    items: int
    of_items: int
    """How many there were to choose from."""
    columns: tuple[RankedColumn, ...]


def run_ranking(
    metrics: Mapping[str, Metric],
    corpus: Corpus,
    store: ScoreStore,
    *,
    max_items: int = 1000,
    seed: int = 0,
    resamples: int = 1000,
    watch: Watch = ignore,
) -> RankingResult:
    """Rank the true responses of dialogues; `metrics` by the name they are shown with.

    Exchanges and random responses are drawn with the seed; intervals are clustered by dialogue.
    """
    items = corpus_items(corpus, max_items, seed)
    flat = [exchange for item in items for exchange in item]
    stops = np.cumsum([len(item) for item in items])[:-1]
    clusters = [id(item[0].dialogue) for item in items]
    columns = []
    for name, metric in metrics.items():
        scored = score_items(metric, flat, store, counting(watch, name, "responses"))
        values = scored.values if metric.higher_is_better else -scored.values
        for column, row in zip(scored.columns, values, strict=True):
            shown = name if len(scored.columns) == 1 else column.replace(metric.name, name, 1)
            columns.append(_ranked(shown, np.split(row, stops), clusters, resamples, seed))
    signature = " ".join(
        [
            f"causerie|{__version__}",
            f"seed|{seed}",
            f"max-items|{max_items}",
            f"data|{corpus.sha256[:12]}",
            *(metric.signature for metric in metrics.values()),
        ]
    )
    return RankingResult(signature, len(items), len(corpus.exchanges), tuple(columns))


def _ranked(
    name: str, items: Sequence[FloatArray], clusters: Sequence[int], resamples: int, seed: int
) -> RankedColumn:
    """`items` hold the scores of an item's candidates, the true response's first."""
    true = np.array([scores[0] for scores in items])
    other = np.array([scores[1] if len(scores) > 1 else np.nan for scores in items])
    rank = np.array([1.0 + (scores[1:] >= scores[0]).sum() for scores in items])
    rank[np.isnan(true)] = np.nan  # what has no score has no rank; a candidate without one loses
    rows = np.array([rank == 1, 1 / rank, (np.sign(true - other) + 1) / 2], dtype=np.float64)
    rows[0, np.isnan(rank)] = np.nan
    estimates = means(rows, _UNSCORED)
    statistic = mean_of_clusters(rows, clusters)
    recall, mrr, above = with_intervals(estimates, statistic, resamples=resamples, seed=seed)
    both = ~np.isnan(true) & ~np.isnan(other)
    return RankedColumn(name, recall, mrr, above, tuple(true[both]), tuple(other[both]))


def ranking_table(result: RankingResult) -> Table:
    """Return the columns by R@1, MRR and the share above one random response."""
    return Table(
        ["metric", f"R@1 of {CANDIDATES}", "MRR", "above one random response"],
        [
            [column.name, column.recall, column.mrr, column.above_random]
            for column in result.columns
        ],
        f"The human response among {CANDIDATES - 1} random ones",
    )


def ranking_markdown(result: RankingResult) -> str:
    """Return the table with what it rests on."""
    table = ranking_table(result)
    lines = [
        f"## {table.title}",
        "",
        f"{result.items:,} of {result.of_items:,} exchanges between people, with 95% intervals.",
        "",
        markdown_table(table),
    ]
    return "\n".join([*lines, "", f"signature: `{result.signature}`", ""])


WIDTH, HEIGHT, MARGIN, BINS = 640, 150, 20, 60


def ranking_picture(result: RankingResult) -> str:
    """Return the distributions of true and of random responses, as SVG, for every column."""
    shown = [column for column in result.columns if column.true]
    parts = [
        f'<g transform="translate(0 {HEIGHT * number})">{_histograms(column)}</g>'
        for number, column in enumerate(shown)
    ]
    return picture(WIDTH, HEIGHT * len(shown), parts)


def _histograms(column: RankedColumn) -> str:
    both = np.array([*column.true, *column.random])
    low, high = np.quantile(both, [0.005, 0.995])
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    counts = [
        np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].tolist()
        for values in (column.true, column.random)
    ]
    tallest, right = max(map(max, counts)), WIDTH - MARGIN
    parts = [
        f'<text x="{MARGIN}" y="16">{escape(column.name)}: <tspan fill="{BLUE}">human</tspan> and '
        f'<tspan fill="{RED}">random</tspan> responses</text>'
    ]
    for colour, heights in zip((BLUE, RED), counts, strict=True):
        bars = outline(heights, tallest, left=MARGIN, right=right, top=24, floor=HEIGHT - 26)
        parts.append(f'<path fill="{colour}" fill-opacity="0.55" d="{bars}"/>')
    parts.append(label(MARGIN, HEIGHT - 10, f"{edges[0]:.3g}"))
    parts.append(label(right, HEIGHT - 10, f"{edges[-1]:.3g}", anchor="end"))
    return "".join(parts)
