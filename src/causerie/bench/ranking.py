"""Does a metric find the human response among random ones? A test that needs no judgements.

In dialogues between people, every metric scores the true response and 15 responses of other
dialogues in its place. R@1 is the share of contexts whose true response scores best, MRR the
mean of 1 / its rank; ties count against it. Attacks corrupt the true response (repeat it, echo the
last turn, contradict ...) and measure how often it scores above its corrupted twin. If the
untrained cosine is among the metrics, the others are compared with it on the same items.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from causerie._version import __version__
from causerie.dialogue import Exchange
from causerie.progress import Watch, ignore
from causerie.render.svg import BLUE, RED, label, outline, picture
from causerie.render.tables import Cell, Table, markdown_table
from causerie.scoring.scorer import Scorer
from causerie.stats import ClusteredRatio, Estimate, Ranking, rank_of_true, ranking_estimates, wins
from causerie.stats.estimate import FloatArray
from causerie.training.corpus import Corpus
from causerie.training.negatives import CANDIDATES, corpus_items, corruptions

BASELINE = "cosine"
"""The untrained column that every other column is compared with."""


@dataclass(frozen=True)
class Attacked:
    """How often a column scores the true response above its corrupted twin."""

    above: Estimate
    gain: Estimate | None
    """Gain over the baseline on the same pairs."""


@dataclass(frozen=True)
class RankedColumn:
    """How one column of one metric ranks the true responses."""

    name: str
    ranking: Ranking
    """R@1, MRR and the share above one random response."""
    gain: Estimate | None
    """R@1 minus the baseline's, on the same items."""
    true: tuple[float, ...]
    """Scores of true responses; higher is better."""
    random: tuple[float, ...]
    """Scores of one random response for each of them."""
    attacks: Mapping[str, Attacked] = field(default_factory=dict)


@dataclass(frozen=True)
class RankingResult:
    """The rankings of all columns on the same items."""

    signature: str
    items: int
    of_items: int
    """Number of exchanges in the whole corpus."""
    columns: tuple[RankedColumn, ...]


def run_ranking(
    scorer: Scorer,
    corpus: Corpus,
    *,
    max_items: int = 1000,
    attacks: bool = False,
    seed: int = 0,
    resamples: int = 1000,
    watch: Watch = ignore,
) -> RankingResult:
    """Rank the true responses of dialogues and, with `attacks`, compare them with corrupted ones.

    Exchanges and random responses are drawn with the seed; intervals are clustered by dialogue.
    """
    items = corpus_items(corpus, max_items, seed)
    rng = random.Random(seed)
    exchanges: list[Exchange] = []
    rows: list[slice] = []
    pairs: dict[str, list[tuple[int, int, int]]] = {}  # true, corrupted, dialogue
    for item in items:
        true = len(exchanges)
        exchanges += item
        rows.append(slice(true, len(exchanges)))
        for name, text in (
            corruptions(item[0], item[1].response.text, rng).items() if attacks else ()
        ):
            pairs.setdefault(name, []).append((true, len(exchanges), id(item[0].dialogue)))
            exchanges.append(item[0].with_response(text))
    clusters = [id(item[0].dialogue) for item in items]
    plan = scorer.plan
    batch = scorer.score_all(exchanges, watch=watch)
    values = {name: about.sign * batch.values(name) for name, about in plan.columns.items()}
    found = {name: [own[row] for row in rows] for name, own in values.items()}
    columns = []
    for name, scores in found.items():
        ranking = ranking_estimates(scores, clusters, resamples=resamples, seed=seed)
        drawn = np.array([own[:2] for own in scores if len(own) > 1]).reshape(-1, 2)
        true_scores, other = drawn[~np.isnan(drawn).any(axis=1)].T
        first = {n: rank_of_true(found[n]) == 1 for n in (name, BASELINE) if n in found}
        columns.append(
            RankedColumn(
                name,
                ranking,
                _gain(first, name, clusters),
                tuple(true_scores),
                tuple(other),
                {attack: _attacked(values, name, own) for attack, own in pairs.items()},
            )
        )
    said = [f"causerie|{__version__}", f"seed|{seed}", f"max-items|{max_items}"]
    signature = " ".join([*said, f"data|{corpus.sha256[:12]}", *plan.signatures.values()])
    return RankingResult(signature, len(items), len(corpus.exchanges), tuple(columns))


