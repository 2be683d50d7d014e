"""From files, and from what people have in memory, to dialogues and exchanges."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError, RecordError
from causerie.io.addresses import is_address
from causerie.io.annotations import Annotation, Labelled, to_annotation, to_labelled
from causerie.io.jsontext import decode, parse
from causerie.io.readers import HEAD, INPUT_FORMATS, detect, read_fields
from causerie.io.records import FIELDS, any_turn, to_record
from causerie.io.rows import Columns, check_columns, is_frame, read_frame, renamed
from causerie.io.sources import READ_ERRORS, Raw, Rejected, numbered_lines, open_source
from causerie.io.tables import check_table_path

Record: TypeAlias = Dialogue | Exchange | Rejected
_Made = TypeVar("_Made")
_Make: TypeAlias = Callable[[Mapping[str, object], str, str | None], _Made]

_ACCEPTED = (
    "dialogues or exchanges, a list of OpenAI messages or of such lists, a list of strings or of "
    "such lists, dictionaries as in the files, a table with context and response, or paths of files"
)
_MEMORY = "data"
"""What stands for the name of a file where there is none."""
MAX_TURN = 2**18
"""Bytes of the longest line that holds a turn, or all turns so far."""
_FILE_NAME = re.compile(r"\S+\.(jsonl?|csv|tsv|parquet|txt)(\.gz)?", re.IGNORECASE)


def read(
    path: str | Path,
    input_format: str | None = None,
    watch: Callable[[int], None] = lambda position: None,
    columns: Columns | None = None,
) -> Iterator[Record]:
    """Every record of a file ("-" is standard input), in order; memory stays flat.

    The format is told from the content unless given, and any of them may be gzipped.
    A context with a response gives an `Exchange`, anything else a `Dialogue`; a bad
    record gives a `Rejected` and reading goes on. A record without an id is called
    `name:line` after its file (without folder and suffixes, or "stdin") and line.

    `watch` is told before each record how many bytes of the file have been read. `columns` says
    what the file calls the fields that it names otherwise, as `{"response": "reply"}`.

    Raises `CauserieError`, at the first record, only if nothing can be done with the file.
    """
    yield from _read(path, to_record, input_format, watch, columns or {})


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
    yield from _read(path, lambda fields, name, source: to_labelled(fields, labels))


def read_made(path: str | Path, make: _Make[_Made]) -> Iterator[_Made | Rejected]:
    """What `make` makes of the fields of every record of a file; bad ones as `read` does.

    It is handed the fields, the name of a record that has no id, and the name of the file, and
    raises `RecordError`.
    """
    yield from _read(path, make)


@dataclass(frozen=True)
class Said:
    """What a line says of a conversation that runs."""

    conversation: str | None
    """Its name, if it has one."""
    turns: tuple[Turn, ...]
    """The next turn; none where it is a tool's, or of the background."""
    so_far: bool = False
    """Whether these are all turns that there are, instead."""


def read_turns(stream: BinaryIO) -> Iterator[tuple[int, Said | RecordError | None]]:
    """What the lines of a stream hold as JSON, as they come; None for an empty line.

    A line is a turn or a chat message, or all messages so far under `messages`. A `conversation`
    (or `conversation_id`) beside it says which conversation it belongs to; `messages` may also
    have an `id`.
    """
    try:
        for number, line in numbered_lines(stream, MAX_TURN):
            yield number, _said(line)
    except READ_ERRORS as error:
        raise CauserieError(f"the turns cannot be read ({error}): check their source") from error


def _said(line: bytes | RecordError) -> Said | RecordError | None:
    """What a line holds, or why it holds nothing; None if it is blank."""
    if isinstance(line, RecordError):
        return line
    if not line.strip():
        return None
    try:
        fields = parse(decode(line))
        if not isinstance(fields, dict):
            raise RecordError(f"must be an object, not {type(fields).__name__}")
        given = {name: fields.pop(name, None) for name in ("conversation", "conversation_id")}
        if fields.get("messages") is not None or fields.get("turns") is not None:
            record = to_record(fields, "")
            dialogue = record.dialogue if isinstance(record, Exchange) else record
            named = _name({**given, "id": dialogue.id or None})
            return Said(named, dialogue.turns, so_far=True)
        found = any_turn(fields)
        return Said(_name(given), (found,) if isinstance(found, Turn) else ())
    except RecordError as bad:
        return bad


def _name(given: Mapping[str, object]) -> str | None:
    """The first name that is given."""
    for field, value in given.items():
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
        if value is not None:
            raise RecordError(f"{field} must be a string, not {type(value).__name__}")
    return None


def check_inputs(
    paths: Iterable[str | Path],
    input_format: str | None = None,
    columns: Columns | None = None,
    out: Path | None = None,
) -> None:
    """Raise what reading or writing would raise later, before anything is loaded.

    That is a missing file, a folder, an unknown format, a column for no field, and an `out` whose
    suffix says no format.
    """
    if input_format is not None and input_format not in INPUT_FORMATS:
        raise CauserieError(
            f"unknown input format {input_format!r}: use one of {', '.join(INPUT_FORMATS)}"
        )
    check_columns(columns or {})
    for path in map(str, paths):
        if path != "-":
            _check_file(path)
    if out is not None:
        check_table_path(out)


