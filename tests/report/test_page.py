"""The page as a file: well-formed, self-contained, and hostile text stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Turn
from causerie.errors import CauserieError
from causerie.metrics.base import EMPTY, Column, Score
from causerie.render.page import shown
from causerie.report import build_report, write_report
from pages import HOSTILE, Reader
from report.making import page_of


def hostile_page(texts: tuple[str, ...] = HOSTILE) -> str:
    dialogues = []
    for text in texts:
        turns = (Turn(text, text, "user"), Turn("bot", text, "system", references=(text,)))
        dialogue = Dialogue(text, turns, system=text, metadata={"note": text})
        score = Score(1.0, explanation={text: [text]})
        dialogues.append((dialogue, {1: {texts[0]: score, "other": Score.unscored(text)}}))
    columns = {texts[0]: Column(help=texts[-1]), "other": Column(help=texts[0], sentinel=True)}
    return build_report(page_of(dialogues, columns, title=texts[0], signature=texts[-1]))


def test_the_page_is_well_formed_and_has_no_way_out() -> None:
    page = hostile_page()
    reader = Reader(page)
    assert not {name for _, name, _ in reader.attributes} & {"src", "href", "style", "action"}
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page.replace("// ", ""), re.IGNORECASE)
    assert {tag for tag, _, _ in reader.attributes} & {"img", "link", "iframe"} == set()


def test_only_the_page_s_own_script_and_style_may_run() -> None:
    reader = Reader(hostile_page())
    policy = next(v for _, n, v in reader.attributes if n == "content" and "default-src" in str(v))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    data, script = reader.text_of("script")
    (style,) = reader.text_of("style")
    for name, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert len(json.loads(data)["dialogues"]) == len(HOSTILE)


@settings(max_examples=25)
@given(st.text(min_size=1), st.text())
def test_any_text_keeps_the_page_well_formed(first: str, last: str) -> None:
    reader = Reader(hostile_page((first, last)))
    assert len(reader.text_of("script")) == 2


def test_hostile_names_are_shown_as_they_are() -> None:
    reader = Reader(hostile_page())
    assert HOSTILE[0] in reader.text_of("title")
    assert HOSTILE[-1] in reader.text_of("code")
    assert set(map(shown, HOSTILE)) <= set(reader.text_of("bdi"))


def test_nothing_obscene_and_no_control_reaches_the_page() -> None:
    """This holds for ids, speakers, systems, texts, titles, names of columns, and reasons."""
    bad = "fuck\x1b[31m\x07\x9b\u202e\u2066"
    dialogue = Dialogue(bad, (Turn(bad, bad), Turn(bad, bad)), system=bad, metadata={"note": bad})
    other = Dialogue("b", (Turn("a", bad), Turn("b", "")), system="other")
    score = Score(1.0, explanation={bad: [bad]})
    items = [
        (dialogue, {1: {bad: score, "x": Score.unscored(bad)}}),
        (other, {1: {bad: EMPTY, "x": EMPTY}}),
    ]
    columns = {bad: Column(help="h"), "x": Column()}
    text = build_report(page_of(items, columns, title=bad))
    decoded = text + json.dumps(json.loads(Reader(text).text_of("script")[0]), ensure_ascii=False)
    assert "fuck" not in decoded
    assert "f***" in decoded
    assert not set(decoded) & set("\x1b\x07\x9b\u202e\u2066")
    assert "\\u001b" not in decoded


def test_figures_directions_and_sentinels_are_in_the_table() -> None:
    def talk(system: str) -> Dialogue:
        return Dialogue(system, (Turn("u", "a"), Turn("s", "b"), Turn("s", "c")), system=system)

    columns = {
        "wit": Column(help="How witty it is."),
        "length": Column(help="Words.", better="lower", sentinel=True),
        "turns": Column(better=None),
    }
    rows = {1: {"wit": 1.0, "length": 3}, 2: {"wit": 2.0, "length": None}}
    page = build_report(
        page_of([(talk("aria"), rows), (talk("bramble"), {1: {"wit": EMPTY}})], columns)
    )
    table = page[page.index("<table>") : page.index("</table>")]
    cells = [" ".join(re.sub("<[^>]+>", " ", c).split()) for c in table.split("<td>")[1:]]
    assert cells[0].startswith("1.5 ± 0.707 2 scored")
    assert cells[1].startswith("– 0 scored, 1 empty")
    assert cells[2].startswith("3 1 scored, 1 unscored")
    assert table.count("↑") == table.count("↓") == 1
    assert table.count("sentinel") == 1
    assert "3 responses in 2 conversations of aria and bramble, each scored by 3 metrics." in page


@pytest.mark.parametrize("columns", [{}, {"wit": Column()}])
def test_nothing_scored_still_makes_a_page(columns: dict[str, Column]) -> None:
    page = build_report(page_of([], columns))
    Reader(page)
    assert "0 responses in 0 conversations" in page


def test_the_file_appears_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    stray = Dialogue("\ud800", (Turn("a", "\ud800"), Turn("b", "x")), system="\ud800")
    write_report(path, page_of([(stray, {1: {"wit": 1}})], {"wit": Column()}, title="\ud800"))
    assert path.read_text("utf-8").endswith("</html>\n")
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CauserieError, match="choose another place"):
        write_report(tmp_path / "file" / "r.html", page_of([], {}))
    (tmp_path / "folder").mkdir()
    with pytest.raises(CauserieError, match="choose another place"):
        write_report(tmp_path / "folder", page_of([], {}))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]
