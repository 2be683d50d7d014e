"""`causerie train`: a trained metric for one's own domain."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import configure
from causerie.errors import CauserieError


def train(
    metric: Annotated[
        str,
        typer.Argument(
            help="Which metric to train; or lm, the language model.", show_default=False
        ),
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
    valid: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            help="Dialogues (or annotations) to validate on, never trained on "
            "[default: some of the data is held out].",
        ),
    ] = None,
    unseen: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help="Annotations kept for testing: their conversations are left out."),
    ] = None,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the training; repeat for several."
        ),
    ] = None,
    licence: Annotated[str, typer.Option(help="Of the data, for the card.")] = "not stated",
    init: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Start from the weights and the settings of an artifact: a name or a folder."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted training.")
    ] = False,
    encoder: options.Encoder = "default",
    lm: Annotated[
        str, typer.Option(help="What `train lm` starts from: a name, a folder or a hub name.")
    ] = "default-lm",
    device: options.Device = "auto",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Train a metric and write it as an artifact: a folder that `score` can use.

    Checkpoints, the log and the loss curve go to OUT.training; an interrupted training goes on
    with --resume, to the same result.

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

        causerie train lm --data chats.jsonl --out my-lm

        causerie score new.jsonl --metrics fed --lm my-lm
    """
    from causerie.cli.console import Display, say, show_results
    from causerie.engines import Engines, Settings
    from causerie.engines.language import LM
    from causerie.metrics import find
    from causerie.metrics.followups.language import LanguageModel
    from causerie.metrics.trained import TrainedMetric, TrainingRun
    from causerie.models.artifact import check_place, load_artifact

    chosen: Any = LanguageModel if metric == LM else find(metric)
    if not issubclass(chosen, (TrainedMetric, LanguageModel)):
        raise CauserieError(f"{metric} is not trained: there is nothing to do")
    if chosen.annotated and not annotations:
        raise CauserieError(f"{metric} learns from causal annotations: give --annotations")
    if not chosen.annotated and (annotations or unseen):
        raise CauserieError(f"{metric} does not learn from annotations: give --data alone")
    if not (chosen.annotated or chosen.own_data or data):
        raise CauserieError(f"{metric} learns from dialogues: give --data")
    engines = Engines(
        Settings(
            encoder=encoder,
            lm=lm,
            device=device,
            threads=threads,
            models_dir=models_dir,
            offline=offline,
        )
    )
    out = out.resolve()
    check_place(out)
    start = chosen.inherited(load_artifact(init)) if init else None
    folder = out.with_name(out.name + ".training")
    with Display() as watch:
        artifact, results = chosen.train(
            engines,
            TrainingRun(
                config=configure(chosen.config, set_ or [], start),
                data=tuple(data or ()),
                valid=tuple(valid or ()),
                annotations=tuple(annotations or ()),
                unseen=tuple(unseen or ()),
                folder=folder,
                licence=licence,
                recipe=_recipe(
                    metric,
                    {
                        "--annotations": annotations,
                        "--unlabelled" if annotations else "--data": data,
                        "--valid": valid,
                        "--unseen": unseen,
                    },
                    set_ or [],
                    encoder,
                    lm,
                    init,
                    licence,
                ),
                init=init,
                resume=resume,
                watch=watch,
            ),
        )
    artifact.save(out)
    show_results(results)
    say(f"wrote {out}; checkpoints and the log are in {folder}")


def _recipe(
    metric: str,
    files: Mapping[str, list[Path] | None],
    sets: list[str],
    encoder: str,
    lm: str,
    init: str | None,
    licence: str,
) -> str:
    """The command without folders, which differ from machine to machine."""
    words = ["causerie", "train", metric]
    for option, paths in files.items():
        words += [word for path in paths or () for word in (option, path.name)]
    words += [word for assignment in sets for word in ("--set", assignment)]
    words += ["--encoder", Path(encoder).name] if encoder != "default" else []
    words += ["--lm", Path(lm).name] if lm != "default-lm" else []
    words += ["--init", Path(init).name] if init else []
    return shlex.join([*words, "--licence", licence, "--out", f"my-{metric}"])