def records_of(data: object, columns: Columns | None = None) -> Iterator[Record]:
    """Every record of whatever people have at hand; `_ACCEPTED` lists what that may be.

    A list of strings is one dialogue, spoken in turn by A and B, unless they are names of files.
    A bad record is a `Rejected`, as in a file; `CauserieError` if this is no data at all.
    """
    columns = columns or {}
    check_columns(columns)
    if isinstance(data, (Dialogue, Exchange, Rejected)):
        yield data
    elif isinstance(data, (str, Path)):
        yield from _file(data, columns)
    elif is_frame(data):
        yield from _made(read_frame(data, columns))
    elif isinstance(data, Mapping):
        yield _one(data, 1, columns)
    elif isinstance(data, Iterable) and not isinstance(data, (bytes, bytearray)):
        yield from _several(data, columns)
    else:
        raise _cannot(data)


def _several(data: Iterable[object], columns: Columns) -> Iterator[Record]:
    """The records of an iterable, told by its first item: one dialogue, or one after the other."""
    items = iter(data)
    first = next(items, None)
    if first is None:
        return
    items = chain([first], items)
    if isinstance(first, str):
        texts = list(items)
        names = [item for item in texts if isinstance(item, (str, Path))]
        if len(names) == len(texts) and are_files(names):
            for name in names:
                yield from _file(name, columns)
        else:
            yield _one(texts, 1, columns)
    elif _is_message(first):
        yield _one(list(items), 1, columns)
    else:
        for number, item in enumerate(items, 1):
            if isinstance(item, (Dialogue, Exchange, Rejected)):
                yield item
            elif isinstance(item, Path):
                yield from _file(item, columns)
            else:
                yield _one(item, number, columns)


def _one(item: object, number: int, columns: Columns) -> Record:
    """One record: a dictionary as in the files, or the turns of one dialogue."""
    if isinstance(item, Mapping):
        fields = renamed(item, columns) if columns else item
    elif isinstance(item, Sequence) and not isinstance(item, (str, bytes, bytearray)):
        if all(isinstance(turn, str) for turn in item):
            fields = {"turns": [{"speaker": "AB"[i % 2], "text": t} for i, t in enumerate(item)]}
        else:
            fields = {"messages": list(item)}
    else:
        raise _cannot(item)
    (record,) = _made([(number, fields)])
    return record


def _is_message(item: object) -> bool:
    if isinstance(item, Mapping):
        return FIELDS.isdisjoint(item) and not {"role", "from", "speaker"}.isdisjoint(item)
    return hasattr(item, "role") and hasattr(item, "model_dump")  # of OpenAI's own client


def are_files(names: Sequence[str | Path]) -> bool:
    """Whether these are names of files rather than what was said; a missing one is an error."""
    like_files = all(_FILE_NAME.fullmatch(str(name)) for name in names)
    return like_files or any(_is_file(name) for name in names)


def _is_file(name: str | Path) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False


def _file(name: str | Path, columns: Columns) -> Iterator[Record]:
    if not _is_file(name):
        what = repr(str(name))
        shown = what if len(what) <= 80 else f"{what[:77]}..."
        raise CauserieError(f"{shown} is a string that names no file: give {_ACCEPTED}")
    return read(name, columns=columns)


def _cannot(data: object) -> CauserieError:
    return CauserieError(f"{type(data).__name__} is nothing that can be read: give {_ACCEPTED}")


def _check_file(path: str) -> None:
    if is_address(path):
        raise CauserieError(f"{path} is no file of this machine: `--runner ray` reads addresses")
    try:
        found = Path(path)
        if found.is_dir():
            raise CauserieError(f"{path} is a folder: give the files in it")
        if not found.exists():
            raise CauserieError(f"{path} does not exist: check its name")
    except (OSError, ValueError) as error:
        raise CauserieError(f"{path} cannot be read ({error}): check the file") from error


def _read(
    path: str | Path,
    make: _Make[_Made],
    input_format: str | None = None,
    watch: Callable[[int], None] = lambda position: None,
    columns: Columns | None = None,
) -> Iterator[_Made | Rejected]:
    """What `make` makes of the fields of each record and of the name it has if it has no id."""
    name, columns = str(path), columns or {}
    check_inputs((), input_format, columns)
    stem = "stdin" if name == "-" else Path(name).name.split(".")[0] or Path(name).name
    stem = stem.encode("utf-8", "replace").decode()  # a file name need not be UTF-8
    with open_source(name) as source:
        chosen = input_format or detect(source.head(HEAD), name, columns)
        if chosen is None:
            raise CauserieError(
                f"the format of {name} cannot be told from its content: causerie reads "
                f"{', '.join(INPUT_FORMATS)} (csv and tsv with a header line that names "
                "context and response); say which with --input-format"
            )
        try:
            for line, fields in read_fields(source, chosen, columns):
                watch(source.position())
                try:
                    if isinstance(fields, RecordError):
                        raise fields
                    record: _Made | Rejected = make(fields, f"{stem}:{line}", name)
                except RecordError as bad:
                    record = Rejected(name, line, str(bad))
                yield record
        except CauserieError as error:
            raise CauserieError(f"{name}: {error}") from error.__cause__
        except READ_ERRORS as error:
            yield Rejected(name, source.line + 1, f"the rest cannot be read: {error}")


def _made(rows: Iterable[Raw]) -> Iterator[Record]:
    """The records of rows that come from no file."""
    for number, fields in rows:
        try:
            if isinstance(fields, RecordError):
                raise fields
            yield to_record(fields, f"{_MEMORY}:{number}")
        except RecordError as bad:
            yield Rejected(_MEMORY, number, str(bad))
