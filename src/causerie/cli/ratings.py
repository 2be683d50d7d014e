"""`causerie ratings`: what users would have rated, over time, and what cost them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from causerie.cli.options import engine_options
from causerie.cli.ratingslog import (
    Log,
    LogOptions,
    Predictor,
    Set,
    System,
    check_models,
    load_predictor,
    measuring_options,
    names_in,
    prediction_options,
    say_skipped,
)
from causerie.errors import CauserieError
from causerie.options import changed, make, parse_assignments

ratings_app = typer.Typer(
    name="ratings",
    help="Predict what users would have rated, follow it over time, say what cost them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@ratings_app.command()
@engine_options
@measuring_options
def fit(
    log: Log,
    out: Annotated[Path, typer.Option(help="Folder of the predictor.", show_default=False)],
    settings: Any,
    asked: LogOptions,
    model: Annotated[
        str, typer.Option(help="mean, length, transformer, mlp, lstm or cf-lstm.")
    ] = "cf-lstm",
    set_: Set = None,
    licence: Annotated[str, typer.Option(help="Of the log, for the card.")] = "not stated",
    force: Annotated[
        bool, typer.Option("--force", help="Replace a predictor that is there already.")
    ] = False,
) -> None:
    """Fit a predictor on rated dialogues and write it to a folder.

    Its card says how well it predicts, cross-validated.

    Example: `causerie ratings fit log.jsonl --out my-ratings --without quality_control=fail`
    """
    from causerie.cli.console import Display, say
    from causerie.models.artifact import check_place
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.models import ModelConfig
    from causerie.ratings.predictor import FitOptions, fit_predictor
    from causerie.ratings.report import evaluation_markdown, predictor_card

    out = out.resolve()
    check_place(out, replace=force)
    check_models([model])
    given = {"seed": asked.seed, **parse_assignments(set_ or [])}
    chosen = FitOptions(model, config=make(ModelConfig, given, "a rating model"))
    with Display() as watch:
        measured = asked.measured(log, settings, watch, [model])
        count, results = len(measured.dialogues), ""
        if count >= LEAST:
            compared = tuple(dict.fromkeys(("mean", "length", model)))
            found = cross_validate(measured, chosen, compared, seeds=1, watch=watch)
            results = evaluation_markdown("Cross-validated", found)
        recipe = _recipe(log, model, set_ or [], asked, settings)
        encoder = measured.extractor.engines.store.identify(settings.encoder, "encoder")
        card = predictor_card(chosen, count, encoder, recipe, licence, results)
        _, artifact = fit_predictor(measured, chosen, card=card, licence=licence)
    artifact.save(out)
    say(f"fitted {model} on {count:,} dialogues; wrote {out}")


def _recipe(
    log: list[Path], model: str, assignments: list[str], asked: LogOptions, settings: Any
) -> str:
    """The command line that fits the same predictor again."""
    from causerie.ratings.log import LEAST_PAIRS

    given: dict[str, Any] = changed(asked)
    for name, value in changed(settings).items():
        if name in ("encoder", "lm", "turn_format", "dtype"):
            given[name] = value
    given |= {"features": asked.features, "seed": asked.seed, "least": asked.least}
    if asked.least == LEAST_PAIRS:
        del given["least"]
    words = ["causerie", "ratings", "fit", *(path.name for path in log), "--model", model]
    words += [f"--set={one}" for one in assignments]
    for name, value in given.items():
        if name not in ("scores", "kept", "refresh"):
            values = value if isinstance(value, list) else [value]
            words += [f"--{name.replace('_', '-')}={one}" for one in values]
    return shlex.join(words)


@ratings_app.command()
@engine_options
@prediction_options
def predict(
    log: Log,
    settings: Any,
    asked: LogOptions,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out", "-o", help="A table (.jsonl, .csv, .parquet) [default: JSONL shown]."
        ),
    ] = None,
    model: Predictor = "ratings",
) -> None:
    """Predict the rating of every dialogue, rated or not.

    Example: `causerie ratings predict chats.jsonl --out predicted.csv`
    """
    from causerie.cli.console import show_row
    from causerie.io import check_table_path, write_table
    from causerie.ratings.log import Skipped

    if out:
        check_table_path(out)
    skipped = Skipped()
    rows = (
        {
            "dialogue_id": one.dialogue.id,
            "rating": one.rating,
            "predicted": round(p.rating, 4),
            "low": round(p.low, 4),
            "class": p.five,
            "without_signal": round(p.under[0], 4) if p.under else None,
            "signals": " ".join(p.signals),
        }
        for one, p in asked.predicted(log, model, settings, skipped)
    )
    if out:
        types = {"dialogue_id": str, "class": int, "signals": str}
        columns = ("dialogue_id", "rating", "predicted", "low", "class", "without_signal")
        write_table(rows, (*columns, "signals"), out, types)
    else:
        for row in rows:
            show_row(row)
    say_skipped(skipped.reasons)
    if skipped.reasons:
        raise typer.Exit(1)


@ratings_app.command()
@engine_options
@measuring_options
def evaluate(
    log: Log,
    settings: Any,
    asked: LogOptions,
    models: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "mean,length,mlp,lstm,cf-lstm",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of the cross-validation.")] = 3,
    by: Annotated[str, typer.Option(help="Folds are made of: dialogue, bot or user.")] = "dialogue",
    set_: Set = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write it: .md, .tex, .csv or .json."),
    ] = None,
) -> None:
    """Cross-validate models on a rated log: the paper's tables 2 and 3.

    Example: `causerie ratings evaluate log.jsonl --models mean,length,mlp,cf-lstm`
    """
    from causerie.cli.console import Display, say, show
    from causerie.ratings.evaluate import FOLDED
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.models import ModelConfig
    from causerie.ratings.predictor import FitOptions
    from causerie.ratings.report import evaluation_markdown, evaluation_tables
    from causerie.render.tables import check_suffix, write_tables

    if out:
        check_suffix(out)
    if by not in FOLDED:
        raise CauserieError(f"--by is {', '.join(FOLDED)}, not {by!r}")
    check_models(names_in(models))
    chosen = FitOptions(config=make(ModelConfig, parse_assignments(set_ or []), "a rating model"))
    with Display() as watch:
        measured = asked.measured(log, settings, watch, names_in(models))
        found = cross_validate(measured, chosen, names_in(models), seeds=seeds, by=by, watch=watch)
    text = evaluation_markdown(", ".join(path.name.split(".")[0] for path in log), found)
    show(text)
    if out:
        write_tables(out, *evaluation_tables(found), text=text)
        say(f"wrote {out}")


@ratings_app.command()
@engine_options
@measuring_options
def effect(
    log: Log,
    settings: Any,
    asked: LogOptions,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for effect.md and effect.svg, the overlap."),
    ] = None,
) -> None:
    """What users' signals cost in rating: our estimate, tries to refute it, and the paper's.

    Example: `causerie ratings effect log.jsonl --out effects`
    """
    from causerie.cli.console import Display, say, show
    from causerie.io import write_whole
    from causerie.ratings.effect import ANY, effects_of
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.models import CfLstm
    from causerie.ratings.predictor import FitOptions
    from causerie.ratings.report import PAPERS, effect_markdown, heads_markdown, overlap_svg

    with Display() as watch:
        measured = asked.measured(log, settings, watch)
        found = effects_of(measured, asked.seed, watch)
        text = effect_markdown(found)
        if len(measured.dialogues) >= LEAST:
            heads = cross_validate(measured, FitOptions(), (CfLstm.name,), seeds=1, watch=watch)
            papers = heads.failed.get(CfLstm.name) or heads_markdown(heads.models[CfLstm.name])
            text = "\n".join([text, PAPERS, "", papers])
    show(text)
    if out:
        write_whole(out / "effect.md", text)
        if ANY in found.effects:
            write_whole(out / "effect.svg", overlap_svg(found.effects[ANY]))
        say(f"wrote {out}")


@ratings_app.command()
@engine_options
@prediction_options
def trend(
    log: Log,
    settings: Any,
    asked: LogOptions,
    model: Predictor = "ratings",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for trend.md and trend.svg."),
    ] = None,
) -> None:
    """Averages of ratings and predictions by day (L1d) and over seven days (L7d).

    Dialogues that nobody rated count among the predictions.

    Example: `causerie ratings trend log.jsonl --out trends`
    """
    from causerie.cli.console import say, show
    from causerie.io import write_whole
    from causerie.ratings.log import Skipped
    from causerie.ratings.trend import chart, trend_markdown
    from causerie.ratings.trend import trend as averages

    skipped = Skipped()
    rows = [
        (one.day, float("nan") if one.rating is None else one.rating, p.rating)
        for one, p in asked.predicted(log, model, settings, skipped)
    ]
    say_skipped(skipped.reasons)
    found = averages(*zip(*rows, strict=True))
    if not found.days:
        raise CauserieError("no dialogue has a date: there is no trend to show")
    text = trend_markdown(found)
    show(text)
    if found.undated:
        say(f"{found.undated:,} dialogues have no date and do not count")
    if out:
        write_whole(out / "trend.md", text)
        write_whole(out / "trend.svg", chart(found))
        say(f"wrote {out}")


@ratings_app.command()
@engine_options
def watch(
    settings: Any,
    model: Predictor = "ratings",
    system: System = None,
    limit: Annotated[float, typer.Option(help="Alarm above this probability.")] = 0.5,
) -> None:
    """Read turns from standard input, one JSON object a line, and rate as they come.

    A turn is `{"speaker": "user", "text": "..."}`; an empty line begins a new conversation.

    Example: `tail -f turns.jsonl | causerie ratings watch`
    """
    from causerie.cli.console import Notes, say, show_row
    from causerie.errors import RecordError
    from causerie.io import read_turns
    from causerie.ratings.monitor import RatingMonitor

    predictor = load_predictor(model, settings)
    monitor = RatingMonitor(predictor, system, limit)
    measured, total, bad = [], [], 0
    notes = Notes()
    try:
        for number, turn in read_turns(sys.stdin.buffer):
            if turn is None:
                monitor = RatingMonitor(predictor, system, limit)
                continue
            try:
                if isinstance(turn, RecordError):
                    raise CauserieError(f"no turn: {turn}")
                reading = monitor.update(turn)
            except CauserieError as why:
                notes.add(f"line {number}: {why}")
                bad += 1
                continue
            measured.append(reading.feature_seconds)
            total.append(reading.seconds)
            row: dict[str, Any] = {
                "turn": reading.turn,
                "rating": round(reading.rating, 3),
                "low": round(reading.low, 3),
                "signals": list(reading.signals),
                "alarm": reading.alarm,
            }
            show_row(row)
    finally:  # who watches ends it with Ctrl-C
        notes.close()
        if total:
            import numpy as np

            whole, part = (1000 * float(np.quantile(s, 0.95)) for s in (total, measured))
            say(f"{len(total):,} turns, p95 {whole:.0f} ms each, of which features {part:.0f} ms")
    if bad:
        raise typer.Exit(1)
