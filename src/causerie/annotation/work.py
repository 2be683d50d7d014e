"""Items with the work done on them, as exported from a project and imported into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from typing import Any

from causerie.annotation.marks import Event, Mark, State, missing
from causerie.annotation.project import NewAssignment, NewItem, Round, Snapshot
from causerie.annotation.store import Store
from causerie.annotation.tasks import Item, Task
from causerie.progress import Progress, Watch, ignore


@dataclass(frozen=True)
class Work:
    """What one person found in one round; the answers of a pair use its stored order of sides."""

    annotator: str
    round: Round
    state: State
    seconds: float = 0.0


@dataclass(frozen=True)
class Worked:
    """An item with all work on it."""

    item: Item
    works: tuple[Work, ...] = ()
    final: State | None = None
    """The final annotation; None if nobody has finished the item."""
    settled: bool = False
    """Whether its annotators agree, or somebody has decided."""
    unplaced: tuple[str, ...] = ()
    """Marked texts of an input file that occur in no turn."""


def works_of(project: Snapshot) -> Iterator[Worked]:
    """Yield every item of a project in order of creation, without those of the dry run."""
    for listed in project.items.values():
        if listed.gold is not None:
            continue
        rounds = project.by_item.get(listed.id, {})
        given = [one for found in rounds.values() for one in found if project.events.get(one.id)]
        works = tuple(
            Work(
                project.people[one.person].name,
                one.round,
                project.judged(one.id),
                round(project.seconds(one.id), 1),
            )
            for one in given
        )
        last = project.final(listed.id)
        final = None if last is None else project.judged(last.id)
        settled = final is not None and project.is_settled(listed.id)
        yield Worked(listed.item, works, final, settled)


@dataclass(frozen=True)
class Imported:
    """What an import added, and what it could not use."""

    items: int
    works: int
    problems: tuple[str, ...]


def add_works(
    store: Store, project: int, worked: Iterable[Worked], watch: Watch = ignore
) -> Imported:
    """Add items with the work on them; existing items and work stay as they are.

    An item whose name belongs to a different text is a problem, as is a marked text in no turn.
    """
    given = _joined(worked)
    before = store.snapshot(project)
    known = {listed.item.name: listed.item for listed in before.items.values()}
    problems = []
    for name, one in list(given.items()):
        problems += [f"{name}: no turn contains {span!r}" for span in one.unplaced]
        if name in known and known[name].turns != one.item.turns:
            problems.append(f"{name}: skipped, because a different item has this name")
            del given[name]
    items = store.add_items(project, [NewItem(one.item) for one in given.values()])
    names = sorted({work.annotator for one in given.values() for work in one.works})
    people = {person.name for person in before.people.values()}
    for name in names:
        if name not in people:
            store.add_person(project, name, "annotator", link=False)
    watch(Progress("importing", note=f"{items:,} new items"))
    works = store.assign(project, lambda now: _assignments(now, given))
    return Imported(items, works, tuple(problems))


def _joined(worked: Iterable[Worked]) -> dict[str, Worked]:
    """Merge items by name: a format may have one record per annotator of an item."""
    found: dict[str, Worked] = {}
    for one in worked:
        before = found.get(one.item.name)
        if before is not None and before.item.turns == one.item.turns:
            one = replace(before, works=(*before.works, *one.works))
        elif before is not None:
            number = 2
            while f"{one.item.name} ({number})" in found:
                number += 1
            one = replace(one, item=replace(one.item, name=f"{one.item.name} ({number})"))
        found[one.item.name] = one
    return found


def _assignments(project: Snapshot, given: Mapping[str, Worked]) -> Iterator[NewAssignment]:
    numbers = {person.name: person.id for person in project.people.values()}
    for listed in project.items.values():
        taken = {
            (one.person, one.round)
            for found in project.by_item.get(listed.id, {}).values()
            for one in found
        }
        one = given.get(listed.item.name)
        for work in one.works if one else ():
            person = numbers[work.annotator]
            if (person, work.round) not in taken:
                taken.add((person, work.round))
                done = tuple(events_of(work, listed.item, project.task))
                yield NewAssignment(listed.id, person, work.round, events=done)


def events_of(work: Work, item: Item, task: Task) -> Iterator[Event]:
    """Yield events that lead to the state of this work."""
    state = work.state
    steps: list[tuple[str, Mapping[str, Any]]] = [("open", {})]
    steps += [("none", {})] if state.none else []
    for mark in state.marks:
        place = {"turn": mark.place.turn, "start": mark.place.start, "stop": mark.place.stop}
        steps.append(("mark", {**place, "label": mark.label}))
    for (turn, question), value in state.answers.items():
        steps.append(("answer", {"turn": turn, "question": question, "value": value}))
    steps += [("comment", {"text": state.comment})] if state.comment else []
    if state.finished and not missing(state, item, task):
        steps.append(("finish", {}))
    for number, (action, body) in enumerate(steps):
        key = sha256(dumps([item.name, work.annotator, work.round, number]).encode()).hexdigest()
        yield Event(key, action, body)  # type: ignore[arg-type]


def marks_of(places: Iterable[tuple[Any, str]]) -> tuple[Mark, ...]:
    """Return marks without an event, in text order."""
    return tuple(sorted({Mark(place, label, "") for place, label in places}))


def by_annotator(worked: Worked) -> Sequence[Work]:
    """Return the works, or one empty work for an item without any."""
    return worked.works or (Work("", "first", State()),)
