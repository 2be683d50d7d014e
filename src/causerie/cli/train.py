"""`causerie train`: training metrics, for example on one's own domain."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import fields_of
from causerie.cli.options import DataLicence, engine_options_but
from causerie.errors import CauserieError
from causerie.licences import NOT_STATED, parse_licences

if TYPE_CHECKING:
    from collections.abc import Callable

    from causerie.engines import Settings
    from causerie.training.judgements import JudgedReplies
    from causerie.training.trainable import Trainable, TrainingRun


@engine_options_but("backend", "dtype", "turn_format", "research")
def train(
    metric: Annotated[
        str,
        typer.Argument(help="Metric to train, or lm for the language model.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the artifact.", show_default=False)],
    data: Annotated[
        Optional[list[Path]],  # noqa: UP045 - typer reads it at run time, on 3.10 too
        typer.Option(
            "--data",
            "--unlabelled",
            help="Dialogues to train on; repeat for several files.",
            show_default=False,
        ),
    ] = None,
    annotations: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help="Causal annotations to train causalscore on."),
    ] = None,
    judged: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help="Judged sets, or folders of them, to train quality on."),
    ] = None,
    valid: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            help="Dialogues (or annotations) to validate on, never trained on "
            "[default: some of the data is held out].",
        ),
    ] = None,
    unseen: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help="Test annotations, whose conversations are left out of the training."),
    ] = None,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Setting of the training; repeat for several."
        ),
    ] = None,
    licence: DataLicence = NOT_STATED,
    init: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Artifact (name or folder) whose weights and settings to start from."),
    ] = None,
    without: options.Without = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted training.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option("--finish", help="End an interrupted training with its best weights so far."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Train from the start and replace OUT.")
    ] = False,
    *,
    settings: Any,
) -> None:
    """Train a metric and write it as an artifact: a folder that `score` can use.

    Checkpoints, the log and the loss curve go to OUT.training. An interrupted training continues
    with --resume, to the same result, or ends with --finish, which takes the best weights so far.
    An existing artifact is replaced only with --force.

    **Examples**

        causerie train density --init density --data chats.jsonl --out my-density

        causerie train density --data chats.jsonl --out my-density --set interaction=towers
        --set tuning=adapter --set pooling=mean --set learning_rate=1e-3 --set epochs=2

        causerie score new.jsonl --metrics density --set density.artifact=my-density

        causerie train causalscore --annotations annotated.jsonl --unlabelled chats.jsonl
        --out my-causalscore

        causerie train odes --data labelled.jsonl --out my-odes

        causerie train grade --init density --data chats.jsonl --out my-grade
        --set interaction=towers --set fixed=true --set batch=64 --set learning_rate=1e-3

        causerie train quality --judged judged/ --judged mine.jsonl --data chats.jsonl
        --out my-quality

        causerie train lm --data chats.jsonl --out my-lm

        causerie score new.jsonl --metrics fed --lm my-lm
    """
    from causerie.cli.console import Display, say, show_results
    from causerie.engines import Engines
    from causerie.metrics import trainable
    from causerie.models.artifact import check_place
    from causerie.training.trainable import Start, TrainingRun, configure

    chosen = trainable(metric)
    _check_settings(chosen, settings)
    if force and (resume or finish):
        raise CauserieError(
            "--resume and --finish continue a training, --force starts again: give only one"
        )
    out = out.resolve()
    check_place(out, replace=resume or finish or force)
    start = Start.load(init) if init else None
    folder = out.with_name(out.name + ".training")
    with Display() as watch:
        run = TrainingRun(
            config=configure(chosen, set_ or [], start),
            data=tuple(data or ()),
            valid=tuple(valid or ()),
            annotations=tuple(annotations or ()),
            judged=_judged(judged or [], say),
            unseen=tuple(unseen or ()),
            folder=folder,
            licence=licence,
            start=start,
            without=fields_of(without or []),
            resume=resume or finish,
            finish=finish,
            restart=force,
            watch=watch,
        )
        run.check(chosen)
        run = replace(run, recipe=_recipe(chosen.name, run, set_ or [], settings))
        artifact, results = chosen.train(Engines(settings), run)
    artifact.save(out)
    show_results(results)
    if others := [str(one) for one in parse_licences(artifact.licence) if not one.free]:
        say(f"not known to be free for commercial use: {'; '.join(others)}")
    say(f"wrote {out}; checkpoints and the log are in {folder}")
    watch.end()


def _judged(paths: list[Path], say: Callable[[str], None]) -> tuple[JudgedReplies, ...]:
    if not paths:
        return ()
    from causerie.bench.learning import read_replies_of

    return read_replies_of(paths, say)


def _check_settings(chosen: type[Trainable], settings: Settings) -> None:
    """Refuse the choice of a network that the training does not use."""
    for name, kind in (("encoder", "encoder"), ("lm", "language model")):
        if chosen.backbone != kind and getattr(settings, name) != "default":
            raise CauserieError(f"--{name} has no effect on the training of {chosen.name}")


def _recipe(metric: str, run: TrainingRun, sets: list[str], settings: Settings) -> str:
    """Return the command line without folders, which differ between machines."""
    words = ["causerie", "train", metric]
    files = {
        "--judged": tuple(Path(one.name) for one in run.judged),
        "--annotations": run.annotations,
        "--unlabelled" if run.annotations else "--data": run.data,
        "--valid": run.valid,
        "--unseen": run.unseen,
    }
    for option, paths in files.items():
        words += [word for path in paths for word in (option, path.name)]
    for name, values in run.without.items():
        words += [word for value in sorted(values) for word in ("--without", f"{name}={value}")]
    words += [word for assignment in sets for word in ("--set", assignment)]
    names = {"--encoder": settings.encoder, "--lm": settings.lm}
    names["--init"] = run.start.name if run.start else "default"
    for option, name in names.items():
        words += [option, Path(name).name] if name != "default" else []
    return shlex.join([*words, "--licence", run.licence, "--out", f"my-{metric}"])
