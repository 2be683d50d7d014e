"""All that docs/followups-results.md says, from data; scores that are known are not made again.

    python benchmarks/followups_report.py DATA WORK [--lm qwen2.5-coder-0.5b] [--sample 100]

DATA has `judged` (FED's turns and dialogues) and `fed_hypotheses.json`, the published follow-ups.
Spearman correlations of every dimension of `fed`, `cpmi` and `cpmi-sym` with what people said about
that dimension: with the tuned language model and the stock one, with our hypotheses and with the
published ones, averaged over the whole sequence as published and over the hypothesis alone. Two
hours on two cores. With --lm, another language model on FED's turns alone; what that takes is said
after the first responses, and --sample takes only so many turns, whole conversations.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from causerie.bench.judgement import judgement_of
from causerie.bench.papers.printed import printed_tables
from causerie.bench.run import plan_for
from causerie.bench.sets.catalogue import find_set
from causerie.bench.sets.judged import read_judged
from causerie.bench.sets.units import Units, sampled, units_of
from causerie.dialogue import Dialogue
from causerie.engines import Settings
from causerie.metrics import load_metric
from causerie.metrics.base import Level, Metric
from causerie.metrics.followups.hypotheses import OVERALL, dimension_name
from causerie.metrics.followups.sequences import Average
from causerie.progress import Progress
from causerie.render.tables import Marked, Table, markdown_table
from causerie.scoring import Batch, Plan, Scorer, ScoreStore
from causerie.stats import (
    ClusterStatistic,
    Estimate,
    correlation_of_clusters,
    spearman,
    with_intervals,
)
from reporting import Report

METRICS = ("fed", "cpmi", "cpmi-sym")
MODELS = {"tuned": "lm-research", "stock": "default-lm"}
SENTINELS = ("length", "turns", "overlap")
SINGLE = ("density", "causalscore", "grade", "cosine", *SENTINELS)
"""Metrics with one score, whatever the dimension."""
CHANGES = (
    ("fed", "cpmi"),
    ("cpmi", "cpmi-sym"),
    ("stock", "tuned"),
    ("published", "ours"),
    ("sequence", "hypothesis"),
)
"""What is compared, old and new: on average over all other choices."""
SETS = {"fed_turn": "Turns", "fed_dialog": "Dialogues"}
ABOUT = (
    "Made by `make followups DATA=folder`. `fed`, `cpmi` and `cpmi-sym` on FED's conversations: "
    "Spearman's rho of every dimension with what people said about that dimension, the mean of "
    "them (without `overall`) with a 95% interval by resampling conversations. *stock* is the "
    "default language model, *tuned* its research variant `lm-research`; *ours* are the "
    "hypotheses that come with causerie, *published* those of FED's authors; *sequence* is the "
    "average over all tokens, as published, *hypothesis* that over the hypothesis alone. "
    "`overall` is the mean "
    "of z-scores where there are statistics of people (tuned, ours), else the plain mean of the "
    "dimensions with hypotheses on both sides. *Printed* is table 1 of the C-PMI paper, with "
    "DialoGPT-large (774M parameters; ours has 135M). The last "
    "rows are of metrics that have one score for all dimensions; those in italics are sentinels "
    "that know nothing but words and turns: `length` of the response, how many `turns` there are, "
    "`overlap` of the response with what was said before. What makes a difference is the gain in "
    "the mean over all rows that differ in that alone."
)


Key: TypeAlias = tuple[str, ...]
"""A row: metric, language model, hypotheses and average; of one in `SINGLE` its name alone."""


@dataclass(frozen=True)
class Judged:
    """A set of FED, and what people said by dimension."""

    units: Units
    human: Mapping[str, NDArray[np.float64]]

    @classmethod
    def read(cls, name: str, data: Path, most: int | None) -> Judged:
        judged = read_judged(find_set(name, data))
        if most is not None:
            judged = sampled(judged, most, seed=0)
        units = units_of(judged)
        human = {_name(d): judgement_of(judged, units, d).points for d in judged.dimensions}
        return cls(units, human)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--lm", help="a language model by name, on the turns alone")
    parser.add_argument("--sample", type=int, help="so many turns or dialogues at most")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    report, data = Report("What the follow-up metrics are worth", options.work), options.data
    models = {options.lm: options.lm} if options.lm else MODELS
    sets = {"fed_turn": SETS["fed_turn"]} if options.lm else SETS
    report.add("How to read this", ABOUT)
    hypotheses = {"ours": None, "published": data / "fed_hypotheses.json"}
    with ScoreStore(report.work / "scores.sqlite") as store:
        for name, title in sets.items():
            judged = Judged.read(name, data, options.sample)
            scores: dict[Key, dict[str, NDArray[np.float64]]] = {}
            for model, network in models.items():
                together = joined(list(hypotheses.values()), report.work)
                keys = {
                    ", ".join((metric, model, whose, average)): (
                        (metric, model, whose, average),
                        file,
                    )
                    for (whose, file), metric, average in product(
                        hypotheses.items(), METRICS, get_args(Average)
                    )
                }
                # The first metric asks for all that the others want to know of a response.
                metrics = {"together": loaded("cpmi-sym", together, "sequence")}
                for alias, ((metric, _, _, average), file) in keys.items():
                    metrics[alias] = loaded(metric, file, average)
                batch = scored(metrics, judged, Settings(lm=network), store, f"{name}, {model}")
                for alias, (key, _) in keys.items():
                    scores[key] = by_dimension(batch, alias, judged)
            metrics = {single: load_metric(single) for single in SINGLE}
            batch = scored(metrics, judged, Settings(), store, f"{name}, others")
            for single in SINGLE:
                scores[(single,)] = by_dimension(batch, single, judged)
            paper = printed() if name == "fed_turn" else []
            for part, text in tables(judged, scores, paper).items():
                report.add(f"{title}: {part}", f"{len(judged.units)} {title.lower()}.\n\n{text}")
    report.write()


def printed() -> list[Line]:
    """Table 1 of the paper."""
    (block,) = printed_tables("cpmi").table("1").blocks
    lines = []
    for row in block.rows:
        if row.metric:
            of = {
                _name(column.label): cell.value
                for column, cell in zip(block.columns, row.cells, strict=True)
                if cell.value is not None and column.protocol
            }
            mean = Estimate(fmean(of.values()), len(of))
            lines.append(Line(Marked(f"{row.method}, printed", "emphasis"), of, mean))
    return lines


def scored(
    metrics: Mapping[str, Metric], judged: Judged, settings: Settings, store: ScoreStore, what: str
) -> Batch:
    """Score a set with every metric, so that the network sees every text once."""
    items = judged.units.items
    level: Level = "dialogue" if isinstance(items[0], Dialogue) else "turn"
    plan = plan_for(Plan(metrics, settings), level)

    start = time.monotonic()

    def watch(progress: Progress) -> None:
        took = time.monotonic() - start
        left = took / max(1.0, progress.done) * (len(items) - progress.done) / 60
        said = f"{progress.done:.0f} of {len(items)}, {left:.0f} more minutes"
        print(f"{what}: {said}", file=sys.stderr)

    return Scorer(plan, store).score_all(items, watch=watch)


def joined(hypotheses: Sequence[Path | None], work: Path) -> Path:
    """A file that adds every other file's dimensions to the shipped ones, under other names."""
    levels: dict[str, dict[str, Any]] = {"turn": {}, "dialogue": {}}
    for place, file in enumerate(hypotheses):
        table = json.loads(file.read_text(encoding="utf-8")) if file else {}
        for level, dimensions in table.items():
            levels[level] |= {f"{name} {place}": sides for name, sides in dimensions.items()}
    out = work / "together.json"
    out.write_text(json.dumps(levels), encoding="utf-8")
    return out


