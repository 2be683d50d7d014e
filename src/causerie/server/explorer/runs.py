"""Runs: tables written by `causerie score`, found on disk and described.

Parquet files contain their metadata (the columns of the plan, the signature, what was skipped).
Tables in other formats have none, so the registry of metrics describes their columns by name, and
their rows are cached as Parquet in a folder.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError
from causerie.io.tables import KEYS, read_about, read_table, write_table
from causerie.metrics import find
from causerie.metrics.base import Column
from causerie.scoring.table import OBJECTS, PERCENTILE

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".parquet", ".jsonl", ".csv", ".tsv", ".jsonl.gz", ".csv.gz", ".tsv.gz")
PREFERRED = ("quality", "quality.rating", "density")
"""Columns by preference for the first view."""
FAULTS = "faults."
FAULT_ABOVE = 0.5
"""A reply has a fault if the column exceeds this, unless the column has its own limit."""
RESCAN = 2.0
"""Seconds for which a scan of the disk is considered current."""


@dataclass(frozen=True)
class Scores:
    """One column of scores in a table."""

    name: str
    about: Column
    place: int
    """Index of the column in the Parquet file."""
    percentile: int | None = None
    """Index of the column of its percentiles."""
    drawing: str | None = None
    """How its explanations are drawn, "arcs" or "graph"; None for lists."""

    @property
    def is_fault(self) -> bool:
        """Whether the column is the strength of a fault, from 0 to 1."""
        return self.name.startswith(FAULTS) or f".{FAULTS}" in self.name

    @property
    def limit(self) -> float:
        """The value above which a reply has the fault."""
        return FAULT_ABOVE if self.about.limit is None else self.about.limit


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One table of scores; a file that changes becomes another run of the same name."""

    name: str
    """Name for people and in addresses."""
    path: Path
    table: Path
    """Parquet file with the same rows."""
    written: float
    """When the file was written, in seconds since 1970."""
    rows: int
    width: int
    """Number of columns in the Parquet file."""
    places: Mapping[str, int]
    """Index in the Parquet file, by name, of the columns that are not scores."""
    scores: Mapping[str, Scores]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> Scores:
        """The column that says most about how good a reply is."""
        for name in PREFERRED:
            if name in self.scores:
                return self.scores[name]
        directed = [s for s in self.scores.values() if s.about.better and not s.is_fault]
        serious = [s for s in directed if not s.about.sentinel]
        return next(iter([*serious, *directed, *self.scores.values()]))

    def column(self, name: str | None) -> Scores:
        """Return the column of that name, by default the main one."""
        if name is None:
            return self.main
        if name not in self.scores:
            known = ", ".join(self.scores)
            raise CauserieError(f"{self.name} has no scores named {name!r}: it has {known}")
        return self.scores[name]

    @property
    def is_of_turns(self) -> bool:
        """Whether rows are responses; otherwise they are whole dialogues."""
        return "turn" in self.places


class Library:
    """The runs in some files and folders, as they are on disk now."""

    def __init__(self, paths: Iterable[Path], cache: Path | None = None) -> None:
        self._paths, self._cache = [Path(path) for path in paths], cache
        self._known: dict[tuple[Path, int, int], ScoredRun | None] = {}
        self._runs: dict[str, ScoredRun] = {}
        self._seen = float("-inf")
        self._lock = Lock()
        for path in self._paths:
            if not path.exists():
                raise CauserieError(f"{path} does not exist: name a file or a folder of scores")

    def runs(self) -> dict[str, ScoredRun]:
        """Return the runs by name, latest first."""
        with self._lock:
            if time.monotonic() - self._seen > RESCAN:
                found = self._found()
                order = sorted(found, key=lambda name: (-found[name].written, name))
                self._runs = {name: found[name] for name in order}
                self._seen = time.monotonic()
            return self._runs

    def run(self, name: str | None) -> ScoredRun:
        """Return the run of that name, by default the latest."""
        runs = self.runs()
        if not runs:
            raise CauserieError(
                "there are no scores here yet: write some with `causerie score INPUT --out FILE`"
            )
        if name is None:
            return next(iter(runs.values()))
        if name not in runs:
            raise CauserieError(f"there is no run named {name!r}: it may have been removed")
        return runs[name]

    def _found(self) -> dict[str, ScoredRun]:
        found: dict[str, ScoredRun] = {}
        known: dict[tuple[Path, int, int], ScoredRun | None] = {}
        names = [p.name for p in self._paths]
        for path in self._paths:
            if path.is_dir():
                files = [(file.relative_to(path).as_posix(), file) for file in _tables(path)]
            else:
                files = [(path.name if names.count(path.name) == 1 else str(path), path)]
            for name, file in files:
                try:
                    state = file.stat()
                    key = (file, state.st_size, state.st_mtime_ns)
                    known[key] = (
                        self._known[key]
                        if key in self._known
                        else open_run(name, file, self._cache)
                    )
                except (CauserieError, OSError):
                    # folders may contain other files; a file that was named must be usable
                    if file == path:
                        raise
                    known[key] = None
                if run := known[key]:
                    found[name if name not in found else str(file)] = run
        self._known = known
        return found


