"""doccano's JSONL: per annotator of an item, one text with labelled spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from causerie.annotation.formats.common import (
    KEPT,
    listed,
    mapping,
    to_comment,
    to_item,
    to_round,
)
from causerie.annotation.marks import State
from causerie.annotation.tasks import CAUSE, Item, Task
from causerie.annotation.work import Work, Worked, by_annotator, marks_of
from causerie.dialogue import Turn
from causerie.errors import RecordError
from causerie.io.places import Place
from causerie.io.readers import PREFIX
from causerie.io.records import text


def write(worked: Iterable[Worked], task: Task) -> Iterator[dict[str, Any]]:
    number = 0
    for one in worked:
        item = one.item
        for work in by_annotator(one):
            number += 1
            state = work.state
            begins = _begins(item.turns)
            yield {
                "id": number,
                "text": "\n".join(f"{turn.speaker}: {turn.text}" for turn in item.turns),
                "label": [
                    [begins[m.place.turn] + m.place.start, begins[m.place.turn] + m.place.stop,
                     m.label]
                    for m in state.marks
                ],
                "Comments": [state.comment] if state.comment else [],
                KEPT: {
                    "id": item.name,
                    "item": item.to_json(),
                    "annotator": work.annotator,
                    "round": work.round,
                    "none": state.none,
                    "finished": state.finished,
                },
            }  # fmt: skip


def _begins(turns: Iterable[Turn]) -> list[int]:
    """Return the offset of every turn's text within the whole."""
    said = list(turns)
    lines = accumulate((len(t.speaker) + 2 + len(t.text) + 1 for t in said), initial=0)
    return [line + len(turn.speaker) + 2 for line, turn in zip(lines, said, strict=False)]


def read(fields: Mapping[str, Any], default_id: str, source: str | None, task: Task) -> Worked:
    kept = mapping(fields.get(KEPT, {}))
    if kept:
        item = to_item(mapping(kept.get("item")), text(kept.get("id"), "id"), task)
        begins = _begins(item.turns)
    else:
        item, begins = _item(fields, default_id, task)
    turns = item.markable(task)
    marks, unplaced = [], []
    for start, stop, label in _regions(fields):
        if task.kind == "causes" and label not in task.labels:
            label = CAUSE if label.lower().startswith("cause") else label
        if label not in task.labels:
            raise RecordError(f"label {label!r} is none of {', '.join(task.labels)}")
        found = list(_places(start, stop, turns, begins))
        marks += [(place, label) for place in found]
        if not found:
            unplaced.append(str(fields["text"])[start:stop])
    comments = fields.get("Comments") or fields.get("comments") or []
    comment = to_comment(" ".join(map(str, listed(comments, "Comments"))))
    who = kept.get("annotator", fields.get("annotator", "imported"))
    if who == "":
        return Worked(item)
    none = (kept.get("none") is True) if kept else not marks
    state = State(marks_of(marks), none and not marks, {}, comment,
                  kept.get("finished", True) is True)  # fmt: skip
    work = Work(text(who, "annotator"), to_round(kept.get("round")), state)
    return Worked(item, (work,), unplaced=tuple(unplaced))


def _regions(fields: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Yield regions from both of doccano's shapes: lists, and objects in relation projects."""
    given: object = next((fields[n] for n in ("label", "labels", "entities") if n in fields), [])
    for one in listed(given, "label"):
        if isinstance(one, Mapping):
            region = [one.get("start_offset"), one.get("end_offset"), one.get("label")]
        else:
            region = listed(one, "label")
        start, stop, label = region if len(region) == 3 else (None, None, None)
        if type(start) is not int or type(stop) is not int or not isinstance(label, str):
            raise RecordError(f"label: {one!r} is not a start, an end and a name")
        yield start, stop, label


def _item(fields: Mapping[str, Any], name: str, task: Task) -> tuple[Item, list[int]]:
    """Return the item of a project created in doccano, which has one line per turn."""
    turns, begins, at = [], [], 0
    for line in text(fields.get("text"), "text").split("\n"):
        if prefix := PREFIX.match(line):
            said = line[prefix.end() :]
            turns.append(Turn(prefix["speaker"], said.strip()))
            begins.append(at + prefix.end() + len(said) - len(said.lstrip()))
        elif line.strip():
            raise RecordError("text must have a line 'Speaker: text' for every turn")
        at += len(line) + 1
    if task.kind == "causes" and len(turns) < 2:
        raise RecordError("text must have a response and at least one turn before it")
    asked = (len(turns) - 1,) if task.kind == "causes" else tuple(range(len(turns)))
    return Item(name, tuple(turns), asked), begins


def _places(start: int, stop: int, turns: tuple[Turn, ...], begins: list[int]) -> Iterator[Place]:
    for index, (turn, begin) in enumerate(zip(turns, begins, strict=False)):
        first, last = max(0, start - begin), min(len(turn.text), stop - begin)
        if first < last:
            yield Place(index, first, last)
