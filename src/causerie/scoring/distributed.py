"""`causerie.evaluate(..., runner="ray")`: what it takes, and a result whose rows are in parts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError
from causerie.io import records_of
from causerie.io.addresses import is_address
from causerie.io.atomic import temporary_folder
from causerie.io.reading import are_files
from causerie.progress import Progress
from causerie.report.figures import WORST
from causerie.scoring.cluster import Cluster, ClusterRun, Source
from causerie.scoring.files import Inputs
from causerie.scoring.result import Result
from causerie.scoring.summary import check_page
from causerie.scoring.table import Layout, Row

if TYPE_CHECKING:
    import pyarrow


class PartsResult(Result):
    """Scored responses (or dialogues) whose rows are in a folder of parts until they are wanted."""

    def __init__(self, run: ClusterRun, place: Any) -> None:
        """`place` goes away with the result: what holds its folder, if that is temporary."""
        assert run.summary is not None
        self.layout, self._summary = run.job.layout, run.summary
        self._run, self._place = run, place

    @cached_property
    def table(self) -> pyarrow.Table:
        import pyarrow as pa

        return pa.concat_tables(self._run.parts())

    def worst(self, n: int = 5, column: str | None = None) -> list[Row]:
        """The rows of the worst items, the worst first; empty responses lead."""
        quotes = self._summary.columns[self._ranked_by(column)].worst
        if not isinstance(n, int) or n > WORST:
            raise CauserieError(f"a run on Ray knows the {WORST} worst of a column: sort .table")
        return [self.table.slice(quote.row, 1).to_pylist()[0] for quote in quotes[: max(n, 0)]]

    def report(self, path: str | Path) -> Path:
        """Write a page (HTML) with charts and coloured conversations; an older file goes."""
        if self.layout.plan.level != "turn" or not self.layout.text:
            raise CauserieError("a report shows scored turns and their text: evaluate with both")
        check_page(Path(path))
        self._run.write_page(Path(path))
        return Path(path)

    def __len__(self) -> int:
        return self._summary.items


@dataclass(frozen=True)
class Runner:
    """Where `evaluate` has its numbers made, and where its rows go."""

    name: str
    out: str | Path | None = None
    cluster: Cluster = field(default_factory=Cluster)

    def __post_init__(self) -> None:
        if self.name != "ray":
            raise CauserieError(f'unknown runner {self.name!r}: use "ray"')
        if self.out is None and self.cluster.address is not None:
            raise CauserieError("name a folder that all machines of the cluster see: out=...")

    def evaluate(self, data: object, layout: Layout, columns: Mapping[str, str]) -> PartsResult:
        """Score data as `evaluate` takes it, and patterns and addresses of files."""
        place = temporary_folder("causerie-parts") if self.out is None else None
        out = str(self.out if place is None else place.name)
        talks = layout.plan.level == "turn" and layout.text
        with ClusterRun(
            layout, _source(data, columns), out, self.cluster, talks=talks, force=place is not None
        ) as run:
            summary = run.execute(_warn)
        if not summary.items:
            raise CauserieError(summary.nothing_scored(layout.plan.speaker))
        return PartsResult(run, place)


def _source(data: object, columns: Mapping[str, str]) -> Source:
    names = [data] if isinstance(data, (str, Path)) else data
    if isinstance(names, list) and names and all(isinstance(n, (str, Path)) for n in names):
        elsewhere = all(is_address(str(name)) or "*" in str(name) for name in names)
        if elsewhere or are_files(names):
            return Inputs(tuple(map(str, names)), columns=columns)
    return list(records_of(data, columns))


def _warn(progress: Progress) -> None:
    if progress.note is not None and progress.note.startswith("skipped "):
        warnings.warn(f"left out: {progress.note.removeprefix('skipped ')}", stacklevel=5)
