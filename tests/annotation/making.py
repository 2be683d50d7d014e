"""Made-up projects: conversations, people who mark, and what they do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from causerie.annotation.assignment import first_round
from causerie.annotation.marks import Event
from causerie.annotation.project import NewItem, Settings, Snapshot
from causerie.annotation.store import Store
from causerie.annotation.tasks import Candidate, Item, Task
from causerie.dialogue import Turn

CAUSES = Task.of("causes")
PAIRS = Task.of("pairs")
LABELS = Task.of("labels", ["greeting", "question"])


def event(action: Any, key: str | None = None, /, **body: Any) -> Event:
    return Event(key or uuid.uuid4().hex, action, body)


def mark(turn: int, start: int, stop: int, label: str = "cause", key: str | None = None) -> Event:
    return event("mark", key, turn=turn, start=start, stop=stop, label=label)


def talk(name: str, *texts: str) -> Item:
    turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
    return Item(name, turns, (len(turns) - 1,))


def talks(count: int) -> list[Item]:
    return [
        talk(f"talk{n}", f"I lost key {n}. It is red!", "Where was it?", "At home.", f"Look, {n}.")
        for n in range(count)
    ]


def pairs(contexts: int, systems: Sequence[str]) -> list[Item]:
    return [
        Item(
            f"{n}: {a} | {b}",
            (Turn("A", f"Question {n}?"),),
            (),
            (Candidate(a, f"{a} says {n}"), Candidate(b, f"{b} says {n}")),
        )
        for n in range(contexts)
        for i, a in enumerate(systems)
        for b in systems[i + 1 :]
    ]


def project_of(
    store: Store,
    items: Sequence[Item],
    people: Sequence[str],
    task: Task = CAUSES,
    gold: Mapping[str, Sequence[Event]] | None = None,
    name: str = "p",
    **settings: Any,
) -> tuple[int, dict[str, str]]:
    """A project whose first round is assigned: its number, and the tokens of everybody."""
    number = store.create(name, Settings(task, **settings))
    store.add_items(number, [NewItem(item, (gold or {}).get(item.name, ())) for item in items])
    tokens = {p: store.add_person(number, p, "annotator") or "" for p in people}
    tokens["lead"] = store.add_person(number, "lead", "lead") or ""
    store.assign(number, first_round)
    return number, tokens


def person_of(project: Snapshot, name: str) -> int:
    return next(person.id for person in project.people.values() if person.name == name)


def do(store: Store, project: int, name: str, item: str, round: str, *events: Event) -> None:
    """Append events to an item in somebody's name, and finish it."""
    now = store.snapshot(project)
    (found,) = [
        one
        for one in now.of_person(person_of(now, name))
        if now.items[one.item].item.name == item and one.round == round
    ]
    store.append(project, found.id, found.person, [*events, event("finish")])
