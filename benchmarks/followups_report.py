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
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from causerie.bench.catalogue import find_set
from causerie.bench.judged import read_judged
from causerie.bench.judgement import judgement_of
from causerie.bench.printed import printed_tables
from causerie.bench.scores import ScoreStore, score_items
from causerie.bench.statistics import spearman
from causerie.bench.units import units_of
from causerie.engines import Engines, Settings
from causerie.metrics import Metric, load
from causerie.metrics.followups.hypotheses import OVERALL, dimension_name
from reporting import Report

METRICS = ("fed", "cpmi", "cpmi-sym")
MODELS = {"tuned": "default", "stock": "default-lm"}
AT_ONCE = 25
SETS = {"fed_turn": "Turns", "fed_dialog": "Dialogues"}


def main() -> None:
    report, data = Report.from_command_line("What the follow-up metrics are worth", __doc__)
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


def printed() -> dict[str, dict[str, float]]:
    """Table 1 of the paper."""
    (block,) = printed_tables("cpmi").table("1").blocks
    return {
        f"*{row.method}, printed*": {
            _name(column.label): cell.value
            for column, cell in zip(block.columns, row.cells, strict=True)
            if cell.value is not None and column.protocol
        }
        for row in block.rows
        if row.metric
    }


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
) -> dict[str, float]:
    """By dimension; dimensions without a judgement of their own are left out."""
    judged = read_judged(find_set(name, data))
    units = units_of(judged)
    with ScoreStore(work / "scores.sqlite") as store:
        scored = score_items(loaded(metric, engines, hypotheses), units.items, store)
    columns = {
        _name(c.removeprefix(f"{metric}.")): row
        for c, row in zip(scored.columns, scored.values, strict=True)
    }
    found = {}
    for dimension in judged.dimensions:
        row = columns.get(_name(dimension))
        if row is not None:
            value = spearman(row, judgement_of(judged, units, dimension).points)[0].value
            found[_name(dimension)] = float("nan") if value is None else value
    if unjudged := columns.keys() - found.keys() - {OVERALL}:
        raise SystemExit(f"{name} has no judgement of {', '.join(unjudged)}")
    return found


def table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Dimensions as columns; the mean leaves out `overall`."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [f"| | {' | '.join(names)} | mean |", f"| --- |{' --: |' * (len(names) + 1)}"]
    for title, row in rows.items():
        cells = [f"{row[name]:.3f}" if name in row else "" for name in names]
        mean = fmean(value for name, value in row.items() if name != "overall")
        lines.append(f"| {title} | {' | '.join(cells)} | {mean:.3f} |")
    return "\n".join(lines)


def _name(label: str) -> str:
    """Of a dimension, whoever wrote the label."""
    return OVERALL if label.casefold() == OVERALL else dimension_name(label, label)


if __name__ == "__main__":
    main()
