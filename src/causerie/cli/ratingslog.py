"""Shared by the commands of `causerie ratings`: options, reading logs, writing results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import fields_of
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.progress import Watch
    from causerie.ratings.features import Extractor, MeasuredLog
    from causerie.ratings.log import RatedDialogue, ReadOptions, Skipped
    from causerie.ratings.predictor import Prediction, RatingPredictor
    from causerie.render.tables import Table
    from causerie.scoring.store import ScoreStore

Log = Annotated[
    list[Path],
    typer.Argument(metavar="LOG...", help="Dialogues with ratings.", show_default=False),
]
Features = Annotated[
    str,
    typer.Option(
        help="fast, all (needs the language model) and groups, separated by commas: odes, valence, "
        "specificity, words, width=MODEL and depth=MODEL (DialogRPT), and any metric, as in "
        "density or b2=bleu:order=2."
    ),
]
Columns = Annotated[
    str, typer.Option(help="Numbers of turns to use as features, separated by commas.")
]
Scale = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it at run time, on 3.10 too
    typer.Option(
        metavar="LOW,HIGH", help="Scale of ratings [default: rating_scale of the record, or 1,5]."
    ),
]
System = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Speaker who is the system, if neither roles nor names tell."),
]
Least = Annotated[int, typer.Option(min=1, help="Minimum number of turn pairs in a dialogue.")]
Limit = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Number of dialogues, drawn at random with --seed [all]."),
]
Predictor = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="Folder written by `ratings fit`, or ratings, the shipped one."
    ),
]
Kept = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--kept", hidden=True, help="Former name of --scores."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
By = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="FIELD", help="Also show each value of this field, such as bot, separately."
    ),
]
Rating = Annotated[
    str,
    typer.Option(metavar="FIELD", help="Field of the rating, such as expert or ratings.expert."),
]
TreatmentGroups = Annotated[
    str,
    typer.Option(
        help="Groups of signals that a cf-lstm distinguishes: negative, paper (all as one group, "
        "compliments included), or your own, as in insult+obscenity,critique."
    ),
]
Set = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="KEY=VALUE", help="Setting of the models; repeat for several."),
]


def _none_skipped() -> Skipped:
    from causerie.ratings.log import Skipped

    return Skipped()


@dataclass(frozen=True)
class LogOptions:
    """Options of a log: which dialogues to read, their features, and where scores are stored."""

    scale: str | None = None
    rating: str = "rating"
    system: str | None = None
    without: list[str] | None = None
    least: int = 1
    limit: int | None = None
    seed: int = 0
    features: str = "fast"
    columns: str = ""
    scores: Path | None = None
    kept: Path | None = None
    refresh: bool = False
    skipped: Skipped = field(default_factory=_none_skipped)
    """Dialogues left out so far."""

    def reading(self, *, rated: bool = True) -> ReadOptions:
        """Return the options for reading a log."""
        from causerie.ratings.log import ReadOptions

        left_out = fields_of(self.without or [])
        scale = None if self.scale is None else parse_scale(self.scale)
        return ReadOptions(scale, self.system, self.least, left_out, rated, self.rating)

    @contextmanager
    def store(self) -> Iterator[ScoreStore]:
        """Open the file of stored scores."""
        from causerie.cli.console import say
        from causerie.scoring.store import ScoreStore

        if self.kept is not None:
            if self.scores is not None:
                raise CauserieError("--kept is the former name of --scores: give --scores alone")
            say("--kept is now --scores, which stores only the scores of metrics")
        with ScoreStore(self.scores or self.kept) as store:
            yield store

    def measured(
        self, log: list[Path], settings: Any, watch: Watch, models: Sequence[str] = ()
    ) -> MeasuredLog:
        """Read the usable dialogues, report those left out, and compute the features."""
        from causerie.engines import Engines
        from causerie.ratings.features import Extractor, parse_feature_names

        names, given = parse_feature_names(self.features), names_in(self.columns)
        with self.store() as store:
            engines = Engines(settings)
            extractor = Extractor.of(names, engines, store, columns=given, refresh=self.refresh)
            check_settings(extractor, models)
            return extractor.measured(self.dialogues(log), watch)

    def dialogues(self, log: list[Path]) -> Sequence[RatedDialogue]:
        """Read the usable dialogues, report those left out, and draw the requested number."""
        from causerie.ratings.log import read_log
        from causerie.training.corpus import sample

        read = read_log(log, self.reading(), self.skipped)
        say_skipped(read.skipped)
        return sample(read.dialogues, self.limit, self.seed)

    def predicted(
        self, log: list[Path], model: str, settings: Any
    ) -> Iterator[tuple[RatedDialogue, Prediction]]:
        """Yield every usable dialogue with its prediction; others are counted in `skipped`."""
        from causerie.ratings.log import usable

        with self.store() as store:
            predictor = load_predictor(model, settings, store, self.refresh)
            yield from predictor.predict_log(usable(log, self.reading(rated=False), self.skipped))


_READING: dict[str, tuple[Any, Any]] = {
    "scale": (Scale, None),
    "rating": (Rating, "rating"),
    "system": (System, None),
    "without": (options.Without, None),
    "least": (Least, 1),
    "scores": (options.ScoresFile, None),
    "kept": (Kept, None),
    "refresh": (options.Refresh, False),
}
_MEASURING = {
    **_READING,
    "least": (Least, 3),
    "features": (Features, "fast"),
    "columns": (Columns, ""),
    "limit": (Limit, None),
    "seed": (options.Seed, 0),
}


def prediction_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for predicting a log, as `asked`."""
    return options.with_options(_telling(command), "asked", _READING, LogOptions)


