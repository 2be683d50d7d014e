"""What signals cost, as text and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causerie.errors import CauserieError
from causerie.metrics.odes import CLASSES, SIGNALS
from causerie.ratings.effect import ASSUMED, Effect, Refutation, doubly_robust, refute, study_of
from causerie.ratings.examples import Example
from causerie.ratings.features import Floats
from causerie.ratings.predictor import Preparation
from causerie.ratings.treatments import fired_signals

ANY = "any signal"
PAPERS = (
    "The paper's estimate is the difference between the heads of a CF-LSTM (here cross-validated). "
    "Its treatment is a function of the features that it sees, so that no two alike dialogues "
    "differ in treatment: it is given for comparison."
)
BARS = 20
WIDTH, HEIGHT, MARGIN = 560, 220, 30


@dataclass(frozen=True, eq=False)
class EffectReport:
    """Effects of all signals together and of each by itself."""

    effects: dict[str, Effect]
    too_few: dict[str, str]
    """Signals without an effect, and why."""
    refutations: list[Refutation]
    """Of all signals together."""


def effects_of(
    examples: Sequence[Example], raw: Sequence[Floats], preparation: Preparation, seed: int = 0
) -> EffectReport:
    """Doubly robust effects; of a single signal against the dialogues without any."""
    fired = [fired_signals(preparation.signals(rows)) for rows in raw]
    any_signal = [np.any(f[:, : len(SIGNALS)], axis=1) for f in fired]
    effects: dict[str, Effect] = {}
    too_few: dict[str, str] = {}
    refutations: list[Refutation] = []
    for name in (ANY, *SIGNALS):
        by_pair = any_signal if name == ANY else [f[:, CLASSES.index(name)] for f in fired]
        rows = [i for i in range(len(examples)) if by_pair[i].any() or not any_signal[i].any()]
        try:
            study = study_of(
                [examples[i] for i in rows],
                [by_pair[i] for i in rows],
                preparation.covariates,
                seed,
            )
            effects[name] = doubly_robust(study, seed)
        except CauserieError as why:
            too_few[name] = str(why)
            continue
        if name == ANY:
            refutations = refute(study, effects[name], seed)
    return EffectReport(effects, too_few, refutations)


def effect_markdown(report: EffectReport) -> str:
    lines = [
        "| signal | dialogues with it | effect on the rating | 95% interval | plain difference "
        "| E-value (of the interval) |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in report.effects.items():
        lines.append(
            f"| {name} | {int(one.treated.sum()):,} of {len(one.treated):,} | {one.estimate:+.2f} "
            f"| {one.low:+.2f} to {one.high:+.2f} | {one.naive:+.2f} "
            f"| {one.e_value:.2f} ({one.e_value_of_interval:.2f}) |"
        )
    lines += [f"| {name} | | | | | {why} |" for name, why in report.too_few.items()]
    overall = report.effects.get(ANY)
    if overall:
        lines += [
            "",
            f"Overlap: propensities from {overall.propensities.min():.2f} to "
            f"{overall.propensities.max():.2f}; {overall.clipped:,} of {len(overall.treated):,} "
            "were too near to 0 or 1 and were moved.",
            "",
            "| tried to refute it with | expected | found | |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {one.name} | {one.expected} | {one.found:+.3f} | "
            f"{'stands' if one.passed else '**falls**'} |"
            for one in report.refutations
        ]
    return "\n".join([*lines, "", ASSUMED, ""])


def overlap_svg(effect: Effect) -> str:
    """Propensities of the dialogues with a signal (up) and of those without (down)."""
    edges = np.linspace(0, 1, BARS + 1)
    counts = [
        np.histogram(effect.propensities[effect.treated == kind], edges)[0]
        for kind in (True, False)
    ]
    shares = [count / max(1, count.sum()) for count in counts]
    tallest = max(float(share.max()) for share in shares) or 1.0
    middle, step = HEIGHT / 2, (WIDTH - 2 * MARGIN) / BARS
    bars = []
    for share, colour, up in zip(shares, ("#ee6677", "#4477aa"), (True, False), strict=True):
        for bar, value in enumerate(share):
            height = float(value) / tallest * (middle - MARGIN)
            y = middle - height if up else middle
            bars.append(
                f'<rect x="{MARGIN + bar * step:.1f}" y="{y:.1f}" width="{step - 1:.1f}" '
                f'height="{height:.1f}" fill="{colour}"/>'
            )
    labels = (
        f'<text x="{MARGIN}" y="16" fill="#ee6677">with a signal</text>'
        f'<text x="{MARGIN + 110}" y="16" fill="#4477aa">without</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 8}">0</text>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 8}" text-anchor="end">1</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        "probability of a signal, from what was before</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="white"/>{"".join(bars)}{labels}</svg>\n'
    )
