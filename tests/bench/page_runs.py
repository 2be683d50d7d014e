"""Made-up benchmark runs: plausible ones from random data, and small ones by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from causerie.bench.page.findings import chance
from causerie.bench.results import (
    PAIR_STATISTICS,
    STATISTICS,
    Histogram,
    MetricFacts,
    MetricRow,
    Reliability,
    RunOptions,
    RunResult,
    Sample,
    SetResult,
    Significance,
    from_json,
    to_json,
)
from causerie.stats import Estimate, holm, rank_clusters

METRICS = {
    "density": 0.45,
    "causalscore": 0.38,
    "grade": 0.33,
    "fed.relevant": 0.16,
    "fed.interesting": 0.12,
    "bertscore": 0.22,
    "bleu": 0.1,
    "rouge": 0.14,
    "cosine": 0.27,
    "embedding.greedy": 0.18,
    "perplexity": -0.08,
    "length": 0.24,
    "overlap": 0.05,
    "turns": 0.0,
}
"""Column and how well it agrees, roughly."""
SENTINELS = {"length", "overlap", "turns"}
SETS = {
    "dailydialog_zhao": ("DailyDialog, Zhao et al.", "turn", 900, "overall"),
    "grade_convai2": ("GRADE, ConvAI2", "turn", 600, "coherence"),
    "grade_empatheticdialogues": ("GRADE, EmpatheticDialogues", "turn", 300, "coherence"),
    "usr_personachat": ("USR, PersonaChat", "turn", 300, "overall"),
    "fed_turn": ("FED, turns", "turn", 375, "overall"),
    "fed_dialogue": ("FED, dialogues", "dialogue", 125, "overall"),
    "dstc9": ("DSTC9, interactive evaluation", "dialogue", 2200, "overall"),
    "causalscore_dream": ("CausalScore, DREAM", "pair", 120, "overall"),
}


def facts(column: str, sentinels: set[str] = SENTINELS) -> MetricFacts:
    name = column.split(".")[0]
    return MetricFacts(name, f"What {name} measures.", f"{name}|v1", (), name in sentinels)


def estimate(value: float, n: int) -> Estimate:
    around = 1.96 * (1 - value**2) / math.sqrt(n)
    return Estimate(value, n, max(-1.0, value - around), min(1.0, value + around))


def histogram(values: np.ndarray) -> Histogram:
    counts, edges = np.histogram(values, bins=24)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


def realistic_set(name: str, seed: int = 0) -> SetResult:
    """Correlations, intervals, tests and ranks that fit together, from random scores."""
    title, level, size, dimension = SETS[name]
    generator = np.random.default_rng([seed, *name.encode()])
    n = min(size, 1000)
    human = np.clip(np.round((3.2 + generator.normal(size=n)) * 3) / 3, 1, 5)
    standard = (human - human.mean()) / human.std()
    scores, values = {}, []
    for column, wanted in METRICS.items():
        r = float(np.clip(wanted + generator.normal(scale=0.08), -0.3, 0.8))
        noise = generator.normal(size=n)
        x = r * standard + math.sqrt(1 - r * r) * noise
        scores[column] = np.exp(x) * 40 if column == "perplexity" else x
        values.append(float(np.corrcoef(x, standard)[0, 1]))
    z = np.subtract.outer(np.arctanh(values), np.arctanh(values)) * math.sqrt((n - 3) / 2)
    p = holm(2 * norm.sf(np.abs(z)))
    ranks = rank_clusters(values, (p <= 0.05) & (z > 0))
    statistics = tuple(PAIR_STATISTICS if level == "pair" else STATISTICS)
    rows = []
    for column, value, rank in zip(METRICS, values, ranks, strict=True):
        found = {
            key: estimate(value * factor + chance(key), n)
            for key, factor in zip(
                statistics, (1, 0.97, 0.7, 0.3, 0.8, 0.4, 0.45, 0.6, 0.9, 0.92), strict=True
            )
        }
        if level == "dialogue":
            reason = "no two dialogues share a context"
            found["within-context"] = Estimate(None, 0, reason=reason)
        missing = {"it needs references and there are none": 12} if column == "bleu" else {}
        dimensions = {
            d: {statistics[0]: Estimate(value * share, n)}
            for d, share in (("interesting", 0.9), ("specific", 0.6), ("fluent", -0.4))
            if level != "pair"
        }
        about = facts(column)
        heavy = not about.sentinel and column not in ("bleu", "rouge")
        rows.append(
            MetricRow(
                column, about.name, about.sentinel, about.name != "perplexity", found,
                dimensions, rank,
                seconds_per_1000=float(generator.gamma(2, 40)) if heavy else 0.21,
                truncated=float(generator.uniform(0, 0.1)) if heavy else None,
                scored=n - sum(missing.values()), unscored=missing,
            )
        )  # fmt: skip
    rows.sort(key=lambda row: -(row.statistics[statistics[0]].value or 0))
    if level == "dialogue":
        reason = "no item has references"
        rows.append(unmeasured("meteor", reason, statistics, n))
    picked = generator.permutation(n)[:500]
    ceiling = {key: estimate(v, n) for key, v in zip(statistics, (0.71, 0.7, 0.6), strict=False)}
    if name == "dstc9":
        ceiling = {key: Estimate(None, 0, reason="one annotator an item") for key in ceiling}
    return SetResult(
        name, title, level, dimension,  # type: ignore[arg-type]
        items=n, pairs=n // 2 if level == "pair" else 0,
        of_items=size, clusters=n // 4, systems=6, annotators="3 to 5", human_written=n // 6,
        licence="CC BY 4.0", paper="Someone et al. 2020, A Paper on Judging Dialogue (ACL)",
        url="example.org/data", sha256="0f" * 32,
        notes=("86 of its 100 contexts occur in a training split: metrics have seen them",)
        if name == "dailydialog_zhao" else (),
        problems=("line 17: a rating is no number",) if name == "fed_turn" else (),
        statistics=statistics, ceiling=ceiling, alpha=estimate(0.42, n), kappa=estimate(0.31, n),
        reliability=Reliability(estimate(0.6, n), Estimate(None, 0, reason="no pairs"), ()),
        rows=tuple(rows),
        significance=Significance(
            statistics[0], tuple(METRICS),
            tuple(tuple(None if np.isnan(v) else float(v) for v in line) for line in p),
            tuple(tuple(bool(q <= 0.05 and d > 0) for q, d in zip(*line, strict=True))
                  for line in zip(p, z, strict=True)),
        ),
        sample=Sample(
            tuple(f"item {i}" for i in picked), tuple(f"system {i % 6}" for i in picked),
            tuple(bool(i % 6 == 0) for i in picked), tuple(human[picked].tolist()),
            {column: tuple(values[picked].tolist()) for column, values in scores.items()},
        ),
        judgement_histogram=histogram(human),
        histograms={column: histogram(values) for column, values in scores.items()},
    )  # fmt: skip


def unmeasured(column: str, reason: str, statistics: tuple[str, ...], n: int) -> MetricRow:
    """A row that says why there is no number."""
    nothing = {key: Estimate(None, 0, reason=reason) for key in statistics}
    return MetricRow(column, column, False, True, nothing, {}, None, None, None, 0, {reason: n})


def small_set(
    values: Mapping[str, float | None],
    wins: frozenset[tuple[str, str]] = frozenset(),
    *,
    ceiling: float | None = 0.7,
    items: int = 4,
) -> SetResult:
    """Rows with these values of Spearman's rho; `length` and `overlap` are the sentinels."""
    reason = "the human judgements are all equal"
    rows = []
    for column, value in values.items():
        found = Estimate(value, items, reason=None if value is not None else reason)
        about = facts(column)
        rows.append(
            MetricRow(
                column, about.name, about.sentinel, True, {"spearman": found}, {},
                None if value is None else 1, None, None, items if value is not None else 0, {},
            )
        )  # fmt: skip
    return SetResult(
        "small", "Small", "turn", "overall", items, 0, items, items, 1, "1", 0,
        "", "", "", "", (), (), ("spearman",),
        {"spearman": Estimate(ceiling, items, reason=None if ceiling else "one annotator")},
        *(Estimate(None, 0, reason="one annotator"),) * 2,
        Reliability(*(Estimate(None, 0, reason="one annotator"),) * 2, ()), tuple(rows),
        Significance(
            "spearman", tuple(values), tuple(tuple(None for _ in values) for _ in values),
            tuple(tuple((a, b) in wins for b in values) for a in values),
        ),
        Sample(
            tuple(map(str, range(items))), ("",) * items, (False,) * items, (3.0,) * items,
            {column: (value,) * items for column, value in values.items()},
        ),
        Histogram((3.0, 3.0), (items,)), {},
    )  # fmt: skip


