"""The command line: every command reads its options and passes them to the library."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, TextIO

import typer

from causerie._version import __version__
from causerie.cli import ending
from causerie.cli.annotate import annotate_app
from causerie.cli.bench import bench_app
from causerie.cli.cache import cache_app
from causerie.cli.compare import compare
from causerie.cli.graph import graph_app
from causerie.cli.metrics import metrics
from causerie.cli.models import models_app
from causerie.cli.ratings import ratings_app
from causerie.cli.score import score
from causerie.cli.serve import serve
from causerie.cli.train import train
from causerie.errors import CauserieWarning

app = typer.Typer(
    name="causerie",
    help="Score open-domain conversations without reference answers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(score)
app.command()(compare)
app.command()(metrics)
app.command()(train)
app.command()(serve)
app.add_typer(models_app, name="models")
app.add_typer(cache_app, name="cache")
app.add_typer(graph_app, name="graph")
app.add_typer(bench_app, name="bench")
app.add_typer(ratings_app, name="ratings")
app.add_typer(annotate_app, name="annotate")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"causerie {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning of causerie as one line, and others as Python does."""
    if issubclass(category, CauserieWarning):
        ending.tell(str(message))
    else:
        _show_as_python_does(message, category, filename, lineno, file, line)


_show_as_python_does = warnings.showwarning


def main() -> None:
    """Run the command line; `causerie.cli.ending` says which exit statuses there are."""
    # Threads that wait by spinning are very slow if other programs need the cores,
    # too; torch reads this when it is imported. Results do not change.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.showwarning = _show_warning
    sys.exit(ending.run(app))
