"""A project at one moment: who works on what in which round, and with what result.

Everything here is derived from the stored data and changes nothing.
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
"""Most seconds between two events that count as work; a longer gap is a break."""


@dataclass(frozen=True)
class Settings:
    """What was decided about a project when it was created."""

    task: Task
    annotators: int = 2
    """Annotators per item of the overlap in the first round; other items have one."""
    overlap: float = 0.25
    """Share of the items that several annotators work on."""
    seed: int = 0
    """Random seed for the order of items and of sides."""
    guideline: str = ""
    """Instructions for annotators; empty for the default ones."""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "task": self.task.to_json()}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Settings:
        return cls(**{**fields, "task": Task.from_json(fields["task"])})

    def wanted(self, place: int) -> int:
        """Return how many annotators the item at a place needs: the overlap is spread evenly."""
        several = int((place + 1) * self.overlap + 1e-9) > int(place * self.overlap + 1e-9)
        return self.annotators if several else 1


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    role: Role
    active: bool
    """Whether the person has a valid link; people imported with marks never had one."""


@dataclass(frozen=True)
class Listed:
    """An item in its project."""

    id: int
    place: int
    """Position in order of creation, from 0."""
    item: Item
    gold: State | None
    """The correct answers, for an item of the dry run."""
    priority: float
    """Items of higher priority come first; 0 unless items were selected."""


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
    """The id of the assignment under review."""


@dataclass(frozen=True)
class NewItem:
    item: Item
    gold: Sequence[Event] = ()
    """Events that lead to the correct answers, for an item of the dry run."""
    priority: float = 0.0


@dataclass(frozen=True)
class NewAssignment:
    item: int
    person: int
    round: Round
    swapped: bool = False
    base: int | None = None
    events: Sequence[Event] = ()
    """Known events, for imported annotations."""


@dataclass(frozen=True)
class Snapshot:
    """A whole project, as it was at one moment."""

    id: int
    name: str
    settings: Settings
    people: Mapping[int, Person]
    items: Mapping[int, Listed]
    assignments: Mapping[int, Assignment]
    events: Mapping[int, Sequence[Event]] = field(default_factory=dict)
    """Events by assignment, in the order in which they were stored."""

    @property
    def task(self) -> Task:
        return self.settings.task

    def with_events(self, assignment: int, new: Sequence[Event]) -> Snapshot:
        """Return the snapshot with further events of an assignment."""
        done = (*self.events.get(assignment, ()), *new)
        return replace(self, events={**self.events, assignment: done})

    @cached_property
    def states(self) -> Mapping[int, State]:
        """The state of each assignment, as its annotator sees it."""
        found: dict[int, State] = {}
        for key in sorted(self.assignments):  # a reviewed assignment is older than its review
            base = self.assignments[key].base
            start = None if base is None else reviewed(found[base])
            found[key] = state_of(self.events.get(key, ()), start)
        return found

    def judged(self, assignment: int) -> State:
        """Return the state with the sides of a pair in their stored order."""
        state = self.states[assignment]
        return state.turned() if self.assignments[assignment].swapped else state

    @cached_property
    def by_item(self) -> Mapping[int, Mapping[Round, Sequence[Assignment]]]:
        found: dict[int, dict[Round, list[Assignment]]] = defaultdict(lambda: defaultdict(list))
        for one in self.assignments.values():
            found[one.item][one.round].append(one)
        return found

    def of_person(self, person: int) -> list[Assignment]:
        """Return a person's assignments in working order: the dry run first, then by priority.

        Texts to mark come in file order, because neighbours share a conversation; judgements come
        in a random order of each person's own.
        """
        own = [one for one in self.assignments.values() if one.person == person]

        def order(one: Assignment) -> tuple[object, ...]:
            listed = self.items[one.item]
            mixed = "" if self.task.is_marked else self.draw(person, one.item)
            return (ROUNDS.index(one.round), -listed.priority, mixed, listed.place, one.id)

        return sorted(own, key=order)

    def draw(self, *what: object) -> str:
        """Return a hash that is reproducible for `what`, to break ties and to shuffle."""
        return sha256("|".join(map(str, (self.settings.seed, *what))).encode()).hexdigest()

    def finished(self, item: int, *rounds: Round) -> list[Assignment]:
        """Return the finished assignments of an item in these rounds, oldest first."""
        at = self.by_item.get(item, {})
        found = [one for wanted in rounds for one in at.get(wanted, ())]
        return [one for one in found if self.states[one.id].finished]

    def is_closed(self, assignment: Assignment) -> bool:
        """Return whether the item has moved on to a later round, which forbids further changes.

        A dry run is closed once it is finished, because the correct answers are shown then.
        """
        if assignment.round == "dry":
            return self.states[assignment.id].finished
        later = ROUNDS[ROUNDS.index(assignment.round) + 1 :]
        return any(self.by_item[assignment.item].get(one) for one in later)

    def agreed(self, item: int) -> bool:
        """Return whether all who finished the item in the first round found the same."""
        found = [self.judged(one.id).says() for one in self.finished(item, "first")]
        return all(one == found[0] for one in found)

    def final(self, item: int) -> Assignment | None:
        """Return the assignment whose marks count: a finished one of the latest round.

        Of several in a first round that nobody has settled, it is the first.
        """
        for wanted in ("adjudication", "review", "first"):
            if found := self.finished(item, wanted):
                return found[-1] if wanted == "adjudication" else found[0]
        return None

    def is_settled(self, item: int) -> bool:
        """Return whether all annotators of an item agree, or somebody has decided."""
        if self.finished(item, "review", "adjudication"):
            return True
        return self.agreed(item) and not self.waits(item)

    def waits(self, item: int) -> bool:
        """Return whether somebody has yet to finish the item in the first round."""
        return any(
            self.people[one.person].active and not self.states[one.id].finished
            for one in self.by_item.get(item, {}).get("first", ())
        )

    def seconds(self, assignment: int) -> float:
        """Return the seconds somebody worked on it, without breaks."""
        times = [event.at for event in self.events.get(assignment, ())]
        steps = (later - before for before, later in pairwise(times))
        return sum(min(max(step, 0.0), IDLE) for step in steps)


def reviewed(state: State) -> State:
    """Return the state a reviewer starts from: the marks, without the comment."""
    return State(state.marks, state.none, state.answers)