def loaded(metric: str, hypotheses: Path | None, average: str) -> Metric:
    options = {"hypotheses": str(hypotheses)} if hypotheses else {}
    return load_metric(metric, average=average, **options)


def by_dimension(batch: Batch, alias: str, judged: Judged) -> dict[str, NDArray[np.float64]]:
    """A metric's scores for every dimension that people judged; if it has but one, for all."""
    names = list(batch.plan.columns_of(alias))
    if len(names) == 1:
        return dict.fromkeys(judged.human, batch.values(names[0]))
    columns = {_name(name.removeprefix(f"{alias}.")): batch.values(name) for name in names}
    if unjudged := columns.keys() - judged.human.keys() - {OVERALL}:
        raise SystemExit(f"nobody judged {', '.join(unjudged)}")
    return {dimension: columns[dimension] for dimension in judged.human if dimension in columns}


@dataclass(frozen=True)
class Line:
    """Of a table: correlations by dimension, and their mean without `overall`."""

    title: str | Marked
    of: Mapping[str, float]
    mean: Estimate


def tables(
    judged: Judged, scores: Mapping[Key, Mapping[str, NDArray[np.float64]]], paper: Sequence[Line]
) -> dict[str, str]:
    """What a set says about every row of scores, and about what makes a difference."""
    keys, names = list(scores), list(next(iter(scores.values())))
    single = [name for name in names if name != OVERALL]
    matrix = {name: np.stack([scores[key][name] for key in keys]) for name in names}
    rho = {name: _values(spearman(m, judged.human[name])) for name, m in matrix.items()}
    drawn = [
        correlation_of_clusters(matrix[name], judged.human[name], judged.units.clusters, ranks=True)
        for name in single
    ]
    known = {choice for key in keys for choice in key}
    changes = {
        f"{new} instead of {old}": change(keys, old, new)
        for old, new in CHANGES
        if {old, new} <= known
    }

    def with_gains(means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means of the rows, resamples x rows, and what the changes gain in them."""
        gains = [means[:, used] @ w[used] for w in changes.values() for used in [w != 0]]
        return np.column_stack([means, *gains])

    (values,) = with_gains(np.mean([rho[name] for name in single], axis=0)[None])
    means = with_intervals(
        [Estimate(float(value), len(judged.units)) for value in values],
        ClusterStatistic(
            drawn[0].clusters, lambda n: with_gains(np.mean([one(n) for one in drawn], axis=0))
        ),
        seed=0,
    )
    lines = list(paper)
    for place, key in enumerate(keys):
        sentinel = key[0] in SENTINELS
        title = Marked(key[0], "emphasis") if sentinel else ", ".join(key)
        lines.append(Line(title, {name: rho[name][place] for name in names}, means[place]))
    return {
        "Spearman's rho": table(lines, names),
        "what makes a difference": differences(changes, means[len(keys) :]),
    }


def change(keys: Sequence[Key], old: str, new: str) -> NDArray[np.float64]:
    """Weights of the rows for what is gained by `new` instead of `old`, on average over rows."""
    gain = np.array([(new in key) - float(old in key) for key in keys])
    return gain / np.sum(gain > 0)


def table(lines: Sequence[Line], names: Sequence[str]) -> str:
    """Dimensions as columns."""
    rows = [[line.title, *(line.of.get(name, "") for name in names), line.mean] for line in lines]
    return markdown_table(Table(["", *names, "mean"], rows))


def differences(changes: Iterable[str], means: Sequence[Estimate]) -> str:
    return markdown_table(Table(["", "gain in the mean"], list(zip(changes, means, strict=True))))


def _values(estimates: Iterable[Estimate]) -> list[float]:
    return [np.nan if one.value is None else one.value for one in estimates]


def _name(label: str) -> str:
    """Of a dimension, whoever wrote the label."""
    return OVERALL if label.casefold() == OVERALL else dimension_name(label, label)


if __name__ == "__main__":
    main()
