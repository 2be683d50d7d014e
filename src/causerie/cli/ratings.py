"""`causerie ratings`: what users would have rated, over time, and what cost them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import configure
from causerie.cli.ratingslog import (
    Columns,
    Features,
    Least,
    Limit,
    Log,
    Predictor,
    Scale,
    Set,
    System,
    Values,
    Without,
    engines_of,
    kept_values,
    names_in,
    read_rated,
    say_skipped,
    wanted,
)
from causerie.errors import CauserieError

if TYPE_CHECKING:
    pass

ratings_app = typer.Typer(
    name="ratings",
    help="Predict what users would have rated, follow it over time, say what cost them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@ratings_app.command()
def fit(
    log: Log,
    out: Annotated[Path, typer.Option(help="Folder of the predictor.", show_default=False)],
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
    kept: Values = None,
    licence: Annotated[str, typer.Option(help="Of the log, for the card.")] = "not stated",
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Fit a predictor on rated dialogues and write it to a folder.

    Its card says how well it predicts, cross-validated.

    Example: `causerie ratings fit log.jsonl --out my-ratings --without quality_control=fail`
    """
    from causerie.cli.console import Display, say
    from causerie.models.artifact import check_place
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.extract import Extractor
    from causerie.ratings.features import chosen, groups_of
    from causerie.ratings.log import LEAST_PAIRS
    from causerie.ratings.models import ModelConfig
    from causerie.ratings.predictor import FitOptions, fit_predictor
    from causerie.ratings.tables import evaluation_markdown, predictor_card

    out = out.resolve()
    check_place(out)
    read = read_rated(log, scale, system, without, least, limit=limit, seed=seed)
    config = configure(ModelConfig, set_ or [], {"seed": seed})
    chosen_options = FitOptions(model, chosen(features), names_in(columns), config=config)
    engines = engines_of(encoder, lm, threads, models_dir, offline)
    known = kept_values(kept)
    results = ""
    if len(read.dialogues) >= LEAST:
        groups = groups_of(chosen_options.features, engines, chosen_options.columns)
        with Display() as watch:
            found = cross_validate(
                read.dialogues, Extractor(groups, known), engines, chosen_options,
                tuple(dict.fromkeys(("mean", "length", model))), seeds=1, kept=known, watch=watch,
            )  # fmt: skip
        results = evaluation_markdown("Cross-validated", found)
    given = {
        "columns": columns, "scale": scale, "system": system, "limit": limit,
        "least": "" if least == LEAST_PAIRS else least,
        "encoder": "" if encoder == "default" else encoder, "lm": "" if lm == "default" else lm,
    }  # fmt: skip
    recipe = shlex.join(
        ["causerie", "ratings", "fit", *(path.name for path in log), "--model", model]
        + ["--features", features, *(f"--set={one}" for one in set_ or [])]
        + ["--seed", str(seed), *(f"--{name}={value}" for name, value in given.items() if value)]
        + [f"--without={one}" for one in without or []]
    )
    card = predictor_card(
        chosen_options, len(read.dialogues), engines.encoder, recipe, licence, results
    )
    _, artifact = fit_predictor(
        read.dialogues, engines, chosen_options, known, card=card, licence=licence
    )
    artifact.save(out)
    say(f"fitted {model} on {len(read.dialogues):,} dialogues; wrote {out}")


