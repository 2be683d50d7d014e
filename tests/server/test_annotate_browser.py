"""Annotation in a real browser: mouse and keyboard, rounds, the lead, and hostile text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from annotation.making import PAIRS, mark, pairs, project_of, talk
from axe import LOOKS, faults, looking
from causerie.annotation.marks import State
from causerie.annotation.project import Snapshot
from causerie.annotation.store import Store
from causerie.annotation.tasks import Item, Task
from causerie.dialogue import Turn
from causerie.server.annotate import annotation_room
from causerie.server.app import Config
from metrics.causalscore.annotated_talks import write_annotations
from pages import HOSTILE
from serving import serving
from terminal import run_causerie

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import TimeoutException  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

OWNER = "the token of the owner"


@dataclass(frozen=True)
class Visit:
    """A browser at a server."""

    browser: webdriver.Chrome
    address: str
    store: Store
    project: int
    tokens: dict[str, str]

    def enter(self, name: str) -> None:
        """Open somebody's secret link."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}/enter#{self.tokens[name]}")
        self.until(lambda: "/annotate/" in self.browser.current_url)
        place = "#people tr, #people p" if name == "lead" else "#item > *"
        self.until(lambda: self.all(place))

    def all(self, css: str) -> list[Any]:
        found: list[Any] = self.browser.find_elements(By.CSS_SELECTOR, css)
        return found

    def one(self, css: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def until(self, true: Callable[[], Any]) -> Any:
        return WebDriverWait(self.browser, 30).until(lambda _: true())

    def keys(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def saved(self) -> None:
        self.until(lambda: self.text("#saved") == "All saved")

    def texts(self, css: str) -> list[str]:
        """Return texts in one call, because every change redraws the page."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)"
        found: list[str] = self.browser.execute_script(script, css)
        return [text.strip() for text in found]

    def text(self, css: str) -> str:
        return next(iter(self.texts(css)), "")

    def marks(self) -> list[str]:
        return [text.removesuffix(" ×") for text in self.texts("#item .talk > .turn .chip")]

    def click(self, found: Any) -> None:
        """Click in the middle of the window: scrolling is smooth, and buttons stick to its foot."""
        element = self.one(found) if isinstance(found, str) else found
        middle = "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })"
        self.browser.execute_script(middle, element)
        element.click()

    def marked(self, expected: list[str]) -> None:
        """Wait until these spans are marked."""
        with suppress(TimeoutException):
            self.until(lambda: self.marks() == expected)
        assert self.marks() == expected

    def drag(self, turn: int, text: str) -> None:
        """Drag over a text of a turn, from its first to its last character."""
        box = self.browser.execute_script(
            """
            const [turn, text] = arguments;
            const place = document.querySelector(`[data-turn="${turn}"] .text`);
            place.scrollIntoView({ block: "center", behavior: "instant" });
            const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
              const at = node.data.indexOf(text);
              if (at < 0) continue;
              const range = document.createRange();
              range.setStart(node, at);
              range.setEnd(node, at + text.length);
              const box = range.getBoundingClientRect();
              return [box.left, box.top + box.height / 2, box.right];
            }
            """,
            turn,
            text,
        )
        actions = ActionChains(self.browser)
        pointer = actions.w3c_actions.pointer_action
        pointer.move_to_location(round(box[0]) + 1, round(box[1]))
        pointer.pointer_down()
        pointer.move_to_location(round((box[0] + box[2]) / 2), round(box[1]))
        pointer.move_to_location(round(box[2]) - 1, round(box[1]))
        pointer.pointer_up()
        actions.perform()

    def state(self, name: str, item: str, round: str = "first") -> State:
        now = self.store.snapshot(self.project)
        (found,) = self.assigned(now, name, item, round)
        return now.states[found]

    def assigned(self, now: Snapshot, name: str, item: str, round: str) -> list[int]:
        return [
            one.id
            for one in now.assignments.values()
            if now.people[one.person].name == name
            and now.items[one.item].item.name == item
            and one.round == round
        ]


Open = Callable[..., Visit]


@pytest.fixture
def visit(
    browser: webdriver.Chrome, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Open]:
    """Open a project in the browser: in a file, or where the test's `location` is."""
    place = str(tmp_path / "project.db")
    if "location" in request.fixturenames:
        place = request.getfixturevalue("location")
    with ExitStack() as stack:

        def opened(
            items: list[Item],
            people: list[str],
            task: Any = None,
            *,
            training: Path | None = None,
            **more: Any,
        ) -> Visit:
            store = Store.open(place, create=True)
            number, tokens = project_of(store, items, people, task or Task.of("causes"), **more)
            room = annotation_room(store, number, training=training)
            site = stack.enter_context(serving(Config((room,), port=0, token=OWNER)))
            browser.get_log("browser")
            return Visit(browser, site.address, store, number, tokens)

        yield opened
        browser.get("about:blank")


TALKS = [
    talk(
        "keys",
        "I lost my keys \U0001f511. They are red!",
        "Where was it?",
        "At home.",
        "Look there.",
    ),
    talk("tea", "I slept badly.", "Do you drink tea?", "Yes, late.", "Then try it without."),
]


def test_marking_by_mouse_and_by_keyboard(visit: Open, location: str) -> None:
    here = visit(TALKS, ["ann"])
    here.enter("ann")
    assert here.browser.current_url.startswith(f"{here.address}/annotate/#")
    assert here.tokens["ann"] not in here.browser.current_url
    assert "item 1 of 2, 0 finished" in here.text("#where")
    here.drag(0, "They are re")  # the word is finished
    here.marked(["They are red"])
    here.click('[data-turn="2"] .text')
    here.marked(["They are red", "At home."])
    here.click('[data-turn="2"] .text')
    here.marked(["They are red"])
    here.keys("u")  # undoes the removal
    here.marked(["They are red", "At home."])
    here.keys("2")  # the second turn from the response
    here.marked(["They are red", "Where was it?", "At home."])
    here.keys("uu")
    here.marked(["They are red"])
    here.keys(Keys.ARROW_UP * 2, Keys.ARROW_RIGHT, Keys.ENTER)  # the first part of the first turn
    here.keys(Keys.ARROW_RIGHT, Keys.ENTER)  # takes the place of the words in it
    here.marked(["I lost my keys \U0001f511.", "They are red!"])
    here.keys("c")
    here.one("#comment").send_keys("two reasons")
    here.click("dialog .primary")
    here.saved()
    assert here.state("ann", "keys").comment == "two reasons"
    assert [p.text(TALKS[0].turns) for p in here.state("ann", "keys").places] == [
        "I lost my keys \U0001f511.",
        "They are red!",
    ]
    here.keys("f")
    here.until(lambda: "item 2 of 2, 1 finished" in here.text("#where"))
    here.saved()
    assert here.state("ann", "keys").finished
    here.keys("f")
    here.until(lambda: "say that there is none" in here.text("#status"))
    here.keys("10")
    here.marked([])
    here.until(lambda: "there is no cause" in here.text("#item .lead"))
    here.keys("f")
    here.until(lambda: "2 finished" in here.text("#where"))
    here.saved()
    assert here.state("ann", "tea").none
    here.keys("p")
    here.until(lambda: "item 1 of 2" in here.text("#where"))
    here.marked(["I lost my keys \U0001f511.", "They are red!"])
    here.keys("1")
    assert len(here.marks()) == 2  # finished items stay as they are
    assert here.browser.get_log("browser") == []


def test_a_lost_connection_loses_no_mark(visit: Open, location: str) -> None:
    here = visit(TALKS, ["ann"])
    here.enter("ann")
    here.saved()
    here.browser.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    here.browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    here.keys("1", "3", "2", "u")
    here.until(lambda: "Not saved yet" in here.text("#saved"))
    assert len(here.marks()) == 2
    assert here.state("ann", "keys").marks == ()
    here.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})
    here.saved()
    assert here.state("ann", "keys").turns == {0, 2}
    events = here.store.snapshot(here.project).events.values()
    actions = [event.action for found in events for event in found]
    assert actions == ["open", "mark", "mark", "mark", "undo"]
    here.browser.get_log("browser")


