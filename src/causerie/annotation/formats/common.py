"""What the formats share: items and states as JSON, validated when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from causerie.annotation.marks import MAX_COMMENT, State, check_answer
from causerie.annotation.project import ROUNDS, Round
from causerie.annotation.tasks import Candidate, Item, Task
from causerie.annotation.work import Work, Worked, marks_of
from causerie.dialogue import Turn
from causerie.errors import RecordError
from causerie.io.annotations import place_of
from causerie.io.records import any_turn, text

KEPT = "causerie"
"""The field of other programs' records that holds what their format has no field for."""


def to_turns(value: object, name: str) -> tuple[Turn, ...]:
    turns = [any_turn(one) for one in listed(value, name)]
    found = tuple(turn for turn in turns if isinstance(turn, Turn))
    if not found or len(found) < len(turns):
        raise RecordError(f"{name} must be turns with a speaker and a text")
    return found


def to_item(fields: Mapping[str, Any], name: str, task: Task) -> Item:
    """Return the item that `Item.to_json` wrote."""
    turns = to_turns(fields.get("turns"), "turns")
    asked = tuple(listed(fields.get("asked", []), "asked"))
    if not all(type(turn) is int and 0 <= turn < len(turns) for turn in asked):
        raise RecordError("asked must be indices of turns")
    candidates = tuple(
        Candidate(text(one.get("system"), "system"), text(one.get("text"), "text"))
        for one in map(mapping, listed(fields.get("candidates", []), "candidates"))
    )
    if (task.kind == "pairs") != (len(candidates) == 2):
        raise RecordError("a comparison must have two candidates, and other tasks none")
    if task.kind == "causes" and len(turns) < 2:
        raise RecordError("turns must have a response and at least one turn before it")
    return Item(name, turns, asked, candidates, mapping(fields.get("record", {})))


def state_fields(state: State, turns: Sequence[Turn]) -> dict[str, Any]:
    """Return a state as JSON; texts are for human readers, only the places are read back."""
    return {
        "marks": [{**place_fields(mark.place, turns), "label": mark.label} for mark in state.marks],
        "none": state.none,
        "answers": [
            {"turn": turn, "question": question, "value": value}
            for (turn, question), value in state.answers.items()
        ],
        "comment": state.comment,
        "finished": state.finished,
    }


def place_fields(place: Any, turns: Sequence[Turn]) -> dict[str, Any]:
    return {
        "turn": place.turn,
        "start": place.start,
        "stop": place.stop,
        "text": place.text(turns),
    }


def to_state(fields: Mapping[str, Any], item: Item, task: Task) -> State:
    turns = item.markable(task)
    places = []
    for one in map(mapping, listed(fields.get("marks", []), "marks")):
        if one.get("label") not in task.labels:
            raise RecordError(f"label {one.get('label')!r} is none of {', '.join(task.labels)}")
        places.append((place_of(one, turns, "marks"), str(one["label"])))
    answers: dict[tuple[int | None, str], int | str] = {}
    for one in map(mapping, listed(fields.get("answers", []), "answers")):
        check_answer(one, item, task)
        answers[one.get("turn"), one["question"]] = one["value"]
    return State(
        marks_of(places),
        fields.get("none") is True and not places,
        answers,
        to_comment(fields.get("comment")),
        fields.get("finished", True) is True,
    )


def work_fields(work: Work, turns: Sequence[Turn]) -> dict[str, Any]:
    return {
        "annotator": work.annotator,
        "round": work.round,
        **state_fields(work.state, turns),
        "seconds": work.seconds,
    }


def to_work(fields: Mapping[str, Any], item: Item, task: Task) -> Work:
    state = to_state(fields, item, task)
    return Work(text(fields.get("annotator"), "annotator"), to_round(fields.get("round")), state)


def to_round(value: object) -> Round:
    if value is None:
        return "first"
    if value not in ROUNDS:
        raise RecordError(f"round must be one of {', '.join(ROUNDS)}")
    return value


def to_comment(value: object) -> str:
    if value is None or (isinstance(value, str) and "\0" not in value):
        return (value or "")[:MAX_COMMENT]
    raise RecordError("comment must be a string")


def listed(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise RecordError(f"{name} must be a list")
    return value


def mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordError(f"must be an object, not {type(value).__name__}")
    return value


def final_of(worked: Worked) -> State:
    return worked.final or State()
