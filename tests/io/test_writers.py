"""Tables: written whole or not at all, read back as they were."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.io import read_table, write_table
from causerie.io.atomic import atomic_folder, temporary_folder

COLUMNS = ["dialogue_id", "turn", "speaker", "length", "fed.fluent", "system", "explanation"]
TYPES = {"system": str, "explanation": dict}
SUFFIXES = [".jsonl", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".csv.gz", ".tsv.gz"]

ROW: dict[str, object] = {
    "dialogue_id": "=cmd()",
    "turn": 1,
    "speaker": "אB",
    "length": 3,
    "fed.fluent": None,
    "system": "-5",
    "explanation": {"é": [1, None]},
}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
objects = st.dictionaries(texts, st.none() | st.integers() | texts | st.lists(texts), max_size=3)
rows = st.fixed_dictionaries(
    {
        "dialogue_id": texts.map(lambda text: text or "x"),
        "turn": st.none() | st.integers(-(2**63), 2**63 - 1),
        "speaker": st.sampled_from(["A", "'", "'=", "''+", "@x", "\tx", "\rx", "1.0", "null", "-"]),
        "length": numbers,
        "fed.fluent": numbers,
        "system": st.none() | texts.filter(bool),
        "explanation": st.none() | objects,
    }
)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=60)
@given(table=st.lists(rows, max_size=4))
def test_round_trip(tmp_path: Path, suffix: str, table: list[dict[str, object]]) -> None:
    path = tmp_path / f"out{suffix}"
    write_table(iter(table), COLUMNS, path, TYPES)
    assert list(read_table(path, TYPES)) == table
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_types_and_order_survive(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write_table([ROW], COLUMNS, path, TYPES)
    (row,) = read_table(path, TYPES)
    assert list(row) == COLUMNS
    assert [type(value) for value in row.values()] == [
        str, int, str, float, type(None), str, dict,
    ]  # fmt: skip


def test_jsonl_as_other_tools_see_it(tmp_path: Path) -> None:
    write_table([ROW], COLUMNS, tmp_path / "out.jsonl", TYPES)
    text = (tmp_path / "out.jsonl").read_text("utf-8")
    assert text == (
        '{"dialogue_id": "=cmd()", "turn": 1, "speaker": "אB", "length": 3.0, '
        '"fed.fluent": null, "system": "-5", "explanation": {"é": [1, null]}}\n'
    )


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv_as_a_spreadsheet_sees_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write_table([{**ROW, "length": -1.5}], COLUMNS, path, TYPES)
    data = path.read_bytes()
    text = (gzip.decompress(data) if suffix.endswith("gz") else data).decode()
    header, row = csv.reader(text.splitlines())
    assert header == COLUMNS
    assert row == ["'=cmd()", "1", "אB", "-1.5", "", "'-5", '{"é": [1, null]}']


@given(texts)
def test_no_text_cell_is_a_formula(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "formula.csv"
    write_table([{"dialogue_id": text}], ["dialogue_id", "turn"], path)
    with path.open(newline="", encoding="utf-8") as file:
        _, (cell, _) = csv.reader(file)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_parquet_schema_does_not_depend_on_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    for table in ([], [ROW], [dict.fromkeys(COLUMNS)]):
        write_table(table, COLUMNS, path, TYPES)
        schema = pq.read_schema(path)
        assert [str(kind) for kind in schema.types] == [
            "string", "int64", "string", "double", "double", "string", "string",
        ]  # fmt: skip
        assert schema.names == COLUMNS


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_many_rows_and_what_is_not_finite(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    values = [math.nan, math.inf, -math.inf, 0.1]
    table = ({"dialogue_id": str(n), "turn": n, "length": values[n % 4]} for n in range(25_000))
    write_table(table, ["dialogue_id", "turn", "length"], path)
    read_back = list(read_table(path))
    assert len(read_back) == 25_000
    assert [row["length"] for row in read_back[:4]] == [None, None, None, 0.1]
    assert read_back[-1]["turn"] == 24_999


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write_table([ROW], COLUMNS, path, TYPES)
    before = path.read_bytes()

    def interrupted() -> Iterator[dict[str, object]]:
        for _ in range(12_000):
            yield ROW
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(interrupted(), COLUMNS, path, TYPES)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_same_rows_same_bytes(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    write_table([ROW] * 3, COLUMNS, one, TYPES)
    write_table([ROW] * 3, COLUMNS, two, TYPES)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("name", ["out", "out.xlsx", "out.json", "out.gz", "out.parquet.gz"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(CauserieError, match=r"has no known suffix: use \.jsonl, \.csv"):
        write_table([], COLUMNS, tmp_path / name)
    with pytest.raises(CauserieError, match="has no known suffix"):
        next(read_table(tmp_path / name))


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CauserieError, match="cannot be written"):
        write_table([], COLUMNS, tmp_path / "file" / "out.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CauserieError, match="cannot be written"):
        write_table([], COLUMNS, tmp_path / "folder.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder.csv"]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    write_table([], COLUMNS, tmp_path / "new" / "folder" / "out.csv")
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["out.csv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_not_a_table(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(CauserieError, match="does not exist"):
        list(read_table(tmp_path / f"none{suffix}"))
    (tmp_path / f"bad{suffix}").write_bytes(b'turn,length\n"1,x,y\n[3]\n\xff')
    with pytest.raises(CauserieError, match="is not a table that causerie wrote"):
        list(read_table(tmp_path / f"bad{suffix}"))


def test_json_values_are_plain(tmp_path: Path) -> None:
    write_table([{"e": {"a": (1, math.nan)}}], ["e"], tmp_path / "out.jsonl", {"e": dict})
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"e": {"a": [1, None]}}


def test_temporary_folders_of_dead_processes_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = [f"causerie-weights-{dead.pid}-x", f"causerie-weights-{os.getpid()}-y", "causerie-z"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    with temporary_folder("causerie-weights") as folder:
        assert Path(folder).is_dir()
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {*names[1:], Path(folder).name}


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives cannot be told elsewhere")
@pytest.mark.parametrize("replaced", [False, True])
def test_what_was_left_of_a_folder_by_a_killed_process_goes_back_or_goes(
    tmp_path: Path, replaced: bool
) -> None:
    """It may have been killed when the old folder was out of its place and the new one not in."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder, living = tmp_path / "mine", tmp_path / f".mine.{os.getppid()}.tmp"
    names = ["mine", f".mine.{dead.pid}.old"] if replaced else [f".mine.{dead.pid}.old"]
    for name in (*names, f".mine.{dead.pid}.tmp", living.name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_text("new" if name == "mine" else "old")
    with suppress(ZeroDivisionError), atomic_folder(folder) as made:
        (made / "content").write_text("half")
        raise ZeroDivisionError
    assert (folder / "content").read_text() == ("new" if replaced else "old")
    assert {*tmp_path.iterdir()} == {folder, living}
    with atomic_folder(folder) as made:
        (made / "content").write_text("whole")
    assert (folder / "content").read_text() == "whole"
    assert {*tmp_path.iterdir()} == {folder, living}