def run_of(*sets: SetResult) -> RunResult:
    names = dict.fromkeys(row.metric for found in sets for row in found.rows)
    about = tuple(facts(name) for name in names)
    return RunResult("signature", "1.0", "today", "a machine", RunOptions(), about, sets)


def renamed(result: RunResult, rename: Callable[[str], str]) -> RunResult:
    """The same run with other names, notes, reasons...: every text but the sets' levels."""

    kinds = (RunResult, SetResult, MetricRow, MetricFacts, Significance, Sample, Histogram)
    fields = {
        f for kind in (*kinds, RunOptions, Reliability, Estimate) for f in kind.__annotations__
    }

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k if k in fields else rename(k): walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(v) for v in value]
        return rename(value) if isinstance(value, str) and key != "level" else value

    return from_json(json.dumps(walk(json.loads(to_json(result)))))


def realistic_run(names: tuple[str, ...] = tuple(SETS)) -> RunResult:
    columns = dict.fromkeys(column.split(".")[0] for column in METRICS)
    return RunResult(
        "causerie 0.1.0|density:3f2a9c01|fed:b179c952|bleu:2.4|sets:8e5d|seed:0",
        "0.1.0", "2025-11-15T22:00:00+00:00", "x86_64, 2 cores, Linux", RunOptions(),
        tuple(facts(name) for name in (*columns, "meteor")),
        tuple(realistic_set(name) for name in names),
    )  # fmt: skip
