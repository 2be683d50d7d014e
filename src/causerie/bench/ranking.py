"""Does a metric find the human response among random ones? A test that needs no judgements.

Of dialogues between people, every metric scores the true response and 15 responses of other
dialogues in its place. R@1 is the share of contexts whose true response scores best, MRR the
mean of 1 / its rank; ties count against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from causerie._version import __version__
from causerie.progress import Watch, ignore
from causerie.render.svg import BLUE, RED, label, outline, picture
from causerie.render.tables import Table, markdown_table
from causerie.scoring.scorer import Scorer
from causerie.stats import Ranking, ranking_estimates
from causerie.training.corpus import Corpus
from causerie.training.negatives import CANDIDATES, corpus_items


@dataclass(frozen=True)
class RankedColumn:
    """How one column of one metric ranks the true responses."""

    name: str
    ranking: Ranking
    """R@1, MRR and the share above one random response."""
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
    scorer: Scorer,
    corpus: Corpus,
    *,
    max_items: int = 1000,
    seed: int = 0,
    resamples: int = 1000,
    watch: Watch = ignore,
) -> RankingResult:
    """Rank the true responses of dialogues.

    Exchanges and random responses are drawn with the seed; intervals are clustered by dialogue.
    """
    items = corpus_items(corpus, max_items, seed)
    stops = np.cumsum([len(item) for item in items])[:-1]
    clusters = [id(item[0].dialogue) for item in items]
    plan = scorer.plan
    batch = scorer.score_all([exchange for item in items for exchange in item], watch=watch)
    columns = []
    for name, about in plan.columns.items():
        scores = np.split(about.sign * batch.values(name), stops)
        ranking = ranking_estimates(scores, clusters, resamples=resamples, seed=seed)
        pairs = np.array([own[:2] for own in scores if len(own) > 1]).reshape(-1, 2)
        true, other = pairs[~np.isnan(pairs).any(axis=1)].T
        columns.append(RankedColumn(name, ranking, tuple(true), tuple(other)))
    said = [f"causerie|{__version__}", f"seed|{seed}", f"max-items|{max_items}"]
    signature = " ".join([*said, f"data|{corpus.sha256[:12]}", *plan.signatures.values()])
    return RankingResult(signature, len(items), len(corpus.exchanges), tuple(columns))


def variants(metrics: str) -> dict[str, str]:
    """Metrics by the names they are shown with: `density:distance=classifier` goes by that name
    beside `density`, and an artifact by that of its folder.
    """
    named: dict[str, str] = {}
    for text in filter(None, map(str.strip, metrics.split(","))):
        head = text.partition(":")[0]
        alias, equals, _ = head.partition("=")
        short = alias.strip() if equals else text.replace(head, Path(head).name, 1)
        named[text if short in named else short] = text
    return named


def ranking_table(result: RankingResult) -> Table:
    """Return the columns by R@1, MRR and the share above one random response."""
    return Table(
        ["metric", f"R@1 of {CANDIDATES}", "MRR", "above one random response"],
        [
            [column.name, column.ranking.recall, column.ranking.mrr, column.ranking.above]
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
