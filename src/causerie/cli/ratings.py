"""`causerie ratings`: what users would have rated, over time, and what cost them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.options import engine_options
from causerie.cli.ratingslog import (
    Columns,
    Features,
    Kept,
    Least,
    Limit,
    Log,
    Predictor,
    Scale,
    Set,
    System,
    Without,
    check_models,
    load_predictor,
    measured_log,
    names_in,
    opened_store,
    read_options,
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
def fit(
    log: Log,
    out: Annotated[Path, typer.Option(help="Folder of the predictor.", show_default=False)],
    settings: Any,
    model: Annotated[
        str, typer.Option(help="mean, length, transformer, mlp, lstm or cf-lstm.")
    ] = "cf-lstm",
    features: Features = "fast",
    columns: Columns = "",
    set_: Set = None,
    scale: Scale = None,
    system: System = None,
    without: Without = None,
    least: Least = 3,
    limit: Limit = None,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    kept: Kept = None,
    refresh: options.Refresh = False,
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
    from causerie.ratings.log import LEAST_PAIRS
    from causerie.ratings.models import ModelConfig
    from causerie.ratings.predictor import FitOptions, fit_predictor
    from causerie.ratings.report import evaluation_markdown, predictor_card

    out = out.resolve()
    check_place(out, replace=force)
    check_models([model])
    config = make(ModelConfig, {"seed": seed, **parse_assignments(set_ or [])}, "a rating model")
    chosen = FitOptions(model, config=config)
    wanted = read_options(scale, system, without, least)
    with Display() as watch:
        measured = measured_log(
            log, settings, watch, [model], features=features, columns=columns, wanted=wanted,
            limit=limit, seed=seed, scores=scores, kept=kept, refresh=refresh,
        )  # fmt: skip
        count, results = len(measured.dialogues), ""
        if count >= LEAST:
            compared = tuple(dict.fromkeys(("mean", "length", model)))
            found = cross_validate(measured, chosen, compared, seeds=1, watch=watch)
            results = evaluation_markdown("Cross-validated", found)
        given: dict[str, Any] = {
            "columns": columns, "scale": scale, "system": system, "limit": limit,
            "least": "" if least == LEAST_PAIRS else least,
        }  # fmt: skip
        for name, value in changed(settings).items():
            if name in ("encoder", "lm", "turn_format", "dtype"):
                given[name.replace("_", "-")] = value
        recipe = shlex.join(
            ["causerie", "ratings", "fit", *(path.name for path in log), "--model", model]
            + ["--features", features, *(f"--set={one}" for one in set_ or []), "--seed", str(seed)]
            + [f"--{name}={value}" for name, value in given.items() if value]
            + [f"--without={one}" for one in without or []]
        )
        encoder = measured.extractor.engines.store.identify(settings.encoder, "encoder")
        card = predictor_card(chosen, count, encoder, recipe, licence, results)
        _, artifact = fit_predictor(measured, chosen, card=card, licence=licence)
    artifact.save(out)
    say(f"fitted {model} on {count:,} dialogues; wrote {out}")


@ratings_app.command()
@engine_options
def predict(
    log: Log,
    settings: Any,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out", "-o", help="A table (.jsonl, .csv, .parquet) [default: JSONL shown]."
        ),
    ] = None,
    model: Predictor = "ratings",
    scale: Scale = None,
    system: System = None,
    least: Least = 1,
    scores: options.ScoresFile = None,
    kept: Kept = None,
    refresh: options.Refresh = False,
) -> None:
    """Predict the rating of every dialogue, rated or not.

    Example: `causerie ratings predict chats.jsonl --out predicted.csv`
    """
    from causerie.io import check_table_path, write_table
    from causerie.ratings.log import Skipped, usable

    if out:
        check_table_path(out)
    wanted, skipped = read_options(scale, system, None, least, rated=False), Skipped()
    with opened_store(scores, kept) as store:
        predictor = load_predictor(model, settings, store, refresh)
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
            for one, p in predictor.predict_log(usable(log, wanted, skipped))
        )
        if out:
            types = {"dialogue_id": str, "class": int, "signals": str}
            columns = ("dialogue_id", "rating", "predicted", "low", "class", "without_signal")
            write_table(rows, (*columns, "signals"), out, types)
        else:
            for row in rows:
                typer.echo(json.dumps(row, ensure_ascii=False))
    say_skipped(skipped.reasons)
    if skipped.reasons:
        raise typer.Exit(1)


@ratings_app.command()
@engine_options
def evaluate(
    log: Log,
    settings: Any,
    models: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "mean,length,mlp,lstm,cf-lstm",
    features: Features = "fast",
    columns: Columns = "",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of the cross-validation.")] = 3,
    by: Annotated[str, typer.Option(help="Folds are made of: dialogue, bot or user.")] = "dialogue",
    set_: Set = None,
    scale: Scale = None,
    system: System = None,
    without: Without = None,
    least: Least = 3,
    limit: Limit = None,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    kept: Kept = None,
    refresh: options.Refresh = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write it: .md, .tex, .csv or .json."),
    ] = None,
) -> None:
    """Cross-validate models on a rated log: the paper's tables 2 and 3.

    Example: `causerie ratings evaluate log.jsonl --models mean,length,mlp,cf-lstm`
    """
    from causerie.cli.console import Display, say
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
    wanted = read_options(scale, system, without, least)
    with Display() as watch:
        measured = measured_log(
            log, settings, watch, names_in(models), features=features, columns=columns,
            wanted=wanted, limit=limit, seed=seed, scores=scores, kept=kept, refresh=refresh,
        )  # fmt: skip
        found = cross_validate(measured, chosen, names_in(models), seeds=seeds, by=by, watch=watch)
    text = evaluation_markdown(", ".join(path.name.split(".")[0] for path in log), found)
    typer.echo(text)
    if out:
        write_tables(out, *evaluation_tables(found), text=text)
        say(f"wrote {out}")


@ratings_app.command()
@engine_options
def effect(
    log: Log,
    settings: Any,
    features: Features = "fast",
    columns: Columns = "",
    scale: Scale = None,
    system: System = None,
    without: Without = None,
    least: Least = 3,
    limit: Limit = None,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    kept: Kept = None,
    refresh: options.Refresh = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for effect.md and effect.svg, the overlap."),
    ] = None,
) -> None:
    """What users' signals cost in rating: our estimate, tries to refute it, and the paper's.

    Example: `causerie ratings effect log.jsonl --out effects`
    """
    from causerie.cli.console import Display, say
    from causerie.io import write_whole
    from causerie.ratings.effect import ANY, effects_of
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.models import CfLstm
    from causerie.ratings.predictor import FitOptions
    from causerie.ratings.report import PAPERS, effect_markdown, heads_markdown, overlap_svg

    wanted = read_options(scale, system, without, least)
    with Display() as watch:
        measured = measured_log(
            log, settings, watch, features=features, columns=columns, wanted=wanted,
            limit=limit, seed=seed, scores=scores, kept=kept, refresh=refresh,
        )  # fmt: skip
        found = effects_of(measured, seed, watch)
        text = effect_markdown(found)
        if len(measured.dialogues) >= LEAST:
            heads = cross_validate(measured, FitOptions(), (CfLstm.name,), seeds=1, watch=watch)
            papers = heads.failed.get(CfLstm.name) or heads_markdown(heads.models[CfLstm.name])
            text = "\n".join([text, PAPERS, "", papers])
    typer.echo(text)
    if out:
        write_whole(out / "effect.md", text)
        if ANY in found.effects:
            write_whole(out / "effect.svg", overlap_svg(found.effects[ANY]))
        say(f"wrote {out}")


@ratings_app.command()
@engine_options
def trend(
    log: Log,
    settings: Any,
    model: Predictor = "ratings",
    scale: Scale = None,
    system: System = None,
    without: Without = None,
    least: Least = 1,
    scores: options.ScoresFile = None,
    kept: Kept = None,
    refresh: options.Refresh = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for trend.md and trend.svg."),
    ] = None,
) -> None:
    """Averages of ratings and predictions by day (L1d) and over seven days (L7d).

    Dialogues that nobody rated count among the predictions.

    Example: `causerie ratings trend log.jsonl --out trends`
    """
    from causerie.cli.console import say
    from causerie.io import write_whole
    from causerie.ratings.log import Skipped, usable
    from causerie.ratings.trend import chart, trend_markdown
    from causerie.ratings.trend import trend as averages

    wanted, skipped = read_options(scale, system, without, least, rated=False), Skipped()
    with opened_store(scores, kept) as store:
        predictor = load_predictor(model, settings, store, refresh)
        rows = [
            (one.day, float("nan") if one.rating is None else one.rating, p.rating)
            for one, p in predictor.predict_log(usable(log, wanted, skipped))
        ]
    say_skipped(skipped.reasons)
    found = averages(*zip(*rows, strict=True))
    if not found.days:
        raise CauserieError("no dialogue has a date: there is no trend to show")
    text = trend_markdown(found)
    typer.echo(text)
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
    from causerie.cli.console import say
    from causerie.io import read_turn
    from causerie.ratings.monitor import RatingMonitor

    predictor = load_predictor(model, settings)
    monitor = RatingMonitor(predictor, system, limit)
    measured, total, bad = [], [], 0
    try:
        for number, line in enumerate(sys.stdin, start=1):
            if not line.strip():
                monitor = RatingMonitor(predictor, system, limit)
                continue
            try:
                reading = monitor.update(read_turn(line))
            except CauserieError as why:
                say(f"line {number}: {why}")
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
            typer.echo(json.dumps(row))
            sys.stdout.flush()
    finally:  # who watches ends it with Ctrl-C
        if total:
            import numpy as np

            whole, part = (1000 * float(np.quantile(s, 0.95)) for s in (total, measured))
            say(f"{len(total):,} turns, p95 {whole:.0f} ms each, of which features {part:.0f} ms")
    if bad:
        raise typer.Exit(1)
