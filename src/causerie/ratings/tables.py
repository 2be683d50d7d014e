"""Evaluations as text: the paper's tables 2 and 3, early warnings, a predictor's card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causerie.ratings.evaluate import SEEN, Evaluation, Quality
from causerie.ratings.models import CfLstm
from causerie.ratings.monitor import LIMIT
from causerie.ratings.trend import TOO_FEW

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder
    from causerie.ratings.predictor import FitOptions


def evaluation_markdown(name: str, found: Evaluation) -> str:
    """Shape of the paper's tables 2 and 3, with spread over seeds."""
    dated = f" of {found.days:,} days" if found.days else ""
    lines = [
        f"### {name}",
        "",
        f"{found.dialogues:,} dialogues{dated}, a signal in {found.treated:.0%} of them; the "
        f"majority: {found.majority_binary:.1%} (binary), {found.majority_five:.1%} (5-class).",
        "",
        "| model | individual | L1d | L7d | binary | 5-class |",
        "|---|---|---|---|---|---|",
    ]
    for model, runs in found.models.items():
        cells = [
            _within([run.correlations.individual for run in runs]),
            _within([run.correlations.daily for run in runs]),
            _within([run.correlations.weekly for run in runs]),
            _spread([run.binary for run in runs], percent=True),
            _spread([run.five for run in runs], percent=True),
        ]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    lines += [f"| {model} | {why} | | | | |" for model, why in found.failed.items()]
    lines += [
        "",
        *_warnings_table(found.models),
        "",
        heads_markdown(found.models.get(CfLstm.name, ())),
    ]
    return "\n".join(lines)


def predictor_card(
    options: FitOptions, dialogues: int, encoder: Encoder, recipe: str, licence: str, results: str
) -> str:
    """What a fitted predictor says of itself; `results` are those of its cross-validation."""
    weight = f"Weight of the Wasserstein distance (λ): {options.config.wasserstein:g}\n"
    return "\n".join(
        [
            f"# ratings\n\n{options.model} on {dialogues:,} rated dialogues.\n",
            f"Licence of the data: {licence}\n\n```\n{recipe}\n```\n",
            f"Encoder: {encoder.name}, SHA-256 {encoder.sha256}\n",
            *([weight] if options.model == CfLstm.name else []),
            results,
            "Ratings of other users and bots may differ: evaluate before trusting.\n",
        ]
    )


def heads_markdown(runs: Sequence[Quality]) -> str:
    """The paper's estimate of the effect, and its table 3: nothing without a CF-LSTM of two."""
    heads = [run.heads for run in runs if run.heads]
    inverted = [run.inverted for run in runs if run.inverted]
    if not heads:
        return ""
    return "\n".join(
        [
            "| cf-lstm | original treatments | inverted |",
            "|---|---|---|",
            f"| individual | {_within([run.correlations.individual for run in runs])} "
            f"| {_within([one.individual for one in inverted])} |",
            f"| L1d | {_within([run.correlations.daily for run in runs])} "
            f"| {_within([one.daily for one in inverted])} |",
            f"| L7d | {_within([run.correlations.weekly for run in runs])} "
            f"| {_within([one.weekly for one in inverted])} |",
            "",
            f"Difference of the heads (the paper's effect): {_spread([h.effect for h in heads])}; "
            f"squared error of what happened {_spread([h.factual_error for h in heads])}, squared "
            f"gap to what did not {_spread([h.counterfactual_gap for h in heads])}.",
            "",
        ]
    )


def _warnings_table(models: Mapping[str, Sequence[Quality]]) -> list[str]:
    lines = [
        f"Low ratings foretold from the beginning of a dialogue (alarm above {LIMIT:g}):",
        "",
        "| model | seen | AUC | Brier score | low ones with an alarm | others with one "
        "| pairs ahead |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, runs in models.items():
        for place, share in enumerate(SEEN):
            some = [run.warnings[place] for run in runs]
            cells = [
                _spread([one.auc for one in some]),
                _spread([one.brier for one in some]),
                _spread([one.caught for one in some], percent=True),
                _spread([one.false for one in some], percent=True),
                _spread([one.ahead for one in some]),
            ]
            lines.append(f"| {model} | {share:.0%} | {' | '.join(cells)} |")
    return lines


def _spread(values: Sequence[float], *, percent: bool = False) -> str:
    """Mean over seeds, and standard deviation where there are several."""
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "–"
    shown = [np.mean(known), np.std(known)][: len(known)]
    return " ± ".join(f"{value:.1%}" if percent else f"{value:.3f}" for value in shown)


def _within(runs: Sequence[Sequence[float | None]]) -> str:
    """The mean over folds, and its spread over seeds; folds without a number are counted."""
    folds = [value for run in runs for value in run]
    if all(value is None for value in folds):
        return TOO_FEW
    known = [[value for value in run if value is not None and np.isfinite(value)] for run in runs]
    dropped = len(folds) - sum(map(len, known))
    text = _spread([float(np.mean(run)) for run in known if run])
    return (
        f"{text} ({dropped} of {len(folds)} folds left out)" if 0 < dropped < len(folds) else text
    )
