"""Who works on what: overlap, balance, reviews of others' work."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.making import (
    CAUSES,
    PAIRS,
    do,
    event,
    mark,
    pairs,
    person_of,
    project_of,
    talk,
    talks,
)
from causerie.annotation.assignment import (
    first_round,
    reviewers_of,
    second_round,
    shared_items,
)
from causerie.annotation.project import Listed, NewAssignment, Person, Settings, Snapshot
from causerie.annotation.store import RefusedError, Store
from causerie.errors import CauserieError


def planned(items: int, people: int, settings: Settings) -> tuple[Snapshot, list[NewAssignment]]:
    made = pairs(items, ["x", "y"]) if settings.task is PAIRS else talks(items)
    listed = {n: Listed(n, n, item, None, 0.0) for n, item in enumerate(made)}
    persons = {n: Person(n, f"p{n}", "annotator", True) for n in range(people)}
    project = Snapshot(1, "p", settings, persons, listed, {})
    return project, list(first_round(project))


@given(
    st.integers(0, 40),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.2, 0.25, 1 / 3, 1.0]),
    st.integers(0, 3),
)
def test_first_round(items: int, people: int, each: int, overlap: float, seed: int) -> None:
    settings = Settings(CAUSES, each, overlap, seed)
    _, found = planned(items, people, settings)
    per_item = Counter(one.item for one in found)
    several = int(items * overlap + 1e-9)
    wanted = [min(people, each)] * several + [1] * (items - several)
    assert sorted(per_item.values()) == sorted(wanted)
    assert len({(one.item, one.person) for one in found}) == len(found)
    load = Counter(one.person for one in found)
    assert max(load.values(), default=0) - min((load[p] for p in range(people)), default=0) <= 1
    assert planned(items, people, settings)[1] == found


def test_everybody_meets_everybody_and_pairs_stand_both_ways() -> None:
    _, found = planned(60, 6, Settings(PAIRS, 3, 1.0))
    by_item: dict[int, list[NewAssignment]] = {}
    for one in found:
        by_item.setdefault(one.item, []).append(one)
    assert all(len(there) == 3 for there in by_item.values())
    assert all(1 <= sum(one.swapped for one in there) <= 2 for there in by_item.values())
    met = Counter(
        frozenset((a.person, b.person))
        for there in by_item.values()
        for a, b in combinations(there, 2)
    )
    assert len(met) == 15  # every two of six
    assert max(met.values()) <= 2 * min(met.values())
    for person in range(6):
        ways = [one.swapped for one in found if one.person == person]
        assert abs(2 * sum(ways) - len(ways)) <= len(ways) / 3


def test_orders_of_judgements_are_everybodys_own(store: Store) -> None:
    number, _ = project_of(store, pairs(12, ["x", "y"]), ["ann", "ben"], PAIRS, overlap=1.0)
    now = store.snapshot(number)
    orders = [[one.item for one in now.of_person(person_of(now, n))] for n in ("ann", "ben")]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(now.items)
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


def test_priority_comes_first_and_then_the_order_of_the_file(store: Store) -> None:
    number, _ = project_of(store, talks(4), ["ann"])
    ids = list(store.snapshot(number).items)
    store.prioritise(number, {ids[2]: 0.9, ids[0]: 0.1})
    now = store.snapshot(number)
    order = [one.item for one in now.of_person(person_of(now, "ann"))]
    assert order == [ids[2], ids[0], ids[1], ids[3]]


def test_people_and_items_that_come_later_get_the_rest(store: Store) -> None:
    number, _ = project_of(store, talks(8), ["ann"], overlap=1.0)
    assert len(store.snapshot(number).assignments) == 8
    store.add_person(number, "ben", "annotator")
    assert store.assign(number, first_round) == 8
    assert store.assign(number, first_round) == 0
    store.revoke(number, "ben")
    do(store, number, "ann", "talk0", "first", event("none"))
    store.add_person(number, "cy", "annotator")
    assert store.assign(number, first_round) == 8  # somebody else does what ben has not finished


def test_the_dry_run_comes_first_for_everybody_and_is_closed_by_its_end(store: Store) -> None:
    gold = {"gold": [mark(0, 0, 5)]}
    items = [*talks(2), talk("gold", "Hello there.", "Hi.")]
    number, _ = project_of(store, items, ["ann", "ben"], gold=gold)
    now = store.snapshot(number)
    for name in ("ann", "ben"):
        first, *_ = now.of_person(person_of(now, name))
        assert (first.round, now.items[first.item].item.name) == ("dry", "gold")
    do(store, number, "ann", "gold", "dry", mark(0, 0, 5))
    with pytest.raises(RefusedError, match="next round"):
        do(store, number, "ann", "gold", "dry", event("reopen"))
    assert not any(one.round == "first" and now.items[one.item].gold for one in
                   store.snapshot(number).assignments.values())  # fmt: skip


def annotated(store: Store) -> int:
    """Four people; dora is wrong in the dry run and all the time."""
    gold = {"gold": [mark(0, 0, 12)]}
    items = [*talks(12), talk("gold", "Hello there.", "Hi.", "How are you?")]
    number, _ = project_of(
        store, items, ["ann", "ben", "cy", "dora"], gold=gold, annotators=2, overlap=1 / 3
    )
    for one in store.snapshot(number).assignments.values():
        now = store.snapshot(number)
        name, item = now.people[one.person].name, now.items[one.item].item.name
        wrong = name == "dora"
        done = mark(1, 0, 3) if wrong else mark(0, 0, 12)
        do(store, number, name, item, one.round, done)
    return number


def test_reviewers_are_the_better_half_and_never_review_their_own(store: Store) -> None:
    number = annotated(store)
    now = store.snapshot(number)
    reviewers = reviewers_of(now)
    assert len(reviewers) == 2
    assert "dora" not in {person.name for person in reviewers}
    added = store.assign(number, lambda project: second_round(project, reviewers))
    after = store.snapshot(number)
    second = [one for one in after.assignments.values() if one.round in ("review", "adjudication")]
    assert len(second) == added
    for one in second:
        authors = {a.person for a in after.by_item[one.item]["first"]}
        assert one.person not in authors
        assert one.person in {person.id for person in reviewers}
        if one.round == "review":
            assert one.base in after.assignments
            base = after.states[one.base or 0]
            assert after.states[one.id].marks == base.marks
            assert not after.states[one.id].finished
        else:
            assert not after.agreed(one.item)
            assert after.states[one.id].marks == ()
    reviewed = {one.item for one in second}
    for item, listed in after.items.items():
        if listed.gold is None and item not in reviewed:  # both reviewers had annotated it
            authors = {a.person for a in after.by_item[item]["first"]}
            assert authors >= {person.id for person in reviewers}
    assert store.assign(number, lambda project: second_round(project, reviewers)) == 0


def test_what_is_reviewed_is_closed_and_what_the_review_says_counts(store: Store) -> None:
    number, _ = project_of(store, talks(1), ["ann", "ben"], overlap=0.0)
    now = store.snapshot(number)
    (first,) = now.assignments.values()
    author = now.people[first.person].name
    reviewer = "ben" if author == "ann" else "ann"
    do(store, number, author, "talk0", "first", mark(0, 0, 5, key="of-the-author"))
    store.assign(number, lambda p: second_round(p, reviewers_of(p, ["ann", "ben"])))
    with pytest.raises(RefusedError, match="next round"):
        store.append(number, first.id, first.person, [event("reopen")])
    do(
        store, number, reviewer, "talk0", "review",
        event("unmark", mark="of-the-author"), mark(2, 0, 8),
    )  # fmt: skip
    now = store.snapshot(number)
    final = now.final(first.item)
    assert final is not None
    assert (final.round, now.states[final.id].turns) == ("review", {2})
    assert now.states[first.id].turns == {0}
    assert now.is_settled(first.item)


def test_judgements_are_not_reviewed(store: Store) -> None:
    number, _ = project_of(store, pairs(1, ["x", "y"]), ["ann"], PAIRS)
    with pytest.raises(CauserieError, match="not reviewed"):
        store.assign(number, lambda p: second_round(p, []))
    with pytest.raises(CauserieError, match="no annotator named 'eve'"):
        reviewers_of(store.snapshot(number), ["eve"])


def test_shared_items(tmp_path: Path, store: Store) -> None:
    number, _ = project_of(store, talks(9), ["ann", "ben", "cy"], overlap=1.0)
    shared = shared_items(store.snapshot(number))
    assert sorted(shared.values()) == [3, 3, 3]
