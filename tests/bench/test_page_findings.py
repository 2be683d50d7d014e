"""What the page says about a set, and the small drawings beside it."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.page_runs import run_of, small_set
from causerie.bench.page.findings import Finding, overall, sentence
from causerie.bench.page.heat import HIGHEST, LOWEST, step
from causerie.bench.results import SetResult

WON = frozenset({("wit", "length"), ("wit", "overlap")})


def said(found: SetResult) -> str:
    return unescape(re.sub("<[^>]+>", "", sentence(found, Finding.of(found))))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            small_set({"wit": 0.4, "length": 0.2, "overlap": 0.1}, WON),
            "wit agrees best with people: Spearman's rho 0.400. It is significantly better than "
            "every sentinel, the best of which is length (0.200). "
            "One person in a metric's place reaches 0.700.",
        ),
        (
            small_set({"wit": 0.4, "length": 0.2, "overlap": 0.1}, WON - {("wit", "overlap")}),
            "It is not significantly better than every sentinel; "
            "the best of them is length (0.200).",
        ),
        (small_set({"wit": 0.1, "length": 0.2}), "The sentinel length (0.200) is no worse."),
        (small_set({"wit": 0.4}), "No sentinel has a number to compare with."),
        (small_set({"wit": -0.1}), "No metric agrees with people: the best, wit, has Spearman's"),
        (small_set({"wit": 0.4}, ceiling=None), "There is no human ceiling: one annotator."),
        (
            small_set({"wit": None, "length": 0.2}),
            "No metric has a number here: the human judgements are all equal.",
        ),
        (small_set({}), "No metric has a number here: none was run."),
        (small_set({"a": 0.4, "b": 0.3}), "a agrees best with people, in one rank with b: "),
        (small_set({"a": 0.4, "b": 0.3, "c": 0.2}), "in one rank with b and c: "),
        (small_set({"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.1}), "b agrees best with people, in one"),
        (small_set({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}), "in one rank with 3 others: "),
    ],
)
def test_the_sentence_of_a_set(found: SetResult, words: str) -> None:
    assert words in said(found)


def test_a_sentinel_without_a_number_is_not_in_the_way() -> None:
    found = small_set({"wit": 0.4, "length": 0.2, "overlap": None}, WON - {("wit", "overlap")})
    assert Finding.of(found).beats_sentinels


def test_the_sentence_of_a_run() -> None:
    good = small_set({"wit": 0.4, "length": 0.2}, WON)
    bad = small_set({"wit": 0.4, "length": 0.2})
    assert overall(run_of()) == "No set was measured."
    assert overall(run_of(good)).startswith("On the one set the best metric is significantly")
    assert overall(run_of(bad)).startswith("On the one set the best metric is not significantly")
    assert overall(run_of(good, bad, bad)).startswith("On 1 of 3 sets the best metric is signif")
    assert overall(run_of(bad, bad)).startswith("On none of 2 sets the best metric is signif")


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_colours_grow_with_the_value(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert LOWEST <= step("spearman", low) <= step("spearman", high) <= HIGHEST
    assert step("spearman", 0.0) == step("accuracy", 0.5) == step("system", 0.5) == 0
    assert step("accuracy", 0.7) == step("spearman", 0.4) == 4


def test_every_step_has_a_colour() -> None:
    from importlib import resources

    style = resources.files("causerie.bench.page").joinpath("page.css").read_text("utf-8")
    known = {int(k) for k in re.findall(r'\[data-step="(-?\d+)"\] \{ --k', style)}
    assert known == set(range(LOWEST, HIGHEST + 1))
