"""Files that are compressed, piped, missing, cut short or of no known format."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import INPUT_FORMATS, Rejected, read


def lines(count: int) -> bytes:
    turns = [[{"speaker": "A", "text": os.urandom(40).hex()}] for _ in range(count)]
    records = [{"id": n, "turns": said} for n, said in enumerate(turns)]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"id": ["0", "1"], "context": ["a"] * 2, "response": ["b"] * 2}), buffer
    )
    return buffer.getvalue()


CSV = b"id,context,response\n0,a,b\n1,a,b\n"
TEXT = b"A: a\nB: b\n\nA: a\nB: b\n"


@pytest.mark.parametrize("content", [lines(2), CSV, TEXT, parquet_bytes()])
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("piped", [False, True])
def test_gzip_and_pipes(tmp_path: Path, content: bytes, compress: bool, piped: bool) -> None:
    path = tmp_path / "in"
    path.write_bytes(gzip.compress(content) if compress else content)
    expected = list(read(path))
    assert len(expected) == 2
    assert not any(isinstance(record, Rejected) for record in expected)
    if piped:
        code = "from causerie.io import read\nfor r in read('-'): print(r)"
        shown = subprocess.run(
            [sys.executable, "-c", code], input=path.read_bytes(), capture_output=True, check=True
        ).stdout.decode()
        assert shown == "".join(f"{r}\n" for r in expected).replace("'in:", "'stdin:")


def test_a_pipe_that_trickles_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Trickle(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read1(1)

    class Stdin:
        buffer = Trickle(b"\xef\xbb\xbf\n" + lines(20))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert [r.id for r in read("-") if isinstance(r, Dialogue)] == [str(n) for n in range(20)]


@pytest.mark.parametrize("count", [100, 20_000])
def test_a_gzip_file_cut_midway_keeps_what_came_before(tmp_path: Path, count: int) -> None:
    whole = gzip.compress(lines(count))
    half = whole[: len(whole) // 2]
    (tmp_path / "in").write_bytes(half)
    *good, last = read(tmp_path / "in")
    assert isinstance(last, Rejected)
    assert last.reason.startswith("the rest cannot be read")
    assert last.line == len(good) + 1
    assert len(good) == zlib.decompressobj(wbits=31).decompress(half).count(b"\n") > 0
    assert [r.id for r in good if isinstance(r, Dialogue)] == [str(n) for n in range(len(good))]


def test_parquet_damaged_midway_keeps_what_came_before(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    texts = [os.urandom(500).hex() for _ in range(2000)]
    table = pa.table({"context": texts, "response": texts})
    pq.write_table(table, buffer, row_group_size=500, compression="snappy", use_dictionary=False)
    data = bytearray(buffer.getvalue())
    middle = len(data) * 7 // 10
    data[middle : middle + 200_000] = os.urandom(200_000)
    (tmp_path / "in").write_bytes(data)
    records = list(read(tmp_path / "in"))
    assert sum(isinstance(record, Exchange) for record in records) >= 500
    assert any(isinstance(record, Rejected) for record in records)


@pytest.mark.parametrize(
    ("content", "input_format", "message"),
    [
        (b"hello\nworld\n", None, "the format of {} cannot be told from its content"),
        (b"\x89PNG\r\n\x1a\n\0\0", None, "cannot be told"),
        (b"a,b\n1,2\n", None, "say which with --input-format"),
        (b"a,b\n1,2\n", "csv", '{}: there must be the columns "context" and "response"'),
        (
            b"a,b\n1,2\n",
            "csv",
            "but there are a, b: rename them, or say which is which with --columns",
        ),
        (b"context,response,Context\n", None, "{}: there are two columns named 'context'"),
        (b'"a', "csv", "{}: the header line cannot be read"),
        (b"PAR1 and nothing else", None, "{}: not a readable Parquet file"),
        (b"", "parquet", "{}: not a readable Parquet file"),
        (b"\x1f\x8b\x08 no gzip", None, "{} cannot be read"),
        ("A: a".encode("utf-16"), None, "{} is UTF-16 text: save it as UTF-8"),
        (b"A: a", "xml", "unknown input format 'xml': use one of jsonl, json, csv"),
    ],
)
def test_nothing_can_be_done(
    tmp_path: Path, content: bytes, input_format: str | None, message: str
) -> None:
    path = tmp_path / "in"
    path.write_bytes(content)
    with pytest.raises(CauserieError) as caught:
        list(read(path, input_format))
    assert message.format(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parquet_without_the_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "in")
    with pytest.raises(CauserieError, match=r'there must be the columns "context"'):
        list(read(tmp_path / "in"))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="does not exist: check its name"):
        list(read(tmp_path / "none"))
    with pytest.raises(CauserieError, match="is a folder"):
        list(read(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_has_no_records(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in").write_bytes(content)
    assert list(read(tmp_path / "in")) == []


def test_ids_made_from_the_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "log.2024.jsonl.gz"
    content = b'\n{"turns": [{"speaker": "A", "text": "a"}]}\n'
    path.write_bytes(gzip.compress(content))
    (record,) = read(path)
    assert isinstance(record, Dialogue)
    assert record.id == "log:2"


@pytest.mark.parametrize("name", ["jsonl", "json", "csv", "text"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    text = b"x" * 2000
    record = b'{"turns": [{"speaker": "A", "text": "%s"}]}' % text
    contents = {
        "jsonl": (record + b"\n") * 5000,
        "json": b"[" + b",".join([record] * 5000) + b"]",
        "csv": b"context,response\n" + b'"x\nx",%s\n' % text * 5000,
        "text": b"A: x\nB: %s\n\n" % text * 5000,
    }
    path = tmp_path / "in"
    path.write_bytes(contents[name])
    tracemalloc.start()
    try:
        count = sum(1 for _ in read(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 5000
    assert peak < 3 * 2**20


def test_no_heavy_import() -> None:
    code = (
        "import sys, causerie.io; "
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_formats_have_the_documented_names() -> None:
    assert INPUT_FORMATS == ("jsonl", "json", "csv", "tsv", "parquet", "text")
