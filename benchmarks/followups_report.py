"""All that docs/followups-results.md says, from data; scores that are known are not made again.

    python benchmarks/followups_report.py DATA WORK

DATA has `judged` (FED's turns and dialogues) and `fed_hypotheses.json`, the published follow-ups.
Spearman correlations of every dimension of `fed`, `cpmi` and `cpmi-sym` with what people said about
that dimension: with the tuned language model and the stock one, with our hypotheses and with the
published ones. Two hours on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import fmean

from causerie.bench.catalogue import find_set
from causerie.bench.judged import read_judged
from causerie.bench.judgement import judgement_of
from causerie.bench.printed import printed_tables
from causerie.bench.scores import ScoreStore, score_items
from causerie.bench.statistics import spearman
from causerie.bench.units import units_of
from causerie.engines import Engines, Settings
from causerie.metrics import load
from causerie.metrics.followups.hypotheses import OVERALL, dimension_name
from reporting import Report

METRICS = ("fed", "cpmi", "cpmi-sym")
MODELS = {"tuned": "default", "stock": "default-lm"}
SETS = {"fed_turn": "Turns", "fed_dialog": "Dialogues"}


def main() -> None:
    report, data = Report.from_command_line("What the follow-up metrics are worth", __doc__)
    hypotheses = {"ours": None, "published": data / "fed_hypotheses.json"}
    engines = {model: Engines(Settings(lm=name)) for model, name in MODELS.items()}
    for name, title in SETS.items():
        rows = printed() if name == "fed_turn" else {}
        for (model, made), (whose, file) in product(engines.items(), hypotheses.items()):
            for metric in METRICS:
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


def correlations(
    data: Path, work: Path, name: str, metric: str, engines: Engines, hypotheses: Path | None
) -> dict[str, float]:
    """By dimension; dimensions without a judgement of their own are left out."""
    judged = read_judged(find_set(name, data))
    units = units_of(judged)
    loaded = load(metric, engines, **({"hypotheses": str(hypotheses)} if hypotheses else {}))
    with ScoreStore(work / "scores.sqlite") as store:
        scored = score_items(loaded, units.items, store)
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
