"""What signals cost, as text and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causerie.errors import CauserieError
from causerie.metrics.odes import SIGNALS
from causerie.progress import Progress, Watch, ignore
from causerie.ratings.effect import ASSUMED, Effect, doubly_robust
from causerie.ratings.features import Floats
from causerie.ratings.log import RatedDialogue
from causerie.ratings.predictor import Preparation
from causerie.ratings.refute import EXPECTED, Refutation, refute
from causerie.ratings.study import Observed, study_of
from causerie.ratings.treatments import fired_signals
from causerie.render.svg import BLUE, RED, bar, label, picture
from causerie.render.tables import Cell, Marked, Table, markdown_table

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
    watch: Watch = ignore,
) -> EffectReport:
    """Doubly robust effects of rated dialogues, from their raw features."""
    observed = [_observed(one, rows, preparation) for one, rows in zip(dialogues, raw, strict=True)]
    effects: dict[str, Effect] = {}
    too_few: dict[str, str] = {}
    refutations: dict[str, list[Refutation]] = {}
    for number, name in enumerate((ANY, *SIGNALS)):
        watch(Progress(name, number, 1 + len(SIGNALS), "signals"))
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


def effect_tables(report: EffectReport) -> list[Table]:
    """Return the effects, and how well they stood the attempts to refute them if there are any."""
    headings = [
        "signal",
        "dialogues with it first",
        "effect on their rating",
        "95% interval",
        "plain difference",
        "E-value (of the interval)",
        "propensities with it",
        "without",
        "cut to fit",
    ]
    rows: list[list[Cell]] = [
        [
            name,
            f"{one.signalled:,} of {one.dialogues:,}",
            f"{one.estimate:+.2f}",
            f"{one.low:+.2f} to {one.high:+.2f}",
            f"{one.naive:+.2f}",
            f"{one.e_value:.2f} ({one.e_value_of_interval:.2f})",
            _range(one, True),
            _range(one, False),
            one.clipped,
        ]
        for name, one in report.effects.items()
    ]
    rows += [[name, why, *[""] * (len(headings) - 2)] for name, why in report.too_few.items()]
    effects = Table(headings, rows, "What signals cost", align="l" * len(headings))
    if not report.effects:
        return [effects]
    tries = [[name, *map(_tried, found)] for name, found in report.refutations.items()]
    return [effects, Table(["signal", *EXPECTED], tries, "Tried to refute them with")]


def _tried(one: Refutation) -> Cell:
    verdict = f"{one.found:.2f} {'stands' if one.passed else 'falls'}"
    return verdict if one.passed else Marked(verdict, "strong")


def effect_markdown(report: EffectReport) -> str:
    effects, *tried = map(markdown_table, effect_tables(report))
    lines = [effects]
    if tried:
        lines += ["", "Tried to refute them with:", "", *tried, ""]
        lines += [f"- {name}: {what}" for name, what in EXPECTED.items()]
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
