"""All that docs/followups-results.md says, from data; scores that are known are not made again.

    python benchmarks/followups_report.py DATA WORK

DATA has `judged` (FED's turns and dialogues) and `fed_hypotheses.json`, the published follow-ups.
Spearman correlations of every dimension of `fed`, `cpmi` and `cpmi-sym` with what people said about
that dimension: with the tuned language model and the stock one, with our hypotheses and with the
published ones. Two hours on two cores.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from causerie.bench.catalogue import find_set
from causerie.bench.judged import read_judged
from causerie.bench.judgement import judgement_of
from causerie.bench.printed import printed_tables
from causerie.bench.scores import ScoreStore, score_items
from causerie.bench.statistics import (
    ClusterStatistic,
    Estimate,
    correlation_of_clusters,
    spearman,
    with_intervals,
)
from causerie.bench.units import units_of
from causerie.engines import Engines, Settings
from causerie.metrics import Metric, load
from causerie.metrics.followups.hypotheses import OVERALL, dimension_name
from reporting import Report

METRICS = ("fed", "cpmi", "cpmi-sym")
MODELS = {"tuned": "default", "stock": "default-lm"}
AT_ONCE = 25
SETS = {"fed_turn": "Turns", "fed_dialog": "Dialogues"}
ABOUT = (
    "Made by `make followups DATA=folder`. `fed`, `cpmi` and `cpmi-sym` on FED's conversations: "
    "Spearman's rho of every dimension with what people said about that dimension, the mean of "
    "them (without `overall`) with a 95% interval by resampling conversations. *tuned* is the "
    "language model that comes with causerie, *stock* what it was before; *ours* are the "
    "hypotheses that come with causerie, *published* those of FED's authors. *Printed* is table 1 "
    "of the C-PMI paper, with DialoGPT-large (774M parameters; ours has 135M)."
)


@dataclass(frozen=True)
class Row:
    """A metric's correlations by dimension, and their mean without `overall`."""

    of: Mapping[str, float]
    mean: Estimate


def main() -> None:
    report, data = Report.from_command_line("What the follow-up metrics are worth", __doc__)
    report.add("How to read this", ABOUT)
    hypotheses = {"ours": None, "published": data / "fed_hypotheses.json"}
    for name, title in SETS.items():
        rows = printed() if name == "fed_turn" else {}
        for model, network in MODELS.items():
            made = Engines(Settings(lm=network))
            score_all(data, report.work, name, made, list(hypotheses.values()))
            for (whose, file), metric in product(hypotheses.items(), METRICS):
                found = correlations(data, report.work, name, metric, made, file)
                rows[f"{metric}, {model}, {whose}"] = found
        report.add(f"{title}: Spearman's rho", table(rows))
    report.write()


def printed() -> dict[str, Row]:
    """Table 1 of the paper."""
    (block,) = printed_tables("cpmi").table("1").blocks
    rows = {}
    for row in block.rows:
        if row.metric:
            of = {
                _name(column.label): cell.value
                for column, cell in zip(block.columns, row.cells, strict=True)
                if cell.value is not None and column.protocol
            }
            mean = fmean(value for name, value in of.items() if name != OVERALL)
            rows[f"*{row.method}, printed*"] = Row(of, Estimate(mean, len(of)))
    return rows


def score_all(
    data: Path, work: Path, name: str, engines: Engines, hypotheses: Sequence[Path | None]
) -> None:
    """Score a set with every metric, so that the network sees every text once.

    A few items at a time: the first metric asks for all that the others want to know of them.
    """
    items = units_of(read_judged(find_set(name, data))).items
    together = load("cpmi-sym", engines, hypotheses=str(joined(hypotheses, work)))
    metrics = [loaded(m, engines, h) for m, h in product(METRICS, hypotheses)]
    with ScoreStore(work / "scores.sqlite") as store:
        for start in range(0, len(items), AT_ONCE):
            for metric in (together, *metrics):
                score_items(metric, items[start : start + AT_ONCE], store)
            done = min(start + AT_ONCE, len(items))
            print(f"{name}, {engines.settings.lm}: {done} of {len(items)}", file=sys.stderr)


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


def loaded(metric: str, engines: Engines, hypotheses: Path | None) -> Metric:
    return load(metric, engines, **({"hypotheses": str(hypotheses)} if hypotheses else {}))


def correlations(
    data: Path, work: Path, name: str, metric: str, engines: Engines, hypotheses: Path | None
) -> Row:
    """By dimension; dimensions without a judgement of their own are left out."""
    judged = read_judged(find_set(name, data))
    units = units_of(judged)
    with ScoreStore(work / "scores.sqlite") as store:
        scored = score_items(loaded(metric, engines, hypotheses), units.items, store)
    columns = {
        _name(c.removeprefix(f"{metric}.")): row
        for c, row in zip(scored.columns, scored.values, strict=True)
    }
    points = {
        _name(dimension): judgement_of(judged, units, dimension).points
        for dimension in judged.dimensions
        if _name(dimension) in columns
    }
    if unjudged := columns.keys() - points.keys() - {OVERALL}:
        raise SystemExit(f"{name} has no judgement of {', '.join(unjudged)}")
    of = {}
    for dimension, human in points.items():
        value = spearman(columns[dimension], human)[0].value
        of[dimension] = float("nan") if value is None else value
    drawn = [
        correlation_of_clusters(columns[dimension], human, units.clusters, ranks=True)
        for dimension, human in points.items()
        if dimension != OVERALL
    ]
    mean = fmean(value for dimension, value in of.items() if dimension != OVERALL)
    (interval,) = with_intervals(
        [Estimate(mean, len(units))],
        ClusterStatistic(drawn[0].clusters, lambda n: np.mean([one(n) for one in drawn], axis=0)),
        seed=0,
    )
    return Row(of, interval)


def table(rows: Mapping[str, Row]) -> str:
    """Dimensions as columns."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row.of))
    lines = [f"| | {' | '.join(names)} | mean |", f"| --- |{' --: |' * (len(names) + 1)}"]
    for title, row in rows.items():
        cells = [f"{row.of[name]:.3f}" if name in row.of else "" for name in names]
        lines.append(f"| {title} | {' | '.join(cells)} | {row.mean.text(3)} |")
    return "\n".join(lines)


def _name(label: str) -> str:
    """Of a dimension, whoever wrote the label."""
    return OVERALL if label.casefold() == OVERALL else dimension_name(label, label)


if __name__ == "__main__":
    main()
