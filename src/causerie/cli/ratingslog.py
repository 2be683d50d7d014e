"""What the commands of `causerie ratings` share: their options, and how they read logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.ratings.kept import Kept
    from causerie.ratings.log import RatedLog, ReadOptions

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


def engines_of(
    encoder: str, lm: str, threads: int | None, models_dir: Path | None, offline: bool
) -> Engines:
    from causerie.engines import Engines, Settings

    return Engines(
        Settings(encoder=encoder, lm=lm, threads=threads, models_dir=models_dir, offline=offline)
    )


def kept_values(path: Path | None) -> Kept:
    from platformdirs import user_cache_path

    from causerie.ratings.kept import Kept

    return Kept(path or user_cache_path("causerie") / "ratings.sqlite")


def read_rated(
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

    read = read_log(log, wanted(scale, system, without, least))
    say_skipped(read.skipped)
    return replace(read, dialogues=tuple(sample(read.dialogues, limit, seed)))


def wanted(
    scale: str | None, system: str | None, without: list[str] | None, least: int, rated: bool = True
) -> ReadOptions:
    from causerie.ratings.log import ReadOptions

    return ReadOptions(_scale(scale), system, least, _fields(without or []), rated)


def say_skipped(reasons: Mapping[str, int]) -> None:
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


def names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
