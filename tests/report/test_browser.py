"""The page in a real browser: what a reader sees, and that hostile text does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from causerie.dialogue import Dialogue, Turn
from causerie.metrics.base import EMPTY, Column, Score
from causerie.render.page import shown as as_shown
from causerie.report import write_report
from report.making import page_of

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

HOSTILE = (
    "<script>window.broken = 1; alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'><b onmouseover=alert(3)>bold</b>",
    "a\u2028b\u2029c",
    "abc \u202edef",
)
WIT = {"wit": Column(help="How witty it is.")}
COLUMNS = {**WIT, "length": Column(help="Words.", better="lower", sentinel=True)}


def talk(name: str, system: str | None, answer: str) -> Dialogue:
    turns = (Turn("ann", f"about {name}", "user"), Turn("bot", answer, "system", references=("r",)))
    return Dialogue(name, turns, system=system, metadata={"note": answer})


@pytest.fixture(scope="module")
def page(browser: webdriver.Chrome, tmp_path_factory: pytest.TempPathFactory) -> webdriver.Chrome:
    """Ten conversations of two systems; the two columns rank them in opposite ways."""
    items = [
        (
            talk(f"talk{n}", "aria" if n % 2 else "bramble", f"answer {n}"),
            {1: {"wit": Score(n, explanation={"cause": [n, {"p": 0.25}]}), "length": n or None}},
        )
        for n in range(10)
    ]
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(path, page_of(items, COLUMNS, title="Ten talks"))
    browser.get(path.as_uri())
    return browser


@pytest.fixture(autouse=True)
def _fresh_page(request: pytest.FixtureRequest) -> None:
    if "page" in request.fixturenames:
        request.getfixturevalue("page").refresh()


def steps(page: webdriver.Chrome) -> list[str | None]:
    bubbles = page.find_elements(By.CSS_SELECTOR, ".turn.system .bubble")
    return [bubble.get_attribute("data-step") for bubble in bubbles]


def visible(page: webdriver.Chrome) -> list[str]:
    talks = page.find_elements(By.CSS_SELECTOR, ".talk:not([hidden]) h3")
    return [title.get_property("textContent") for title in talks]


def choose(page: webdriver.Chrome, control: str, text: str) -> None:
    Select(page.find_element(By.ID, control)).select_by_visible_text(text)


def test_turns_are_coloured_by_rank_and_another_metric_recolours(page: webdriver.Chrome) -> None:
    # Middle ranks of ten different values are .05, .15, ... .95: which seventh is each in?
    expected = [str(int((n + 0.5) / 10 * 7)) for n in range(10)]
    assert steps(page) == expected
    colours = {
        bubble.value_of_css_property("background-color")
        for bubble in page.find_elements(By.CSS_SELECTOR, ".turn.system .bubble")
    }
    assert len(colours) == 7
    choose(page, "metric", "length")
    assert steps(page) == ["none"] + [str(int((9 - n + 0.5) / 9 * 7)) for n in range(1, 10)]


def test_the_filter_the_search_and_the_order(page: webdriver.Chrome) -> None:
    assert len(visible(page)) == 10
    choose(page, "system", "aria")
    assert visible(page) == [f"talk{n}" for n in (1, 3, 5, 7, 9)]
    choose(page, "order", "best first")
    assert visible(page) == [f"talk{n}" for n in (9, 7, 5, 3, 1)]
    page.find_element(By.ID, "search").send_keys("ANSWER 3")
    assert visible(page) == ["talk3"]
    assert page.find_element(By.ID, "shown").text == "1 of 10 conversations"
    page.find_element(By.ID, "search").send_keys(Keys.BACKSPACE * 8)
    choose(page, "system", "all")
    choose(page, "metric", "length")
    assert visible(page) == [f"talk{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)]


def test_the_worst_lead_to_their_conversation_and_keys_open_its_scores(
    page: webdriver.Chrome,
) -> None:
    choose(page, "system", "aria")
    worst = page.find_elements(By.CSS_SELECTOR, "#worst li")
    assert [item.find_element(By.CSS_SELECTOR, ".text:not(.before)").text for item in worst] == [
        f"answer {n}" for n in (1, 3, 5, 7, 9)
    ]
    worst[1].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    focused = page.switch_to.active_element
    assert focused.tag_name == "summary"
    focused.send_keys(Keys.ENTER)
    opened = page.find_element(By.CSS_SELECTOR, ".turn.focus .scores[open]")
    # The scores are drawn when the page hears that they were opened, a moment later.
    WebDriverWait(page, 10).until(lambda _: "wit3" in str(opened.get_property("textContent")))
    words = opened.get_property("textContent")
    for part in ("wit3", "length3", "References", "Explanation", "cause", "p0.25"):
        assert part in words


def test_hostile_text_is_only_ever_text(browser: webdriver.Chrome, tmp_path: Path) -> None:
    rows = [
        {1: {HOSTILE[1]: Score(n, explanation={text: text}), "x": Score.unscored(text)}}
        for n, text in enumerate(HOSTILE)
    ]
    items = [(talk(text, text, text), row) for text, row in zip(HOSTILE, rows, strict=True)]
    columns = {HOSTILE[1]: Column(help=HOSTILE[0]), "x": Column()}
    path = tmp_path / "report.html"
    write_report(path, page_of(items, columns, title=HOSTILE[0], signature=HOSTILE[2]))
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    browser.execute_script(
        "document.querySelectorAll('details').forEach((box) => { box.open = true; })"
    )
    # The alert of a script that ran would make every further call fail.
    shown = browser.execute_script(
        "return [...document.querySelectorAll('.turn.system > .bubble > .text')]"
        ".map((node) => node.textContent)"
    )
    assert shown == [as_shown(text) for text in HOSTILE]
    assert browser.title == HOSTILE[0]
    assert browser.find_element(By.TAG_NAME, "h1").text == HOSTILE[0]
    assert browser.find_element(By.CSS_SELECTOR, ".turn.system .text").text == HOSTILE[0]
    assert browser.execute_script("return window.broken") is None
    assert (
        browser.execute_script("return document.querySelectorAll('img, main script').length") == 0
    )
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"].endswith("WillBeSent")]
    assert asked == [path.as_uri()]


@pytest.mark.parametrize("columns", [{}, COLUMNS])
def test_an_empty_page_has_no_errors(
    browser: webdriver.Chrome, tmp_path: Path, columns: dict[str, Column]
) -> None:
    path = tmp_path / "report.html"
    write_report(path, page_of([(talk("t", None, "x"), {1: {}})], columns))
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert visible(browser) == ["t"]
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(page: webdriver.Chrome, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    overflow = page.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert overflow == 0


def test_arcs_lead_from_causes_to_the_response(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Drawn while the scores of a response are open: one arc for each turn it depends on."""
    turns = tuple(Turn("AB"[n % 2], f"utterance {n}") for n in range(4))
    found = {
        "dependents": [
            {"turn": 0, "p": 0.6, "direct": False},
            {"turn": 2, "p": 0.9, "direct": True},
        ],
        "conditional": [[None, 0.4], [0.8, None]],
    }
    rows = {
        3: {"wit": Score(1.0, explanation=found)},
        1: {"wit": Score(0.5, explanation={"dependents": []})},
    }
    path = tmp_path / "report.html"
    write_report(path, page_of([(Dialogue("talk", turns), rows)], WIT, drawings={"wit": "arcs"}))
    browser.get(path.as_uri())
    boxes = browser.find_elements(By.CSS_SELECTOR, "details.scores")

    def arcs(expected: int) -> list[dict[str, str]]:
        """The attributes of each arc, read in one go: they are drawn anew as the page settles."""
        script = """return [...document.querySelectorAll(".arcs path")].map(
            path => Object.fromEntries([...path.attributes].map(a => [a.name, a.value])))"""
        # `toggle` is told after the click
        WebDriverWait(browser, 120).until(lambda b: len(b.execute_script(script)) == expected)
        found: list[dict[str, str]] = browser.execute_script(script)
        return found

    assert arcs(0) == []
    boxes[1].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    weak, strong = arcs(2)
    assert float(weak["stroke-width"]) < float(strong["stroke-width"])
    assert (weak["stroke-dasharray"], strong["stroke-dasharray"]) == ("5 4", "none")
    bubbles = [b.rect for b in browser.find_elements(By.CSS_SELECTOR, ".bubble")]
    talk_top = browser.find_element(By.CSS_SELECTOR, ".talk").rect["y"]
    start = float(strong["d"].split(",")[1].split()[0]) + talk_top
    assert bubbles[2]["y"] <= start <= bubbles[2]["y"] + bubbles[2]["height"]
    boxes[1].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert arcs(0) == []
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_topic_graphs_are_drawn(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Words on both sides, a line for every edge, and the ways between words as text."""
    turns = (Turn("A", "My dog!"), Turn("B", "A cat <b>and</b> a star."))
    found = {
        "percentile": 40.0,
        "topics": {"context": ["dog"], "response": ["cat", "star<i>", "dog"]},
        "edges": [
            {"context": 0, "response": 0, "hops": 2, "path": ["dog", "pet", "cat"],
             "weight": 0.3333, "attention": 0.4},
            {"context": 0, "response": 1, "hops": None, "path": None,
             "weight": 0.05, "attention": 0.1},
            {"context": 0, "response": 2, "hops": 0, "path": ["dog"],
             "weight": 1.0, "attention": 0.2},
        ],
    }  # fmt: skip
    rows = {1: {"wit": Score(1.0, explanation=found)}}
    path = tmp_path / "report.html"
    write_report(path, page_of([(Dialogue("talk", turns), rows)], WIT, drawings={"wit": "graph"}))
    browser.get(path.as_uri())
    browser.find_element(By.CSS_SELECTOR, "details.scores summary").send_keys(Keys.ENTER)
    WebDriverWait(browser, 120).until(lambda b: b.find_elements(By.CSS_SELECTOR, "svg.topics"))
    shown = [e.get_attribute("textContent") for e in browser.find_elements(
        By.CSS_SELECTOR, "svg.topics text"
    )]  # fmt: skip
    assert shown == ["dog", "cat", "star<i>", "dog"]
    lines = browser.find_elements(By.CSS_SELECTOR, "svg.topics line")
    widths = [float(line.get_attribute("stroke-width")) for line in lines]
    assert sorted(widths, reverse=True) == [widths[0], widths[2], widths[1]]
    named = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "svg.topics + ul li")]
    assert named == ["dog = dog (0 hops)", "dog – pet – cat (2 hops)", "dog … star<i> (no path)"]
    assert "percentile" in browser.find_element(By.CSS_SELECTOR, "details.scores").text
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_an_explanation_is_drawn_as_its_metric_says(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    """Without a drawing, what looks like a graph or like arcs is a list."""
    turns = (Turn("A", "My dog!"), Turn("B", "A cat."))
    found = {
        "topics": {"context": ["dog"], "response": ["cat"]},
        "edges": [],
        "dependents": [{"turn": 0, "p": 0.6, "direct": True}],
    }
    rows = {1: {"wit": Score(1.0, explanation=found)}}
    path = tmp_path / "report.html"
    write_report(path, page_of([(Dialogue("talk", turns), rows)], WIT))
    browser.get(path.as_uri())
    box = browser.find_element(By.CSS_SELECTOR, "details.scores")
    box.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    WebDriverWait(browser, 30).until(lambda b: "dependents" in box.text)
    assert browser.find_elements(By.CSS_SELECTOR, "svg.topics, .arcs path") == []
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_an_empty_response_is_said_to_be_empty_and_is_the_worst(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    silent, fine = talk("silent", "aria", ""), talk("fine", "aria", "hello")
    stream = [(fine, {1: {"wit": 1.0}}), (silent, {1: {"wit": EMPTY}})]
    path = tmp_path / "report.html"
    write_report(path, page_of(stream, {"wit": Column(range=(0.0, None))}))
    browser.get(path.as_uri())
    assert browser.find_element(By.CSS_SELECTOR, "#worst li .meta b").text == "empty"
    assert steps(browser)[1] == "0"
    choose(browser, "order", "worst first")
    assert visible(browser) == ["silent", "fine"]
    shown = browser.find_elements(By.CSS_SELECTOR, ".turn.system .bubble > p")
    assert [p.text for p in shown] == ["(empty)", "hello"]
    means = [m.text for m in browser.find_elements(By.CSS_SELECTOR, ".talk .mean")]
    assert means == ["mean wit 0", "mean wit 1"]
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
