"""What was found, as text and pictures: the paper's tables 2 and 3, warnings, effects, a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causerie.ratings.effect import ASSUMED, EXPECTED, Effect, EffectReport, Refutation
from causerie.ratings.evaluate import SEEN, Evaluation, Quality
from causerie.ratings.models import CfLstm
from causerie.ratings.monitor import LIMIT
from causerie.ratings.trend import TOO_FEW
from causerie.render.numbers import mean_and_deviation
from causerie.render.svg import BLUE, RED, bar, label, picture
from causerie.render.tables import Cell, Marked, Table, markdown_table

if TYPE_CHECKING:
    from causerie.models.store import Identity
    from causerie.ratings.predictor import FitOptions

PAPERS = (
    "The paper's estimate is the difference between the heads of a CF-LSTM (here cross-validated). "
    "Its treatment is a function of the features that it sees, so that no two alike dialogues "
    "differ in treatment: it is given for comparison."
)
BARS = 20
WIDTH, HEIGHT, MARGIN = 560, 220, 30


def evaluation_tables(found: Evaluation) -> list[Table]:
    """Return the paper's table 2, early warnings, and its table 3 if there is a CF-LSTM of two."""
    rows: list[list[Cell]] = [
        [
            model,
            _within([run.correlations.individual for run in runs]),
            _within([run.correlations.daily for run in runs]),
            _within([run.correlations.weekly for run in runs]),
            mean_and_deviation([run.binary for run in runs], percent=True),
            mean_and_deviation([run.five for run in runs], percent=True),
        ]
        for model, runs in found.models.items()
    ]
    rows += [[model, why, "", "", "", ""] for model, why in found.failed.items()]
    models = Table(["model", "individual", "L1d", "L7d", "binary", "5-class"], rows, "Models")
    return [models, _warnings(found.models), *_heads(found.models.get(CfLstm.name, ()))]


def evaluation_markdown(name: str, found: Evaluation) -> str:
    """Return the tables, and what they rest on; the spread is over seeds."""
    dated = f" of {found.days:,} days" if found.days else ""
    models, warnings, *_ = map(markdown_table, evaluation_tables(found))
    lines = [
        f"### {name}",
        f"{found.dialogues:,} dialogues{dated}, a signal in {found.treated:.0%} of them; the "
        f"majority: {found.majority_binary:.1%} (binary), {found.majority_five:.1%} (5-class).",
        models,
        f"Low ratings foretold from the beginning of a dialogue (alarm above {LIMIT:g}):",
        warnings,
        heads_markdown(found.models.get(CfLstm.name, ())),
    ]
    return "\n\n".join(lines)


def predictor_card(
    options: FitOptions, dialogues: int, encoder: Identity, recipe: str, licence: str, results: str
) -> str:
    """What a fitted predictor says of itself; `results` are those of its cross-validation."""
    weight = f"Weight of the Wasserstein distance (λ): {options.config.wasserstein:g}\n"
    return "\n".join(
        [
            f"# ratings\n\n{options.model} on {dialogues:,} rated dialogues.\n",
            f"Licence of the data: {licence}\n\n```\n{recipe}\n```\n",
            f"Encoder: {encoder.label}, SHA-256 {encoder.sha256}\n",
            *([weight] if options.model == CfLstm.name else []),
            results,
            "Ratings of other users and bots may differ: evaluate before trusting.\n",
        ]
    )


def heads_markdown(runs: Sequence[Quality]) -> str:
    """Return the paper's estimate of the effect, and its table 3, or nothing."""
    heads = [run.heads for run in runs if run.heads]
    effect, happened, gap = (
        mean_and_deviation([getattr(one, field) for one in heads])
        for field in ("effect", "factual_error", "counterfactual_gap")
    )
    return "".join(
        f"{markdown_table(table)}\n\n"
        f"Difference of the heads (the paper's effect): {effect}; squared error of what happened "
        f"{happened}, squared gap to what did not {gap}.\n"
        for table in _heads(runs)
    )


def _heads(runs: Sequence[Quality]) -> list[Table]:
    """Return table 3; none without a CF-LSTM of two."""
    inverted = [run.inverted for run in runs if run.inverted]
    if not any(run.heads for run in runs):
        return []
    rows = [
        [
            name,
            _within([getattr(run.correlations, field) for run in runs]),
            _within([getattr(one, field) for one in inverted]),
        ]
        for name, field in (("individual", "individual"), ("L1d", "daily"), ("L7d", "weekly"))
    ]
    return [Table(["cf-lstm", "original treatments", "inverted"], rows, "Inverted treatments")]


def _warnings(models: Mapping[str, Sequence[Quality]]) -> Table:
    headings = ["model", "seen", "AUC", "Brier score"]
    headings += ["low ones with an alarm", "others with one", "pairs ahead"]
    rows = []
    for model, runs in models.items():
        for place, share in enumerate(SEEN):
            some = [run.warnings[place] for run in runs]
            rows.append(
                [
                    model,
                    f"{share:.0%}",
                    mean_and_deviation([one.auc for one in some]),
                    mean_and_deviation([one.brier for one in some]),
                    mean_and_deviation([one.caught for one in some], percent=True),
                    mean_and_deviation([one.false for one in some], percent=True),
                    mean_and_deviation([one.ahead for one in some]),
                ]
            )
    return Table(headings, rows, "Early warnings")


def _within(runs: Sequence[Sequence[float | None]]) -> str:
    """The mean over folds, and its spread over seeds; folds without a number are counted."""
    folds = [value for run in runs for value in run]
    if all(value is None for value in folds):
        return TOO_FEW
    known = [[value for value in run if value is not None and np.isfinite(value)] for run in runs]
    dropped = len(folds) - sum(map(len, known))
    text = mean_and_deviation([float(np.mean(run)) for run in known if run])
    return (
        f"{text} ({dropped} of {len(folds)} folds left out)" if 0 < dropped < len(folds) else text
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
