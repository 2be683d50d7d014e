"""The bench page in a real browser: what a reader sees, and that hostile text does nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.page_runs import realistic_run, renamed, run_of, small_set
from causerie.bench.page import write_page
from causerie.bench.results import RunResult, Sample
from causerie.render.page import shown

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

RUN = realistic_run(("dailydialog_zhao", "fed_dialogue", "causalscore_dream"))
HOSTILE = (
    "<script>window.broken = 1; alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'><b onmouseover=alert(3)>bold</b>",
    "a\u2028b \u202edef",
)


def show(browser: webdriver.Chrome, folder: Path, run: RunResult) -> Path:
    path = folder / "page.html"
    write_page(path, run)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    return path


def requests(browser: webdriver.Chrome) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"].endswith("WillBeSent")]


@pytest.fixture
def page(browser: webdriver.Chrome, tmp_path: Path) -> webdriver.Chrome:
    show(browser, tmp_path, RUN)
    return browser


def test_the_statistic_chooses_the_heat_map(page: webdriver.Chrome) -> None:
    def shown() -> list[str]:
        maps = page.find_elements(By.CSS_SELECTOR, ".map")
        return [
            box.find_element(By.TAG_NAME, "caption").get_property("textContent")
            for box in maps
            if box.is_displayed()
        ]

    select = Select(page.find_element(By.ID, "statistic"))
    assert shown() == ["Spearman's rho"]
    select.select_by_visible_text("Kendall's tau-b")
    assert shown() == ["Kendall's tau-b"]
    cells = page.find_elements(By.CSS_SELECTOR, ".map:not([hidden]) tbody tr:nth-child(2) td")
    assert [cell.text == "–" for cell in cells] == [False, False, True]  # pairs have no tau


def test_arrow_keys_walk_through_the_cells_and_read_them_out(page: webdriver.Chrome) -> None:
    first = page.find_element(By.CSS_SELECTOR, ".map tbody td")
    first.send_keys(Keys.ARROW_DOWN + "")
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    column = RUN.columns()[0]
    estimate = RUN.sets[1].row(column).statistics["spearman"]  # type: ignore[union-attr]
    words = page.find_element(By.CSS_SELECTOR, ".map .readout").text
    assert words.startswith(f"{column} on FED, dialogues, overall: Spearman's rho ")
    assert f"(95% interval {estimate.low:.2f} to {estimate.high:.2f})" in words
    assert words.endswith("n = 125")
    # One stop for the tabulator per grid, at the place where the reader left it.
    stops = page.find_elements(By.CSS_SELECTOR, ".map:not([hidden]) td[tabindex='0']")
    assert stops == [page.switch_to.active_element]
    page.switch_to.active_element.send_keys(Keys.ARROW_UP * 5)
    assert "one person on FED" in page.find_element(By.CSS_SELECTOR, ".map .readout").text


def test_the_scatter_plot_shows_the_chosen_metric(page: webdriver.Chrome) -> None:
    frame = page.find_element(By.CSS_SELECTOR, ".scatter")
    found = RUN.sets[0]
    select = Select(frame.find_element(By.TAG_NAME, "select"))
    best = next(row for row in found.rows if not row.sentinel)
    assert select.first_selected_option.text == best.column
    assert [option.text for option in select.options] == [row.column for row in found.rows]
    select.select_by_visible_text("perplexity")
    assert len(frame.find_elements(By.TAG_NAME, "circle")) == 500
    written = frame.find_elements(By.CSS_SELECTOR, "circle.written")
    assert len(written) == sum(found.sample.human_written)
    words = frame.find_element(By.CSS_SELECTOR, ".said").text
    assert f"{abs(found.row('perplexity').statistics['spearman'].value):.3f}" in words  # type: ignore
    assert "beyond" not in words


@pytest.mark.parametrize(("far", "beyond"), [(1, 1), (2, 2), (10, 0)])
def test_a_few_outliers_do_not_flatten_the_plot(
    browser: webdriver.Chrome, tmp_path: Path, far: int, beyond: int
) -> None:
    scores = tuple(1000.0 if n < far else n / 100 for n in range(100))
    people = tuple(float(n % 5) for n in range(100))
    sample = Sample(("",) * 100, ("",) * 100, (False,) * 100, people, {"wit": scores})
    show(browser, tmp_path, run_of(replace(small_set({"wit": 0.4}, items=100), sample=sample)))
    heights = browser.execute_script(
        "return [...document.querySelectorAll('.plot circle')]"
        ".map((dot) => [dot.classList.contains('beyond'), Number(dot.getAttribute('cy'))])"
    )
    assert [outside for outside, _ in heights] == [n < beyond for n in range(100)]
    assert all(y == 0 for outside, y in heights if outside)
    spread = max(y for _, y in heights[far:]) - min(y for _, y in heights[far:])
    assert (spread > 100) == (beyond > 0)
    words = browser.find_element(By.CSS_SELECTOR, ".said").text
    assert (f"{beyond} beyond the scale" in words) == (beyond > 0)


def test_the_regression_line_is_least_squares(browser: webdriver.Chrome, tmp_path: Path) -> None:
    people, scores = (1.0, 2.0, 3.0), (5.0, 9.0, 7.0)
    sample = Sample(("a", "b", "c"), ("",) * 3, (False,) * 3, people, {"wit": scores})
    show(browser, tmp_path, run_of(replace(small_set({"wit": 0.4}, items=3), sample=sample)))
    line, height = browser.execute_script(
        "const inner = document.querySelector('.plot svg svg');"
        "return [inner.querySelector('.line').getAttribute('d'), inner.getAttribute('height')]"
    )
    slope, start = np.polyfit(people, scores, 1)
    # The plot leaves a twentieth of the range free on every side.
    expected = [start + slope * 0.9, start + slope * 3.1]
    drawn = [float(end.split()[1]) for end in line[1:].split("L")]
    values = [9.2 - (9.2 - 4.8) * y / float(height) for y in drawn]
    assert values == pytest.approx(expected)


def test_the_signature_is_copied_without_asking(page: webdriver.Chrome) -> None:
    page.find_element(By.ID, "copy").click()
    assert page.execute_script("return getSelection().toString()") == RUN.signature
    assert page.find_element(By.ID, "copied").text in (
        "copied",
        "selected: copy it with the keyboard",
    )


def test_hostile_text_is_only_ever_text(browser: webdriver.Chrome, tmp_path: Path) -> None:
    run = renamed(RUN, lambda text: HOSTILE[len(text) % len(HOSTILE)] + text)
    path = show(browser, tmp_path, run)
    browser.execute_script(
        "document.querySelectorAll('details').forEach((box) => { box.open = true; })"
    )
    # The alert of a script that ran would make every further call fail.
    heads = browser.execute_script(
        "return [...document.querySelectorAll('.set h2 > bdi')].map((node) => node.textContent)"
    )
    assert heads == [shown(found.title) for found in run.sets]
    for select in browser.find_elements(By.CSS_SELECTOR, ".scatter select"):
        Select(select).select_by_index(3)
    names = browser.execute_script(
        "return [...document.querySelectorAll('.scatter option')].map((node) => node.textContent)"
    )
    assert set(names) >= {shown(name) for name in run.sets[0].sample.scores}
    browser.find_element(By.CSS_SELECTOR, ".map td").send_keys(Keys.ARROW_DOWN)
    assert browser.execute_script("return window.broken") is None
    assert (
        browser.execute_script("return document.querySelectorAll('img, main script').length") == 0
    )
    assert browser.get_log("browser") == []
    assert requests(browser) == [path.as_uri()]


@pytest.mark.parametrize(
    "run",
    [
        run_of(),
        run_of(small_set({})),
        run_of(small_set({"wit": None, "length": None}, ceiling=None)),
        run_of(small_set({"wit": 0.3}, items=1)),
        run_of(small_set({"wit": 0.3, "length": 0.1})),
    ],
    ids=["no set", "no metric", "nothing scored", "one item", "all equal"],
)
def test_degenerate_runs_have_no_errors(
    browser: webdriver.Chrome, tmp_path: Path, run: RunResult
) -> None:
    show(browser, tmp_path, run)
    assert browser.find_element(By.TAG_NAME, "h1").text == "Which metric agrees with people"
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('svg *')].map((node) => node.outerHTML).join('')"
    )
    assert "NaN" not in drawn
    assert "Infinity" not in drawn
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
