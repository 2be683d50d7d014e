"""Judged sets, as read by `causerie bench` and `causerie train`. Export only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from causerie.annotation.marks import State
from causerie.annotation.tasks import Item, Task
from causerie.annotation.work import Worked
from causerie.dialogue import Turn


def write(worked: Iterable[Worked], task: Task) -> Iterator[dict[str, Any]]:
    """Yield every item that somebody has finished; annotators have fixed places in the lists."""
    given = list(worked)
    names = sorted({w.annotator for one in given for w in one.works if w.state.finished})
    for one in given:
        by = {work.annotator: work.state for work in one.works if work.state.finished}
        if by:
            states = [by.get(name) for name in names]
            yield from (
                _pair(one.item, task, states)
                if task.kind == "pairs"
                else _rated(one.item, task, states)
            )


def _pair(item: Item, task: Task, states: Sequence[State | None]) -> Iterator[dict[str, Any]]:
    a, b = ({"system": one.system, "text": one.text} for one in item.candidates)
    votes = [
        {question: vote for (_, question), vote in state.answers.items()}
        for state in states
        if state is not None
    ]
    yield {
        "id": item.name,
        "level": "pair",
        "context": _turns(item.turns),
        "a": a,
        "b": b,
        "judgements": votes,
    }


def _rated(item: Item, task: Task, states: Sequence[State | None]) -> Iterator[dict[str, Any]]:
    units: Sequence[int | None] = item.asked if task.kind == "replies" else (None,)
    for turn in units:
        ratings = {
            question.name: [
                None if state is None else state.answers.get((turn, question.name))
                for state in states
            ]
            for question in task.questions
        }
        fields: dict[str, Any] = {"system": item.record.get("system"), "ratings": ratings}
        if turn is None:
            yield {"id": item.name, "level": "dialog", "context": _turns(item.turns), **fields}
        else:
            yield {
                "id": f"{item.name}#{turn}",
                "level": "turn",
                "dialog_id": item.name,
                "context": _turns(item.turns[:turn]),
                "response": _turns(item.turns[turn : turn + 1])[0],
                **fields,
            }


def _turns(turns: Iterable[Turn]) -> list[dict[str, str]]:
    return [{"speaker": turn.speaker, "text": turn.text} for turn in turns]
