"""The printed tables: well-known cells, and the papers' own arithmetic as a check on ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causerie.bench.papers.printed import (
    PAPERS,
    Block,
    Cell,
    Row,
    Table,
    parse_paper,
    printed_tables,
)
from causerie.errors import CauserieError


def block(paper: str, table: str, title: str = "") -> Block:
    return next(b for b in printed_tables(paper).table(table).blocks if b.title == title)


def cell(paper: str, table: str, method: str, column: str, title: str = "") -> Cell:
    found = block(paper, table, title)
    row = next(r for r in found.rows if r.method == method)
    return row.cells[[c.label for c in found.columns].index(column)]


def blocks() -> Iterator[tuple[str, Table, Block]]:
    for paper in PAPERS:
        for table in printed_tables(paper).tables:
            for found in table.blocks:
                yield paper, table, found


@pytest.mark.parametrize(
    ("where", "value", "marker"),
    [
        (("causalscore", "3", "CausalScore", "DREAM Pearson", "Relevance"), 0.294, "*"),
        (("causalscore", "3", "BLEU", "ESConv Spearman", "Relevance"), -0.065, None),
        (("causalscore", "3", "CausalScore", "MSC IAA", "Overall"), 0.569, None),
        (("causalscore", "2", "→MaxCI", "ESConv Point-Biserial", "Overall"), 0.058, None),
        (("causalscore", "7", "CausalScore-MSC", "ESConv Pearson", "Relevance"), 0.145, None),
        (("density", "1", "DENSITY", "DailyDialog-Zhao ρ"), 0.5703, None),
        (("density", "1", "BLEU", "DailyDialog-Zhao r"), 0.0802, "*"),
        (("density", "4", "DynaEval", "ρ"), 0.492, "+"),
        (("density", "5", "L_RS + L_CL", "DailyDialog R@1"), 0.9062, None),
        (("grade", "1", "GRADE", "Transformer-Generator Spearman", "ConvAI2"), 0.617, None),
        (("grade", "2", "GRADE", "DialoGPT Pearson"), 0.487, None),
        (("cf-lstm", "2", "CF-LSTM", "L7d (7-day rolling average)"), 0.68, None),
        (("cf-lstm", "2", "CF-LSTM", "Binary"), 0.678, None),
        (("cf-lstm", "text", "average treatment effect", "value"), -0.7809, None),
        (("cpmi", "1", "FED + C-PMI", "Interesting"), 0.482, None),
        (("cpmi", "1", "FED", "Fluent"), -0.134, None),
    ],
)
def test_well_known_cells(where: tuple[str, ...], value: float, marker: str | None) -> None:
    found = cell(*where)
    assert (found.value, found.marker) == (value, marker)


def test_deviation_over_seeds() -> None:
    found = cell("grade", "3", "random sampling", "Transformer-Ranker Spearman")
    assert (found.value, found.marker, found.deviation) == (0.153, "*", 0.016)


def test_printed_averages_are_the_means_of_their_rows() -> None:
    checked = 0
    for paper, table, found in blocks():
        for place, column in enumerate(found.columns):
            if column.statistic != "average":
                continue
            for row in found.rows:
                if (table.number, found.title, row.method) == (
                    "1",
                    "EmpatheticDialogues",
                    "BLEURT",
                ):
                    continue  # wrong in print, as the table's notes say
                values = [c.value for c in row.cells]
                others = [v for i, v in enumerate(values) if i != place and v is not None]
                mean = sum(others) / len(others)
                assert values[place] == pytest.approx(mean, abs=0.00101), (paper, row.method)
                checked += 1
    assert checked == 23 + 8 + 6


def test_tables_that_repeat_one_another_agree() -> None:
    def by_method(found: Block) -> dict[str, Row]:
        return {row.method: row for row in found.rows}

    ours = by_method(block("causalscore", "3", "Relevance"))
    for row in block("causalscore", "7", "Relevance").rows:
        if row.method in ours:
            assert [c.value for c in row.cells] == [c.value for c in ours[row.method].cells]
    for dimension in ("Relevance", "Overall"):
        ablation = by_method(block("causalscore", "2", dimension))["CausalScore"]
        assert (
            ablation.cells == by_method(block("causalscore", "3", dimension))["CausalScore"].cells
        )
    for dimension in ("Specificity", "Consistency", "Empathy"):
        fifth = by_method(block("causalscore", "5", dimension))["CausalScore"]
        sixth = by_method(block("causalscore", "6", dimension))["CausalScore"]
        for left, right in zip(fifth.cells, sixth.cells, strict=True):
            assert right.value in (None, left.value)
    main = by_method(block("density", "1"))["DENSITY"].cells
    assert [c.value for c in block("density", "2").rows[0].cells] == [
        main[i].value for i in (0, 1, 4, 5)
    ]


def test_every_number_is_possible() -> None:
    correlations = {"pearson", "spearman", "average"}
    for paper, table, found in blocks():
        for row in found.rows:
            for column, one in zip(found.columns, row.cells, strict=True):
                if column.protocol or column.statistic in correlations:
                    assert one.value is None or -1 < one.value < 1, (paper, table.number, one)


def test_columns_have_a_protocol_wherever_the_data_is_public() -> None:
    private = {
        (paper, table.number)
        for paper, table, found in blocks()
        for column in found.columns
        if column.protocol is None and column.statistic != "average"
    }
    assert {paper for paper, _ in private} == {"cf-lstm", "density", "causalscore"}
    assert ("density", "1") not in private
    assert ("causalscore", "3") not in private


def test_unreadable_cells_are_few_and_say_so() -> None:
    unread = [
        (paper, table.number)
        for paper, table, found in blocks()
        for row in found.rows
        for one in row.cells
        if one.value is None
    ]
    assert set(unread) == {("causalscore", "5"), ("causalscore", "6")}
    assert len(unread) < 50


def test_unknown_papers_and_tables_are_told() -> None:
    with pytest.raises(CauserieError, match="use one of causalscore"):
        printed_tables("usr")
    with pytest.raises(CauserieError, match="use one of 1, 2, 3"):
        printed_tables("grade").table("9")


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        (
            {"label": "r", "statistic": "pearson", "protocol": "no/such"},
            ["0.1"],
            "unknown protocol",
        ),
        (
            {"label": "r", "statistic": "alpha", "protocol": "density/fed-dialogue"},
            ["0.1"],
            "has no 'alpha'",
        ),
        ({"label": "r", "statistic": "x"}, ["0.1", "0.2"], "2 cells for 1 columns"),
        ({"label": "r", "statistic": "x"}, ["0,1"], "not a printed number"),
        ({"label": "r", "statistic": "x"}, ["0.1*"], "markers do not explain"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    column: dict[str, str], values: list[str], reason: str
) -> None:
    row = {"method": "m", "metric": None, "values": values}
    blocks = [{"title": "", "columns": [column], "rows": [row]}]
    table = {"number": "1", "title": "t", "blocks": blocks}
    with pytest.raises(ValueError, match=reason):
        parse_paper({"paper": "p", "title": "t", "differs": "d", "tables": [table]})
