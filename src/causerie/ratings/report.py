"""What signals cost, as text and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from causerie.errors import CauserieError
from causerie.metrics.odes import SIGNALS
from causerie.ratings.effect import ASSUMED, Effect, doubly_robust
from causerie.ratings.features import Floats
from causerie.ratings.log import RatedDialogue
from causerie.ratings.predictor import Preparation
from causerie.ratings.refute import EXPECTED, Refutation, refute
from causerie.ratings.study import Observed, study_of
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
    refutations: dict[str, list[Refutation]]
    """Of each effect."""


def effects_of(
    dialogues: Sequence[RatedDialogue],
    raw: Sequence[Floats],
    preparation: Preparation,
    seed: int = 0,
    watch: Callable[[str, float, float], None] = lambda what, done, total: None,
) -> EffectReport:
    """Doubly robust effects of rated dialogues, from their raw features."""
    observed = [_observed(one, rows, preparation) for one, rows in zip(dialogues, raw, strict=True)]
    effects: dict[str, Effect] = {}
    too_few: dict[str, str] = {}
    refutations: dict[str, list[Refutation]] = {}
    for number, name in enumerate((ANY, *SIGNALS)):
        watch(name, number, 1 + len(SIGNALS))
        columns = range(len(SIGNALS)) if name == ANY else [SIGNALS.index(name)]
        try:
            effects[name] = doubly_robust(study_of(observed, columns), seed)
        except CauserieError as why:
            too_few[name] = str(why)
            continue
        refutations[name] = refute(observed, columns, effects[name], seed)
    return EffectReport(effects, too_few, refutations)


def _observed(one: RatedDialogue, raw: Floats, preparation: Preparation) -> Observed:
    if one.rating is None:
        raise CauserieError("effects are on ratings: leave out the dialogues without one")
    signals = preparation.signals(raw)
    return Observed(
        preparation.standard(raw)[:, preparation.covariates].astype(np.float64),
        ~np.isnan(signals[:, 0]),
        fired_signals(signals)[:, : len(SIGNALS)],
        one.rating,
        one.bot,
        one.user,
    )


def effect_markdown(report: EffectReport) -> str:
    lines = [
        "| signal | dialogues with it first | effect on their rating | 95% interval "
        "| plain difference | E-value (of the interval) | propensities with it | without "
        "| cut to fit |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, one in report.effects.items():
        lines.append(
            f"| {name} | {one.signalled:,} of {one.dialogues:,} | {one.estimate:+.2f} "
            f"| {one.low:+.2f} to {one.high:+.2f} | {one.naive:+.2f} "
            f"| {one.e_value:.2f} ({one.e_value_of_interval:.2f}) "
            f"| {_range(one, True)} | {_range(one, False)} | {one.clipped:,} |"
        )
    lines += [f"| {name} | {why} | | | | | | | |" for name, why in report.too_few.items()]
    if report.effects:
        lines += [
            "",
            "Tried to refute them with:",
            "",
            f"| signal | {' | '.join(EXPECTED)} |",
            f"|---|{'---|' * len(EXPECTED)}",
        ]
        for name, tries in report.refutations.items():
            cells = [f"{one.found:.2f} {'stands' if one.passed else '**falls**'}" for one in tries]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines += ["", *(f"- {name}: {what}" for name, what in EXPECTED.items())]
    return "\n".join([*lines, "", ASSUMED, ""])


def _range(effect: Effect, treated: bool) -> str:
    """Least and greatest propensity of the landmarks at which a signal did or did not fire."""
    found = effect.propensities[effect.treated == treated]
    return f"{found.min():.3f} to {found.max():.3f}"


def overlap_svg(effect: Effect) -> str:
    """Propensities of the moments with a signal (up) and of those without (down)."""
    top = float(effect.propensities.max())
    edges = np.linspace(0, top, BARS + 1)
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
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 8}" text-anchor="end">{top:.2f}</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        "probability of a signal, from what was before</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="white"/>{"".join(bars)}{labels}</svg>\n'
    )
