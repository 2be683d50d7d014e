"""What an annotator does to an item: a sequence of events, and the state that results from it.

Events are only ever appended. An undo is an event too: it names the event that it reverts, which
may itself be an undo. So every past state can be restored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from causerie.annotation.tasks import Item, Task
from causerie.dialogue import encodable
from causerie.errors import RecordError
from causerie.io.places import Place
from causerie.stats import VOTES

Action: TypeAlias = Literal[
    "open", "mark", "unmark", "none", "answer", "comment", "finish", "reopen", "undo"
]
ACTIONS: tuple[Action, ...] = get_args(Action)
UNDOABLE = frozenset({"mark", "unmark", "none", "answer", "comment", "undo"})
MAX_COMMENT = 10_000
MAX_BODY = 100_000
"""Most characters in an event's body."""
KEY = re.compile(r"[0-9A-Za-z_-]{8,64}")
_SWAPPED = {"A": "B", "B": "A"}


@dataclass(frozen=True)
class Event:
    """One thing an annotator did to an item."""

    key: str
    """An idempotency key chosen by the sender: an event sent twice is stored once."""
    action: Action
    body: Mapping[str, Any] = field(default_factory=dict)
    at: float = 0.0
    """Seconds since 1970, by the clock of the machine that stores it."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A label on a span of a turn."""

    place: Place
    label: str
    key: str = field(compare=False)
    """Key of the event that made it."""


Asked: TypeAlias = tuple[int | None, str]
"""The turn (None for a whole item) and the name of a question."""


@dataclass(frozen=True)
class State:
    """The state of an assignment after some events."""

    marks: tuple[Mark, ...] = ()
    """All marks, in text order."""
    none: bool = False
    """Whether the annotator says that there is nothing to mark."""
    answers: Mapping[Asked, int | str] = field(default_factory=dict)
    comment: str = ""
    finished: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(mark.place for mark in self.marks)

    @property
    def turns(self) -> frozenset[int]:
        """The turns in which something is marked."""
        return frozenset(mark.place.turn for mark in self.marks)

    def turned(self) -> State:
        """Return the state of a pair with its responses swapped."""
        answers = {asked: _SWAPPED.get(str(vote), vote) for asked, vote in self.answers.items()}
        return replace(self, answers=answers)

    def says(self) -> tuple[object, ...]:
        """Return what was found, regardless of how: equal if annotators agree."""
        return ({(m.place, m.label) for m in self.marks}, self.none, dict(self.answers))


def state_of(events: Iterable[Event], start: State | None = None) -> State:
    """Return the state after these events; a review starts from the reviewed state."""
    state = start or State()
    for event in effective(events):
        state = _after(state, event)
    return state


def effective(events: Iterable[Event]) -> list[Event]:
    """Return the events that no later one undoes."""
    kept: list[Event] = []
    gone: set[str] = set()
    for event in reversed(list(events)):
        if event.key in gone:
            continue
        if event.action == "undo":
            gone.add(event.body["event"])
        else:
            kept.append(event)
    return kept[::-1]


def _after(state: State, event: Event) -> State:
    body = event.body
    match event.action:
        case "mark":
            place = Place(body["turn"], body["start"], body["stop"])
            made = Mark(place, body["label"], event.key)
            gone = set(body.get("instead", ()))
            marks = [mark for mark in state.marks if mark != made and mark.key not in gone]
            return replace(state, marks=tuple(sorted([*marks, made])), none=False)
        case "unmark":
            marks = [mark for mark in state.marks if mark.key != body["mark"]]
            return replace(state, marks=tuple(marks))
        case "none":
            return replace(state, marks=(), none=True)
        case "answer":
            asked = (body.get("turn"), body["question"])
            return replace(state, answers={**state.answers, asked: body["value"]})
        case "comment":
            return replace(state, comment=body["text"])
        case "finish" | "reopen":
            return replace(state, finished=event.action == "finish")
    return state


def missing(state: State, item: Item, task: Task) -> str | None:
    """Return what is left to do before the item can be finished, or None."""
    if task.kind == "causes" and not state.marks and not state.none:
        return "mark at least one cause, or say that there is none"
    left = [asked for asked in questions_of(item, task) if asked not in state.answers]
    if not left:
        return None
    turn, name = left[0]
    where = "" if turn is None else f" of turn {turn + 1}"
    return f"{len(left)} left to answer, starting with {name}{where}"


def questions_of(item: Item, task: Task) -> list[Asked]:
    """Return every question about an item, in the order of the page."""
    turns: Sequence[int | None] = item.asked if task.kind == "replies" else (None,)
    return [(turn, question.name) for turn in turns for question in task.questions]


def check(event: Event, item: Item, task: Task, before: Sequence[Event], state: State) -> None:
    """Raise `RecordError` if the event is not possible after these events."""
    body = event.body
    if not KEY.fullmatch(event.key):
        raise RecordError("key must be 8 to 64 letters, digits, - or _")
    if len(str(body)) > MAX_BODY:
        raise RecordError(f"an event has at most {MAX_BODY:,} characters")
    if state.finished and event.action not in ("open", "reopen", "finish"):
        raise RecordError("the item is finished: reopen it first")
    match event.action:
        case "mark":
            _check_mark(body, item, task)
        case "unmark":
            if all(mark.key != body.get("mark") for mark in state.marks):
                raise RecordError("mark: this item has no such mark")
        case "none":
            if not task.is_marked:
                raise RecordError("nothing is marked in this task")
        case "answer":
            check_answer(body, item, task)
        case "comment":
            text = body.get("text")
            if not isinstance(text, str) or len(text) > MAX_COMMENT or "\0" in text:
                raise RecordError(f"text must be a string of at most {MAX_COMMENT:,} characters")
            encodable(text, "text")
        case "finish":
            if left := missing(state, item, task):
                raise RecordError(left)
        case "undo":
            known = [one.key for one in before if one.action in UNDOABLE]
            if body.get("event") not in known:
                raise RecordError("event: this item has no such event to undo")


def _check_mark(body: Mapping[str, Any], item: Item, task: Task) -> None:
    if not task.is_marked:
        raise RecordError("nothing is marked in this task")
    if body.get("label") not in task.labels:
        raise RecordError(f"label must be one of {', '.join(task.labels)}")
    numbers = [body.get(name) for name in ("turn", "start", "stop")]
    turn, start, stop = (number if type(number) is int else -1 for number in numbers)
    turns = item.markable(task)
    if not (0 <= turn < len(turns) and 0 <= start < stop <= len(turns[turn].text)):
        raise RecordError("turn, start and stop must be a span of a turn's text")
    instead = body.get("instead", [])
    if not (isinstance(instead, list) and all(isinstance(key, str) for key in instead)):
        raise RecordError("instead must be keys of marks")


def check_answer(body: Mapping[str, Any], item: Item, task: Task) -> None:
    """Raise `RecordError` unless the body answers a question about the item."""
    question = next((one for one in task.questions if one.name == body.get("question")), None)
    turn = body.get("turn")
    if question is None or (turn, question.name) not in questions_of(item, task):
        raise RecordError("this item has no such question")
    value = body.get("value")
    if task.kind == "pairs":
        if value not in VOTES:
            raise RecordError(f"value must be one of {', '.join(VOTES)}")
    elif type(value) is not int or not 1 <= value <= question.scale:
        raise RecordError(f"value must be a whole number from 1 to {question.scale}")
