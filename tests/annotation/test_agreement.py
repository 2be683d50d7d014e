"""Agreement: NLTK's numbers, clauses counted by hand, and who is better than whom."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from nltk.metrics.distance import interval_distance

from annotation.making import CAUSES, PAIRS, do, event, mark, pairs, project_of, talk, talks
from causerie.annotation.agreement import (
    ALPHA,
    CEILING,
    CIRCLES,
    F1,
    KAPPA,
    agreement,
    disagreements,
    over_time,
    qualities,
    similarity,
)
from causerie.annotation.marks import State, state_of
from causerie.annotation.store import Store
from causerie.annotation.tasks import Task
from causerie.stats import cohen_kappa

FOUND = {
    "ann": [{0}, {0, 2}, {2}, {1}, set()],
    "ben": [{0}, {2}, {2}, {1, 2}, {0}],
    "cy": [{0, 1}, {0, 2}, {1}, {1}, set()],
}
"""The turns that everybody marks, as a whole, in five talks of three turns and a response."""
PEOPLE = list(FOUND)


def marked(store: Store) -> int:
    number, _ = project_of(store, talks(5), PEOPLE, annotators=3, overlap=1.0)
    for name, turns in FOUND.items():
        for n, found in enumerate(turns):
            said = [turn.text for turn in talks(5)[n].turns]
            done = [mark(turn, 0, len(said[turn])) for turn in found] or [event("none")]
            do(store, number, name, f"talk{n}", "first", *done)
    return number


def as_nltk(people: list[str]) -> AnnotationTask:
    rows = [
        (name, f"{item}.{turn}", int(turn in FOUND[name][item]))
        for name in people
        for item in range(5)
        for turn in range(3)
    ]
    return AnnotationTask(data=rows)


def test_causes_are_as_nltk_has_them(store: Store) -> None:
    found = agreement(store.snapshot(marked(store)))
    measures = found.by_name["cause"]
    assert found.items == 5
    assert measures[KAPPA].value == pytest.approx(as_nltk(PEOPLE).kappa())
    assert measures[ALPHA].value == pytest.approx(as_nltk(PEOPLE).alpha())
    for one in found.between:
        both = as_nltk([one.first, one.second])
        assert one.items == 5
        assert one.measures[KAPPA].value == pytest.approx(both.kappa())
        assert one.measures[ALPHA].value == pytest.approx(both.alpha())


def test_f1_counts_clauses(store: Store) -> None:
    found = agreement(store.snapshot(marked(store)))
    parts = {0: 2, 1: 1, 2: 1}  # "I lost key 0. It is red!" has two clauses

    def f1(one: str, other: str) -> float:
        clauses = [
            {(n, turn, c) for n, found in enumerate(FOUND[who]) for turn in found
             for c in range(parts[turn])}
            for who in (one, other)
        ]  # fmt: skip
        return 2 * len(clauses[0] & clauses[1]) / (len(clauses[0]) + len(clauses[1]))

    for one in found.between:
        assert one.measures[F1].value == pytest.approx(f1(one.first, one.second))
    expected = np.mean([f1(a, b) for a, b in combinations(PEOPLE, 2)])
    assert found.by_name["cause"][F1].value == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=20))
def test_cohens_kappa_is_nltks(ratings: list[tuple[int, int]]) -> None:
    assume(len({r for pair in ratings for r in pair}) > 1)
    rows = [(who, str(n), pair[who]) for n, pair in enumerate(ratings) for who in (0, 1)]
    one, other = zip(*ratings, strict=True)
    holes = [(*one, 1.0, np.nan), (*other, np.nan, 2.0)]
    expected = AnnotationTask(data=rows).kappa()
    assert cohen_kappa(one, other).value == pytest.approx(expected)
    assert cohen_kappa(*holes) == cohen_kappa(one, other)


def test_cohens_kappa_has_no_value_where_nobody_chose() -> None:
    assert cohen_kappa([1, 1], [1, 1]).reason == "all ratings are equal"
    assert cohen_kappa([np.nan, 1], [1, np.nan]).reason == "no unit has two ratings"


def test_ratings_are_as_nltk_has_them(store: Store) -> None:
    task = Task.of("dialogues", ["wit"])
    number, _ = project_of(store, talks(6), PEOPLE, task, annotators=3, overlap=1.0)
    given_ = np.random.default_rng(0).integers(1, 6, (6, 3))
    for n in range(6):
        for who, name in enumerate(PEOPLE):
            value = int(given_[n, who])
            answer = event("answer", question="wit", value=value, turn=None)
            do(store, number, name, f"talk{n}", "first", answer)
    rows = [(who, str(n), int(given_[n, who])) for n in range(6) for who in range(3)]
    measures = agreement(store.snapshot(number)).by_name["wit"]
    alpha = AnnotationTask(data=rows, distance=interval_distance).alpha()
    assert measures[ALPHA].value == pytest.approx(alpha)
    assert measures[KAPPA].value == pytest.approx(AnnotationTask(data=rows).kappa())
    assert measures[CEILING].n == 6


def test_votes_are_compared_as_they_are_kept_not_as_they_were_shown(store: Store) -> None:
    """Everybody prefers x to y to z to x, whichever side it stands on."""
    number, _ = project_of(
        store, pairs(1, ["x", "y", "z"]), PEOPLE, PAIRS, annotators=3, overlap=1.0
    )
    beats = {("x", "y"), ("y", "z"), ("z", "x")}
    now = store.snapshot(number)
    for one in now.assignments.values():
        kept = now.items[one.item].item
        systems = [c.system for c in kept.candidates]
        shown = systems[::-1] if one.swapped else systems
        vote = "A" if (shown[0], shown[1]) in beats else "B"
        answers = [event("answer", question=q.name, value=vote) for q in PAIRS.questions]
        do(store, number, now.people[one.person].name, kept.name, "first", *answers)
    measures = agreement(store.snapshot(number)).by_name["overall"]
    assert measures[ALPHA].value == 1.0
    assert measures[CIRCLES].value == 1.0
    assert {one.swapped for one in now.assignments.values()} == {True, False}


def test_quality_disagreement_and_time(store: Store) -> None:
    number = marked(store)
    now = store.snapshot(number)
    quality = {now.people[p].name: q for p, q in qualities(now).items()}
    assert quality["lead"].value is None
    assert quality["ann"].others.n == 5
    assert quality["ann"].gold.value is None
    worst, *rest = disagreements(now)
    assert now.items[worst[0]].item.name == "talk2"  # two of three agree, as on the last
    assert worst[1] == pytest.approx(1 - 1 / 3)
    assert sorted(rest, key=lambda one: -one[1]) == rest
    curves = over_time(now)
    assert all(len(curve) == 5 for curve in curves.values())
    means = {now.people[p].name: np.mean(curve) for p, curve in curves.items()}
    assert means["ann"] == pytest.approx(quality["ann"].others.value)


def test_similarity_of_states() -> None:
    item = talk("t", "Yes, of course.", "ok", "fine")
    one, other = state_of([mark(0, 0, 4)]), state_of([mark(0, 0, 15)])
    assert similarity(one, other, item, CAUSES) == pytest.approx(2 / 3)
    assert similarity(State(none=True), State(), item, CAUSES) == 1.0
    assert similarity(State(none=True), one, item, CAUSES) == 0.0
    rated = Task.of("dialogues", ["wit"], 5)
    low, high = State(answers={(None, "wit"): 1}), State(answers={(None, "wit"): 4})
    assert similarity(low, high, item, rated) == pytest.approx(0.25)


def test_nobody_shares_an_item(store: Store) -> None:
    number, _ = project_of(store, talks(2), ["ann", "ben"], overlap=0.0)
    found = agreement(store.snapshot(number))
    assert (found.items, dict(found.by_name), found.between) == (0, {}, ())
