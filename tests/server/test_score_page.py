"""The page of the API in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from axe import LOOKS, faults, looking
from causerie.scoring import Plan
from causerie.server.api import api_room
from causerie.server.app import Config
from pages import HOSTILE
from serving import Site, serving

TOKEN = "a token that nobody can guess"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    room = api_room(Plan.of("length,overlap"), tmp_path_factory.mktemp("state"), load=False)
    with serving(Config((room,), port=0, token=TOKEN)) as site:
        yield site


@pytest.fixture
def page(browser: Any, site: Site) -> Any:
    """The page as the owner sees it after entering by the link."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(f"{site.address}/enter#{TOKEN}")
    wait(browser, lambda: browser.execute_script("return document.querySelector('#metrics input')"))
    yield browser
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry["message"] for entry in severe if " 422 " not in entry["message"]] == []


def wait(browser: Any, holds: Callable[[], Any]) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 30).until(lambda _: holds())


def text_of(browser: Any, css: str) -> str:
    found: str = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((n) => n.textContent).join('|')",
        css,
    )
    return found


def fill(browser: Any, talk: str) -> None:
    browser.execute_script("document.getElementById('talk').value = arguments[0]", talk)
    browser.execute_script("document.getElementById('score').click()")


def test_the_link_leads_in_and_leaves_no_token(page: Any, site: Site) -> None:
    assert page.current_url == f"{site.address}/score/"
    assert page.execute_script("return document.cookie") == ""
    assert TOKEN not in page.page_source
    assert text_of(page, "nav [aria-current]") == "Score"


def test_a_pasted_conversation_is_scored(page: Any) -> None:
    fill(page, "A: Any plans?\nB: We hike on Sunday.\nA:  ")
    wait(page, lambda: not page.execute_script("return document.getElementById('results').hidden"))
    scored, empty = text_of(page, ".said .values").split("|")
    assert scored.startswith("length 4overlap 0")
    assert "empty response" in empty
    fill(page, json.dumps([{"role": "user", "content": "Hi!"}, {"role": "tool", "content": "x"}]))
    wait(page, lambda: "nothing to score" in text_of(page, "#refused"))
    fill(page, "[1, 2")
    wait(page, lambda: "starts like JSON" in text_of(page, "#refused"))


def test_text_is_only_text(page: Any) -> None:
    hostile = [text for text in HOSTILE if "\u2028" not in text]
    fill(page, json.dumps([hostile]))
    wait(page, lambda: hostile[1] in text_of(page, ".said .text"))
    assert all(text in text_of(page, ".said .text") for text in hostile[1:])
    assert (
        page.execute_script("return document.querySelectorAll('main img, main script').length") == 0
    )


def test_a_file_is_scored_and_offered(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "<b>talks.jsonl"
    path.write_text(json.dumps({"context": "Hi!", "response": "Hello."}) + "\nno record\n")
    page.find_element("id", "file").send_keys(str(path))
    page.execute_script("document.querySelector('#send button').click()")
    wait(page, lambda: text_of(page, "#jobs a") == "jsonl")
    assert text_of(page, "#jobs td").startswith("<b>talks.jsonl|done|1|1|")
    href = page.execute_script("return document.querySelector('#jobs a').getAttribute('href')")
    rows = page.execute_async_script(
        "fetch(arguments[0]).then((r) => r.text()).then(arguments[1])", href
    )
    assert json.loads(rows)["length"] == 1
    page.execute_script("document.querySelector('#jobs button').click()")
    wait(page, lambda: text_of(page, "#jobs td") == "")


def test_it_fits_a_phone(page: Any) -> None:
    page.set_window_size(390, 800)
    try:
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.execute_script(wide) <= 0
    finally:
        page.set_window_size(1200, 900)


@pytest.mark.parametrize(("look", "width"), LOOKS)
def test_axe_finds_no_fault(page: Any, look: str, width: int) -> None:
    with looking(page, look, width):
        assert faults(page) == []
        fill(page, "A: Hello.\nB: Hi, nice to see you.")
        wait(page, lambda: text_of(page, ".said .values"))
        assert faults(page) == []


def test_without_the_link_nobody_is_in(browser: Any, site: Site) -> None:
    browser.delete_all_cookies()
    browser.get(f"{site.address}/score/")
    assert browser.current_url == f"{site.address}/enter"
    browser.find_element("id", "token").send_keys("x" * 30)
    browser.find_element("css selector", "#enter button").click()
    wait(browser, lambda: "invalid or has been revoked" in text_of(browser, "#said"))
    browser.get(f"{site.address}/enter#{TOKEN}")
    wait(browser, lambda: browser.current_url == f"{site.address}/score/")
    browser.get_log("browser")
