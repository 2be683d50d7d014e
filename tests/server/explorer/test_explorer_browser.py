"""The explorer in a real browser over a real server: what a person does there, step by step."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from axe import LOOKS, faults, looking
from causerie.metrics.base import Column
from causerie.render.page import shown
from causerie.server.app import Config
from causerie.server.explorer.room import explorer_room
from pages import HOSTILE
from scored import chats, row, write_scores
from serving import Site, serving

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

NASTY = "".join(HOSTILE[:4])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("runs")
    for place, (name, shift) in enumerate((("monday", 0.0), ("tuesday", 0.5))):
        path = write_scores(folder / f"{name}.parquet", chats(shift=shift))
        os.utime(path, (1_700_000_000 + 86_400 * place,) * 2)
    hostile = write_scores(folder / "hostile.parquet", hostile_rows(), {NASTY: Column(help=NASTY)})
    os.utime(hostile, (1_600_000_000,) * 2)
    room = explorer_room([folder], folder / "marks.sqlite")
    with serving(Config((room,), port=0)) as site:
        yield site


def hostile_rows() -> Iterator[dict[str, Any]]:
    for n, text in enumerate(HOSTILE):
        said = {"speaker": text, "side": "user", "text": text}
        yield row(
            text,
            1,
            text,
            text,
            **{
                "speaker": text,
                NASTY: float(n) if n else None,
                "explanation": {
                    NASTY: {"topics": text, "edges": {text: text}, "dependents": [text, 1]}
                    if n
                    else {"unscored": text}
                },
                "conversation": {"side": "system", "before": [said], "after": [said]},
            },
        )


class Visitor:
    """A person at the browser, who waits until a page has what they look for."""

    def __init__(self, browser: webdriver.Chrome, site: Site) -> None:
        self.browser, self.site = browser, site

    def open(self, path: str) -> None:
        self.browser.get(self.site.address + path)
        self.ready()

    def ready(self) -> None:
        self.wait(
            lambda: self.browser.execute_script(
                "return document.readyState === 'complete' && document.title.includes(' · ')"
                " && !document.querySelector('main[aria-busy]')"
            )
        )

    def wait(self, what: Callable[[], Any]) -> Any:
        return WebDriverWait(self.browser, 60).until(lambda _: what())

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        return self.wait(lambda: (self.all(selector) or [None])[0])

    def texts(self, selector: str) -> list[str]:
        return [node.get_property("textContent") for node in self.all(selector)]

    def choose(self, control: str, text: str) -> None:
        Select(self.one(f"#{control}")).select_by_visible_text(text)
        time.sleep(0.05)
        self.ready()

    def complaints(self) -> list[Any]:
        return [e for e in self.browser.get_log("browser") if e["level"] == "SEVERE"]


@pytest.fixture
def visitor(browser: webdriver.Chrome, site: Site) -> Iterator[Visitor]:
    browser.get_log("browser")
    visitor = Visitor(browser, site)
    yield visitor
    assert visitor.complaints() == []


def test_the_first_screen_answers_in_words_and_pictures(visitor: Visitor) -> None:
    visitor.open("/")
    assert visitor.one("h1").text == "How good are your bots?"
    good, better, fails = visitor.texts("#sentences p")
    assert "density (higher is better)" in good
    assert better.startswith("bramble scores best")
    assert "certain" in better
    assert "“off topic”: 33.3% of the replies of aria" in fails
    assert "saw 2 of 50 inputs only in part" in visitor.one("#notes").text
    assert visitor.texts("#systems .who a") == ["bramble", "aria"]
    assert visitor.texts("#faults td") == ["33%", "0.0%"]
    assert len(visitor.all("#spread .histogram")) == 2
    assert len(visitor.all("#along circle")) == 6
    assert visitor.texts("#worst li .text:not(.before)")[0] == "answer 5 of aria about subject 0"
    visitor.choose("metric", "length")
    assert "metric=length" in visitor.browser.current_url
    assert "length (lower is better) is 6" in visitor.texts("#sentences p")[0]
    visitor.one("#about").send_keys(Keys.ENTER)
    told = visitor.wait(lambda: visitor.one("#signature").text)
    assert "causerie|test" in told


def test_find_open_and_come_back_by_the_address(visitor: Visitor) -> None:
    visitor.open("/explorer/replies")
    assert visitor.one("#count").text == "36 replies"
    visitor.one("#text").send_keys("SUBJECT 4", Keys.ENTER)
    visitor.wait(lambda: visitor.one("#count").text == "6 replies")
    visitor.choose("system", "bramble")
    visitor.choose("order", "best first")
    before = visitor.texts("#replies li")
    assert len(before) == 3
    assert "answer 1 of bramble about subject 4" in before[0]
    address = visitor.browser.current_url
    # a permalink restores the view, here and elsewhere
    visitor.browser.get("about:blank")
    visitor.browser.get(address)
    visitor.ready()
    assert visitor.texts("#replies li") == before
    assert visitor.one("#text").get_property("value") == "SUBJECT 4"
    assert Select(visitor.one("#system")).first_selected_option.text == "bramble"
    visitor.browser.back()
    visitor.browser.forward()
    visitor.ready()
    # keys lead from reply to reply and into the conversation
    visitor.one("body").send_keys("j")
    visitor.browser.switch_to.active_element.send_keys("j")
    visitor.browser.switch_to.active_element.send_keys(Keys.ENTER)
    visitor.wait(lambda: "/explorer/conversation" in visitor.browser.current_url)
    visitor.ready()
    assert visitor.one("h1").text == "bramble-4"
    assert visitor.texts(".turn .text")[:2] == [
        "question 1?",
        "answer 1 of bramble about subject 4",
    ]


CONVERSATION = "/explorer/conversation?run=tuesday.parquet&dialogue=bramble-4"


def test_a_conversation_is_coloured_and_its_scores_explained(visitor: Visitor) -> None:
    visitor.open(f"{CONVERSATION}&turn=3")
    bubbles = visitor.all(".turn.system .bubble")
    steps = [int(bubble.get_attribute("data-step")) for bubble in bubbles]
    assert steps == sorted(steps, reverse=True)
    assert len(visitor.all(".spark circle")) == 3
    opened = visitor.one(".turn.focus details[open]")
    visitor.wait(lambda: len(visitor.all(".arcs path")) == 1)
    assert visitor.texts("svg.topics text") == ["subject", "answer"]
    assert "human replies" in opened.text
    assert "turn 2, a direct cause: 90%" in opened.text
    # the arc runs beside the bubbles, from the turn before
    bends = visitor.one(".arcs path").get_attribute("d").split(" Q")[1].split(",")
    leftmost = min(bubble.rect["x"] for bubble in visitor.all(".bubble"))
    assert float(bends[0]) + visitor.one(".talk").rect["x"] < leftmost
    start = float(visitor.one(".arcs path").get_attribute("d").split(",")[1].split()[0])
    start += visitor.one(".talk").rect["y"]
    cause = visitor.all(".bubble")[2].rect
    assert cause["y"] <= start <= cause["y"] + cause["height"]
    visitor.one("body").send_keys("n")
    assert "turn=5" in visitor.browser.current_url
    assert visitor.texts(".turn.focus .text") == ["answer 5 of bramble about subject 4"]


def test_turns_are_tagged_and_exported(visitor: Visitor) -> None:
    visitor.open(f"{CONVERSATION}&turn=1")
    tags, comment = visitor.one(".marking input"), visitor.one(".marking textarea")
    tags.send_keys("dull, <b>odd</b>")
    comment.send_keys("why <script>?", Keys.TAB)
    visitor.wait(lambda: visitor.texts(".turn .notes .noted") == ["“why <script>?”"])
    visitor.open("/explorer/replies?run=tuesday.parquet&tag=dull")
    assert visitor.one("#count").text == "1 reply"
    assert visitor.texts("#replies .tag") == ["<b>odd</b>", "dull"]
    href = visitor.one("#save-replies").get_attribute("href")
    answer = visitor.site.ask("GET", href.removeprefix(visitor.site.address))
    (record,) = [json.loads(line) for line in answer.body.splitlines()]
    assert (record["id"], record["tags"]) == ("bramble-4#1", ["<b>odd</b>", "dull"])
    assert answer.headers["content-disposition"].startswith("attachment")


def test_two_runs_side_by_side(visitor: Visitor) -> None:
    visitor.open("/explorer/compare")
    sentence = visitor.one("#sentence").text
    assert sentence.startswith("tuesday.parquet scores better than monday.parquet")
    assert "differs by 0.5" in sentence
    assert "36 pairs" in visitor.one("#how").text
    assert len(visitor.all("#changed .side")) == 72
    assert visitor.texts("#means .who") == ["monday.parquet", "tuesday.parquet", ""]
    visitor.choose("a", "tuesday.parquet")
    visitor.choose("system_a", "aria")
    visitor.choose("system_b", "bramble")
    assert "bramble in tuesday.parquet scores better" in visitor.one("#sentence").text
    assert not visitor.one("#changed-section").is_displayed()


def test_the_history_of_runs(visitor: Visitor) -> None:
    visitor.open("/explorer/runs?run=monday.parquet")
    assert visitor.texts("#runs th[scope=row]") == [
        "tuesday.parquet",
        "monday.parquet",
        "hostile.parquet",
    ]
    assert len(visitor.all("#past circle")) == 2
    visitor.all("#runs th a")[1].send_keys(Keys.ENTER)
    visitor.wait(lambda: "How good" in visitor.one("h1").text)
    visitor.ready()
    assert visitor.one("#run").text == "monday.parquet"


@pytest.mark.parametrize("place", range(0, len(HOSTILE), 2))
def test_script_in_texts_and_names_does_not_run(visitor: Visitor, place: int) -> None:
    """An alert of a script that ran would make every further call fail."""
    run = "run=hostile.parquet"
    visitor.open(f"/explorer/?{run}")
    visitor.open(f"/explorer/replies?{run}&order=lowest")
    assert len(visitor.all("#replies li")) == len(HOSTILE)
    visitor.all("#replies a.open")[place].send_keys(Keys.ENTER)
    visitor.wait(lambda: visitor.all(".turn summary"))
    visitor.ready()
    (reply,) = visitor.texts(".turn.system > .bubble > .text")
    assert reply in {shown(text) for text in HOSTILE}
    assert visitor.one("h1").get_property("textContent") == reply
    for path in ("compare?a=hostile.parquet&b=hostile.parquet", f"runs?{run}"):
        visitor.open(f"/explorer/{path}")
    assert (
        visitor.browser.execute_script(
            "return document.querySelectorAll('main img, main script').length"
        )
        == 0
    )


@pytest.mark.parametrize(("look", "width"), LOOKS)
def test_axe_finds_no_fault(visitor: Visitor, look: str, width: int) -> None:
    with looking(visitor.browser, look, width):
        for path in ("", "replies?least=0", "compare", "runs", "conversation?dialogue=aria-1"):
            visitor.open(f"/explorer/{path}")
            if not path:
                visitor.one("#about").send_keys(Keys.ENTER)
                visitor.wait(lambda: visitor.one("#signature").text)
            assert (path, faults(visitor.browser)) == (path, [])
        noted = {"run": "tuesday.parquet", "dialogue": "bramble-4", "system": "bramble", "turn": 3}
        marked = {**noted, "tags": ["seen"], "comment": "by axe"}
        assert visitor.site.ask("PUT", "/explorer/api/marks", marked).status == 200
        visitor.open(f"{CONVERSATION}&turn=3")
        visitor.wait(lambda: visitor.all(".turn.focus details[open] dl"))
        assert "seen" in visitor.texts(".turn.focus .notes .tag")
        for step in (*range(7), "none"):  # every colour, with an open explanation on it
            visitor.browser.execute_script(
                "document.querySelectorAll('.bubble[data-step]')"
                ".forEach((one) => { one.dataset.step = arguments[0]; })",
                str(step),
            )
            assert (step, faults(visitor.browser)) == (step, [])


@pytest.mark.parametrize(
    "path", ["", "replies?least=0", "conversation?dialogue=aria-1&turn=3", "compare", "runs"]
)
def test_nothing_is_wider_than_a_phone(visitor: Visitor, path: str) -> None:
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    visitor.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        visitor.open(f"/explorer/{path}")
        overflow = visitor.browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    finally:
        visitor.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert overflow == 0


def test_what_cannot_be_asked_is_told_in_a_sentence(browser: Any, site: Site) -> None:
    visitor = Visitor(browser, site)
    browser.get(f"{site.address}/explorer/?run=nobody")
    visitor.wait(lambda: "no run named" in visitor.one("#problem").text)
    for query in (
        "overview?metric=x",
        "replies?least=nan",
        "replies?page=-1",
        "replies?order=upwards",
        "compare?a=monday.parquet&b=monday.parquet",
        "export?run=nobody",
        "replies?least=1e999",
    ):
        answer = site.ask("GET", f"/explorer/api/{query}")
        assert (query, answer.status) == (query, 422)
        assert answer.json["error"]
    assert site.ask("PUT", "/explorer/api/marks", {"run": "x"}).status == 422
    browser.get_log("browser")
