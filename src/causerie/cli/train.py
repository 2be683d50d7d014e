"""`causerie train`: a trained metric for one's own domain."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import configure
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.training.loop import Progress


def train(
    metric: Annotated[str, typer.Argument(help="Which metric to train.", show_default=False)],
    data: Annotated[
        list[Path],
        typer.Option(help="Dialogues to train on; repeat for several files.", show_default=False),
    ],
    valid: Annotated[
        list[Path],
        typer.Option(help="Dialogues to validate on, never trained on.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the artifact.", show_default=False)],
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the training."),
    ] = None,
    licence: Annotated[str, typer.Option(help="Of the data, for the card.")] = "not stated",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted training.")
    ] = False,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    device: options.Device = "auto",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Train a metric and write it as an artifact.

    Checkpoints, the log and the loss curve go to OUT.training; an interrupted training goes on
    with --resume, to the same result.

    **Examples**

        causerie train density --data chats.jsonl --valid held_out.jsonl --out my-density

        causerie score new.jsonl --metrics density --set density.artifact=my-density
    """
    from causerie.cli.console import TrainingDisplay, show_results
    from causerie.engines import Engines, Settings
    from causerie.metrics import find
    from causerie.metrics.trained import TrainedMetric, TrainingRun

    chosen = find(metric)
    if not issubclass(chosen, TrainedMetric):
        raise CauserieError(f"{metric} is not trained: there is nothing to do")
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
    with TrainingDisplay() as display:
        results = chosen.train(
            engines,
            TrainingRun(
                config=configure(chosen.config, set_ or []),
                data=tuple(data),
                valid=tuple(valid),
                out=out,
                licence=licence,
                recipe=_recipe(metric, data, valid, set_ or [], encoder, lm),
                resume=resume,
                watch=display.watch,
            ),
        )
    show_results(results, out)


def _recipe(
    metric: str, data: list[Path], valid: list[Path], sets: list[str], encoder: str, lm: str
) -> str:
    """The command without folders, which differ from machine to machine."""
    words = ["causerie", "train", metric]
    words += [word for path in data for word in ("--data", path.name)]
    words += [word for path in valid for word in ("--valid", path.name)]
    words += [word for assignment in sets for word in ("--set", assignment)]
    words += ["--encoder", encoder] if encoder != "default" else []
    words += ["--lm", lm] if lm != "default" else []
    return shlex.join([*words, "--out", metric])
