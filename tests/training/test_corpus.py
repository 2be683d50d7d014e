"""Training data: reading, holding out, batches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Turn
from causerie.errors import CauserieError
from causerie.io import Rejected
from causerie.training.corpus import Batches, Corpus, sample_evenly


def dialogue(name: str, turns: int = 2) -> Dialogue:
    return Dialogue(name, tuple(Turn("AB"[i % 2], f"{name} {i}") for i in range(turns)))


def corpus(*sizes: int) -> Corpus:
    return Corpus(
        tuple(tuple(dialogue(f"{s}/{i}") for i in range(size)) for s, size in enumerate(sizes))
    )


def test_reads_every_format_and_reports_bad_records(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": "a", "turns": [{"speaker": s, "text": s} for s in "ABA"]}),
        "{broken",
        json.dumps({"id": "short", "turns": [{"speaker": "A", "text": "alone"}]}),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.csv").write_text('context,response\n"Hi\nHello",How are you?\n')
    bad: list[Rejected] = []
    read = Corpus.read([tmp_path / "a.jsonl", tmp_path / "b.csv"], bad.append)
    assert [[len(d.turns) for d in source] for source in read.sources] == [[3], [3]]
    assert [record.line for record in bad] == [2]
    assert len(read) == 2
    assert len(read.exchanges) == 4


def test_nothing_is_learned_from_silence(tmp_path: Path) -> None:
    turns = [{"speaker": s, "text": text} for s, text in (("A", "Hi"), ("B", " "), ("A", "Well?"))]
    silent = [{"speaker": "A", "text": "Hi"}, {"speaker": "B", "text": ""}]
    lines = [json.dumps({"turns": said}) for said in (turns, silent)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    ((dialogue,),) = Corpus.read([tmp_path / "a.jsonl"]).sources
    assert [turn.text for turn in dialogue.turns] == ["Hi", "Well?"]


def test_a_file_without_dialogues_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"turns": [{"speaker": "A", "text": "alone"}]}\n')
    with pytest.raises(CauserieError, match="no dialogue of at least two turns"):
        Corpus.read([tmp_path / "a.jsonl"])


@given(st.lists(st.integers(8, 400), min_size=1, max_size=3), st.integers(0, 9))
def test_split_loses_and_doubles_nothing(sizes: list[int], seed: int) -> None:
    whole = corpus(*sizes)
    kept, held = whole.split(seed)
    names = [d.id for d in kept.dialogues] + [d.id for d in held.dialogues]
    assert sorted(names) == sorted(d.id for d in whole.dialogues)
    assert [len(s) for s in held.sources] == [max(s // 20, min(16, s // 4)) for s in sizes]
    assert whole.split(seed) == (kept, held)


def test_a_few_dialogues_cannot_be_split() -> None:
    with pytest.raises(CauserieError, match="--valid"):
        corpus(7).split(0)


def said(*texts: str) -> Dialogue:
    return Dialogue(texts[0], tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts)))


def test_dialogues_that_share_an_exchange_are_left_out() -> None:
    held = Corpus(((said("Hi.", "Where did you go last summer?", "To the lake, as always."),),))
    copy = said("Hey!", "where did you go last summer", "To the lake... as always!", "Nice.")
    swapped = said("To the lake, as always.", "Where did you go last summer?")
    short = said("Hi.", "Hi.", "Thanks.")
    other = said("Thanks.", "What a day!")
    kept = Corpus(((copy, swapped), (short, other))).without(held)
    assert kept.sources == ((swapped,), (short, other))
    common = Corpus(((said("Thanks.", "You are welcome."),),))
    assert len(Corpus(((said("Thanks.", "You are welcome."),),)).without(common)) == 1


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(1, 9), st.integers(0, 5))
def test_batches_are_of_one_source_and_the_same_whenever_asked(
    sizes: list[int], size: int, seed: int
) -> None:
    batches = Batches(corpus(*sizes).sources, size, seed)
    order = list(range(2 * len(batches)))
    first = {i: [d.id for d in batches[i]] for i in order}
    again = {
        i: [d.id for d in Batches(corpus(*sizes).sources, size, seed)[i]] for i in reversed(order)
    }
    assert first == again
    for names in first.values():
        assert len({name.split("/")[0] for name in names}) == 1
        assert len(names) < 2 * size
    epoch = [name for i in range(len(batches)) for name in first[i]]
    assert sorted(epoch) == sorted(d.id for d in corpus(*sizes).dialogues)


def test_epochs_differ() -> None:
    batches = Batches(corpus(64).sources, 8, 0)
    first = [[d.id for d in batches[i]] for i in range(8)]
    second = [[d.id for d in batches[i]] for i in range(8, 16)]
    assert first != second


def test_hash_is_of_the_words_alone() -> None:
    one = Corpus(((Dialogue("x", (Turn("A", "hi"), Turn("B", "ho"))),),))
    renamed = Corpus(((Dialogue("y", (Turn("A", "hi"), Turn("B", "ho"))),),))
    changed = Corpus(((Dialogue("x", (Turn("A", "hi"), Turn("B", "hop"))),),))
    moved = Corpus(((Dialogue("x", (Turn("A", "h"), Turn("B", "iho"))),),))
    assert one.sha256 == renamed.sha256
    assert Corpus((*one.sources, *one.sources)).sha256 != Corpus((one.sources[0] * 2,)).sha256
    assert len({one.sha256, changed.sha256, moved.sha256}) == 3


def by_users(dialogues: int, users: int) -> tuple[Dialogue, ...]:
    named = (dialogue(f"{number}") for number in range(dialogues))
    return tuple(
        replace(one, metadata={"user": f"u{number % users}"}) for number, one in enumerate(named)
    )


def users_of(part: Corpus) -> set[object]:
    return {one.metadata["user"] for one in part.dialogues}


def test_nobody_is_in_the_training_and_held_out() -> None:
    whole = Corpus((by_users(200, 40),))
    kept, held = whole.split(0)
    choosing, measuring = held.halves(0)
    assert len(kept) + len(held) == 200
    assert len(held) >= 10
    assert not users_of(kept) & users_of(held)
    assert len(choosing) + len(measuring) == len(held)
    assert not users_of(choosing) & users_of(measuring)


def test_a_log_of_few_users_is_divided_by_dialogue() -> None:
    kept, held = Corpus((by_users(100, 3),)).split(0)
    assert (len(kept), len(held)) == (84, 16)
    assert users_of(kept) == users_of(held)


def test_what_cannot_be_halved_is_in_both_halves() -> None:
    one, two = corpus(1, 6).halves(0)
    assert [len(source) for source in one.sources] == [1, 3]
    assert [len(source) for source in two.sources] == [1, 3]
    assert one.sources[0] == two.sources[0]
    assert len({d.id for half in (one, two) for d in half.sources[1]}) == 6


def test_records_are_left_out_by_what_their_fields_say(tmp_path: Path) -> None:
    turns = [{"speaker": s, "text": s} for s in "AB"]
    marks = [{"bot": "qc"}, {"bot": "other", "passed": False}, {"bot": "other"}, {"system": "qc"}]
    lines = [json.dumps({"id": str(n), "turns": turns, **mark}) for n, mark in enumerate(marks)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    fields = {"bot": frozenset({"qc", "none"}), "passed": frozenset({"False"})}
    read = Corpus.read([tmp_path / "a.jsonl"], without=fields)
    assert [one.id for one in read.dialogues] == ["2", "3"]


def test_an_epoch_may_draw_only_some_of_a_large_file() -> None:
    batches = Batches([range(100), range(100, 110)], 5, seed=0, most=20)
    epochs = [[thing for i in range(6) for thing in batches[6 * e + i]] for e in range(2)]
    assert len(batches) == 6
    for drawn in epochs:
        assert len(set(drawn)) == len(drawn) == 30
        assert set(range(100, 110)) <= set(drawn)
    assert set(epochs[0]) != set(epochs[1])


def test_groups_have_equal_shares_of_a_sample() -> None:
    drawn = sample_evenly([range(100), range(100, 102), range(200, 300)], 30, seed=0)
    assert [sum(n // 100 == group for n in drawn) for group in range(3)] == [10, 2, 10]
