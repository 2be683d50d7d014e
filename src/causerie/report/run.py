"""The page of a finished run: its rows put back to the conversations they came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from causerie.dialogue import Dialogue
from causerie.errors import CauserieError
from causerie.io import Rejected
from causerie.report.gather import ColumnInfo, Rows
from causerie.report.page import write_report
from causerie.scoring import Run
from causerie.scoring.table import exchanges_of


def write_run_report(path: Path, run: Run) -> None:
    """Write the page; the inputs are read once more, because rows hold no text."""
    check_reportable(path, run)
    level = run.layout.level
    columns = [
        ColumnInfo(column, metric.summary, metric.higher_is_better, metric.sentinel)
        for metric in run.layout.metrics
        for column in metric.columns(level)
    ]
    names = " and ".join(Path(p).name for p in run.inputs.paths)
    write_report(path, _scored(run), columns, title=names, signature=run.signature)


def check_reportable(path: Path, run: Run) -> None:
    """A page needs conversations that can be read again, scored turn by turn."""
    if any(path.exists() and path.samefile(p) for p in run.inputs.paths if Path(p).is_file()):
        raise CauserieError(f"{path} is an input: choose another --report")
    if not run.inputs.rereadable:
        raise CauserieError("--report reads the input twice: give files, not standard input")
    if run.layout.level != "turn":
        raise CauserieError("--report shows scored turns: leave --level dialogue out")


def _scored(run: Run) -> Iterator[tuple[Dialogue, Rows]]:
    rows = run.rows()
    for record in run.inputs.records():
        if not isinstance(record, Rejected):
            exchanges = exchanges_of(record, run.layout.speaker)
            dialogue = record if isinstance(record, Dialogue) else record.dialogue
            yield dialogue, {exchange.turn: next(rows) for exchange in exchanges}
