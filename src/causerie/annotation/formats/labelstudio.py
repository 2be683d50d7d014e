"""Label Studio's JSON: a task per item, an annotation per annotator, paragraphs with labels.

Its offsets count UTF-16 code units, as browsers do: characters beyond U+FFFF count as two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from causerie.annotation.formats.common import (
    KEPT,
    listed,
    mapping,
    to_comment,
    to_item,
    to_round,
    to_turns,
)
from causerie.annotation.marks import Mark, State, check_answer
from causerie.annotation.tasks import Item, Task
from causerie.annotation.work import Work, Worked, marks_of
from causerie.dialogue import Turn
from causerie.errors import RecordError
from causerie.io.places import Place
from causerie.io.records import text

_TEXT = "dialogue"
_NONE = "none"


def write(worked: Iterable[Worked], task: Task) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(worked, 1):
        item = one.item
        shown = [{"author": turn.speaker, "text": turn.text} for turn in item.markable(task)]
        data = {"id": item.name, _TEXT: shown, KEPT: item.to_json()}
        if task.kind == "causes":
            data["response"] = {"author": item.turns[-1].speaker, "text": item.turns[-1].text}
        for letter, candidate in zip("ab", item.candidates, strict=False):
            data[letter] = candidate.text
        yield {
            "id": number,
            "data": data,
            "annotations": [_annotation(work, item, task) for work in one.works],
        }


def _annotation(work: Work, item: Item, task: Task) -> dict[str, Any]:
    state = work.state
    results = [_paragraph(mark, item.markable(task)) for mark in state.marks]
    if state.none:
        results.append(_result(_NONE, "choices", {"choices": ["nothing to mark"]}))
    for (turn, question), value in state.answers.items():
        name = question if turn is None else f"{question}:{turn}"
        if task.kind == "pairs":
            results.append(_result(name, "choices", {"choices": [value]}))
        else:
            results.append(_result(name, "rating", {"rating": value}))
    if state.comment:
        results.append(_result("comment", "textarea", {"text": [state.comment]}))
    return {
        "completed_by": {"email": work.annotator},
        "lead_time": work.seconds,
        "was_cancelled": False,
        "result": results,
        KEPT: {"round": work.round, "finished": state.finished},
    }


def _result(name: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": _TEXT, "type": kind, "value": dict(value)}


def _paragraph(mark: Mark, turns: tuple[Turn, ...]) -> dict[str, Any]:
    said, place = turns[mark.place.turn].text, mark.place
    value = {
        "start": str(place.turn),
        "end": str(place.turn),
        "startOffset": _units(said[: place.start]),
        "endOffset": _units(said[: place.stop]),
        "text": place.text(turns),
        "paragraphlabels": [mark.label],
    }
    return _result("label", "paragraphlabels", value)


def read(fields: Mapping[str, Any], default_id: str, source: str | None, task: Task) -> Worked:
    data = mapping(fields.get("data"))
    name = text(data["id"], "id") if isinstance(data.get("id"), str) else default_id
    if KEPT in data:
        item = to_item(mapping(data[KEPT]), name, task)
    elif task.is_marked:
        item = _item(data, name, task)
    else:
        raise RecordError(f"judgements from Label Studio need the field data.{KEPT}")
    works = []
    for one in map(mapping, listed(fields.get("annotations", []), "annotations")):
        if not one.get("was_cancelled"):
            works.append(_work(one, item, task))
    return Worked(item, tuple(works))


def _item(data: Mapping[str, Any], name: str, task: Task) -> Item:
    """Return the item of a project created in Label Studio, with paragraphs in the usual fields."""

    def turns(value: object) -> tuple[Turn, ...]:
        said = [mapping(one) for one in listed(value, _TEXT)]
        named = [{"speaker": one.get("author"), "text": one.get("text")} for one in said]
        return to_turns(named, _TEXT)

    found = turns(data.get(_TEXT, data.get("paragraphs")))
    if task.kind != "causes":
        return Item(name, found, tuple(range(len(found))))
    return Item(name, (*found, *turns([data.get("response")])), (len(found),))


def _work(fields: Mapping[str, Any], item: Item, task: Task) -> Work:
    marks: list[tuple[Place, str]] = []
    none, comment = False, ""
    answers: dict[tuple[int | None, str], int | str] = {}
    for result in map(mapping, listed(fields.get("result", []), "result")):
        value, name = mapping(result.get("value")), str(result.get("from_name"))
        if "paragraphlabels" in value:
            for label in listed(value["paragraphlabels"], "paragraphlabels"):
                if label not in task.labels:
                    raise RecordError(f"label {label!r} is none of {', '.join(task.labels)}")
                marks += [(place, label) for place in _places(value, item.markable(task))]
        elif name == _NONE:
            none = True
        elif name == "comment":
            comment = to_comment(" ".join(map(str, listed(value.get("text"), "text"))))
        else:
            question, _, turn = name.rpartition(":") if ":" in name else (name, "", "")
            answer = value["rating"] if "rating" in value else (value.get("choices") or [None])[0]
            asked = int(turn) if turn.isdecimal() else None
            check_answer({"turn": asked, "question": question, "value": answer}, item, task)
            answers[asked, question] = answer
    kept = mapping(fields.get(KEPT, {}))
    by = fields.get("completed_by")
    who = by.get("email") if isinstance(by, Mapping) else f"annotator {by}"
    state = State(marks_of(marks), none and not marks, answers, comment,
                  kept.get("finished", True) is True)  # fmt: skip
    return Work(text(who, "completed_by"), to_round(kept.get("round")), state)


def _places(value: Mapping[str, Any], turns: tuple[Turn, ...]) -> Iterator[Place]:
    """Yield the places of a region, one in each paragraph that it spans."""
    try:
        first, last = int(value["start"]), int(value["end"])
        begin, end = int(value["startOffset"]), int(value["endOffset"])
    except (KeyError, TypeError, ValueError):
        raise RecordError("a region must have start, end, startOffset and endOffset") from None
    if not 0 <= first <= last < len(turns):
        raise RecordError(f"paragraphs {first} to {last} are not all among the {len(turns)}")
    for turn in range(first, last + 1):
        said = turns[turn].text
        start = _characters(said, begin) if turn == first else 0
        stop = _characters(said, end) if turn == last else len(said)
        if start < stop:
            yield Place(turn, start, stop)


def _units(said: str) -> int:
    """Return the number of UTF-16 code units of a text."""
    return len(said.encode("utf-16-le")) // 2


def _characters(said: str, units: int) -> int:
    """Return how many characters the given number of UTF-16 code units cover."""
    return len(said.encode("utf-16-le")[: 2 * max(0, units)].decode("utf-16-le", "ignore"))
