"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

_ENGINES = "Engines"

Hypotheses = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time, on 3.10 too
    typer.Option(help="JSON or TOML: dimensions and follow-ups of your own for fed and cpmi."),
]

Encoder = Annotated[
    str,
    typer.Option(help="Encoder: a name, a folder or a hub name.", rich_help_panel=_ENGINES),
]
LanguageModel = Annotated[
    str,
    typer.Option(
        "--lm", help="Language model: a name, a folder or a hub name.", rich_help_panel=_ENGINES
    ),
]
TurnFormat = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it at run time, on 3.10 too
    typer.Option(
        help="How turns become text for the language model: chat, eos or plain "
        "[default: what fits the model].",
        rich_help_panel=_ENGINES,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1...", rich_help_panel=_ENGINES)]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16.", rich_help_panel=_ENGINES)]
Threads = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="CPU threads [default: automatic].", rich_help_panel=_ENGINES),
]
ModelsDir = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        help="The model store [default: the platform's cache folder].", rich_help_panel=_ENGINES
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Never touch the network.", rich_help_panel=_ENGINES)
]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]
ScoresFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--scores", help="Where scores are kept [default: a file in the platform's cache folder]."
    ),
]
