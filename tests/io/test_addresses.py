"""Files by address: patterns, reading, and writing whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.io import Folder, read
from causerie.io.addresses import expand

LINE = '{"id": "d", "turns": [{"speaker": "A", "text": "hi"}, {"speaker": "B", "text": "yo"}]}\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("a/1.jsonl", "a/2.jsonl.gz", "a/b/3.jsonl", "c/4.jsonl", "c/[5] 100%é.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        data = LINE.encode()
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a/*.jsonl", ["a/1.jsonl"]),
        ("a/*.jsonl*", ["a/1.jsonl", "a/2.jsonl.gz"]),
        ("a/**/*.jsonl", ["a/1.jsonl", "a/b/3.jsonl"]),
        ("*/4.jsonl", ["c/4.jsonl"]),
        ("c/[5] 100%é.jsonl", ["c/[5] 100%é.jsonl"]),
        ("c/*%é.*", ["c/[5] 100%é.jsonl"]),
    ],
)
def test_patterns(files: Path, pattern: str, names: list[str]) -> None:
    for place in (str(files), f"file://{files}"):
        found = [(f"{place}/{name}", (files / name).stat().st_size) for name in names]
        assert expand(f"{place}/{pattern}") == found


def test_what_nothing_is_called_by(files: Path) -> None:
    for place in (str(files), f"file://{files}"):
        with pytest.raises(CauserieError, match="no file is called"):
            expand(f"{place}/x*.jsonl")
    with pytest.raises(CauserieError, match="no file system known here"):
        expand("nowhere://a/*.jsonl")
    with pytest.raises(CauserieError, match="no file is called"):
        expand(f"file://{files}/x")


def test_reading_by_address_is_reading(files: Path) -> None:
    for name in ("a/1.jsonl", "a/2.jsonl.gz", "c/[5] 100%é.jsonl"):
        (here,) = read(files / name)
        (there,) = read(f"file://{files}/{name}")
        assert here.turns == there.turns
        assert there.source == f"file://{files}/{name}"


@pytest.mark.parametrize("address", ["", "file://"])
def test_folder(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(f"{address}{tmp_path}/new")
    assert folder.names() == []
    assert not folder.has("x")
    folder.write("x", b"one")
    folder.write("x", b"two")
    folder.write("y", b"")
    assert folder.names() == ["x", "y"]
    with folder.open("x") as file:
        assert file.read() == b"two"
    folder.remove("x")
    assert not folder.has("x")
    assert folder.has("y")


def test_address_with_what_is_said_to_its_system() -> None:
    assert Folder("s3://b/k/?region=x").of("part") == "s3://b/k/part?region=x"
    assert Folder("what?/k").of("part") == "what?/k/part"
