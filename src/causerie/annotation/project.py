"""A project at one moment: who works on what in which round, and what came of it.

Everything here is derived from what the store keeps, and changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from causerie.annotation.marks import Event, State, state_of
from causerie.annotation.tasks import Item, Task

Round: TypeAlias = Literal["dry", "first", "review", "adjudication"]
ROUNDS: tuple[Round, ...] = get_args(Round)
Role: TypeAlias = Literal["annotator", "lead"]
IDLE = 120.0
"""Seconds between two events that count as work at most: who does nothing for longer is away."""


@dataclass(frozen=True)
class Settings:
    """What was decided about a project when it was made."""

    task: Task
    annotators: int = 2
    """How many work on an item of the overlap in the first round; on others one does."""
    overlap: float = 0.25
    """The share of the items that several annotators work on."""
    seed: int = 0
    """Of the order of items and of sides."""
    guideline: str = ""
    """What annotators read; empty stands for ours."""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "task": self.task.to_json()}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Settings:
        return cls(**{**fields, "task": Task.from_json(fields["task"])})

    def wanted(self, place: int) -> int:
        """How many annotators the item at a place has: the overlap is spread evenly."""
        several = int((place + 1) * self.overlap + 1e-9) > int(place * self.overlap + 1e-9)
        return self.annotators if several else 1


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    role: Role
    active: bool
    """Whether a link of theirs works; who was imported with marks never had one."""


@dataclass(frozen=True)
class Listed:
    """An item in its project."""

    id: int
    place: int
    """Counted from 0, in the order of coming."""
    item: Item
    gold: State | None
    """What is right, of an item of the dry run."""
    priority: float
    """Higher comes first; 0 unless items were selected."""


@dataclass(frozen=True)
class Assignment:
    """One item for one person in one round."""

    id: int
    item: int
    person: int
    round: Round
    swapped: bool = False
    """Whether the responses of a pair are shown the other way round."""
    base: int | None = None
    """The assignment that is reviewed."""


@dataclass(frozen=True)
class NewItem:
    item: Item
    gold: Sequence[Event] = ()
    """What is right, for an item of the dry run."""
    priority: float = 0.0


@dataclass(frozen=True)
class NewAssignment:
    item: int
    person: int
    round: Round
    swapped: bool = False
    base: int | None = None
    events: Sequence[Event] = ()
    """What is known to have been done, of imported annotations."""


@dataclass(frozen=True)
class Snapshot:
    """All of a project, as it was at one moment."""

    id: int
    name: str
    settings: Settings
    people: Mapping[int, Person]
    items: Mapping[int, Listed]
    assignments: Mapping[int, Assignment]
    events: Mapping[int, Sequence[Event]] = field(default_factory=dict)
    """Of each assignment, in the order in which they were kept."""

    @property
    def task(self) -> Task:
        return self.settings.task

    def with_events(self, assignment: int, new: Sequence[Event]) -> Snapshot:
        """The same after somebody has done more."""
        done = (*self.events.get(assignment, ()), *new)
        return replace(self, events={**self.events, assignment: done})

    @cached_property
    def states(self) -> Mapping[int, State]:
        """How each assignment stands, as its annotator sees it."""
        found: dict[int, State] = {}
        for key in sorted(self.assignments):  # what is reviewed is older than its review
            base = self.assignments[key].base
            start = None if base is None else reviewed(found[base])
            found[key] = state_of(self.events.get(key, ()), start)
        return found

    def judged(self, assignment: int) -> State:
        """The state in the order of sides in which the pair is kept."""
        state = self.states[assignment]
        return state.turned() if self.assignments[assignment].swapped else state

    @cached_property
    def by_item(self) -> Mapping[int, Mapping[Round, Sequence[Assignment]]]:
        found: dict[int, dict[Round, list[Assignment]]] = defaultdict(lambda: defaultdict(list))
        for one in self.assignments.values():
            found[one.item][one.round].append(one)
        return found

    def of_person(self, person: int) -> list[Assignment]:
        """In the order in which they are to be done: the dry run first, then by priority.

        Texts are marked in the order of the file, because neighbours share a conversation;
        judgements come in an order of everybody's own.
        """
        own = [one for one in self.assignments.values() if one.person == person]

        def order(one: Assignment) -> tuple[object, ...]:
            listed = self.items[one.item]
            mixed = "" if self.task.is_marked else self.draw(person, one.item)
            return (ROUNDS.index(one.round), -listed.priority, mixed, listed.place, one.id)

        return sorted(own, key=order)

    def draw(self, *what: object) -> str:
        """Something random that is always the same for this: to break ties, and to shuffle."""
        return sha256("|".join(map(str, (self.settings.seed, *what))).encode()).hexdigest()

    def finished(self, item: int, *rounds: Round) -> list[Assignment]:
        """The finished ones of an item, the oldest first."""
        at = self.by_item.get(item, {})
        found = [one for wanted in rounds for one in at.get(wanted, ())]
        return [one for one in found if self.states[one.id].finished]

    def is_closed(self, assignment: Assignment) -> bool:
        """Whether the item has gone on to a later round, so that no more may be changed here.

        A dry run is closed by finishing it, because what is right is shown then.
        """
        if assignment.round == "dry":
            return self.states[assignment.id].finished
        later = ROUNDS[ROUNDS.index(assignment.round) + 1 :]
        return any(self.by_item[assignment.item].get(one) for one in later)

    def agreed(self, item: int) -> bool:
        """Whether all who annotated the item in the first round found the same."""
        found = [self.judged(one.id).says() for one in self.finished(item, "first")]
        return all(one == found[0] for one in found)

    def final(self, item: int) -> Assignment | None:
        """The assignment whose marks count: of the latest round that somebody finished.

        Among several of a first round that nobody settled it is the first.
        """
        for wanted in ("adjudication", "review", "first"):
            if found := self.finished(item, wanted):
                return found[-1] if wanted == "adjudication" else found[0]
        return None

    def is_settled(self, item: int) -> bool:
        """Whether all who were to annotate an item agree, or somebody decided."""
        if self.finished(item, "review", "adjudication"):
            return True
        return self.agreed(item) and not self.waits(item)

    def waits(self, item: int) -> bool:
        """Whether somebody has yet to finish the item in the first round."""
        return any(
            self.people[one.person].active and not self.states[one.id].finished
            for one in self.by_item.get(item, {}).get("first", ())
        )

    def seconds(self, assignment: int) -> float:
        """How long somebody worked on it, without the time they were away."""
        times = [event.at for event in self.events.get(assignment, ())]
        steps = (later - before for before, later in pairwise(times))
        return sum(min(max(step, 0.0), IDLE) for step in steps)


def reviewed(state: State) -> State:
    """What a reviewer starts with: the marks, without the comment that goes with them."""
    return State(state.marks, state.none, state.answers)
