"""Odd but good records: read exactly as their clean twins."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causerie.dialogue import Dialogue, Exchange
from causerie.io import read

Said = list[str]
"""The texts of one dialogue."""


def turns(said: Said) -> list[dict[str, str]]:
    return [{"speaker": "BA"[(len(said) - 1 - n) % 2], "text": text} for n, text in enumerate(said)]


def jsonl(dialogues: list[Said]) -> bytes:
    lines = [json.dumps({"id": "x", "turns": turns(d)}, ensure_ascii=False) for d in dialogues]
    return "".join(line + "\n" for line in lines).encode()


def json_array(dialogues: list[Said]) -> bytes:
    return json.dumps([{"id": "x", "turns": turns(d)} for d in dialogues], indent=1).encode()


def delimited(dialogues: list[Said], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["id", "context", "response"])
    writer.writerows(["x", json.dumps(d[:-1]), d[-1]] for d in dialogues)
    return text.getvalue().encode()


def parquet(dialogues: list[Said]) -> bytes:
    buffer = io.BytesIO()
    context, response = [d[:-1] for d in dialogues], [d[-1] for d in dialogues]
    table = {"id": ["x"] * len(dialogues), "context": context, "response": response}
    pq.write_table(pa.table(table), buffer)
    return buffer.getvalue()


def plain_text(dialogues: list[Said]) -> bytes:
    blocks = ["".join(f"{t['speaker']}: {t['text']}\n" for t in turns(d)) for d in dialogues]
    return "\n".join(blocks).encode()


FORMATS: dict[str, Callable[[list[Said]], bytes]] = {
    "jsonl": jsonl,
    "json": json_array,
    "csv": lambda dialogues: delimited(dialogues, ","),
    "tsv": lambda dialogues: delimited(dialogues, "\t"),
    "parquet": parquet,
    "text": plain_text,
}

TEXT_FORMATS = [name for name in FORMATS if name != "parquet"]


def said(path: Path, content: bytes, input_format: str | None = None) -> list[Said]:
    path.write_bytes(content)
    found = []
    for record in read(path, input_format):
        dialogue = record.dialogue if isinstance(record, Exchange) else record
        assert isinstance(dialogue, Dialogue), record
        spoken = [turn.speaker for turn in dialogue.turns]
        assert spoken == [turn["speaker"] for turn in turns([t.text for t in dialogue.turns])]
        found.append([turn.text for turn in dialogue.turns])
    return found


CLEAN = [["How are you?", "Fine."], ["Why?", "Because.", "I see."]]


@pytest.fixture(params=FORMATS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("forced", [False, True])
def test_detected_and_forced(tmp_path: Path, name: str, forced: bool) -> None:
    assert said(tmp_path / "in", FORMATS[name](CLEAN), name if forced else None) == CLEAN


@pytest.mark.parametrize(
    "dialogues",
    [
        [["مرحبا، كيف حالك؟", "שלום \u202eעולם\u202c"]],
        [["👋🏽 hi 👩‍👩‍👧", "🏳️‍🌈 ok"], ["a\u2028b", "c\u0085d"]],
        [["naïve", "nai\u0308ve"]],  # not normalised: text is kept as given
        [["same", "id"], ["same", "id"]],
        [["=1+1", "'quoted'", '"quoted"']],
    ],
    ids=["right-to-left", "emoji", "accents", "duplicates", "punctuation"],
)
def test_text_is_kept(tmp_path: Path, name: str, dialogues: list[Said]) -> None:
    assert said(tmp_path / "in", FORMATS[name](dialogues)) == dialogues


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_byte_order_mark(tmp_path: Path, name: str) -> None:
    assert said(tmp_path / "in", b"\xef\xbb\xbf" + FORMATS[name](CLEAN)) == CLEAN


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_windows_line_ends(tmp_path: Path, name: str) -> None:
    assert said(tmp_path / "in", FORMATS[name](CLEAN).replace(b"\n", b"\r\n")) == CLEAN


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_blank_lines_around(tmp_path: Path, name: str) -> None:
    assert said(tmp_path / "in", b"\n\n" + FORMATS[name](CLEAN) + b"\n  \n\n") == CLEAN


def test_a_turn_of_five_megabytes(tmp_path: Path, name: str) -> None:
    long = [["x" * 5_000_000, "ok"], ["and", "on"]]
    assert said(tmp_path / "in", FORMATS[name](long)) == long


def test_a_dialogue_of_ten_thousand_turns(tmp_path: Path, name: str) -> None:
    long = [[f"turn {n}" for n in range(10_000)], ["and", "on"]]
    assert said(tmp_path / "in", FORMATS[name](long)) == long
