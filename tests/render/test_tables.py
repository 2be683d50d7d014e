"""One table in four formats, read back by other readers than ours; text stays text in each."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.render.tables import (
    Marked,
    Table,
    check_suffix,
    latex_text,
    markdown_table,
    markdown_text,
    write_tables,
)
from causerie.stats import Estimate

TABLE = Table(
    ["metric", Marked("my_set", "code"), "n"],
    [
        [Marked("length", "emphasis"), Estimate(0.5, 40, 0.25, 0.75), 1200],
        ["a|b*", Marked("0.400", "strong"), None],
        ["=1+1", Estimate(None, 0, reason="none"), 0.125],
    ],
    "Two % of all",
)


def written(tmp_path: Path, suffix: str, *tables: Table) -> str:
    path = tmp_path / f"table{suffix}"
    write_tables(path, *tables)
    return path.read_text(encoding="utf-8")


def test_markdown(tmp_path: Path) -> None:
    assert markdown_table(TABLE).splitlines() == [
        "| metric | `my_set` | n |",
        "| --- | --: | --: |",
        "| *length* | 0.500 [0.250, 0.750] | 1,200 |",
        r"| a\|b\* | **0.400** | – |",
        "| =1+1 | – | 0.125 |",
    ]
    assert written(tmp_path, ".md", TABLE).startswith("## Two % of all\n\n| metric |")


def test_a_markdown_file_is_the_whole_document_if_there_is_one(tmp_path: Path) -> None:
    write_tables(tmp_path / "a.md", TABLE, text="# All of it\n")
    write_tables(tmp_path / "a.json", TABLE, text="# All of it\n")
    assert (tmp_path / "a.md").read_text() == "# All of it\n"
    assert json.loads((tmp_path / "a.json").read_text())[0]["title"] == "Two % of all"


def test_latex(tmp_path: Path) -> None:
    text = written(tmp_path, ".tex", TABLE)
    assert r"\caption{Two \% of all}" in text
    assert r"\begin{tabular}{lrr}" in text
    assert r"metric & \texttt{my\_set} & n \\" in text
    assert r"\emph{length} & 0.500 {[}0.250, 0.750] & 1,200 \\" in text
    assert r"a\textbar{}b{*} & \textbf{0.400} & -- \\" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2


def test_csv_has_columns_for_the_ends_of_intervals_and_no_formula(tmp_path: Path) -> None:
    rows = list(csv.reader(written(tmp_path, ".csv", TABLE).splitlines()))
    assert rows == [
        ["metric", "my_set", "my_set low", "my_set high", "n"],
        ["length", "0.5", "0.25", "0.75", "1200"],
        ["a|b*", "0.400", "", "", ""],
        ["'=1+1", "", "", "", "0.125"],
    ]


def test_several_tables_of_a_csv_stand_below_their_titles(tmp_path: Path) -> None:
    rows = list(csv.reader(written(tmp_path, ".csv", TABLE, Table(["a"], [["b"]])).splitlines()))
    assert rows[0] == ["Two % of all"]
    assert rows[-4:] == [[], [""], ["a"], ["b"]]


def test_json_has_whole_numbers(tmp_path: Path) -> None:
    (table,) = json.loads(written(tmp_path, ".json", TABLE))
    assert table["columns"] == ["metric", "my_set", "n"]
    assert table["rows"][0] == ["length", {"value": 0.5, "low": 0.25, "high": 0.75}, 1200]
    assert table["rows"][2] == ["=1+1", {"value": None, "low": None, "high": None}, 0.125]
    (odd,) = json.loads(written(tmp_path, ".json", Table(["x"], [[float("nan")]])))
    assert odd["rows"] == [[None]]


def test_an_unknown_suffix_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for path in (tmp_path / "table.html", tmp_path / "table"):
        with pytest.raises(CauserieError, match=r"use one of \.md, \.tex, \.csv, \.json$"):
            check_suffix(path)
        with pytest.raises(CauserieError):
            write_tables(path, TABLE)
    assert not list(tmp_path.iterdir())


def test_rows_have_as_many_cells_as_headings() -> None:
    with pytest.raises(ValueError, match="needs 2 cells"):
        Table(["a", "b"], [["only one"]])


@given(st.text())
def test_no_text_is_markup_in_markdown(text: str) -> None:
    bare = re.sub(r"\\[\\|*_`<>\]]", "", markdown_text(text))
    assert not set("|*`<>\\\n\r") & set(bare)
    assert "](" not in bare
    assert "][" not in bare


@given(st.text("a_ *.", max_size=8))
def test_an_underscore_is_left_alone_only_within_a_word(text: str) -> None:
    line = markdown_text(text)
    for found in re.finditer(r"(?<!\\)_", line):
        around = line[found.start() - 1 : found.start()], line[found.end() : found.end() + 1]
        assert all(one.isalnum() for one in around)


@given(st.text())
def test_no_text_is_a_command_in_latex(text: str) -> None:
    known = r"\\text(?:backslash|asciitilde|asciicircum|less|greater|bar)\{\}|\\[&%$#_{}]"
    bare = re.sub(rf"{known}|\$-\$|\$\\pm\$|\{{[*\[]\}}", "", latex_text(text))
    assert not set("\\&%$#_{}~^\n\r") & set(bare)


@given(st.lists(st.text(), min_size=2, max_size=4))
def test_text_survives_csv_and_formulas_do_not(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    own = [cell.encode("utf-8", "replace").decode() for cell in cells]
    write_tables(path, Table([f"column {n}" for n in range(len(own))], [own]))
    with path.open(encoding="utf-8", newline="") as file:
        _, row = list(csv.reader(file, strict=True))
    assert not any(cell.startswith(tuple("=+-@\t\r")) for cell in row)
    assert all(cell in (said, f"'{said}") for cell, said in zip(row, own, strict=True))
