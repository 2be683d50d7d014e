"""`causerie ratings`: what users would have rated, over time, and what cost them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import configure
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.ratings.features import Kept
    from causerie.ratings.log import RatedLog, ReadOptions

ratings_app = typer.Typer(
    name="ratings",
    help="Predict what users would have rated, follow it over time, say what cost them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Log = Annotated[
    list[Path],
    typer.Argument(metavar="LOG...", help="Dialogues with ratings.", show_default=False),
]
Features = Annotated[
    str,
    typer.Option(
        help="fast, all (needs the language model) and groups, separated by commas: odes, valence, "
        "specificity, words, width=MODEL and depth=MODEL (DialogRPT), and any metric."
    ),
]
Columns = Annotated[
    str, typer.Option(help="Numbers on turns that are features too, separated by commas.")
]
Scale = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it at run time, on 3.10 too
    typer.Option(
        metavar="LOW,HIGH", help="Of the ratings [default: rating_scale of the record, or 1,5]."
    ),
]
System = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="The speaker who is the system, where neither roles nor names tell."),
]
Without = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(metavar="FIELD=VALUE", help="Leave out such records; repeat for several."),
]
Least = Annotated[int, typer.Option(min=1, help="Turn pairs of a dialogue at least.")]
Limit = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Only so many dialogues, drawn at random (with --seed)."),
]
Predictor = Annotated[
    str, typer.Option("--model", "-m", help="A folder that `ratings fit` wrote, or ratings.")
]
Values = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--kept", help="Where what was measured is kept [default: in the platform's cache folder]."
    ),
]
Set = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the models."),
]


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
    from causerie.cli.console import say, working
    from causerie.models.artifact import check_place
    from causerie.ratings.evaluate import LEAST, evaluation_markdown
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.features import Extractor, chosen, groups_of
    from causerie.ratings.log import LEAST_PAIRS
    from causerie.ratings.models import CfLstm, ModelConfig
    from causerie.ratings.predictor import FitOptions, fit_predictor

    out = out.resolve()
    check_place(out)
    read = _read(log, scale, system, without, least, limit=limit, seed=seed)
    config = configure(ModelConfig, set_ or [], {"seed": seed})
    chosen_options = FitOptions(model, chosen(features), _names(columns), config=config)
    engines = _engines(encoder, lm, threads, models_dir, offline)
    known = _kept(kept)
    results = ""
    if len(read.dialogues) >= LEAST:
        groups = groups_of(chosen_options.features, engines, chosen_options.columns)
        with working() as watch:
            found = cross_validate(
                read.dialogues, Extractor(groups, known), engines, chosen_options,
                ("mean", model), seeds=1, kept=known, watch=watch,
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
    weight = f"Weight of the Wasserstein distance (λ): {config.wasserstein:g}\n"
    card = "\n".join(
        [
            f"# ratings\n\n{model} on {len(read.dialogues):,} rated dialogues.\n",
            f"Licence of the data: {licence}\n\n```\n{recipe}\n```\n",
            f"Encoder: {engines.encoder.name}, SHA-256 {engines.encoder.sha256}\n",
            *([weight] if model == CfLstm.name else []),
            results,
            "Ratings of other users and bots may differ: evaluate before trusting.\n",
        ]
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
    wanted, skipped = _wanted(scale, system, None, least, rated=False), Skipped()
    engines = _engines(encoder, lm, threads, models_dir, offline)
    predictor = RatingPredictor.load(model, engines, _kept(kept))
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
    _say_skipped(skipped.reasons)
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
    by_bot: Annotated[bool, typer.Option("--by-bot", help="Folds of bots.")] = False,
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
        typer.Option("--out", "-o", help="Also write it as Markdown."),
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
    from causerie.cli.console import say, working
    from causerie.io import write_whole
    from causerie.ratings.evaluate import evaluate as run
    from causerie.ratings.evaluate import evaluation_markdown
    from causerie.ratings.features import Extractor, chosen, groups_of
    from causerie.ratings.models import MODELS, ModelConfig
    from causerie.ratings.predictor import FitOptions

    if unknown := sorted(set(_names(models)) - set(MODELS)):
        raise CauserieError(f"unknown model {unknown[0]!r}: use {', '.join(MODELS)}")
    read = _read(log, scale, system, without, least, limit=limit, seed=seed)
    engines = _engines(encoder, lm, threads, models_dir, offline)
    names = chosen(features)
    known = _kept(kept)
    extractor = Extractor(groups_of(names, engines, _names(columns)), known)
    config = configure(ModelConfig, set_ or [])
    fitted = FitOptions(features=names, columns=_names(columns), config=config)
    with working() as watch:
        found = run(
            read.dialogues, extractor, engines, fitted, _names(models),
            seeds=seeds, by_bot=by_bot, kept=known, watch=watch,
        )  # fmt: skip
    text = evaluation_markdown(", ".join(path.name.split(".")[0] for path in log), found)
    typer.echo(text)
    if out:
        write_whole(out, text)
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
    from causerie.cli.console import say, working
    from causerie.io import write_whole
    from causerie.ratings.evaluate import LEAST, heads_markdown
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.features import Extractor, Standard, chosen, groups_of
    from causerie.ratings.models import CfLstm
    from causerie.ratings.predictor import FitOptions, Preparation
    from causerie.ratings.report import ANY, PAPERS, effect_markdown, effects_of, overlap_svg

    read = _read(log, scale, system, without, least, limit=limit, seed=seed)
    engines = _engines(encoder, lm, threads, models_dir, offline)
    fitted = FitOptions(features=chosen(features), columns=_names(columns))
    known = _kept(kept)
    extractor = Extractor(groups_of(fitted.features, engines, fitted.columns), known)
    raw = extractor([one.pairs for one in read.dialogues])
    standard = Standard.of(extractor.features, raw)
    preparation = Preparation(extractor, standard, fitted.treatments)
    with working() as watch:
        found = effects_of(read.dialogues, raw, preparation, seed, watch)
    text = effect_markdown(found)
    if len(read.dialogues) >= LEAST:
        with working() as watch:
            heads = cross_validate(
                read.dialogues, extractor, engines, fitted, (CfLstm.name,),
                seeds=1, kept=known, watch=watch,
            )  # fmt: skip
        text = "\n".join([text, PAPERS, "", heads_markdown(heads.models[CfLstm.name])])
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

    wanted, skipped = _wanted(scale, system, without, least, rated=False), Skipped()
    engines = _engines(encoder, lm, threads, models_dir, offline)
    predictor = RatingPredictor.load(model, engines, _kept(kept))
    rows = [
        (one.day, float("nan") if one.rating is None else one.rating, p.rating)
        for one, p in predictor.predict_log(usable(log, wanted, skipped))
    ]
    _say_skipped(skipped.reasons)
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

    predictor = RatingPredictor.load(model, _engines(encoder, lm, threads, models_dir, offline))
    monitor = RatingMonitor(predictor, system, limit)
    measured, total, bad = [], [], 0
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
    if total:
        import numpy as np

        whole, features = (1000 * float(np.quantile(s, 0.95)) for s in (total, measured))
        say(f"{len(total):,} turns, p95 {whole:.0f} ms each, of which features {features:.0f} ms")
    if bad:
        raise typer.Exit(1)


def _engines(
    encoder: str, lm: str, threads: int | None, models_dir: Path | None, offline: bool
) -> Engines:
    from causerie.engines import Engines, Settings

    return Engines(
        Settings(encoder=encoder, lm=lm, threads=threads, models_dir=models_dir, offline=offline)
    )


def _kept(path: Path | None) -> Kept:
    from platformdirs import user_cache_path

    from causerie.ratings.features import Kept

    return Kept(path or user_cache_path("causerie") / "ratings.sqlite")


def _read(
    log: list[Path],
    scale: str | None,
    system: str | None,
    without: list[str] | None,
    least: int,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> RatedLog:
    """The usable dialogues; what was left out is said, a line per reason."""
    from dataclasses import replace

    from causerie.ratings.log import read_log
    from causerie.training.corpus import sample

    read = read_log(log, _wanted(scale, system, without, least))
    _say_skipped(read.skipped)
    return replace(read, dialogues=tuple(sample(read.dialogues, limit, seed)))


def _wanted(
    scale: str | None, system: str | None, without: list[str] | None, least: int, rated: bool = True
) -> ReadOptions:
    from causerie.ratings.log import ReadOptions

    return ReadOptions(_scale(scale), system, least, _fields(without or []), rated)


def _say_skipped(reasons: Mapping[str, int]) -> None:
    from causerie.cli.console import say

    for why, count in sorted(reasons.items()):
        say(f"left out {count:,}: {why}")


def _scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise CauserieError(f"--scale {text}: write LOW,HIGH as in 1,5") from None
    return low, high


def _fields(assignments: list[str]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise CauserieError(f"--without {assignment}: write FIELD=VALUE")
        found[name] = found.get(name, frozenset()) | {value}
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