def test_what_is_not_sent_yet_waits_for_its_own_project(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    """Another project at the same address, whose people and items have the same numbers."""
    stores = [Store.open(tmp_path / f"{name}.db", create=True) for name in ("one", "two")]
    projects = [project_of(store, TALKS, ["ann"], Task.of("causes")) for store in stores]
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    port = 0
    for visited in (0, 1, 0):
        store = Store.open(tmp_path / f"{('one', 'two')[visited]}.db")
        number, tokens = projects[visited]
        room = annotation_room(store, number)
        with serving(Config((room,), port=port, token=OWNER)) as site:
            here = Visit(browser, site.address, store, number, tokens)
            if not port:
                here.enter("ann")
                here.saved()
                browser.execute_cdp_cmd("Network.enable", {})
                browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
                here.keys("1")
                here.until(lambda h=here: "Not saved yet" in h.text("#saved"))
                browser.get("about:blank")
                back = {**offline, "offline": False}
                browser.execute_cdp_cmd("Network.emulateNetworkConditions", back)
            else:
                here.enter("ann")
                here.saved()
            port = site.port
    for store, (number, _), marked in zip(stores, projects, ([{2}], [set()]), strict=True):
        states = store.snapshot(number).states.values()
        assert [state.turns for state in states if state.turns] == [m for m in marked if m]
        store.close()
    browser.get("about:blank")
    browser.get_log("browser")


def test_a_project_from_its_beginning_to_a_trained_metric(
    visit: Open, location: str, tmp_path: Path, tiny_bert: Path
) -> None:
    """Two annotate, a third reviews, the lead sees kappa and decides, and training reads it all."""
    here = visit(TALKS, ["ann", "ben", "cleo"], overlap=0.5, seed=3)
    now = here.store.snapshot(here.project)
    for one in list(now.assignments.values()):
        name, item = now.people[one.person].name, now.items[one.item].item.name
        here.enter(name)
        here.until(lambda: here.all(".turn.free"))
        own = [a.id for a in now.of_person(one.person)]
        for _ in range(own.index(one.id)):
            here.keys("n")
        here.until(lambda o=one: here.browser.current_url.endswith(f"#{o.id}"))
        shared = len(now.by_item[one.item]["first"]) > 1
        first = now.by_item[one.item]["first"][0].id == one.id
        here.keys("1" if first or not shared else "2")
        here.saved()
        here.keys("f")
        here.until(lambda n=name, i=item: here.state(n, i).finished)

    here.enter("lead")
    assert "2 of 2 items done, 1 settled" in here.text("#summary")
    kappa = here.until(lambda: here.all("#measures tbody td"))
    assert [cell.text for cell in kappa[:2]] == ["cause", "-0.50"]
    here.click("#items a")
    here.until(lambda: len(here.all("#works section")) == 2)
    here.click("#decide")
    here.until(lambda: len(here.all("#item .columns section")) == 2)
    sections = here.all("#item .columns section")
    assert [len(section.find_elements(By.TAG_NAME, "mark")) for section in sections] == [1, 1]
    here.click(sections[1].find_element(By.TAG_NAME, "button"))
    here.until(lambda: len(here.marks()) == 1)
    here.keys("f")
    here.saved()

    here.enter("lead")
    here.until(lambda: "2 settled" in here.text("#summary"))
    here.click("#review")
    here.until(lambda: "1 items assigned" in here.text("#status"))
    now = here.store.snapshot(here.project)
    (review,) = [one for one in now.assignments.values() if one.round == "review"]
    author = now.assignments[review.base or 0].person
    assert review.person != author
    here.enter(now.people[review.person].name)
    here.until(lambda: "Review" in here.text("#where") or here.keys("n"))
    assert len(here.marks()) == 1  # as the other left it
    here.click(".chip")
    here.keys("3")
    here.keys("f")
    here.until(lambda: here.store.snapshot(here.project).finished(review.item, "review"))

    write_annotations(tmp_path / "more.jsonl", 40, seed=1)
    done = run_causerie("annotate", "import", location, tmp_path / "more.jsonl")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "causes.jsonl"
    done = run_causerie("annotate", "export", location, "--out", out)
    assert done.returncode == 0, done.stderr
    settings = "interaction=towers tuning=frozen pooling=mean width=8 history=5 epochs=1 rounds=0"
    sets = [word for s in f"{settings} curve=0".split() for word in ("--set", s)]
    words = ["--offline", "--threads", "1", "--encoder", tiny_bert, "--annotations", out, *sets]
    done = run_causerie("train", "causalscore", *words, "--out", tmp_path / "metric")
    assert done.returncode == 0, done.stderr
    assert "C_cond: AUC / balanced accuracy" in done.stderr
    assert here.browser.get_log("browser") == []


def test_pairs_are_judged_with_the_number_keys(visit: Open) -> None:
    here = visit(pairs(2, ["hidden-x", "hidden-y"]), ["ann"], PAIRS, annotators=1, overlap=1.0)
    here.enter("ann")
    assert len(here.all("fieldset")) == 5
    here.keys("1", "2", "3", "4")
    here.keys("f")
    here.until(lambda: here.text("#status") == "1 left to answer.")
    here.click('[data-number="4"] input')
    here.saved()
    here.keys("f")
    here.until(lambda: "1 finished" in here.text("#where"))
    here.saved()
    (state,) = [s for s in here.store.snapshot(here.project).states.values() if s.finished]
    assert list(state.answers.values()) == ["A", "B", "both good", "both bad", "A"]


def test_every_reply_is_rated_in_one_reading(visit: Open) -> None:
    task = Task.of("replies", ["relevance", "wit"], 5)
    item = replace(TALKS[0], asked=(1, 3))
    here = visit([item], ["ann"], task, annotators=1)
    here.enter("ann")
    assert len(here.all("fieldset")) == 4
    here.keys("4", "1", "5", "2")
    here.keys("f")
    here.until(lambda: here.state("ann", "keys").finished)
    assert dict(here.state("ann", "keys").answers) == {
        (1, "relevance"): 4, (1, "wit"): 1, (3, "relevance"): 5, (3, "wit"): 2,
    }  # fmt: skip


def test_practice_shows_what_is_right(visit: Open) -> None:
    gold = {"keys": [mark(2, 0, 8)]}
    here = visit(TALKS, ["ann"], gold=gold)
    here.enter("ann")
    assert "Practice" in here.text("#where")
    here.keys("3", "f")
    here.until(lambda: here.all(".feedback"))
    assert "You missed 1, and marked 1 that we would not have." in here.text(".feedback")
    assert here.text(".feedback mark") == "At home."


def test_hostile_text_is_only_ever_text(visit: Open) -> None:
    items = []
    for number, text in enumerate(HOSTILE):
        said = text.strip()
        turns = (Turn(said, said), Turn("B", said), Turn(said, f"{number} {said}"))
        items.append(Item(said, turns, (2,)))
    here = visit(items, [HOSTILE[0], HOSTILE[1]], annotators=2, overlap=1.0)
    here.enter(HOSTILE[0])
    for number in range(len(items)):
        here.until(lambda n=number: f"item {n + 1} of" in here.text("#where"))
        shown = here.all("#item .talk > .turn > .text")
        assert shown[0].get_property("textContent") == items[number].turns[0].text
        here.keys("1", "c")
        here.one("#comment").send_keys(HOSTILE[1])
        here.click("dialog .primary")
        here.keys("f")
    here.saved()
    here.enter(HOSTILE[1])
    here.keys("2", "f")
    here.until(lambda: "1 finished" in here.text("#where"))
    here.saved()
    here.enter("lead")
    assert here.all("#people tbody td")[0].text.startswith(HOSTILE[0])
    here.click("#items a")
    here.until(lambda: len(here.all("#works section")) == 2)
    assert HOSTILE[1] in here.text("#works")
    here.click("#decide")
    here.until(lambda: len(here.all("#item .columns section")) == 2)
    # The alert of a script that ran would make every further call fail.
    assert here.browser.execute_script("return window.broken") is None
    assert here.all("main img, main script, [onmouseover]") == []
    assert here.browser.get_log("browser") == []


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(visit: Open, width: int) -> None:
    items = [replace(TALKS[0], turns=(*TALKS[0].turns[:-1], Turn("B" * 90, "w" * 300)))]
    here = visit(items, ["ann" * 30], annotators=1)
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    here.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for name in ("ann" * 30, "lead"):
            here.enter(name)
            overflow = here.browser.execute_script(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert overflow == 0
    finally:
        here.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize(("look", "width"), LOOKS)
@pytest.mark.parametrize("kind", ["causes", "labels", "replies", "pairs"])
def test_axe_finds_no_fault(visit: Open, tmp_path: Path, kind: str, look: str, width: int) -> None:
    curve = [{"annotations": n, "auc": n / 1000, "low": 0.1, "high": 0.9} for n in (100, 500, 900)]
    lines = "".join(json.dumps(point) + "\n" for point in curve)
    (tmp_path / "learning-curve.jsonl").write_text(lines)
    task = Task.of(kind, ["greeting", "question"] if kind in ("labels", "replies") else ())
    items = pairs(2, ["x", "y"]) if kind == "pairs" else TALKS
    if kind == "replies":
        items = [replace(item, asked=(1, 3)) for item in items]
    gold = {"keys": [mark(2, 0, 8)]} if kind == "causes" else None
    here = visit(items, ["ann", "ben"], task, gold=gold, overlap=1.0, training=tmp_path)
    with looking(here.browser, look, width):
        for name in ("ann", "ben"):
            here.enter(name)
            assert (name, faults(here.browser)) == (name, [])
            here.keys("1", "1" if name == "ann" else "2", "1", "1", "1")
            here.keys("f")
            here.saved()
            assert (name, faults(here.browser)) == (name, [])
            if gold:  # what is right is shown, until somebody goes on
                here.keys("n")
            here.until(lambda: "item 2 of 2" in here.text("#where"))
            here.keys("1" if name == "ann" else "2", "f")
            here.saved()
        here.enter("lead")
        assert faults(here.browser) == []
        for item in here.store.snapshot(here.project).items:
            here.browser.get(f"{here.address}/annotate/item?item={item}")
            here.until(lambda: here.all("#works section"))
            assert faults(here.browser) == []


def test_the_lead_sees_what_more_annotations_bring(visit: Open, tmp_path: Path) -> None:
    points = [(100, 0.6, 0.55, 0.65), (200, 0.7, 0.66, 0.74), (400, 0.71, 0.68, 0.75)]
    keys = ("annotations", "auc", "low", "high")
    path = tmp_path / "learning-curve.jsonl"
    path.write_text("".join(json.dumps(dict(zip(keys, p, strict=True))) + "\n" for p in points))
    here = visit(TALKS, ["ann"], training=tmp_path)
    here.enter("lead")
    here.until(lambda: len(here.all("#curve circle")) == 3)
    assert here.text("#curve p") == (
        "From 200 to 400 annotated exchanges the AUC changed by 0.010, which may be chance."
    )
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    here.enter("lead")
    here.until(lambda: len(here.all("#curve circle")) == 2)
    assert "rose by 0.100, which is more than chance would do" in here.text("#curve p")
    assert here.texts("#curve tbody td") == ["100", "0.60 [0.55, 0.65]", "200", "0.70 [0.66, 0.74]"]


def test_nobody_enters_without_a_link(visit: Open) -> None:
    here = visit(TALKS, ["ann"])
    here.browser.delete_all_cookies()
    here.browser.get(f"{here.address}/annotate/lead")
    here.until(lambda: here.browser.current_url.endswith("/enter"))
    here.enter("ann")
    here.browser.get(f"{here.address}/annotate/lead")
    assert "you do not have access to this" in here.browser.page_source
    assert os.path.basename(here.browser.current_url) == "lead"
    here.browser.get_log("browser")
