"""Who works on which item: the dry run, the first round with its overlap, and the second round.

Every plan adds to the existing assignments, so it can be repeated after people or items are
added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations

from causerie.annotation.agreement import qualities
from causerie.annotation.project import Assignment, Listed, NewAssignment, Person, Snapshot
from causerie.errors import CauserieError

FEWEST_REVIEWERS = 2
"""Fewest reviewers, since one alone could not review their own work."""


def annotators(project: Snapshot) -> list[Person]:
    """Return the annotators with a valid link."""
    return [one for one in project.people.values() if one.role == "annotator" and one.active]


def first_round(project: Snapshot) -> Iterator[NewAssignment]:
    """Yield the dry run for everybody, and for every other item as many annotators as it needs.

    An item goes to whoever has the least to do, then to whoever shares the fewest items with those
    already on it, so that all pairs of annotators meet. Each order of a pair's responses is shown
    equally often.
    """
    people = annotators(project)
    yield from _dry_run(project, people)
    open_to = {person.id for person in people}
    counts: Counter[object] = Counter()
    for one in project.assignments.values():
        if one.round == "first":
            _count(counts, one, ())
    for listed in project.items.values():
        if listed.gold is not None or project.by_item.get(listed.id, {}).keys() - {"first"}:
            continue
        on_it = list(project.by_item.get(listed.id, {}).get("first", ()))
        here = [one for one in on_it if one.person in open_to or project.states[one.id].finished]
        there = {one.person for one in on_it}
        for _ in range(project.settings.wanted(listed.place) - len(here)):
            free = [person.id for person in people if person.id not in there]
            if not free:
                break
            chosen = min(free, key=lambda p: _burden(project, counts, p, there, listed))
            turned = _turned(project, counts, chosen, listed)
            yield (made := NewAssignment(listed.id, chosen, "first", turned))
            _count(counts, made, there)
            there.add(chosen)


def _dry_run(project: Snapshot, people: Iterable[Person]) -> Iterator[NewAssignment]:
    for listed in project.items.values():
        if listed.gold is not None:
            there = {one.person for one in project.by_item.get(listed.id, {}).get("dry", ())}
            for person in people:
                if person.id not in there:
                    yield NewAssignment(listed.id, person.id, "dry")


def _burden(
    project: Snapshot, counts: Counter[object], person: int, there: Collection[int], listed: Listed
) -> tuple[object, ...]:
    shared = sum(counts[frozenset((person, other))] for other in there)
    return (counts[person], shared, project.draw(listed.place, person))


def _turned(project: Snapshot, counts: Counter[object], person: int, listed: Listed) -> bool:
    """Return whether to swap a pair: the rarer order for the item is taken, then for the person."""
    if project.task.kind != "pairs":
        return False
    for whom in (("item", listed.id), ("person", person)):
        ways = [counts[(*whom, turned)] for turned in (False, True)]
        if ways[0] != ways[1]:
            return ways[0] > ways[1]
    return project.draw("side", listed.id, person) < "8"


def _count(
    counts: Counter[object], one: Assignment | NewAssignment, others: Collection[int]
) -> None:
    counts[one.person] += 1
    counts["item", one.item, one.swapped] += 1
    counts["person", one.person, one.swapped] += 1
    for other in others:
        counts[frozenset((one.person, other))] += 1


def reviewers_of(project: Snapshot, names: Collection[str] = ()) -> list[Person]:
    """Return the annotators of these names; by default the better half, at least two."""
    people = annotators(project)
    if names:
        if unknown := sorted(set(names) - {person.name for person in people}):
            raise CauserieError(f"there is no annotator named {unknown[0]!r} with a link")
        return [person for person in people if person.name in names]
    quality = qualities(project)
    best = sorted(people, key=lambda person: -(quality[person.id].value or 0.0))
    return best[: max(FEWEST_REVIEWERS, len(best) // 2)]


def second_round(project: Snapshot, reviewers: Collection[Person]) -> Iterator[NewAssignment]:
    """Assign every item whose first round is over to a reviewer who has not annotated it.

    If its annotators agree, or it has only one, the item is reviewed; where they differ, the
    reviewer sees all marks and decides. An item that every reviewer has annotated waits for the
    lead.
    """
    if not project.task.is_marked:
        raise CauserieError("judgements are not reviewed: every answer counts")
    load: Counter[int] = Counter()
    for one in project.assignments.values():
        if one.round in ("review", "adjudication"):
            load[one.person] += 1
    for listed in project.items.values():
        rounds = project.by_item.get(listed.id, {})
        first = rounds.get("first", ())
        done = project.finished(listed.id, "first")
        if not done or project.waits(listed.id) or rounds.keys() & {"review", "adjudication"}:
            continue
        authors = {one.person for one in first}
        free = [person.id for person in reviewers if person.id not in authors]
        if not free:
            continue
        chosen = min(free, key=lambda p: (load[p], project.draw(listed.place, p)))
        load[chosen] += 1
        if project.agreed(listed.id):
            yield NewAssignment(listed.id, chosen, "review", base=done[0].id)
        else:
            yield NewAssignment(listed.id, chosen, "adjudication")


def shared_items(project: Snapshot) -> dict[frozenset[int], int]:
    """Return how many items of the first round each two people share."""
    found: Counter[frozenset[int]] = Counter()
    for rounds in project.by_item.values():
        people = sorted({one.person for one in rounds.get("first", ())})
        found.update(frozenset(pair) for pair in combinations(people, 2))
    return dict(found)
