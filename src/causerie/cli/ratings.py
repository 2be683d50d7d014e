"""`causerie ratings`: predicted ratings, their trend, and the effects of user signals."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from causerie.cli.options import engine_options
from causerie.cli.ratingslog import (
    By,
    Force,
    Log,
    LogOptions,
    Predictor,
    Set,
    System,
    TreatmentGroups,
    check_free,
    check_models,
    load_predictor,
    measuring_options,
    names_in,
    parse_scale,
    prediction_options,
    say_skipped,
    share,
    write_folder,
    written,
)
from causerie.errors import CauserieError
from causerie.options import changed, make, parse_assignments

ratings_app = typer.Typer(
    name="ratings",
    help="Predict user ratings, follow them over time, and estimate the effects of signals.",
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
        str,
        typer.Option(
            help="mean, length, transformer, mlp, lstm or cf-lstm; auto is the one of the last "
            "three with the highest early AUC of low ratings."
        ),
    ] = "auto",
    treatments: TreatmentGroups = "negative",
    set_: Set = None,
    licence: Annotated[str, typer.Option(help="Of the log, for the card.")] = "not stated",
    force: Force = False,
) -> None:
    """Fit a predictor on rated dialogues and write it to a folder.

    It is first cross-validated beside the sentinels. The results are on its card, and the
    out-of-fold predictions calibrate it and set the limits of alarms.

    Example: `causerie ratings fit log.jsonl --out my-ratings --without quality_control=fail`
    """
    from causerie.cli.console import Display, say
    from causerie.models.artifact import check_place
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.examples import Treatments
    from causerie.ratings.fitting import AUTO, FitOptions
    from causerie.ratings.models import SENTINELS, ModelConfig
    from causerie.ratings.predictor import fit_predictor
    from causerie.ratings.report import evaluation_markdown, predictor_card, verdict

    out = out.resolve()
    check_place(out, replace=force)
    asked_for = AUTO if model == "auto" else (model,)
    check_models(asked_for)
    given = {"seed": asked.seed, **parse_assignments(set_ or [])}
    config = make(ModelConfig, given, "a rating model")
    chosen = FitOptions(asked_for[0], Treatments.parse(treatments), config)
    with Display() as watch:
        measured = asked.measured(log, settings, watch, asked_for)
        count = len(measured.dialogues)
        if count < LEAST:
            raise CauserieError(f"{count} rated dialogues are too few: give at least {LEAST}")
        compared = tuple(dict.fromkeys((*SENTINELS, *asked_for)))
        found = cross_validate(measured, chosen, compared, seeds=1, watch=watch)
        best = found.best if model == "auto" else model
        if best in found.failed:
            raise CauserieError(found.failed[best])
        results = evaluation_markdown("Cross-validated", found)
        recipe = _recipe(log, best, treatments, set_ or [], asked, settings)
        encoder = measured.extractor.engines.store.identify(settings.encoder, "encoder")
        chosen = replace(chosen, model=best)
        card = predictor_card(chosen, count, encoder, recipe, licence, results)
        predicted = found.predicted[best] if config.seed == 0 else None
        _, artifact = fit_predictor(measured, chosen, predicted, card=card, licence=licence)
    artifact.save(out)
    say(f"fitted {best} on {count:,} dialogues; wrote {out}")
    for line in verdict(found, best):
        say(line)


@ratings_app.command()
@engine_options
@measuring_options
def extend(
    model: Annotated[str, typer.Argument(help="Folder written by `ratings fit`, or ratings.")],
    log: Log,
    out: Annotated[Path, typer.Option(help="Folder of the new predictor.", show_default=False)],
    treatments: Annotated[
        str,
        typer.Option(
            help="Groups of signals: first those of the model, then new ones, as in "
            "negative,compliment or negative,insult+obscenity.",
            show_default=False,
        ),
    ],
    settings: Any,
    asked: LogOptions,
    licence: Annotated[str, typer.Option(help="Of the log, for the card.")] = "not stated",
    force: Force = False,
) -> None:
    """Extend a fitted cf-lstm to more treatments: fit new heads first, then fine-tune all of it.

    Its features and their statistics are kept. It is not evaluated again on the old dialogues, so
    give other ones than it was fitted on.

    Example: `causerie ratings extend mine new.jsonl --treatments negative,compliment --out more`
    """
    from causerie.cli.console import Display, say
    from causerie.models.artifact import check_place, load_artifact
    from causerie.ratings.examples import Treatments

    out = out.resolve()
    check_place(out, replace=force)
    groups = Treatments.parse(treatments)
    with asked.store() as store, Display() as watch:
        predictor = load_predictor(model, settings, store, asked.refresh)
        measured = predictor.preparation.extractor.measured(asked.dialogues(log), watch)
        larger = predictor.extended(groups, measured)
    known = load_artifact(model)
    recipe = f"causerie ratings extend {model} {log[0].name} --treatments {treatments}"
    card = f"# ratings\n\n{recipe}\n\nLicence of the data: {licence}\n\n{known.card}"
    larger.artifact(card, f"{known.licence}; {licence}").save(out)
    say(f"extended to {groups.count} treatments on {len(measured.dialogues):,} dialogues: {out}")


def _recipe(
    log: list[Path],
    model: str,
    treatments: str,
    assignments: list[str],
    asked: LogOptions,
    settings: Any,
) -> str:
    """Return the command line that reproduces the predictor."""
    from causerie.ratings.log import LEAST_PAIRS

    given: dict[str, Any] = changed(asked)
    for name, value in changed(settings).items():
        if name in ("encoder", "lm", "turn_format", "dtype", "backend"):
            given[name] = value
    given |= {"features": asked.features, "seed": asked.seed, "least": asked.least}
    if asked.least == LEAST_PAIRS:
        del given["least"]
    words = ["causerie", "ratings", "fit", *(path.name for path in log), "--model", model]
    words += ["--treatments", treatments]
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
            "--out", "-o", help="Table to write (.jsonl, .csv, .parquet) [default: show JSONL]."
        ),
    ] = None,
    model: Predictor = "ratings",
    force: Force = False,
) -> None:
    """Predict the rating of every dialogue, rated or not.

    `predicted` is the mean, `low` the probability of a rating below 3 and `class` the median of one
    distribution; `without_signal` is a cf-lstm's counterfactual prediction without any negative
    signal.

    Example: `causerie ratings predict chats.jsonl --out predicted.csv`
    """
    from causerie.cli.console import show_row
    from causerie.io import check_table_path, write_table

    if out:
        check_table_path(out)
        check_free([out], force)
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
        for one, p in asked.predicted(log, model, settings)
    )
    if out:
        types = {"dialogue_id": str, "class": int, "signals": str}
        columns = ("dialogue_id", "rating", "predicted", "low", "class", "without_signal")
        write_table(rows, (*columns, "signals"), out, types)
    else:
        for row in rows:
            show_row(row)
    say_skipped(asked.skipped.reasons)
    if asked.skipped.reasons:
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
    by: Annotated[str, typer.Option(help="Unit of folds: dialogue, bot or user.")] = "dialogue",
    treatments: TreatmentGroups = "negative",
    set_: Set = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write the result: .md, .tex, .csv or .json."),
    ] = None,
    force: Force = False,
) -> None:
    """Cross-validate models on a rated log: the paper's tables 2 and 3.

    Example: `causerie ratings evaluate log.jsonl --models mean,length,mlp,cf-lstm`
    """
    from causerie.cli.console import Display, say, show
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.examples import Treatments
    from causerie.ratings.fitting import FOLDED, FitOptions
    from causerie.ratings.models import ModelConfig
    from causerie.ratings.report import evaluation_markdown, evaluation_tables
    from causerie.render.tables import check_suffix, write_tables

    if out:
        check_suffix(out)
        check_free([out], force)
    if by not in FOLDED:
        raise CauserieError(f"--by must be one of {', '.join(FOLDED)}, not {by!r}")
    check_models(names_in(models))
    config = make(ModelConfig, parse_assignments(set_ or []), "a rating model")
    chosen = FitOptions(treatments=Treatments.parse(treatments), config=config)
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
    by: By = None,
    pooled: Annotated[
        bool,
        typer.Option("--pooled", help="Also all signals as one treatment, as in the paper."),
    ] = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Folder for effect.md, .html, .csv, .json and .svg."),
    ] = None,
    force: Force = False,
) -> None:
    """Estimate what users' signals cost in rating, with refuters and the paper's estimate.

    Example: `causerie ratings effect log.jsonl --out effects`
    """
    from causerie.cli.console import Display, say, show
    from causerie.ratings.effect import effects_of
    from causerie.ratings.effectreport import counts_table, effect_markdown, effect_tables, pictures
    from causerie.ratings.evaluate import LEAST
    from causerie.ratings.evaluate import evaluate as cross_validate
    from causerie.ratings.examples import Treatments
    from causerie.ratings.fitting import FitOptions
    from causerie.ratings.models import CfLstm
    from causerie.ratings.report import PAPERS, heads_markdown

    if out:
        check_free(written(out, "effect"), force)
    with Display() as watch:
        measured = asked.measured(log, settings, watch)
        found = effects_of(measured, asked.seed, watch, pooled=pooled, by=by)
        counts = counts_table(measured)
        text = effect_markdown(counts, found)
        if len(measured.dialogues) >= LEAST:
            options = FitOptions(treatments=Treatments.parse("paper" if pooled else "negative"))
            heads = cross_validate(measured, options, (CfLstm.name,), seeds=1, watch=watch)
            papers = heads.failed.get(CfLstm.name) or heads_markdown(heads.models[CfLstm.name])
            text = "\n".join([text, PAPERS, "", papers])
    show(text)
    if out:
        tables = [*effect_tables(found), counts]
        write_folder(out, "effect", "What signals cost", text, tables, pictures(found))
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
        typer.Option("--out", "-o", help="Folder for trend.md, .html, .csv, .json and .svg."),
    ] = None,
    by: By = None,
    force: Force = False,
) -> None:
    """Show averages of ratings and predictions by day (L1d) and over seven days (L7d).

    Predictions include dialogues without a rating.

    Example: `causerie ratings trend log.jsonl --out trends`
    """
    from causerie.cli.console import say, show
    from causerie.ratings.log import group_of
    from causerie.ratings.trend import chart, trend_markdown, trend_table
    from causerie.ratings.trend import trend as averages

    if out:
        check_free(written(out, "trend"), force)
    rows: dict[str, list[Any]] = {"": []}
    for one, p in asked.predicted(log, model, settings):
        row = (one.day, float("nan") if one.rating is None else one.rating, p.rating)
        rows[""].append(row)
        if by and (group := group_of(one, by)) is not None:
            rows.setdefault(f"{by} {group}", []).append(row)
    say_skipped(asked.skipped.reasons)
    found = {name: averages(*zip(*some, strict=True)) for name, some in rows.items()}
    if not found[""].days:
        raise CauserieError("no dialogue has a date: there is no trend to show")
    text = "\n".join(trend_markdown(name, one) for name, one in found.items())
    show(text)
    if undated := found[""].undated:
        say(f"{undated:,} dialogues have no date and do not count")
    if out:
        tables = [trend_table(name, one) for name, one in found.items()]
        drawn = {"trend": chart(found)}
        write_folder(out, "trend", "Ratings by day", text, tables, drawn)
        say(f"wrote {out}")


@ratings_app.command()
@prediction_options
def agreement(
    log: Log,
    asked: LogOptions,
    other: Annotated[
        str,
        typer.Option(help="Field of the other rating, such as expert or ratings.expert."),
    ],
    other_scale: Annotated[
        str, typer.Option(metavar="LOW,HIGH", help="Scale of the other rating.")
    ] = "1,5",
) -> None:
    """Compare two ratings of the same dialogues, such as by users and by an expert.

    Example: `causerie ratings agreement log.jsonl --other expert --other-scale 1,5`
    """
    from causerie.cli.console import show
    from causerie.ratings.agreement import agreement as compared
    from causerie.ratings.agreement import agreement_table, both_ratings
    from causerie.ratings.log import read_log
    from causerie.render.tables import markdown_table

    read = read_log(log, asked.reading(), asked.skipped)
    say_skipped(read.skipped)
    found = compared(*both_ratings(read.dialogues, other, parse_scale(other_scale)))
    show(markdown_table(agreement_table({f"{asked.rating} and {other}": found})))


@ratings_app.command()
@engine_options
def watch(
    settings: Any,
    model: Predictor = "ratings",
    system: System = None,
    false_alarms: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Share of the conversations not rated low that may have an alarm.",
        ),
    ] = "5%",
) -> None:
    """Read turns from standard input, one JSON object per line, and predict ratings at once.

    A turn is `{"speaker": "user", "text": "..."}` or an OpenAI message; `{"messages": [...]}` has
    all messages so far. The field `conversation` tells conversations apart; without it, an empty
    line starts the next one. Each conversation has at most one alarm.

    Example: `tail -f turns.jsonl | causerie ratings watch --false-alarms 5%`
    """
    import math

    from causerie.cli.console import Notes, say, show_row
    from causerie.errors import RecordError
    from causerie.io import read_turns
    from causerie.ratings.monitor import Switchboard

    budget = share(false_alarms)
    predictor = load_predictor(model, settings)
    conversations = Switchboard(predictor, system, budget)
    if math.isinf(predictor.calibration.limit(1, budget)):
        say("no alarms: the predictor was fitted on too few dialogues that were not rated low")
    measured, total, bad = [], [], 0
    notes = Notes()
    try:
        for number, said in read_turns(sys.stdin.buffer):
            if said is None:
                conversations.end("")
                continue
            try:
                if isinstance(said, RecordError):
                    raise CauserieError(f"not a turn: {said}")
                name = said.conversation or ""
                readings = (
                    conversations.so_far(name, said.turns)
                    if said.so_far
                    else [conversations.next(name, turn) for turn in said.turns]
                )
            except CauserieError as why:
                notes.add(f"line {number}: {why}")
                bad += 1
                continue
            for reading in readings:
                measured.append(reading.feature_seconds)
                total.append(reading.seconds)
                row: dict[str, Any] = {
                    **({"conversation": said.conversation} if said.conversation else {}),
                    "turn": reading.turn,
                    "rating": round(reading.rating, 3),
                    "low": round(reading.low, 3),
                    "signals": list(reading.signals),
                    "alarm": reading.alarm,
                }
                show_row(row)
    finally:  # users end it with Ctrl-C
        notes.close()
        if total:
            import numpy as np

            whole, part = (1000 * float(np.quantile(s, 0.95)) for s in (total, measured))
            say(f"{len(total):,} turns, p95 {whole:.0f} ms each, of which features {part:.0f} ms")
    if bad:
        raise typer.Exit(1)
