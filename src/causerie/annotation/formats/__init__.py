"""Import and export of annotations, in causerie's own format and in those of other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from causerie.annotation.formats import brat, cgdialog, doccano, judged, labelstudio, own
from causerie.annotation.project import Snapshot
from causerie.annotation.tasks import Task
from causerie.annotation.work import Worked, works_of
from causerie.errors import CauserieError, RecordError
from causerie.io import Rejected, atomic_write, read_made

_Write: TypeAlias = Callable[[Iterable[Worked], Task], Iterator[dict[str, Any]]]

_WRITERS: Mapping[str, _Write] = {
    "jsonl": own.write,
    "cgdialog": cgdialog.write,
    "labelstudio": labelstudio.write,
    "doccano": doccano.write,
    "judged": judged.write,
}
_ARRAYS = frozenset({"cgdialog", "labelstudio"})
"""Formats that are one JSON array; the others have one record per line."""
FORMATS = (*_WRITERS, "brat", "log")
_KINDS: Mapping[str, frozenset[str]] = {
    "cgdialog": frozenset({"causes"}),
    "doccano": frozenset({"causes", "labels"}),
    "brat": frozenset({"causes", "labels"}),
    "judged": frozenset({"replies", "pairs", "dialogues"}),
}
"""Kinds of task that a format can hold; formats not listed can hold all."""


def export(project: Snapshot, format: str) -> Iterator[str]:
    """Yield the pieces of an export file; for brat, which has many files, see `export_brat`."""
    check_format(project.task, format)
    if format == "log":
        yield from (_line(event) for event in _log(project))
        return
    records = _WRITERS[format](works_of(project), project.task)
    if format not in _ARRAYS:
        yield from map(_line, records)
        return
    yield "["
    for number, record in enumerate(records):
        yield (",\n" if number else "\n") + _line(record).rstrip("\n")
    yield "\n]\n"


def export_brat(project: Snapshot, folder: Path) -> int:
    """Write a text file and an annotation file per item; return the number of items."""
    check_format(project.task, "brat")
    count = 0
    for name, content in brat.write(works_of(project), project.task):
        with atomic_write(folder / name) as file:
            file.write(content.encode())
        count += name.endswith(".txt")
    return count


def check_format(task: Task, format: str) -> None:
    """Raise `CauserieError` if a format is unknown or cannot hold the task's annotations."""
    if format not in FORMATS:
        raise CauserieError(f"{format!r} is not a format: use {', '.join(FORMATS)}")
    if task.kind not in _KINDS.get(format, {task.kind}):
        fitting = [name for name in FORMATS if task.kind in _KINDS.get(name, {task.kind})]
        raise CauserieError(f"{format} cannot hold {task.kind}: use {', '.join(fitting)}")


def read_worked(path: str | Path, task: Task) -> Iterator[Worked | Rejected]:
    """Yield annotated items of a file; each record's format is recognised by its fields."""
    yield from read_made(path, partial(_read, task=task))


def _read(fields: Mapping[str, object], default_id: str, source: str | None, task: Task) -> Worked:
    given: Mapping[str, Any] = fields
    if "data" in given and ("annotations" in given or "completions" in given):
        return labelstudio.read(given, default_id, source, task)
    if isinstance(given.get("text"), str) and not {"label", "labels", "entities"}.isdisjoint(given):
        if not task.is_marked:
            raise RecordError("a doccano record has marked text but no judgements")
        return doccano.read(given, default_id, source, task)
    if "item" in given:
        return own.read(given, default_id, source, task)
    if task.kind != "causes":
        raise RecordError(f"this has no {task.kind}: use a file from causerie annotate export")
    if "entities" in given:
        return cgdialog.read(given, default_id, source, task)
    return own.read(given, default_id, source, task)


def _log(project: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield every event of every assignment, the dry run included."""
    for key, events in sorted(project.events.items()):
        one = project.assignments[key]
        for event in events:
            yield {
                "item": project.items[one.item].item.name,
                "annotator": project.people[one.person].name,
                "round": one.round,
                "swapped": one.swapped,
                **vars(event),
            }


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"
