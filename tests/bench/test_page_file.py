"""The bench page as a file: well-formed, self-contained, and hostile text stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.page_runs import METRICS, SENTINELS, realistic_run, renamed, run_of, small_set
from causerie.bench.page import build_page, write_page
from causerie.bench.results import RunResult
from causerie.errors import CauserieError
from causerie.render.page import shown
from pages import HOSTILE, Reader

RUN = realistic_run(("dailydialog_zhao", "dstc9", "causalscore_dream"))
SMALL = run_of(replace(small_set({"wit": 0.4, "length": None}), notes=("note",)))


def hostile_run(texts: tuple[str, ...] = HOSTILE, run: RunResult = RUN) -> RunResult:
    # Names stay distinct, as the run's own are.
    return renamed(run, lambda text: f"{texts[len(text) % len(texts)]}{text}")


def table_rows(page: str, kind: str) -> list[list[str]]:
    """The texts of the cells (heads included) of the first table of a kind."""
    table = page[page.index(f'<table class="{kind} grid"') :]
    rows = table[table.index("<tbody>") : table.index("</table>")].split("<tr")[1:]
    cells = (re.split(r"<t[dh]\b", row)[1:] for row in rows)
    return [
        [" ".join(re.sub("<[^>]+>", " ", f"<td{cell}").split()) for cell in row] for row in cells
    ]


@pytest.mark.parametrize("run", [RUN, hostile_run()], ids=["plain", "hostile"])
def test_the_page_is_well_formed_and_has_no_way_out(run: RunResult) -> None:
    page = build_page(run)
    reader = Reader(page)
    names = {name for _, name, _ in reader.attributes}
    assert not names & {"src", "style", "action", "srcset", "xlink:href"}
    assert not [name for name in names if name.startswith("on")]
    assert set(reader.values_of("href")) == {f"#set-{index}" for index in range(3)}
    ids = reader.values_of("id")
    assert {f"set-{index}" for index in range(3)} <= set(ids)
    assert len(ids) == len(set(ids))
    own = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?:|//[a-z]|@import|url\(", own, re.IGNORECASE)
    assert not {tag for tag, _, _ in reader.attributes} & {"img", "link", "iframe", "object"}


def test_only_the_page_s_own_script_and_style_may_run() -> None:
    reader = Reader(build_page(hostile_run()))
    policy = next(value for value in reader.values_of("content") if "default-src" in value)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    data, script = reader.text_of("script")
    (style,) = reader.text_of("style")
    for name, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert len(json.loads(data)) == 3


@settings(max_examples=15)
@given(st.text(min_size=1), st.text())
def test_any_text_keeps_the_page_well_formed(first: str, last: str) -> None:
    reader = Reader(build_page(hostile_run((first, last), SMALL)))
    assert len(reader.text_of("script")) == 2


def test_names_notes_reasons_and_signature_are_shown_as_they_are() -> None:
    run = hostile_run()
    reader = Reader(build_page(run))
    assert run.signature in reader.text_of("code")
    named = reader.text_of("bdi")
    for found in run.sets:
        assert shown(found.title) in named
        assert {shown(row.column) for row in found.rows} <= set(named)
        assert {*map(shown, (*found.notes, *found.problems))} <= set(reader.text_of("li"))
        assert found.licence in reader.text_of("dd")
        assert found.paper in reader.text_of("dd")


def test_the_ranking_has_every_row_in_order_with_people_first() -> None:
    found = RUN.sets[0]
    people, *rows = table_rows(build_page(RUN), "ranking")
    assert people[1] == "one person ceiling"
    assert people[2].startswith("0.710 ")
    assert [row[0] for row in rows] == [str(row.cluster) for row in found.rows]
    for cells, row in zip(rows, found.rows, strict=True):
        assert cells[1].split()[0] == row.column
        assert ("sentinel" in cells[1]) == (row.column in SENTINELS)
        assert ("↓" in cells[1]) == (row.column == "perplexity")
        value, _, rest = cells[2].replace("−", "-").partition(" ")
        low, high = (float(end) for end in rest.split(" to "))
        estimate = row.statistics["spearman"]
        assert float(value) == pytest.approx(estimate.value, abs=5e-4)
        assert (low, high) == pytest.approx((estimate.low, estimate.high), abs=5e-3)
    bleu = next(row for row in rows if row[1].startswith("bleu"))
    assert bleu[-1] == "12 12: it needs references and there are none"
    assert bleu[-3:-1] == ["0.21", "–"]


def test_a_row_without_a_number_says_why() -> None:
    page = build_page(realistic_run(("fed_dialogue",)))
    meteor = next(row for row in table_rows(page, "ranking") if row[1].startswith("meteor"))
    assert meteor[0] == "–"
    assert meteor[2] == "no item has references"


def test_the_heat_map_has_every_metric_and_set_and_bold_for_the_best() -> None:
    page = build_page(RUN)
    rows = table_rows(page, "heat")
    assert [row[0].split()[0] for row in rows[1:-3]] == [
        *sorted(set(METRICS) - SENTINELS, key=RUN.columns().index), "meteor"
    ]  # fmt: skip
    assert [row[0] for row in rows[-3:]] == [f"{name} ↑ sentinel" for name in RUN.columns()[-3:]]
    density = next(row for row in rows if row[0].startswith("density"))
    expected = [found.row("density").statistics[found.main].value for found in RUN.sets]  # type: ignore[union-attr]
    shown = [float(cell.replace("−", "-")) for cell in density[1:]]
    assert shown == pytest.approx(expected, abs=5e-3)
    first = page[page.index('<table class="heat grid"') :]
    first = first[: first.index("</table>")]
    assert first.count('class="best"') == len(RUN.sets)
    maps = page.count('<div class="map"')
    assert page.count('<div class="map" hidden>') == maps - 1
    assert page.count("<option>") == maps


def test_wins_are_in_the_order_of_the_ranking() -> None:
    found = RUN.sets[0]
    columns = found.significance.columns
    shown = table_rows(build_page(RUN), "wins")
    for line, row in zip(shown, found.rows, strict=True):
        assert line[0].endswith(f" {row.column}")
        wins = found.significance.wins[columns.index(row.column)]
        expected = ["▲" if wins[columns.index(other.column)] else "·" for other in found.rows]
        expected[found.rows.index(row)] = ""
        assert line[1:] == expected


@pytest.mark.parametrize(
    "run",
    [
        run_of(),
        run_of(small_set({})),
        run_of(small_set({"wit": None, "length": None}, ceiling=None)),
        run_of(small_set({"wit": 0.3}, items=1)),
        run_of(small_set({"wit": 1.0, "length": -1.0})),
        run_of(small_set({"wit": 0.0}, items=0)),
    ],
    ids=["no set", "no metric", "nothing scored", "one item", "extremes", "no item"],
)
def test_degenerate_runs_make_a_page(run: RunResult) -> None:
    page = build_page(run)
    Reader(page)
    assert "nan" not in re.sub("<style>.*</style>|<script>.*</script>", "", page, flags=re.S)


def test_the_file_appears_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    write_page(path, replace(run_of(small_set({"wit": 0.1})), signature="\ud800"))
    assert path.read_text("utf-8").endswith("</html>\n")
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


def test_a_place_that_cannot_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "file" / "page.html", tmp_path / "folder"):
        with pytest.raises(CauserieError, match="choose another place"):
            write_page(place, run_of())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_many_problems_with_a_file_are_counted_and_cut() -> None:
    problems = tuple(f"line {n} is broken" for n in range(60))
    page = build_page(run_of(replace(small_set({"wit": 0.1}), problems=problems)))
    assert "60 problems with the file" in page
    assert "line 49 is broken" in page
    assert "line 50 is broken" not in page
    assert "and 10 more" in page


def test_a_sample_says_of_how_many() -> None:
    page = build_page(realistic_run(("dstc9", "causalscore_dream")))
    assert "<li>1,000 dialogues of 2,200</li>" in page
    assert "<li>60 pairs of 120</li>" in page
