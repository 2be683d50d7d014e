"""Odd but valid records, from file to score, give the same as their clean twins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import causerie
import tiny
from causerie.engines import Engines, Settings

METRICS = ("length", "overlap", "cosine")
CLEAN = [list(tiny.CORPUS[:4]), list(tiny.CORPUS[4:7])]


def jsonl(dialogues: list[list[str]], ascii_only: bool = True) -> bytes:
    lines = []
    for number, said in enumerate(dialogues):
        turns = [{"speaker": "AB"[n % 2], "text": text} for n, text in enumerate(said)]
        lines.append(json.dumps({"id": str(number), "turns": turns}, ensure_ascii=ascii_only))
    return "".join(line + "\n" for line in lines).encode()


@pytest.fixture
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert)))


def evaluated(content: bytes, folder: Path, engines: Engines) -> causerie.Result:
    """Return the scores of a file; no row may be unscored."""
    file = folder / "in"
    file.write_bytes(content)
    result = causerie.evaluate(causerie.read(file), METRICS, engines=engines, text=False)
    assert all(row[name] is not None for row in result for name in METRICS)
    return result


def scores(content: bytes, folder: Path, engines: Engines) -> list[dict[str, object]]:
    return evaluated(content, folder, engines).to_pylist()


def numbers(rows: list[dict[str, object]]) -> list[list[object]]:
    return [[row[name] for name in METRICS] for row in rows]


@pytest.mark.parametrize(
    ("odd", "clean"),
    [
        (b"\xef\xbb\xbf" + jsonl(CLEAN), jsonl(CLEAN)),
        (jsonl(CLEAN).replace(b"\n", b"\r\n"), jsonl(CLEAN)),
        (b"\n\n" + jsonl(CLEAN) + b"  \n", jsonl(CLEAN)),
        *(
            (jsonl([said], ascii_only=False), jsonl([said]))
            for said in (
                ["مرحبا، كيف حالك؟", "שלום \u202eעולם\u202c שלום"],
                ["👋🏽 hi 👩‍👩‍👧", "🏳️‍🌈 ok hi"],
            )
        ),
    ],
    ids=["byte order mark", "line ends", "blank lines", "right-to-left", "emoji"],
)
def test_equal_to_the_clean_twin(odd: bytes, clean: bytes, tmp_path, engines) -> None:
    found = scores(odd, tmp_path, engines)
    assert found == scores(clean, tmp_path, engines)
    assert found


def test_dialogues_with_one_id_are_both_kept(tmp_path, engines) -> None:
    twice = jsonl(CLEAN).replace(b'"id": "1"', b'"id": "0"')
    found = scores(twice, tmp_path, engines)
    assert {row["dialogue_id"] for row in found} == {"0"}
    assert numbers(found) == numbers(scores(jsonl(CLEAN), tmp_path, engines))


@pytest.mark.parametrize("place", ["context", "response"])
def test_a_turn_of_five_megabytes(place: str, tmp_path, tiny_bert) -> None:
    """It scores like one that just exceeds the encoder's window; its length counts all words."""

    def found(repeats: int) -> tuple[dict[str, object], tuple[int, int]]:
        engines = Engines(Settings(encoder=str(tiny_bert)))
        said = ["hello music " * repeats, "music is fine"]
        content = jsonl([said if place == "context" else said[::-1]])
        result = evaluated(content, tmp_path, engines)
        [row] = result
        return row, result.summary().cuts["encoder"]

    (odd, odd_cut), (clean, clean_cut) = found(5_000_000 // 12), found(200)
    assert odd_cut == clean_cut == (1, 2)
    if place == "response":
        assert (odd.pop("length"), clean.pop("length")) == (2 * (5_000_000 // 12), 400)
    assert odd == clean


def test_a_dialogue_of_ten_thousand_turns(tmp_path, engines) -> None:
    said = [tiny.CORPUS[n % 12] for n in range(10_000)]
    found = scores(jsonl([said]), tmp_path, engines)
    assert [row["turn"] for row in found] == list(range(1, 10_000))
    assert found[:99] == scores(jsonl([said[:100]]), tmp_path, engines)
    # Every text has been said before by then.
    assert numbers(found)[1200:1212] == numbers(found)[9600:9612]
