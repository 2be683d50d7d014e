"""`causerie cache`: the scores that are stored so that they need not be computed again."""

from __future__ import annotations

from pathlib import Path

import typer

from causerie.cli.options import ScoresFile

cache_app = typer.Typer(
    help="Show or clear the scores that are stored on disk.", no_args_is_help=True
)


@cache_app.command()
def info(scores: ScoresFile = None) -> None:
    """Show where scores are stored, the size of the file, and the number of scores by metric."""
    from rich.console import Console

    from causerie.cli.console import PlainTable, show
    from causerie.scoring import ScoreStore

    path = _path(scores)
    if not path.exists():
        show(f"no scores are kept in {path}")
        return
    with ScoreStore(path) as store:
        counts = store.counts()
    size = sum(file.stat().st_size for file in _files(path))
    show(f"{path}: {sum(counts.values()):,} items, {size / 2**20:.1f} MB")
    table = PlainTable()
    table.add_column("items", justify="right")
    table.add_column("metric", overflow="fold")
    for key, count in counts.items():
        table.add_row(f"{count:,}", key)
    if counts:
        Console().print(table)


@cache_app.command()
def clear(scores: ScoresFile = None) -> None:
    """Delete all stored scores."""
    from causerie.cli.console import show
    from causerie.scoring import ScoreStore

    path = _path(scores)
    if not path.exists():
        show(f"no scores are kept in {path}")
        return
    with ScoreStore(path) as store:
        count = store.clear()
    show(f"deleted {count:,} items from {path}")


def _path(scores: Path | None) -> Path:
    from causerie.scoring.store import default_path

    return scores or default_path()


def _files(path: Path) -> list[Path]:
    """Return the file and those that SQLite keeps beside it."""
    beside = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))
    return [file for file in beside if file.exists()]