def measuring_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for measuring a log, as `asked`."""
    return options.with_options(_telling(command), "asked", _MEASURING, LogOptions)


def _telling(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it exits with 1 if some records could not be read."""

    @wraps(command)
    def told(asked: LogOptions, **given: Any) -> None:
        command(asked=asked, **given)
        if asked.skipped.bad_records:
            raise typer.Exit(1)

    return told


def check_settings(extractor: Extractor, models: Sequence[str] = ()) -> None:
    """Refuse a choice of network that neither the features nor the models use."""
    from causerie.ratings.models import Transformer
    from causerie.scoring.plan import Plan

    settings = extractor.engines.settings
    if Transformer.name in models:
        settings = replace(settings, encoder="default")
    Plan(extractor.metrics, settings).check_settings()


def load_predictor(
    model: str, settings: Any, store: ScoreStore | None = None, refresh: bool = False
) -> RatingPredictor:
    """Load a fitted predictor; refuse a choice of network that it does not use."""
    from causerie.engines import Engines
    from causerie.ratings.predictor import RatingPredictor

    predictor = RatingPredictor.load(model, Engines(settings), store, refresh=refresh)
    check_settings(predictor.preparation.extractor, [predictor.options.model])
    return predictor


def check_models(names: Sequence[str]) -> None:
    """Refuse unknown models."""
    from causerie.ratings.models import MODELS

    if unknown := sorted(set(names) - set(MODELS)):
        raise CauserieError(f"unknown model {unknown[0]!r}: use {', '.join(MODELS)}")


def say_skipped(reasons: Mapping[str, int]) -> None:
    from causerie.cli.console import say

    for why, count in sorted(reasons.items()):
        say(f"left out {count:,}: {why}")


def parse_scale(text: str) -> tuple[float, float]:
    """Parse the ends of a scale."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise CauserieError(f"--scale {text}: write LOW,HIGH as in 1,5") from None
    return low, high


def share(text: str) -> float:
    """Parse a share such as 5% or 0.05."""
    try:
        return float(text.rstrip("% ")) / (100 if text.rstrip().endswith("%") else 1)
    except ValueError:
        raise CauserieError(f"{text} is not a share: write it as 5% or 0.05") from None


def written(folder: Path, name: str) -> list[Path]:
    """Return the files that `write_folder` writes, except pictures with other names."""
    return [folder / f"{name}.{suffix}" for suffix in ("md", "html", "csv", "json", "svg")]


def write_folder(
    folder: Path,
    name: str,
    title: str,
    text: str,
    tables: Sequence[Table],
    pictures: Mapping[str, str],
) -> None:
    """Write results as Markdown, HTML, CSV and JSON, with their pictures."""
    from causerie.io import write_whole
    from causerie.render.page import plain_page
    from causerie.render.tables import html_table, write_tables

    markdown, page, *data, _ = written(folder, name)
    write_whole(markdown, text)
    for path in data:
        write_tables(path, *tables)
    for file, picture in pictures.items():
        write_whole(folder / f"{file}.svg", picture)
    sections = {"Pictures": "\n".join(f"<p>{one}</p>" for one in pictures.values())}
    sections |= {escape(table.title): html_table(table) for table in tables}
    write_whole(page, plain_page(title, sections))


def check_free(paths: Sequence[Path], force: bool) -> None:
    """Refuse to overwrite existing files, unless forced."""
    for path in paths:
        if path.exists() and not force:
            raise CauserieError(
                f"{path} already exists: choose another path, or overwrite it with --force"
            )


def names_in(text: str) -> tuple[str, ...]:
    """Parse names separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
