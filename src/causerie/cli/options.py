"""Options that several commands share; those of the engines are declared here, once.

A command that runs networks is decorated with `engine_options` and takes a `settings`: the
decorator gives it every option that says which networks to use and how to run them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Optional, get_type_hints

import typer

from causerie.errors import CauserieError

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
        help="How turns become text for the language model: chat, eos, plain or published "
        "[default: what fits the model].",
        rich_help_panel=_ENGINES,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1...", rich_help_panel=_ENGINES)]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16.", rich_help_panel=_ENGINES)]
Backend = Annotated[
    str,
    typer.Option(
        help="What computes encoders: torch, onednn, onednn-bf16, or auto, the quickest that is "
        "right on this machine.",
        rich_help_panel=_ENGINES,
    ),
]
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
Research = Annotated[
    bool,
    typer.Option(
        "--research",
        help="Metrics as trained on the papers' data, for research only (package "
        "causerie-research).",
        rich_help_panel=_ENGINES,
    ),
]
DataLicence = Annotated[
    str,
    typer.Option(
        "--licence",
        metavar="SOURCE: SPDX-ID; ...",
        help="Of the data, for the card: what each source is under, as in 'chitchat: MIT; "
        "self-dialogues: BSD-3-Clause'.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
ScoresFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--scores", help="File that keeps scores [default: in the platform's cache folder]."
    ),
]
Server = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="URL", help="Let this server of `causerie serve` make the numbers."),
]
TokenFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="File with the server's token."),
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Compute everything again, whatever scores are kept.")
]
Metrics = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--metrics",
        "-m",
        metavar="[ALIAS=]METRIC[:OPTION=VALUE],...",
        help="Names, separated by commas; `papers` and `all` stand for many "
        "[default: quality, faults].",
    ),
]
Speaker = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        help="Only this speaker, or this role (user or system); all is everybody "
        "[default: the system where roles are known, otherwise everybody]."
    ),
]
InputFormat = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="jsonl, json, csv, tsv, parquet or text [default: told from content]."),
]
InputColumns = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--columns",
        metavar="FIELD=NAME,...",
        help="What the input calls its fields, as in context=history,response=reply.",
    ),
]
Without = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(metavar="FIELD=VALUE", help="Leave out such records; repeat for several."),
]
JUnit = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="Also write what came of --fail-if as JUnit XML."),
]
SetOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="METRIC.OPTION=VALUE", help="An option of a metric."),
]

_ENGINE_OPTIONS: dict[str, tuple[Any, Any]] = {
    "encoder": (Encoder, "default"),
    "lm": (LanguageModel, "default"),
    "turn_format": (TurnFormat, None),
    "device": (Device, "auto"),
    "dtype": (Dtype, "float32"),
    "backend": (Backend, "torch"),
    "threads": (Threads, None),
    "models_dir": (ModelsDir, None),
    "offline": (Offline, False),
    "research": (Research, False),
}

_JUDGE = "Judge"
_JUDGE_OPTIONS: dict[str, tuple[Any, Any]] = {
    "judge_url": (
        Annotated[
            Optional[str],  # noqa: UP045
            typer.Option(
                help="For the metric judge: an OpenAI-compatible endpoint, as in "
                "https://api.openai.com/v1 [default: a local language model].",
                rich_help_panel=_JUDGE,
            ),
        ],
        None,
    ),
    "judge_model": (
        Annotated[
            Optional[str],  # noqa: UP045
            typer.Option(
                help="What the endpoint calls its model; without --judge-url a language model by "
                "name, such as qwen2.5-coder-1.5b [default: that of --lm].",
                rich_help_panel=_JUDGE,
            ),
        ],
        None,
    ),
    "judge_key_env": (
        Annotated[
            Optional[str],  # noqa: UP045
            typer.Option(
                metavar="VARIABLE",
                help="The environment variable that has the endpoint's key "
                "[default: OPENAI_API_KEY].",
                rich_help_panel=_JUDGE,
            ),
        ],
        None,
    ),
    "max_cost": (
        Annotated[
            Optional[float],  # noqa: UP045
            typer.Option(
                min=0,
                help="The most that the judge may spend, by --set judge.price_in and "
                "judge.price_out (of a million tokens).",
                rich_help_panel=_JUDGE,
            ),
        ],
        None,
    ),
}


def judge_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the metric judge; it is called with them as `judge`."""

    def given(**chosen: Any) -> dict[str, Any]:
        named = {name.removeprefix("judge_"): value for name, value in chosen.items()}
        return {name: value for name, value in named.items() if value is not None}

    return with_options(command, "judge", _JUDGE_OPTIONS, given)


