"""Results of a cross-validation as text: the paper's tables 2 and 3, alarms, a verdict, a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causerie.ratings.evaluate import Evaluation, Quality
from causerie.ratings.models import SENTINELS, CfLstm
from causerie.ratings.trend import TOO_FEW
from causerie.render.numbers import mean_and_deviation
from causerie.render.tables import Cell, Table, markdown_table

if TYPE_CHECKING:
    from causerie.models.store import Identity
    from causerie.ratings.fitting import FitOptions

PAPERS = (
    "The paper's estimate is the difference between the heads of a CF-LSTM (here cross-validated), "
    "in points of the scale from 1 to 5. "
    "Its treatment is a function of the features that it sees, so that no two alike dialogues "
    "differ in treatment: it is given for comparison."
)


def evaluation_tables(found: Evaluation) -> list[Table]:
    """Return the paper's table 2, early warnings, and table 3 for a CF-LSTM of two treatments."""
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
    return [
        models,
        _foretold(found.models),
        _alarms(found.models),
        *_heads(found.models.get(CfLstm.name, ())),
    ]


def evaluation_markdown(name: str, found: Evaluation) -> str:
    """Return the tables and the size of their data in Markdown; the spread is over seeds."""
    dated = f" of {found.days:,} days" if found.days else ""
    models, foretold, alarms, *_ = map(markdown_table, evaluation_tables(found))
    lines = [
        f"### {name}",
        f"{found.dialogues:,} dialogues{dated}, a signal in {found.treated:.0%} of them; features: "
        f"{', '.join(found.features)}; the majority: {found.majority_binary:.1%} (binary), "
        f"{found.majority_five:.1%} (5-class).",
        models,
        "Low ratings foretold while dialogues go on, after so many turn pairs; at a share of a "
        "dialogue, its length so far tells how long it will be:",
        foretold,
        "Alarms, one for each dialogue at most, with limits learned on other folds for a budget of "
        "false ones:",
        alarms,
        heads_markdown(found.models.get(CfLstm.name, ())),
    ]
    return "\n\n".join(lines)


def verdict(found: Evaluation, model: str) -> list[str]:
    """Compare a model with the sentinels, in one sentence for each measure.

    It beats a sentinel if the mean difference over folds exceeds twice its standard error.
    """
    lines = []
    measures: Mapping[str, Callable[[Quality], Sequence[float | None]]] = {
        "correlation with single ratings": lambda run: run.correlations.individual,
        "early AUC of low ratings": lambda run: run.early,
    }
    for what, of in measures.items():
        values = {
            name: np.nan_to_num(np.array(of(found.models[name][0]), dtype=np.float64))
            for name in (model, *SENTINELS)
            if name in found.models
        }
        own = values.pop(model, np.zeros(0))
        if not len(own):
            continue
        beside = ", ".join(f"{name} {one.mean():.3f}" for name, one in values.items())
        lines.append(f"{model}: {what} {own.mean():.3f} ({beside})")
        for name, one in values.items():
            difference = own - one
            error = float(difference.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else 0.0
            if name != model and difference.mean() <= 2 * error:
                how = "does not beat" if difference.mean() <= 0 else "does not clearly beat"
                lines.append(f"warning: {model} {how} {name}, a sentinel, by its {what}")
    return lines


def predictor_card(
    options: FitOptions, dialogues: int, encoder: Identity, recipe: str, licence: str, results: str
) -> str:
    """Return the card of a fitted predictor; `results` are those of its cross-validation."""
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
    """Return the paper's estimate of the effect and its table 3 in Markdown, or nothing."""
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
    """Return table 3; none without a CF-LSTM of two treatments."""
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


def _foretold(models: Mapping[str, Sequence[Quality]]) -> Table:
    rows: list[list[Cell]] = []
    for model, runs in models.items():
        for some in zip(*(run.foretold for run in runs), strict=True):
            after = some[0].after
            rows.append(
                [
                    model,
                    f"{after:.0%}" if isinstance(after, float) else f"{after} pairs",
                    some[0].dialogues,
                    mean_and_deviation([float(np.mean(one.auc)) for one in some if one.auc]),
                    mean_and_deviation([one.brier for one in some]),
                ]
            )
    headings = ["model", "after", "dialogues", "AUC", "Brier score"]
    return Table(headings, rows, "Low ratings foretold")


def _alarms(models: Mapping[str, Sequence[Quality]]) -> Table:
    rows: list[list[Cell]] = [
        [
            model,
            f"{some[0].budget:.0%}",
            mean_and_deviation([one.false for one in some], percent=True),
            mean_and_deviation([one.caught for one in some], percent=True),
            mean_and_deviation([one.ahead for one in some]),
        ]
        for model, runs in models.items()
        for some in zip(*(run.alarms for run in runs), strict=True)
    ]
    headings = ["model", "budget", "false alarms", "low ones with an alarm", "pairs ahead"]
    return Table(headings, rows, "Alarms")


def _within(runs: Sequence[Sequence[float | None]]) -> str:
    """Return the mean over folds with its spread over seeds, and how many folds were left out."""
    folds = [value for run in runs for value in run]
    if all(value is None for value in folds):
        return TOO_FEW
    known = [[value for value in run if value is not None and np.isfinite(value)] for run in runs]
    dropped = len(folds) - sum(map(len, known))
    text = mean_and_deviation([float(np.mean(run)) for run in known if run])
    return (
        f"{text} ({dropped} of {len(folds)} folds left out)" if 0 < dropped < len(folds) else text
    )