@ratings_app.command()
def predict(
    log: Log,
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
    kept: Values = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Predict the rating of every dialogue, rated or not.

    Example: `causerie ratings predict chats.jsonl --out predicted.csv`
    """
    from causerie.io import check_table_path, write_table
    from causerie.ratings.log import Skipped, usable
    from causerie.ratings.predictor import RatingPredictor

    if out:
        check_table_path(out)
    usable_ones, skipped = wanted(scale, system, None, least, rated=False), Skipped()
    engines = engines_of(encoder, lm, threads, models_dir, offline)
    predictor = RatingPredictor.load(model, engines, kept_values(kept))
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
        for one, p in predictor.predict_log(usable(log, usable_ones, skipped))
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
def evaluate(
    log: Log,
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
    kept: Values = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write it: .md, .tex, .csv or .json."),
    ] = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Cross-validate models on a rated log: the paper's tables 2 and 3.

    Example: `causerie ratings evaluate log.jsonl --models mean,length,mlp,cf-lstm`
    """
    from causerie.cli.console import Display, say
    from causerie.ratings.evaluate import FOLDED
    from causerie.ratings.evaluate import evaluate as run
    from causerie.ratings.extract import Extractor
    from causerie.ratings.features import chosen, groups_of
    from causerie.ratings.models import MODELS, ModelConfig
    from causerie.ratings.predictor import FitOptions
    from causerie.ratings.tables import evaluation_markdown, evaluation_tables
    from causerie.render.tables import check_suffix, write_tables

    if by not in FOLDED:
        raise CauserieError(f"--by is {', '.join(FOLDED)}, not {by!r}")
    if out:
        check_suffix(out)
    if unknown := sorted(set(names_in(models)) - set(MODELS)):
        raise CauserieError(f"unknown model {unknown[0]!r}: use {', '.join(MODELS)}")
    read = read_rated(log, scale, system, without, least, limit=limit, seed=seed)
    engines = engines_of(encoder, lm, threads, models_dir, offline)
    names = chosen(features)
    known = kept_values(kept)
    extractor = Extractor(groups_of(names, engines, names_in(columns)), known)
    config = configure(ModelConfig, set_ or [])
    fitted = FitOptions(features=names, columns=names_in(columns), config=config)
    with Display() as watch:
        found = run(
            read.dialogues, extractor, engines, fitted, names_in(models),
            seeds=seeds, by=by, kept=known, watch=watch,
        )  # fmt: skip
    text = evaluation_markdown(", ".join(path.name.split(".")[0] for path in log), found)
    typer.echo(text)
    if out:
        write_tables(out, *evaluation_tables(found), text=text)
        say(f"wrote {out}")


@ratings_app.command()
def effect(
    log: Log,
    features: Features = "fast",
    columns: Columns = "",
    scale: Scale = None,
    system: System = None,
    without: Without = None,
    least: Least = 3,
    limit: Limit = None,
    seed: options.Seed = 0,
    kept: Values = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for effect.md and effect.svg, the overlap."),
    ] = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """What users' signals cost in rating: our estimate, tries to refute it, and the paper's.

    Example: `causerie ratings effect log.jsonl --out effects`
    """
    from causerie.cli.console import Display, say
    from causerie.io import write_whole
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.extract import Extractor, Standard
    from causerie.ratings.features import chosen, groups_of
    from causerie.ratings.models import CfLstm
    from causerie.ratings.predictor import FitOptions, Preparation
    from causerie.ratings.report import ANY, PAPERS, effect_markdown, effects_of, overlap_svg
    from causerie.ratings.tables import heads_markdown

    read = read_rated(log, scale, system, without, least, limit=limit, seed=seed)
    engines = engines_of(encoder, lm, threads, models_dir, offline)
    fitted = FitOptions(features=chosen(features), columns=names_in(columns))
    known = kept_values(kept)
    extractor = Extractor(groups_of(fitted.features, engines, fitted.columns), known)
    raw = extractor([one.pairs for one in read.dialogues])
    standard = Standard.of(extractor.features, raw)
    preparation = Preparation(extractor, standard, fitted.treatments)
    with Display() as watch:
        found = effects_of(read.dialogues, raw, preparation, seed, watch)
    text = effect_markdown(found)
    if len(read.dialogues) >= LEAST:
        with Display() as watch:
            heads = cross_validate(
                read.dialogues, extractor, engines, fitted, (CfLstm.name,),
                seeds=1, kept=known, watch=watch,
            )  # fmt: skip
        papers = heads.failed.get(CfLstm.name) or heads_markdown(heads.models[CfLstm.name])
        text = "\n".join([text, PAPERS, "", papers])
    typer.echo(text)
    if out:
        write_whole(out / "effect.md", text)
        if ANY in found.effects:
            write_whole(out / "effect.svg", overlap_svg(found.effects[ANY]))
        say(f"wrote {out}")


@ratings_app.command()
def trend(
    log: Log,
    model: Predictor = "ratings",
    scale: Scale = None,
    system: System = None,
    without: Without = None,
    least: Least = 1,
    kept: Values = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for trend.md and trend.svg."),
    ] = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Averages of ratings and predictions by day (L1d) and over seven days (L7d).

    Dialogues that nobody rated count among the predictions.

    Example: `causerie ratings trend log.jsonl --out trends`
    """
    from causerie.cli.console import say
    from causerie.io import write_whole
    from causerie.ratings.log import Skipped, usable
    from causerie.ratings.predictor import RatingPredictor
    from causerie.ratings.trend import chart, trend_markdown
    from causerie.ratings.trend import trend as averages

    usable_ones, skipped = wanted(scale, system, without, least, rated=False), Skipped()
    engines = engines_of(encoder, lm, threads, models_dir, offline)
    predictor = RatingPredictor.load(model, engines, kept_values(kept))
    rows = [
        (one.day, float("nan") if one.rating is None else one.rating, p.rating)
        for one, p in predictor.predict_log(usable(log, usable_ones, skipped))
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
def watch(
    model: Predictor = "ratings",
    system: System = None,
    limit: Annotated[float, typer.Option(help="Alarm above this probability.")] = 0.5,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Read turns from standard input, one JSON object a line, and rate as they come.

    A turn is `{"speaker": "user", "text": "..."}`; an empty line begins a new conversation.

    Example: `tail -f turns.jsonl | causerie ratings watch`
    """
    from causerie.cli.console import say
    from causerie.io import read_turn
    from causerie.ratings.monitor import RatingMonitor
    from causerie.ratings.predictor import RatingPredictor

    predictor = RatingPredictor.load(model, engines_of(encoder, lm, threads, models_dir, offline))
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
