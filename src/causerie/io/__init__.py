"""Every format in and out.

`read` turns a file of any supported format into dialogues and exchanges, one at a time;
`write_table` and `read_table` (in `causerie.io.tables`) keep scores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError
from causerie.io.annotations import Annotation, to_annotation
from causerie.io.delimited import read_csv, read_tsv
from causerie.io.detect import HEAD, detect
from causerie.io.jsonarray import read_json
from causerie.io.jsontext import parse
from causerie.io.labelled import Labelled, to_labelled
from causerie.io.linewise import read_jsonl, read_text
from causerie.io.parquet import read_parquet
from causerie.io.records import to_record, turn_of
from causerie.io.rejected import Raw, RecordError, Rejected
from causerie.io.sources import READ_ERRORS, Source, open_source
from causerie.io.tables import arrow_table, check_table_path, read_table, write_table
from causerie.io.whole import appearing_whole, write_whole

__all__ = [
    "INPUT_FORMATS",
    "Annotation",
    "Labelled",
    "Record",
    "Rejected",
    "appearing_whole",
    "arrow_table",
    "check_table_path",
    "read",
    "read_annotations",
    "read_labelled",
    "read_table",
    "read_turn",
    "write_table",
    "write_whole",
]

Record: TypeAlias = Dialogue | Exchange | Rejected
_Made = TypeVar("_Made")

_READERS: dict[str, Callable[[Source], Iterator[Raw]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "text": read_text,
}

INPUT_FORMATS: tuple[str, ...] = tuple(_READERS)


def read(
    path: str | Path,
    input_format: str | None = None,
    watch: Callable[[int], None] = lambda position: None,
) -> Iterator[Record]:
    """Every record of a file ("-" is standard input), in order; memory stays flat.

    The format is told from the content unless given, and any of them may be gzipped.
    A context with a response gives an `Exchange`, anything else a `Dialogue`; a bad
    record gives a `Rejected` and reading goes on. A record without an id is called
    `name:line` after its file (without folder and suffixes, or "stdin") and line.

    `watch` is told before each record how many bytes of the file have been read.

    Raises `CauserieError`, at the first record, only if nothing can be done with the file.
    """
    yield from _read(path, to_record, input_format, watch)


def read_annotations(path: str | Path) -> Iterator[Annotation | Rejected]:
    """Every annotated exchange of a file of causal annotations; bad ones as `read` does.

    The file is JSONL or a JSON array, each record with a `history`, a `response` and the
    causes: `cause_spans` and `cause_turns`, or the `entities` of the published CGDIALOG+.
    """
    yield from _read(path, to_annotation)


def read_labelled(path: str | Path, labels: Collection[str]) -> Iterator[Labelled | Rejected]:
    """Every labelled utterance of a file, with labels among these; bad ones as `read` does.

    The file is JSONL or a JSON array, each record with a `text`, its `labels` and perhaps the
    `context`, a list of the turns before it, and `judged`, if not all labels were.
    """
    yield from _read(path, lambda fields, name: to_labelled(fields, labels))


def read_turn(line: str) -> Turn:
    """The turn that a line of JSON holds; `CauserieError` says why it holds none."""
    try:
        return turn_of(parse(line))
    except RecordError as bad:
        raise CauserieError(f"no turn: {bad}") from None


def _read(
    path: str | Path,
    make: Callable[[Mapping[str, object], str], _Made],
    input_format: str | None = None,
    watch: Callable[[int], None] = lambda position: None,
) -> Iterator[_Made | Rejected]:
    """What `make` makes of the fields of each record and of the name it has if it has no id."""
    name = str(path)
    if input_format is not None and input_format not in _READERS:
        raise CauserieError(
            f"unknown input format {input_format!r}: use one of {', '.join(INPUT_FORMATS)}"
        )
    stem = "stdin" if name == "-" else Path(name).name.split(".")[0] or Path(name).name
    stem = stem.encode("utf-8", "replace").decode()  # a file name need not be UTF-8
    with open_source(name) as source:
        chosen = input_format or detect(source.head(HEAD))
        if chosen is None:
            raise CauserieError(
                f"the format of {name} cannot be told from its content: causerie reads "
                f"{', '.join(INPUT_FORMATS)} (csv and tsv with a header line that names "
                "context and response); say which with --input-format"
            )
        try:
            for line, fields in _READERS[chosen](source):
                watch(source.position())
                try:
                    if isinstance(fields, RecordError):
                        raise fields
                    record: _Made | Rejected = make(fields, f"{stem}:{line}")
                except RecordError as bad:
                    record = Rejected(name, line, str(bad))
                yield record
        except CauserieError as error:
            raise CauserieError(f"{name}: {error}") from error.__cause__
        except READ_ERRORS as error:
            yield Rejected(name, source.line + 1, f"the rest cannot be read: {error}")
