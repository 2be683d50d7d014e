"""Causal annotations in both shapes: turns, causes, and what is said about bad ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Turn
from causerie.errors import CauserieError
from causerie.io import Annotation, Rejected, read_annotations
from causerie.io.places import Place, places_of

OWN = {
    "id": "talk-1",
    "history": [
        {"speaker": "Ann", "text": "I lost my keys."},
        {"speaker": "Ben", "text": "Oh no. Where did you last see them?"},
        {"speaker": "Ann", "text": "In the kitchen. I lost my keys."},
    ],
    "response": {"speaker": "", "text": "Look under the table."},
    "cause_spans": ["I lost my keys.", "In the kitchen."],
    "cause_turns": [0, 2],
}
PUBLISHED = {
    "HITId": "1",
    "history": [
        "Ann: I lost my keys.",
        "Ben: Oh no.  Where did you last see them?",
        "Ann: In the kitchen.",
        "",
    ],
    "response": "Ben: Look under the table.",
    "entities": [" In the kitchen", "oh no. where did you last see them? in the", "the garden"],
}


def matching_turns(span: str, context: Sequence[Turn]) -> set[int]:
    return {place.turn for place in places_of(span, context)}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def only(path: Path) -> Annotation:
    (found,) = read_annotations(path)
    assert isinstance(found, Annotation), found
    return found


def test_own_shape(tmp_path: Path) -> None:
    found = only(write(tmp_path / "a.jsonl", OWN))
    exchange = found.exchange
    assert exchange.dialogue.id == "talk-1"
    assert [turn.speaker for turn in exchange.context] == ["Ann", "Ben", "Ann"]
    assert exchange.response == Turn("Ben", "Look under the table.")
    assert found.causes == {0, 2}  # as given: the span alone would mean the later turn
    assert found.unmatched == ()
    assert found.conversation == (
        "i lost my keys.",
        "oh no. where did you last see them?",
        "in the kitchen. i lost my keys.",
    )


def test_published_shape(tmp_path: Path) -> None:
    path = tmp_path / "published.json"
    path.write_text(json.dumps([PUBLISHED], indent=2), encoding="utf-8")
    packed = tmp_path / "published.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert only(path) == only(packed)
    found = only(path)
    assert [turn.text for turn in found.exchange.context] == [
        "I lost my keys.",
        "Oh no.  Where did you last see them?",
        "In the kitchen.",
    ]
    assert found.exchange.response == Turn("Ben", "Look under the table.")
    assert found.causes == {1, 2}
    assert found.unmatched == ("the garden",)
    assert found.exchange.dialogue.id == "published:2"


def test_spans_become_turns() -> None:
    turns = [Turn("A", "Yes. Sure"), Turn("B", "yes."), Turn("A", "The end"), Turn("Bob", "Of it")]
    assert matching_turns("Yes.", turns) == {0}  # as it is written, before any case
    assert matching_turns("YES.", turns) == {1}  # of several the latest
    assert matching_turns("Bob: Of", turns) == {3}
    assert matching_turns("end  Of", turns) == {2, 3}
    assert matching_turns("The end Bob: Of it", turns) == {2, 3}
    assert matching_turns("the start", turns) == frozenset()
    assert matching_turns(" \n", turns) == frozenset()
    assert matching_turns("any", []) == frozenset()


def test_a_short_span_is_a_word_rather_than_a_part_of_one() -> None:
    turns = [Turn("A", "No."), Turn("B", "I know."), Turn("A", "Nobody")]
    assert matching_turns("No", turns) == {0}
    assert matching_turns("no", turns) == {0}
    assert matching_turns("kno", turns) == {1}
    assert matching_turns("body", turns) == {2}


def test_places_are_characters_of_the_text_as_it_is() -> None:
    turns = [Turn("Ann", "I  LOST my\tkeys. Straße \U0001f511!"), Turn("Ben", "Oh no. Where?")]
    for span, text in {
        "lost my keys.": "LOST my\tkeys.",
        "strasse \U0001f511": "Straße \U0001f511",
        "Ann: I lost": "I  LOST",
        "Ann:": turns[0].text,
    }.items():
        (place,) = places_of(span, turns)
        assert place.text(turns) == text
    over = places_of("keys. Straße \U0001f511! oh no.", turns)
    assert [place.text(turns) for place in over] == ["keys. Straße \U0001f511!", "Oh no."]


def test_places_come_from_places_spans_or_turns(tmp_path: Path) -> None:
    found = only(write(tmp_path / "a.jsonl", OWN))
    # the span is in both turns, so the later has its characters, and the other is one as a whole
    assert found.places == (Place(0, 0, 15), Place(2, 0, 15), Place(2, 16, 31))
    whole = {**OWN, "cause_spans": None, "cause_turns": [1]}
    assert only(write(tmp_path / "b.jsonl", whole)).places == (Place(1, 0, 35),)
    places = [{"turn": 2, "start": 16, "stop": 20}]
    given = only(write(tmp_path / "c.jsonl", {**OWN, "cause_places": places}))
    assert given.places == (Place(2, 16, 20),)
    assert given.causes == {2}


@given(
    st.lists(st.text("aB \t", min_size=1).filter(str.strip), min_size=1, max_size=6),
    st.data(),
)
def test_a_place_holds_what_was_sought(texts: list[str], data: st.DataObject) -> None:
    turns = [Turn("S", text) for text in texts]
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text) - 1))
    span = text[start : data.draw(st.integers(start + 1, len(text)))]
    if span.strip():
        (place,) = places_of(span, turns)
        assert place.text(turns).split() == span.split()


@given(
    st.lists(st.text("ab ", min_size=1).filter(str.strip), min_size=1, max_size=6),
    st.data(),
)
def test_a_piece_of_a_turn_is_found_in_a_turn_that_has_it(
    texts: list[str], data: st.DataObject
) -> None:
    turns = [Turn("S", text) for text in texts]
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text) - 1))
    span = text[start : data.draw(st.integers(start + 1, len(text)))]
    found = matching_turns(span, turns)
    wanted = " ".join(span.split())
    if not wanted:
        assert not found
    else:
        squeezed = [" ".join(text.split()) for text in texts]
        whole = [i for i, text in enumerate(squeezed) if f" {wanted} " in f" {text} "]
        holding = [i for i, text in enumerate(squeezed) if wanted in text]
        assert found == {(whole or holding)[-1]}  # the latest that has its words, or the letters


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"history": None}, "history is missing"),
        ({"history": "Ann: hi"}, "history must be a list"),
        ({"history": ["", " "]}, "history has no turns"),
        ({"history": [{"speaker": "A", "text": ""}]}, "context turn 0: text is empty"),
        ({"history": [7]}, "context turn 0: must be an object, not int"),
        ({"response": None}, "response is missing"),
        ({"response": {"speaker": "A"}}, "response: text is missing"),
        ({"cause_turns": [3]}, "cause_turns: 3 is no turn of a history of 3"),
        ({"cause_turns": [-1]}, "cause_turns: -1 is no turn"),
        ({"cause_turns": [True]}, "cause_turns: True is no turn"),
        ({"cause_turns": 1}, "cause_turns must be a list"),
        ({"cause_places": 1}, "cause_places must be a list"),
        ({"cause_places": [[0, 1]]}, "cause_places: [0, 1] is no place in 3 turns"),
        (
            {"cause_places": [{"turn": 0, "start": 0, "stop": 99}]},
            "'stop': 99} is no place in 3 turns",
        ),
        ({"cause_spans": "all"}, "cause_spans must be a list of strings"),
        ({"cause_spans": [1]}, "cause_spans must be a list of strings"),
        (
            {"cause_turns": None, "cause_spans": None},
            'has no "cause_turns", "cause_spans" or "entities"',
        ),
    ],
)
def test_bad_records_are_said_with_their_line(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    path = write(tmp_path / "a.jsonl", OWN, {**OWN, **change}, OWN)
    good, bad, after = read_annotations(path)
    assert isinstance(good, Annotation)
    assert isinstance(after, Annotation)
    assert isinstance(bad, Rejected)
    assert str(bad).startswith(f"{path}:2: ")
    assert reason in bad.reason


def test_no_causes_is_an_annotation_too(tmp_path: Path) -> None:
    found = only(write(tmp_path / "a.jsonl", {**OWN, "cause_turns": [], "cause_spans": []}))
    assert found.causes == frozenset()


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="does not exist"):
        list(read_annotations(tmp_path / "none.jsonl"))