_CLUSTER = "Cluster"
_CLUSTER_OPTIONS: dict[str, tuple[Any, Any]] = {
    "runner": (
        Annotated[
            Optional[str],  # noqa: UP045
            typer.Option(
                metavar="ray",
                help="Let many workers score (extra causerie[ray]); --out is a folder of Parquet "
                "parts, inputs and --out may be addresses such as s3://bucket/logs/*.jsonl.",
                rich_help_panel=_CLUSTER,
            ),
        ],
        None,
    ),
    "address": (
        Annotated[
            Optional[str],  # noqa: UP045
            typer.Option(
                help="Of a Ray cluster, as in auto or HOST:6379 [default: this machine].",
                rich_help_panel=_CLUSTER,
            ),
        ],
        None,
    ),
    "num_workers": (
        Annotated[
            Optional[int],  # noqa: UP045
            typer.Option(
                min=1,
                help="How many, each of --threads threads [default: one per processor; threads 1].",
                rich_help_panel=_CLUSTER,
            ),
        ],
        None,
    ),
}


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a cluster; it is called with one, or None, as `cluster`."""

    def made(runner: str | None, address: str | None, num_workers: int | None) -> Any:
        if runner is None:
            if address is not None or num_workers is not None:
                raise CauserieError("--address and --num-workers have no effect without --runner")
            return None
        if runner != "ray":
            raise CauserieError(f"unknown runner {runner!r}: use ray")
        from causerie.scoring.cluster import Cluster

        return Cluster(address, num_workers)

    return with_options(command, "cluster", _CLUSTER_OPTIONS, made)


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of the engines; it is called with them as `settings`."""
    return engine_options_but()(command)


def engine_options_but(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same without some, which would have no effect on the command."""
    declared = {name: one for name, one in _ENGINE_OPTIONS.items() if name not in left_out}

    def settings(**given: Any) -> Any:
        from causerie.engines import Settings

        made = Settings(**given)
        if made.threads is not None:
            # Before torch is loaded, so that it never starts more threads than that.
            os.environ["OMP_NUM_THREADS"] = str(made.threads)
        return made

    return lambda command: with_options(command, "settings", declared, settings)


def with_options(
    command: Callable[..., None],
    into: str,
    declared: Mapping[str, tuple[Any, Any]],
    make: Callable[..., Any],
) -> Callable[..., None]:
    """Give a command options that it takes together, as what `make` makes of them.

    `into` is the command's parameter for it; `declared` has the annotation and the default of
    each option by name.
    """

    @wraps(command)
    def with_all(**given: Any) -> None:
        command(**{into: make(**{name: given.pop(name) for name in declared})}, **given)

    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(command).parameters.items()
        if name != into
    ]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in declared.items()
    ]
    # A command may be given several groups: the next one asks for these annotations.
    del with_all.__wrapped__  # typer would look behind it
    with_all.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    with_all.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
    return with_all


def client_of(server: str, token_file: Path | None, settings: Any, given: Mapping[str, Any]) -> Any:
    """A client of a server; what the server decides may not be among what is given."""
    from causerie.engines import Settings
    from causerie.server.client import Client

    chosen = [option for option, value in given.items() if value]
    if chosen or settings != Settings():
        what = " and ".join(chosen) or "options of engines"
        raise CauserieError(
            f"{what} have no effect with --server, which has chosen: leave them out"
        )
    return Client(server, token_file.read_text("utf-8").strip() if token_file else None)