def open_run(name: str, path: Path, cache: Path | None = None) -> ScoredRun:
    """Describe a table of scores; raise an error if the file is not one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not _is_scores(path):
        raise CauserieError(
            f"{path} is not a table of scores: write one with `causerie score INPUT --out FILE`"
        )
    state = path.stat()
    table = path if path.suffix.lower() == ".parquet" else as_parquet(path, cache)
    try:
        with pq.ParquetFile(table) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        about = read_about(table)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise CauserieError(f"{path} is damaged ({why}): write it again") from error
    places = {name: i for i, name in enumerate(schema.names) if name in {*KEYS, *OBJECTS}}
    scores = _scores(schema, about)
    if not scores:
        raise CauserieError(f"{path} has no column with scores")
    width = len(schema.names)
    return ScoredRun(name, path, table, state.st_mtime, rows, width, places, scores, about)


def as_parquet(path: Path, cache: Path | None) -> Path:
    """Return a Parquet file with a table's rows, made once per version of the file."""
    if cache is None:
        from platformdirs import user_cache_path

        cache = user_cache_path("causerie") / "explorer"
    state = path.stat()
    of_file = sha256(os.fsencode(path.resolve())).hexdigest()[:24]
    kept = cache / f"{of_file}-{state.st_size}-{state.st_mtime_ns}.parquet"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        for old in cache.glob(f"{of_file}-*.parquet"):
            old.unlink(missing_ok=True)
        rows = read_table(path, OBJECTS)
        first = next(rows, None)
        write_table(
            () if first is None else _chain(first, rows),
            [*(first or {"dialogue_id": None})],
            kept,
            OBJECTS,
        )
    return kept


def inferred(name: str) -> tuple[Column, str | None]:
    """Return the column, and the drawing of its explanations, that the metric of that name has."""
    alias, _, quality = name.partition(".")
    for level in ("turn", "dialogue"):
        found = _columns_of(alias, level).get(quality)
        if found:
            return found
    return Column(quality or name, better="lower" if name.startswith(FAULTS) else None), None


@lru_cache(maxsize=256)
def _columns_of(name: str, level: Any) -> dict[str, tuple[Column, str | None]]:
    try:
        metric = find(name)()
        return {c.name: (c, metric.drawing) for c in metric.columns(level)}
    except (CauserieError, TypeError):  # an alias, or a metric that needs options
        return {}


def _scores(schema: pyarrow.Schema, about: Mapping[str, Any]) -> dict[str, Scores]:
    """Return the numeric columns that are neither keys nor percentiles."""
    import pyarrow as pa

    told = about.get("columns")
    told = told if isinstance(told, dict) else {}
    numbers = {
        name: i
        for i, name in enumerate(schema.names)
        if name not in {*KEYS, *OBJECTS}
        and (pa.types.is_floating(schema.types[i]) or pa.types.is_integer(schema.types[i]))
    }
    scores = {}
    for name, place in numbers.items():
        if name.endswith(PERCENTILE) and name.removesuffix(PERCENTILE) in numbers:
            continue
        column, drawing = _parsed_column(told.get(name)) or inferred(name)
        scores[name] = Scores(name, column, place, numbers.get(name + PERCENTILE), drawing)
    return scores


def _parsed_column(told: object) -> tuple[Column, str | None] | None:
    """Return a column as described by its table; None if the description is invalid."""
    if not isinstance(told, dict):
        return None
    drawing = told.get("drawing")
    low, high = told.get("range") or (None, None)
    try:
        column = Column(
            name=str(told["name"]),
            help=str(told["help"]),
            better=told["better"] if told["better"] in ("higher", "lower") else None,
            range=(None if low is None else float(low), None if high is None else float(high)),
            sentinel=bool(told["sentinel"]),
            calibrated=bool(told["calibrated"]),
            unit=str(told["unit"]),
            limit=None if told.get("limit") is None else float(told["limit"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return column, drawing if drawing in ("arcs", "graph") else None


def _tables(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder whose names could be those of tables of scores."""
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if not hidden and file.name.lower().endswith(SUFFIXES) and file.is_file():
            yield file


def _is_scores(path: Path) -> bool:
    """Return whether a file begins like a table of scores."""
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        return False
    if name.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return "dialogue_id" in pq.read_schema(path).names
        except (pa.ArrowException, OSError):
            return False
    try:
        with (gzip.open if name.endswith(".gz") else open)(path, "rb") as file:
            line = file.readline(1 << 20)
    except (OSError, EOFError):
        return False
    if ".jsonl" not in name:
        return b"dialogue_id" in line
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "dialogue_id" in row


def _chain(first: dict[str, Any], rest: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rest
