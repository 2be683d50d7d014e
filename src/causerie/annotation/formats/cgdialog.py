"""The JSON of the published CGDIALOG+: turns as "Speaker: text", and the marked texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from causerie.annotation.formats.common import (
    KEPT,
    final_of,
    listed,
    mapping,
    place_fields,
    to_item,
    to_work,
    work_fields,
)
from causerie.annotation.formats.own import of_annotation
from causerie.annotation.tasks import Task
from causerie.annotation.work import Worked
from causerie.io.annotations import to_annotation
from causerie.io.records import text


def write(worked: Iterable[Worked], task: Task) -> Iterator[dict[str, Any]]:
    """Yield the final annotation in the published fields, with every annotator's work beside it."""
    for one in worked:
        item, state = one.item, final_of(one)
        turns = [f"{turn.speaker}: {turn.text}" for turn in item.turns]
        yield {
            "HITId": item.name,
            "history": [*turns[:-1], ""],  # the published histories end with an empty string
            "response": turns[-1],
            "entities": [mark.place.text(item.context) for mark in state.marks],
            "cause_places": [place_fields(mark.place, item.context) for mark in state.marks],
            KEPT: {
                "item": item.to_json(),
                "annotations": [work_fields(work, item.context) for work in one.works],
            },
        }


def read(fields: Mapping[str, Any], default_id: str, source: str | None, task: Task) -> Worked:
    given = fields.get("HITId") or fields.get("id")
    name = text(given, "HITId") if isinstance(given, str) else default_id
    if KEPT in fields:
        kept = mapping(fields[KEPT])
        item = to_item(mapping(kept.get("item")), name, task)
        works = map(mapping, listed(kept.get("annotations"), "annotations"))
        return Worked(item, tuple(to_work(work, item, task) for work in works))
    return of_annotation(to_annotation({**fields, "id": name}, default_id, source), fields)
