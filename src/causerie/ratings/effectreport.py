"""Reports of effects: tables, Markdown and pictures of what signals cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from causerie.metrics.odes import CLASSES
from causerie.ratings.effect import ASSUMED, EXPECTED, Effect, EffectReport
from causerie.ratings.examples import fired_signals
from causerie.ratings.features import MeasuredLog
from causerie.render.svg import BLUE, RED, Scale, bar, disc, label, line, picture, round_ends, tick
from causerie.render.tables import Cell, Table, markdown_table
from causerie.stats import Estimate

UNIT = "points of the scale from 1 to 5"
PAPERS_COUNTS = (
    10_938, 12_290, 12_399, 21_278, 66_532, 4_389, 26_779, 78_504, 12_173, 57_539, 15_052, 3_147,
    12_534, 2_320_515,
)  # fmt: skip
"""Utterances of each class in table 1 of the paper, in the order of our classes."""
BARS = 20
WIDTH, HEIGHT, MARGIN = 560, 220, 30
ROW, NAMES, EDGE = 22, 250, 20
"""Layout of the chart of effects: row height, width of the names, right margin."""


def counts_table(log: MeasuredLog) -> Table:
    """Return the frequency of each signal, beside the paper's table 1."""
    signals = [log.extractor.signals(raw) for raw in log.raw]
    spoke = [~np.isnan(one[:, 0]) for one in signals]
    fired = [fired_signals(one)[rows] for one, rows in zip(signals, spoke, strict=True)]
    utterances = sum(map(len, fired))
    given = np.sum([one.sum(0) for one in fired], axis=0)
    dialogues = np.sum([one.any(0) for one in fired], axis=0)
    rows: list[list[Cell]] = [
        [
            name,
            int(given[place]),
            f"{given[place] / max(1, utterances):.2%}",
            f"{dialogues[place] / max(1, len(fired)):.1%}",
            PAPERS_COUNTS[place],
            f"{PAPERS_COUNTS[place] / sum(PAPERS_COUNTS):.2%}",
        ]
        for place, name in enumerate(CLASSES)
    ]
    headings = ["signal", "utterances", "of all", "of dialogues", "in the paper", "of all there"]
    return Table(headings, rows, "How often users give signals")


def effect_tables(report: EffectReport) -> list[Table]:
    """Return the effects and, if there are any, the results of the refuters."""
    headings = [
        "signal",
        "dialogues with it first",
        f"effect on their rating, {UNIT}",
        "verdict",
        "plain difference",
        "E-value (of the interval)",
        "left out for want of overlap",
        "users to compare with, effectively",
    ]
    rows: list[list[Cell]] = [
        [
            name,
            f"{one.signalled:,} of {one.dialogues:,}",
            Estimate(one.estimate, one.signalled, one.low, one.high),
            verdict(report, name),
            one.naive,
            f"{one.e_value:.2f} ({one.e_value_of_interval:.2f})",
            f"{one.left_out:.0%}",
            f"{one.effective:,.0f}",
        ]
        for name, one in report.effects.items()
    ]
    rows += [
        [name, "", None, f"refused: {why}", None, "", "", ""]
        for name, why in report.refused.items()
    ]
    effects = Table(headings, rows, "What signals cost", align="l" * len(headings), digits=2)
    if not report.effects:
        return [effects]
    tries: list[list[Cell]] = [
        [name, *(f"{one.found:.2f} {'stands' if one.passed else 'falls'}" for one in found)]
        for name, found in report.refutations.items()
    ]
    return [effects, Table(["signal", *EXPECTED], tries, "Tried to refute them with")]


def verdict(report: EffectReport, name: str) -> str:
    """Return a short verdict on an effect."""
    failed = [one.name for one in report.refutations[name] if not one.passed]
    if failed:
        return f"falls: {', '.join(failed)}"
    effect = report.effects[name]
    return "stands, not told from 0" if effect.low <= 0 <= effect.high else "stands"


def effect_markdown(counts: Table, report: EffectReport) -> str:
    effects, *tried = map(markdown_table, effect_tables(report))
    lines = [f"{counts.title}:", "", markdown_table(counts), "", effects]
    if tried:
        lines += ["", "Tried to refute them with:", "", *tried, ""]
        lines += [f"- {name}: {what}" for name, what in EXPECTED.items()]
    return "\n".join([*lines, "", ASSUMED, ""])


def effects_svg(report: EffectReport) -> str:
    """Draw the effects with their intervals, a row each; refuted ones are hollow."""
    shown = report.effects
    ends = [0.0, *(end for one in shown.values() for end in (one.low, one.high))]
    first, last, step = round_ends(min(ends), max(max(ends), min(ends) + 0.1), 8)
    x = Scale(first * step, last * step, NAMES, WIDTH + NAMES - EDGE)
    bottom = MARGIN + ROW * len(shown)
    parts = [
        line(x(number * step), MARGIN - 6, x(number * step), bottom, thick=2 if not number else 0.5)
        + label(x(number * step), bottom + 16, tick(number * step), anchor="middle")
        for number in range(first, last + 1)
    ]
    parts.append(label(NAMES, 16, f"Effect on the rating, in {UNIT}; 95% intervals"))
    for place, (name, one) in enumerate(shown.items()):
        y = MARGIN + ROW * (place + 0.5)
        stands = report.stands(name)
        colour = RED if one.estimate < 0 else BLUE
        parts += [
            label(NAMES - 12, y + 4, name, anchor="end"),
            line(x(one.low), y, x(one.high), y, colour=colour),
            disc(x(one.estimate), y, colour=colour if stands else "white", edge=colour),
        ]
    notes = ["a hollow point: the effect falls"] if not all(map(report.stands, shown)) else []
    if report.refused:
        notes.append(f"not shown, because refused: {', '.join(report.refused)}")
    parts += [label(12, bottom + 36 + 16 * n, note) for n, note in enumerate(notes)]
    return picture(WIDTH + NAMES, bottom + 30 + 18 * len(notes), parts)


def overlap_svg(effect: Effect) -> str:
    """Draw the distribution of propensities with a signal (up) and without (down)."""
    top = float(effect.propensities.max())
    edges = np.linspace(0, top, BARS + 1)
    counts = [
        np.histogram(effect.propensities[effect.treated == kind], edges)[0]
        for kind in (True, False)
    ]
    shares = [count / max(1, count.sum()) for count in counts]
    tallest = max(float(share.max()) for share in shares) or 1.0
    middle, step = HEIGHT / 2, (WIDTH - 2 * MARGIN) / BARS
    parts = []
    for share, colour, up in zip(shares, (RED, BLUE), (True, False), strict=True):
        for place, value in enumerate(share):
            height = float(value) / tallest * (middle - MARGIN)
            y = middle - height if up else middle
            parts.append(bar(MARGIN + place * step, y, step - 1, height, colour=colour))
    below = HEIGHT - 8
    parts += [
        label(MARGIN, 16, "with a signal", colour=RED),
        label(MARGIN + 110, 16, "without", colour=BLUE),
        label(MARGIN, below, "0"),
        label(WIDTH - MARGIN, below, f"{top:.2f}", anchor="end"),
        label(WIDTH / 2, below, "probability of a signal, from what was before", anchor="middle"),
    ]
    return picture(WIDTH, HEIGHT, parts)


def pictures(report: EffectReport) -> Mapping[str, str]:
    """Return pictures by name: the effects, and the overlap of the first one."""
    if not report.effects:
        return {}
    first: Sequence[Effect] = list(report.effects.values())[:1]
    return {"effect": effects_svg(report), "overlap": overlap_svg(first[0])}
