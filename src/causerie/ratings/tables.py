"""Evaluations as text: the paper's tables 2 and 3, early warnings, a predictor's card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causerie.ratings.evaluate import SEEN, Evaluation, Quality
from causerie.ratings.models import CfLstm
from causerie.ratings.monitor import LIMIT
from causerie.ratings.trend import TOO_FEW
from causerie.render.numbers import mean_and_deviation
from causerie.render.tables import Cell, Table, markdown_table

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder
    from causerie.ratings.predictor import FitOptions


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
