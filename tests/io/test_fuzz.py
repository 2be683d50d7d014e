"""Whatever the bytes, reading ends in records, rejections or one `CauserieError`."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import INPUT_FORMATS, Rejected, read

RECORDS: list[dict[str, object]] = [
    {
        "id": 1,
        "turns": [{"speaker": "A", "text": "é\\n", "features": {"x": 1.5}}],
        "rating": 3,
        "background": ["b"],
    },
    {"messages": [{"role": "user", "content": "q"}, {"role": "tool", "content": "{}"}]},
    {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "😀"}]},
    {"context": '["a", "b"]', "response": {"speaker": "B", "text": "c"}, "reference": ["d"]},
]


def _parquet() -> bytes:
    buffer = io.BytesIO()
    table = pa.table({"context": [["a", "b"]] * 9, "response": ["c"] * 9, "rating": [1.5] * 9})
    pq.write_table(table, buffer, row_group_size=4, compression="none")
    return buffer.getvalue()


JSONL = "\n".join(json.dumps(record, ensure_ascii=False) for record in RECORDS).encode()
SEEDS = [
    JSONL,
    json.dumps(RECORDS).encode(),
    json.dumps(RECORDS, indent=2).encode(),
    b'id,context,response,reference\r\n1,"a\r\nb","c ""d""",e\r\n2,a,b,c\r\n3,"[""x""]",y,z\r\n',
    b"id\tcontext\tresponse\n1\ta\tb\n2\t\"a\nb\"\tc\n",
    b"Ann: hi\nBob: yo\n  and more\n\nAnn: bye\nBob: bye\n",
    _parquet(),
    gzip.compress(JSONL, mtime=0),
]  # fmt: skip

TOKENS = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r", b"\t", b"\\", b"\0", b"\xff"]
WORDS = [b"\\ud800", b"null", b"NaN", b"1e999", b"\xef\xbb\xbf", b"\x1f\x8b", b"PAR1", b"[" * 3000]

formats = st.sampled_from([None, *INPUT_FORMATS])


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.sampled_from([0, 1, 1, 2, 30]))
        data[at : at + size] = draw(st.sampled_from([b"", *TOKENS, *WORDS]) | st.binary(max_size=4))
    return bytes(data[: draw(st.sampled_from([len(data), len(data) // 2, max(0, len(data) - 3)]))])


def check(folder: Path, data: bytes, input_format: str | None) -> None:
    path = folder / "fuzz"
    path.write_bytes(data)
    with suppress(CauserieError):
        for record in read(path, input_format):
            assert isinstance(record, (Dialogue, Exchange, Rejected))
            if isinstance(record, Rejected):
                assert record.line >= 1
                assert record.reason
                continue
            dialogue = record.dialogue if isinstance(record, Exchange) else record
            assert any(turn.text for turn in dialogue.turns)
            assert len({turn.role is None for turn in dialogue.turns}) == 1
            for turn in dialogue.turns:
                assert turn.text == turn.text.strip()
                assert "\0" not in turn.text
            json.dumps(repr(dialogue), ensure_ascii=False).encode()
            json.dumps(dialogue.metadata, ensure_ascii=False, allow_nan=False).encode()


@settings(max_examples=150)
@given(st.binary(max_size=300), formats)
@example(b"\x1f", None)  # white space in a text, but not among bytes
def test_arbitrary_bytes(tmp_path: Path, data: bytes, input_format: str | None) -> None:
    check(tmp_path, data, input_format)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(TOKENS + WORDS + [b"A", b" ", b"context", b"turns"])), formats)
def test_arbitrary_punctuation(
    tmp_path: Path, tokens: list[bytes], input_format: str | None
) -> None:
    check(tmp_path, b"".join(tokens), input_format)


@settings(max_examples=400)
@given(mutated(), formats)
def test_mutated_files(tmp_path: Path, data: bytes, input_format: str | None) -> None:
    check(tmp_path, data, input_format)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["speaker", "text", "role", "content", "from"]), inner)
    ),
    max_leaves=8,
)
KEYS = ["id", "turns", "messages", "conversations", "context", "response", "references", "rating"]
KEYS += ["metadata", "background", "features", "x"]


@settings(max_examples=150)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), json_values), min_size=1, max_size=3))
def test_any_json_in_any_field(tmp_path: Path, records: list[dict[str, object]]) -> None:
    lines = [json.dumps(record).encode() for record in records]
    check(tmp_path, b"\n".join(lines), "jsonl")
    check(tmp_path, b"[" + b",".join(lines) + b"]", "json")


@settings(max_examples=100)
@given(mutated())
def test_good_lines_survive_a_bad_neighbour(tmp_path: Path, data: bytes) -> None:
    good = b'{"id": "good", "turns": [{"speaker": "A", "text": "hi"}]}'
    path = tmp_path / "fuzz"
    path.write_bytes(good + b"\n" + data.replace(b"\n", b" ") + b"\n" + good)
    records = list(read(path, "jsonl"))
    assert sum(isinstance(r, Dialogue) and r.id == "good" for r in records) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_are_good(tmp_path: Path, seed: bytes) -> None:
    (tmp_path / "seed").write_bytes(seed)
    records = list(read(tmp_path / "seed"))
    assert len(records) >= 2
    assert not any(isinstance(record, Rejected) for record in records), records
