"""Annotations are exported and imported again, and nothing is lost on the way."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.making import CAUSES, LABELS, PAIRS, do, event, mark, pairs, project_of, talks
from causerie.annotation.formats import (
    _ARRAYS,
    _WRITERS,
    check_format,
    export,
    export_brat,
    read_worked,
)
from causerie.annotation.marks import State
from causerie.annotation.store import Store
from causerie.annotation.tasks import Candidate, Item, Task
from causerie.annotation.work import Work, Worked, add_works, marks_of, works_of
from causerie.bench.sets.judged import read_judged
from causerie.dialogue import Turn
from causerie.errors import CauserieError
from causerie.io import Annotation, Rejected, read_annotations
from causerie.io.places import Place

TEXT = st.text("aB1 \U0001f511é:.\u2028<", min_size=1, max_size=12).map(str.strip).filter(bool)
RATED = Task.of("replies", ["wit", "overall"])
WHOLE = Task.of("dialogues", ["overall"])


@st.composite
def worked(draw: Any, task: Task) -> Worked:
    texts = draw(st.lists(TEXT, min_size=3, max_size=5))
    turns = tuple(Turn("AB"[n % 2], text) for n, text in enumerate(texts))
    asked: tuple[int, ...] = (len(turns) - 1,)
    candidates = (Candidate("x", "first"), Candidate("y", "second")) if task is PAIRS else ()
    asked = () if task in (PAIRS, WHOLE) else asked
    item = Item(draw(TEXT), turns, asked, candidates, {"system": "s", "metadata": {"k": [1, "é"]}})
    works = []
    for name in draw(st.lists(st.sampled_from(["ann", "ben@example.org", "c é"]), unique=True)):
        places = []
        if task.is_marked:
            for turn, said in enumerate(item.markable(task)):
                if draw(st.booleans()):
                    start = draw(st.integers(0, len(said.text) - 1))
                    stop = draw(st.integers(start + 1, len(said.text)))
                    label = draw(st.sampled_from(task.labels))
                    places.append((Place(turn, start, stop), label))
        answers: dict[tuple[int | None, str], int | str] = {}
        for question in task.questions:
            value = "both good" if task is PAIRS else draw(st.integers(1, 5))
            answers[asked[0] if task is RATED else None, question.name] = value
        none = task.is_marked and not places
        comment = draw(st.sampled_from(["", "why? \U0001f511", "<script>\n2"]))
        finished = draw(st.booleans())
        state = State(marks_of(places), none, answers, comment, finished)
        works.append(Work(name, draw(st.sampled_from(["first", "review"])), state))
    return Worked(item, tuple(works))


def through(format: str, task: Task, given_: Iterable[Worked], folder: Path) -> list[Worked]:
    records = list(_WRITERS[format](given_, task))
    path = folder / "file.json"
    if format in _ARRAYS:
        path.write_text(json.dumps(records), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    found = list(read_worked(path, task))
    assert not [one for one in found if isinstance(one, Rejected)]
    joined: dict[str, Worked] = {}
    for one in found:
        assert isinstance(one, Worked)
        before = joined.get(one.item.name)
        joined[one.item.name] = replace(one, works=((*before.works,) if before else ()) + one.works)
    return list(joined.values())


CASES = [
    (format, task)
    for format in ("jsonl", "cgdialog", "labelstudio", "doccano")
    for task in (CAUSES, LABELS, RATED, PAIRS, WHOLE)
    if format in ("jsonl", "labelstudio")
    or task is CAUSES
    or (format == "doccano" and task is LABELS)
]


@pytest.mark.parametrize(("format", "task"), CASES, ids=lambda c: getattr(c, "kind", c))
@settings(max_examples=30)
@given(data=st.data())
def test_nothing_is_lost(
    format: str, task: Task, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one = data.draw(worked(task))
    (found,) = through(format, task, [one], tmp_path_factory.mktemp("format"))
    assert found.item == one.item
    assert set(map(repr, found.works)) == set(map(repr, one.works))


def test_what_counts_is_what_training_reads(store: Store, tmp_path: Path) -> None:
    number, _ = project_of(store, talks(3), ["ann"], overlap=0.0)
    do(store, number, "ann", "talk0", "first", mark(0, 0, 11), mark(2, 0, 8))
    do(store, number, "ann", "talk1", "first", event("none"))
    for format in ("jsonl", "cgdialog"):
        path = tmp_path / f"{format}.json"
        path.write_text("".join(export(store.snapshot(number), format)), encoding="utf-8")
        first, second, third = read_annotations(path)
        assert isinstance(first, Annotation)
        assert isinstance(second, Annotation)
        assert isinstance(third, Annotation)
        assert first.places == (Place(0, 0, 11), Place(2, 0, 8))
        assert first.exchange.response == Turn("B", "Look, 0.")
        assert second.causes == frozenset()


def test_published_cgdialog_comes_in(store: Store, tmp_path: Path) -> None:
    records = [
        {
            "HITId": "one",
            "history": ["A: I lost my keys. Help!", "B: Where?", "A: At home.", ""],
            "response": "B: Look there.",
            "entities": ["lost my keys", "Help! B: Where?", "the moon"],
        },
        {"HITId": "two", "history": ["A: Hi.", ""], "response": "B: Yes.", "entities": []},
    ]
    path = tmp_path / "published.json.gz"
    path.write_bytes(gzip.compress(json.dumps(records).encode()))
    number, _ = project_of(store, [], [])
    found = [one for one in read_worked(path, CAUSES) if isinstance(one, Worked)]
    added = add_works(store, number, found)
    assert (added.items, added.works) == (2, 2)
    assert added.problems == ("one: no turn contains 'the moon'",)
    again = add_works(store, number, found)
    assert (again.items, again.works) == (0, 0)
    one, two = works_of(store.snapshot(number))
    (work,) = one.works
    texts = [m.place.text(one.item.turns) for m in work.state.marks]
    assert texts == ["lost my keys", "Help!", "Where?"]
    assert work.annotator == "imported"
    assert work.state.finished
    assert two.works[0].state.none
    assert [person.active for person in store.snapshot(number).people.values()] == [True, False]


def test_an_import_is_the_export(store: Store, tmp_path: Path) -> None:
    number, _ = project_of(store, talks(4), ["ann", "ben"], overlap=1.0)
    do(store, number, "ann", "talk0", "first", mark(0, 0, 3), event("comment", text="sure"))
    do(store, number, "ben", "talk0", "first", mark(1, 0, 3))
    for format in ("jsonl", "cgdialog", "labelstudio", "doccano"):
        path = tmp_path / f"{format}.json"
        path.write_text("".join(export(store.snapshot(number), format)), encoding="utf-8")
        other, _ = project_of(store, [], [], name=format)
        found = [one for one in read_worked(path, CAUSES) if isinstance(one, Worked)]
        assert len(add_works(store, other, found).problems) == 0
        kept = [repr(w.state) for one in works_of(store.snapshot(number)) for w in one.works]
        came = [repr(w.state) for one in works_of(store.snapshot(other)) for w in one.works]
        assert [re.sub("key='[^']*'", "", one) for one in came] == [
            re.sub("key='[^']*'", "", one) for one in kept
        ]


def test_the_name_of_another_text_is_a_problem(store: Store, tmp_path: Path) -> None:
    number, _ = project_of(store, talks(1), [])
    other = Worked(Item("talk0", (Turn("A", "Something"), Turn("B", "else")), (1,)))
    added = add_works(store, number, [other])
    assert added.items == 0
    assert added.problems == ("talk0: skipped, because a different item has this name",)
    twice = Worked(Item("new", (Turn("A", "Something"), Turn("B", "else")), (1,)))
    apart = Worked(Item("new", (Turn("A", "Another"), Turn("B", "text")), (1,)))
    assert add_works(store, number, [twice, apart]).items == 2
    names = [one.item.name for one in store.snapshot(number).items.values()]
    assert names == ["talk0", "new", "new (2)"]


def test_projects_of_other_programs_come_in(tmp_path: Path) -> None:
    region = {"start": "0", "end": "1", "startOffset": 3, "endOffset": 2}
    label_studio = {
        "id": 7,
        "data": {
            "dialogue": [
                {"author": "A", "text": "\U0001f511 keys"},
                {"author": "B", "text": "Ok."},
            ],
            "response": {"author": "A", "text": "Yes."},
        },
        "annotations": [
            {"completed_by": 3, "result": [
                {"from_name": "label", "value": {**region, "paragraphlabels": ["cause"]}}]},
            {"completed_by": 4, "was_cancelled": True, "result": []},
        ],
    }  # fmt: skip
    path = tmp_path / "label-studio.json"
    path.write_text(json.dumps([label_studio]), encoding="utf-8")
    (found,) = read_worked(path, CAUSES)
    assert isinstance(found, Worked)
    (work,) = found.works
    assert work.annotator == "annotator 3"
    assert work.state.places == (Place(0, 2, 6), Place(1, 0, 2))  # the key is two units there
    text = "A: \U0001f511 keys\nB: Ok.\nA: Yes."
    for labels in ({"label": [[5, 15, "Cause"]]}, {"entities": [
        {"start_offset": 5, "end_offset": 15, "label": "cause"}]}):  # fmt: skip
        path.write_text(json.dumps({"id": 1, "text": text, **labels, "Comments": []}))
        (found,) = read_worked(path, CAUSES)
        assert isinstance(found, Worked)
        assert found.works[0].state.places == (Place(0, 2, 6), Place(1, 0, 2))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"id": "x", "item": {"turns": []}}, "turns must be turns"),
        ({"id": "x", "item": {"turns": [{"speaker": "A", "text": "a"}]}}, "one turn before it"),
        ({"data": {"dialogue": 3}, "annotations": []}, "dialogue must be a list"),
        ({"text": "no speaker", "label": []}, "a line 'Speaker: text'"),
        ({"text": "A: a\nB: b", "label": [[0, "x"]]}, "is not a start, an end and a name"),
        ({"text": "A: a\nB: b", "label": [[0, 3, "odd"]]}, "'odd' is none of cause"),
        ({"turns": []}, "history is missing"),
    ],
)
def test_bad_records_are_said(record: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (found,) = read_worked(path, CAUSES)
    assert isinstance(found, Rejected)
    assert reason in found.reason
    assert found.line == 1


def test_formats_say_what_they_cannot_hold() -> None:
    with pytest.raises(CauserieError, match="doccano cannot hold pairs: use jsonl, labelstudio"):
        check_format(PAIRS, "doccano")
    with pytest.raises(CauserieError, match="'xml' is not a format"):
        check_format(PAIRS, "xml")
    with pytest.raises(CauserieError, match="judged cannot hold causes"):
        check_format(CAUSES, "judged")


def test_brat(store: Store, tmp_path: Path) -> None:
    items = [replace(talks(1)[0], name="a\nname"), *talks(2)[1:]]
    number, _ = project_of(store, items, ["ann"], overlap=0.0)
    do(store, number, "ann", "a\nname", "first", mark(0, 14, 24), event("comment", text="a\tb"))
    assert export_brat(store.snapshot(number), tmp_path / "brat") == 2
    text = (tmp_path / "brat" / "00001.txt").read_text()
    lines = (tmp_path / "brat" / "00001.ann").read_text().splitlines()
    assert lines[2:] == ["R1\tCauses Arg1:T2 Arg2:T1", "#1\tAnnotatorNotes T1\ta b"]
    for line, expected in zip(lines, ["Look, 0.", "It is red!"], strict=False):
        _, stretch, shown = line.split("\t")
        start, stop = map(int, stretch.split()[1:])
        assert text[start:stop] == shown == expected


def test_judgements_become_a_judged_set(store: Store, tmp_path: Path) -> None:
    number, _ = project_of(store, pairs(2, ["x", "y"]), ["ann", "ben"], PAIRS, overlap=1.0)
    now = store.snapshot(number)
    for one in now.assignments.values():
        item = now.items[one.item].item
        systems = [c.system for c in item.candidates]
        vote = "AB"[(systems[::-1] if one.swapped else systems).index("x")]
        answers = [event("answer", question=q.name, value=vote) for q in PAIRS.questions]
        do(store, number, now.people[one.person].name, item.name, "first", *answers)
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(export(store.snapshot(number), "judged")), encoding="utf-8")
    judged = read_judged(path)
    assert (judged.level, len(judged), judged.problems) == ("pair", 2, ())
    for pair in judged.pairs:
        assert [votes["overall"] for votes in pair.judgements] == [
            "AB"[pair.systems.index("x")]
        ] * 2


def test_ratings_become_a_judged_set(store: Store, tmp_path: Path) -> None:
    items = [replace(one, asked=(1, 3)) for one in talks(2)]
    number, _ = project_of(store, items, ["ann", "ben"], RATED, overlap=1.0)
    for name, value in (("ann", 2), ("ben", 5)):
        answers = [
            event("answer", question=q.name, turn=turn, value=value)
            for q in RATED.questions
            for turn in (1, 3)
        ]
        do(store, number, name, "talk0", "first", *answers)
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(export(store.snapshot(number), "judged")), encoding="utf-8")
    judged = read_judged(path)
    assert [item.id for item in judged.items] == ["talk0#1", "talk0#3"]
    assert judged.items[0].ratings["wit"] == (2.0, 5.0)
    assert judged.items[0].cluster == judged.items[1].cluster == "talk0"


def test_the_log_has_everything(store: Store) -> None:
    number, _ = project_of(store, talks(1), ["ann"])
    first = mark(0, 0, 3)
    do(store, number, "ann", "talk0", "first", first, event("undo", event=first.key), event("none"))
    events = [json.loads(line) for line in export(store.snapshot(number), "log")]
    assert [one["action"] for one in events] == ["mark", "undo", "none", "finish"]
    assert {(one["item"], one["annotator"], one["round"]) for one in events} == {
        ("talk0", "ann", "first")
    }