def _attacked(
    values: Mapping[str, FloatArray], name: str, pairs: Sequence[tuple[int, int, int]]
) -> Attacked:
    """Compare on the pairs that the column and the baseline have scored on both sides."""
    true, false, dialogues = np.array(pairs).T
    won = {n: wins(values[n][true], values[n][false]) for n in (name, BASELINE) if n in values}
    scored = ~np.isnan(np.array([*won.values()])).any(axis=0)
    if not scored.any():
        return Attacked(Estimate(None, 0, reason="no pair has a score on both sides"), None)
    won = {n: own[scored] for n, own in won.items()}
    clusters = dialogues[scored].tolist()
    return Attacked(ClusteredRatio.of(won[name], clusters).estimate(), _gain(won, name, clusters))


def _gain(hits: Mapping[str, FloatArray], name: str, clusters: Sequence[int]) -> Estimate | None:
    """Return the share of hits minus the baseline's, or None without another baseline."""
    if name == BASELINE or BASELINE not in hits:
        return None
    own, baseline = (ClusteredRatio.of(hits[n], clusters) for n in (name, BASELINE))
    return own.estimate(baseline)


def variants(metrics: str) -> dict[str, str]:
    """Return metrics by display name.

    `density:distance=classifier` keeps that name beside `density`, and an artifact is named after
    its folder.
    """
    named: dict[str, str] = {}
    for text in filter(None, map(str.strip, metrics.split(","))):
        head = text.partition(":")[0]
        alias, equals, _ = head.partition("=")
        short = alias.strip() if equals else text.replace(head, Path(head).name, 1)
        named[text if short in named else short] = text
    return named


def ranking_tables(result: RankingResult) -> list[Table]:
    """Return R@1, MRR and the share above one random response, then the attacks."""
    over = [f"above {BASELINE}"] if any(column.gain for column in result.columns) else []
    ranks: list[list[Cell]] = [
        [c.name, c.ranking.recall, c.ranking.mrr, c.ranking.above, *([c.gain] if over else [])]
        for c in result.columns
    ]
    attacked: list[list[Cell]] = [
        [column.name, attack, one.above.n, one.above, *([one.gain] if over else [])]
        for column in result.columns
        for attack, one in column.attacks.items()
    ]
    headings = ["metric", f"R@1 of {CANDIDATES}", "MRR", "above one random response"]
    found = Table(
        [*headings, *(f"R@1 {text}" for text in over)],
        ranks,
        f"The human response among {CANDIDATES - 1} random ones",
    )
    corrupted = Table(
        ["metric", "attack", "dialogues", "true one above", *over],
        attacked,
        "The human response beside the same corrupted",
        align="ll" + "r" * (2 + len(over)),
    )
    return [found, corrupted] if attacked else [found]


def ranking_markdown(result: RankingResult) -> str:
    """Return the tables as Markdown, with the number of exchanges and the signature."""
    lines = [f"{result.items:,} of {result.of_items:,} exchanges between people, 95% intervals."]
    for table in ranking_tables(result):
        lines += ["", f"## {table.title}", "", markdown_table(table)]
    return "\n".join([*lines, "", f"signature: `{result.signature}`", ""])


WIDTH, HEIGHT, MARGIN, BINS = 640, 150, 20, 60


def ranking_picture(result: RankingResult) -> str:
    """Return the score distributions of true and random responses as SVG, for every column."""
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
