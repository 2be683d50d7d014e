"""Events add up to a state, and every past state can be restored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.making import CAUSES, LABELS, PAIRS, event, mark, pairs, talk
from causerie.annotation.marks import Event, State, check, effective, missing, state_of
from causerie.annotation.tasks import Item, Task, clauses, clauses_in, items_of, pairs_of
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError, RecordError
from causerie.io.places import Place

TALK = talk("t", "I lost my keys. They are red!", "Where was it?", "At home.", "Look there.")


def test_marks_none_and_undoing() -> None:
    first, second = mark(0, 0, 15, key="first-mark"), mark(2, 0, 8, key="second-mark")
    assert state_of([second, first]).turns == {0, 2}
    assert [m.key for m in state_of([second, first]).marks] == ["first-mark", "second-mark"]
    assert state_of([first, event("unmark", mark="first-mark")]) == State()
    no = event("none", "no-cause-at-all")
    assert state_of([first, no]) == State(none=True)
    assert state_of([no, first]).none is False
    undone = event("undo", "an-undo-event", event="no-cause-at-all")
    assert state_of([first, no, undone]) == state_of([first])
    redone = event("undo", event="an-undo-event")
    assert state_of([first, no, undone, redone]) == State(none=True)


def test_the_same_stretch_is_marked_once() -> None:
    assert len(state_of([mark(0, 0, 5), mark(0, 0, 5), mark(0, 0, 6)]).marks) == 2


@given(st.lists(st.sampled_from(["mark", "undo"]), max_size=12), st.data())
def test_undoing_is_as_if_it_had_never_been(actions: list[str], data: st.DataObject) -> None:
    events: list[Event] = []
    for number, action in enumerate(actions):
        if action == "undo" and events:
            target = data.draw(st.sampled_from(events)).key
            events.append(event("undo", f"event-{number:03}", event=target))
        else:
            events.append(mark(0, number, number + 1, key=f"event-{number:03}"))

    def stands(place: int) -> bool:  # the definition, naively: unless a later one that stands
        return not any(
            later.action == "undo" and later.body["event"] == events[place].key and stands(at)
            for at, later in enumerate(events)
            if at > place
        )

    expected = [e for at, e in enumerate(events) if e.action == "mark" and stands(at)]
    assert effective(events) == expected
    assert {m.key for m in state_of(events).marks} == {e.key for e in expected}


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (event("mark", "short", turn=0, start=0, stop=1, label="cause"), "key must be 8 to 64"),
        (mark(3, 0, 4), "a span of a turn's text"),  # the response causes nothing
        (mark(0, 0, 99), "a span of a turn's text"),
        (mark(0, 5, 5), "a span of a turn's text"),
        (mark(-1, 0, 5), "a span of a turn's text"),
        (event("mark", turn=True, start=0, stop=1, label="cause"), "a span of a turn's text"),
        (mark(0, 0, 5, "because"), "label must be one of cause"),
        (event("unmark", mark="never-made"), "no such mark"),
        (event("undo", event="never-made"), "no such event"),
        (event("answer", question="overall", value="A"), "no such question"),
        (event("comment", text="x" * 10_001), "at most 10,000"),
        (event("comment", text="\ud800"), "lone surrogate"),
        (event("comment", text="a\0b"), "must be a string"),
        (event("comment", text=3), "must be a string"),
        (event("finish"), "mark at least one cause, or say that there is none"),
    ],
)
def test_what_cannot_be_done_is_refused(done: Event, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        check(done, TALK, CAUSES, [], State())


def test_a_finished_item_is_reopened_before_it_is_changed() -> None:
    before = [mark(0, 0, 5, key="the-only-mark"), event("finish")]
    state = state_of(before)
    for done in (mark(1, 0, 2), event("undo", event="the-only-mark")):
        with pytest.raises(RecordError, match="reopen it first"):
            check(done, TALK, CAUSES, before, state)
    check(event("reopen"), TALK, CAUSES, before, state)
    finished = event("undo", event=before[1].key)
    with pytest.raises(RecordError, match="no such event to undo"):
        check(finished, TALK, CAUSES, before, State())


def test_every_question_is_answered_before_the_end() -> None:
    (pair,) = pairs(1, ["x", "y"])
    for done, reason in [
        ({"question": "overall", "value": "C"}, "A, B, both good, both bad"),
        ({"question": "overall", "value": 3}, "A, B, both good, both bad"),
        ({"question": "wit", "value": "A"}, "no such question"),
        ({"question": "overall", "value": "A", "turn": 0}, "no such question"),
    ]:
        with pytest.raises(RecordError, match=reason):
            check(event("answer", **done), pair, PAIRS, [], State())
    names = [question.name for question in PAIRS.questions]
    assert names == ["empathy", "specificity", "relevance", "consistency", "overall"]
    events = [event("answer", question=name, value="B") for name in names]
    assert missing(state_of(events[:-1]), pair, PAIRS) == "1 left to answer, starting with overall"
    assert missing(state_of(events), pair, PAIRS) is None
    turned = state_of([*events, event("answer", question="empathy", value="both bad")]).turned()
    assert dict(turned.answers)[None, "overall"] == "A"
    assert dict(turned.answers)[None, "empathy"] == "both bad"


def test_replies_are_rated_one_by_one() -> None:
    task = Task.of("replies", ["relevance", "wit"], scale=3)
    dialogue = Dialogue("d", tuple(Turn("AB"[n % 2], f"text {n}") for n in range(4)))
    (item,) = items_of("replies", dialogue, "B")
    assert item.asked == (1, 3)
    check(event("answer", question="wit", turn=3, value=3), item, task, [], State())
    for bad in ({"turn": 2, "value": 1}, {"turn": 1, "value": 4}, {"value": 1, "turn": None}):
        with pytest.raises(RecordError):
            check(event("answer", question="wit", **bad), item, task, [], State())
    left = missing(State(answers={(1, "relevance"): 1}), item, task)
    assert left == "3 left to answer, starting with wit of turn 2"


def test_kinds_and_names() -> None:
    for kind, names, reason in [
        ("votes", [], "not a kind of task"),
        ("causes", ["a"], "omit --names"),
        ("labels", [], "name the labels"),
        ("labels", ["a", "a"], "must be different"),
        ("replies", [" "], "not empty"),
    ]:
        with pytest.raises(CauserieError, match=reason):
            Task.of(kind, names)
    for task in (CAUSES, PAIRS, LABELS, Task.of("dialogues", ["overall", "wit"], 7)):
        assert Task.from_json(task.to_json()) == task


def test_items_of_dialogues_and_exchanges() -> None:
    dialogue = Dialogue("d", tuple(Turn("AB"[n % 2], f"text {n}") for n in range(4)), system="s")
    found = list(items_of("causes", dialogue))
    assert [(one.name, len(one.context)) for one in found] == [("d#1", 1), ("d#2", 2), ("d#3", 3)]
    (alone,) = items_of("causes", Exchange(dialogue, 2))
    assert (alone.name, len(alone.turns)) == ("d", 3)
    for kind in ("causes", "labels", "replies", "dialogues"):
        for item in items_of(kind, dialogue):
            assert Item.from_json(item.name, item.to_json()) == item
            assert item.record["system"] == "s"


@given(st.integers(2, 7), st.integers(1, 3))
def test_every_response_meets_every_other_on_both_sides(systems: int, contexts: int) -> None:
    def exchange(system: int, context: int) -> Exchange:
        turns = (Turn("A", f"context {context}"), Turn("B", f"answer {system}"))
        return Exchange(Dialogue(f"c{context}", turns, system=f"s{system}"), 1)

    found = list(pairs_of(exchange(s, c) for c in range(contexts) for s in range(systems)))
    met = [(pair.turns[0].text, frozenset(one.system for one in pair.candidates)) for pair in found]
    assert len(set(met)) == len(met) == contexts * systems * (systems - 1) // 2
    for system in range(systems):
        first = sum(pair.candidates[0].system == f"s{system}" for pair in found)
        second = sum(pair.candidates[1].system == f"s{system}" for pair in found)
        assert abs(first - second) <= contexts


def test_pairs_need_two_systems() -> None:
    turns = (Turn("A", "context"), Turn("B", "answer"))
    one = Exchange(Dialogue("c", turns, system="s"), 1)
    with pytest.raises(CauserieError, match="no two systems"):
        list(pairs_of([one]))
    other = Exchange(Dialogue("d", turns, system="s"), 1)
    with pytest.raises(CauserieError, match="s has two responses to one context"):
        list(pairs_of([one, other]))


def test_clauses_are_what_punctuation_parts() -> None:
    text = "Well, no. It's 3... really?! (yes)"
    assert [text[a:b] for a, b in clauses(text)] == [
        "Well,",
        "no.",
        "It's 3...",
        "really?!",
        "(yes)",
    ]
    assert clauses("...") == [(0, 3)]
    assert clauses("") == []


@given(st.text("ab ,.!?\n", max_size=40))
def test_clauses_have_every_letter_once(text: str) -> None:
    found = clauses(text)
    assert found == sorted(found)
    covered: list[Any] = [c for a, b in found for c in range(a, b)]
    assert len(covered) == len(set(covered))
    assert {at for at, c in enumerate(text) if c.isalnum()} <= set(covered)
    assert all(text[a:b] == text[a:b].strip() for a, b in found)


def test_a_clause_counts_where_more_than_half_is_marked() -> None:
    item = talk("t", "Yes, of course.", "ok")
    for start, stop, expected in [
        (0, 4, {(0, 0)}),
        (0, 9, {(0, 0)}),
        (0, 15, {(0, 0), (0, 1)}),
        (5, 10, set()),
        (5, 11, {(0, 1)}),
    ]:
        assert clauses_in(item, CAUSES, [Place(0, start, stop)]) == expected
