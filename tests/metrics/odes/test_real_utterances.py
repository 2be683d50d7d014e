"""How utterances of other data sets are split and labelled, on a few made-up ones."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.io import Rejected, read_labelled
from causerie.metrics.odes import CLASSES, OTHER

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import odes_data

TEXTS = st.lists(st.text("ab ", min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=25)


@given(TEXTS)
def test_groups_are_all_that_near_copies_link(texts: list[str]) -> None:
    keys = {" ".join(text.split()) for text in texts}
    found = odes_data.near_copies(keys)

    def alike(a: str, b: str) -> bool:
        one, other = set(a.split()), set(b.split())
        return len(one & other) / len(one | other) >= 2 / 3

    for start in keys:
        reached, edge = {start}, {start}
        while edge:
            edge = {b for a in edge for b in keys if alike(a, b)} - reached
            reached |= edge
        assert {key for key in keys if found[key] == found[start]} == reached


@given(TEXTS, st.randoms())
def test_copies_share_a_part_whatever_the_order(texts: list[str], rng: object) -> None:
    parts = odes_data.parts_of(texts)
    by_words: dict[tuple[str, ...], set[str]] = {}
    for text, part in zip(texts, parts, strict=True):
        by_words.setdefault(tuple(text.split()), set()).add(part)
    assert all(len(found) == 1 for found in by_words.values())
    counts = Counter(parts)
    for part, share in odes_data.SHARES.items():
        assert counts[part] <= share * len(texts)
    rng.shuffle(order := list(range(len(texts))))  # type: ignore[attr-defined]
    assert odes_data.parts_of([texts[i] for i in order]) == [parts[i] for i in order]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def save(name: str, rows: list[dict[str, object]]) -> None:
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    phrases = {
        "exit": ["quux corge", "grault garply", "waldo fred", "plugh xyzzy"],
        "stupid": ["thud blah", "boring foo"],
        "yes": ["aye aye"],
        "random": ["whatever this is"],
    }
    save(
        "dream_intents.jsonl.gz",
        [{"label": label, "text": text} for label, some in phrases.items() for text in some],
    )
    sexual = {"severity": -2, "types": ["sex_harassment"]}
    other = {"severity": -1, "types": ["intellectual"]}
    mild = {"severity": 1, "types": []}

    def said(text: str, label: str, *annotations: object) -> dict[str, object]:
        return {"text": text, "label": label, "context": ["hm?"], "annotations": annotations}

    save(
        "convabuse.jsonl.gz",
        [
            said("one uno", "abusive", sexual, sexual, other),
            said("two dos", "abusive", sexual, other),
            said("three tres", "not-abusive", mild, mild, sexual),
            said("four quatro", "ambiguous", mild),
        ],
    )
    return tmp_path


def test_labels_say_what_is_known(folder: Path, tmp_path: Path) -> None:
    parts = odes_data.sources(folder)
    every = {
        one.utterance.text: one
        for source in parts.values()
        for some in source.values()
        for one in some
    }
    assert set(every) == {
        *("quux corge", "grault garply", "waldo fred", "plugh xyzzy", "thud blah", "aye aye"),
        *("one uno", "two dos", "three tres"),
    }
    intents = {"stop_request", "topic_switch_request", "not_understand", "repeat_request"}
    intents |= {"insult", OTHER}
    assert every["quux corge"].labels == {"stop_request"}
    assert every["quux corge"].judged == intents
    assert every["thud blah"].judged == intents - {"stop_request"}
    assert (every["aye aye"].labels, every["aye aye"].judged) == ({OTHER}, set(CLASSES))
    assert every["one uno"].labels == {"obscenity"}
    assert every["two dos"].labels == {"insult"}
    assert every["two dos"].judged == {"insult", OTHER}
    assert (every["three tres"].labels, every["three tres"].judged) == (
        set(),
        {"insult", "obscenity"},
    )
    assert len(parts["dream"]["kept out"]) == 1  # a third of four, whole groups

    written = tmp_path / "written.jsonl"
    odes_data.write(written, list(every.values()))
    back = [one for one in read_labelled(written, CLASSES) if not isinstance(one, Rejected)]
    assert [(one.text, one.before, one.labels, one.judged) for one in back] == [
        (one.utterance.text, one.utterance.before, one.labels, one.judged) for one in every.values()
    ]


def test_nothing_kept_out_is_learned(folder: Path) -> None:
    (held,) = odes_data.sources(folder)["dream"]["kept out"]
    rows = list(odes_data.rows_of(folder / "convabuse.jsonl.gz"))
    copy = {**rows[2], "text": held.utterance.text.upper()}
    with gzip.open(folder / "convabuse.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(copy))
    parts = odes_data.sources(folder)
    assert [one.utterance.text for one in parts["convabuse"]["learned"]] == [copy["text"]]
    assert parts["dream"]["kept out"] == []
