"""causerie's own JSONL: one item per line, with all work on it and the final annotation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from causerie.annotation.formats.common import (
    final_of,
    listed,
    mapping,
    place_fields,
    to_item,
    to_work,
    work_fields,
)
from causerie.annotation.marks import State
from causerie.annotation.tasks import CAUSE, Item, Task
from causerie.annotation.work import Work, Worked, marks_of
from causerie.dialogue import Turn
from causerie.io.annotations import Annotation, to_annotation
from causerie.io.records import text


def write(worked: Iterable[Worked], task: Task) -> Iterator[dict[str, Any]]:
    """Yield one record per item; `train causalscore` reads those of causal relations, too."""
    for one in worked:
        item = one.item
        fields = {"id": item.name, **_final_fields(one, task)}
        works = [work_fields(work, item.markable(task)) for work in one.works]
        yield {**fields, "settled": one.settled, "annotations": works, "item": item.to_json()}


def read(fields: Mapping[str, Any], default_id: str, source: str | None, task: Task) -> Worked:
    """Return the item of a record by `write`, or of causal annotations in any format we read."""
    if fields.get("item") is not None:
        item = to_item(mapping(fields["item"]), text(fields.get("id"), "id"), task)
        works = map(mapping, listed(fields.get("annotations", []), "annotations"))
        return Worked(item, tuple(to_work(work, item, task) for work in works))
    return of_annotation(to_annotation(fields, default_id, source), fields)


def of_annotation(found: Annotation, fields: Mapping[str, Any]) -> Worked:
    """Return the exchange as an item, and its causes as one annotator's work."""
    dialogue = found.exchange.dialogue
    extra = {name: fields[name] for name in fields if name not in _READ}
    item = Item(dialogue.id, dialogue.turns, (found.exchange.turn,), record=extra)
    marks = marks_of((place, CAUSE) for place in found.places)
    name = fields.get("annotator")
    who = text(name, "annotator") if isinstance(name, str) and name.strip() else "imported"
    work = Work(who, "first", State(marks, none=not marks, finished=True))
    return Worked(item, (work,), unplaced=found.unmatched)


_READ = frozenset({"id", "history", "response", "annotator"})


def _final_fields(one: Worked, task: Task) -> dict[str, Any]:
    """Return the item and its final annotation, for readers of the file."""
    item, state = one.item, final_of(one)
    turns = item.markable(task)
    places = [place_fields(mark.place, turns) for mark in state.marks]
    if task.kind == "causes":
        return {
            "history": [_said(turn) for turn in item.context],
            "response": _said(item.turns[-1]),
            "cause_turns": sorted(state.turns),
            "cause_spans": [place["text"] for place in places],
            "cause_places": places,
        }
    if task.kind == "labels":
        labelled = zip(places, state.marks, strict=True)
        marked = [{**place, "label": mark.label} for place, mark in labelled]
        return {"turns": [_said(turn) for turn in item.turns], "labels": marked}
    return {"turns": [_said(turn) for turn in item.turns]}


def _said(turn: Turn) -> dict[str, Any]:
    return {"speaker": turn.speaker, "text": turn.text}
