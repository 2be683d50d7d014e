"""What counts as an answer and what does not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.engines.completion import Choice
from causerie.metrics.judge.prompts import Prompt, read_prompt
from causerie.metrics.judge.readings import Reading, read_choices

RATING, YES_NO = read_prompt("rating"), read_prompt("yes-no")


def value(text: str, prompt: Prompt = RATING, **top: float) -> float | str:
    tokens = ((text, top),) if top else ()
    found = read_choices([Choice(text, tokens)], prompt)
    return found if isinstance(found, str) else found.value(prompt)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4", 4),
        (" 4\n", 4),
        ("**4**", 4),
        ("Rating: 4", 4),
        ("Score is: 3.", 3),
        ("4/5", 4),
        ("4 out of 5", 4),
        ("2. The reply names 3 dogs.", 2),
        ("I would give it a 4.", 4),
        ("The reply is good: 5 / 5", 5),
        ("5, because 5 is the best", 5),
        ("<think>1 or 2? No.</think>\n4", 4),
    ],
)
def test_answers_that_are_ratings(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "good",
        "0",
        "6",
        "10",
        "45",
        "-3",
        "4.5",
        "4,5",
        "4.0",
        "3-4",
        "3 to 4",
        "3–4",
        "3/4",
        "between 3 and 4",
        "On a scale of 1 to 5, I say four.",
        "On a scale of 1 to 5, I give it a 4.",
        "4th",
        "٤",
        "four",
        "1e1",
        "{" * 1000,
    ],
)
def test_answers_that_are_none(text: str) -> None:
    found = value(text)
    assert isinstance(found, str)
    assert "empty" in found if not text else "is not a rating from 1 to 5: " in found
    assert len(found) < 140


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Yes", 1), ("yes.", 1), ("NO", 0), ("**No**, it is dull", 0), ("Answer: yes", 1)],
)
def test_yes_and_no(text: str, expected: int) -> None:
    assert value(text, YES_NO) == expected


@pytest.mark.parametrize("text", ["", "maybe", "yesterday", "I say yes and no", "1", "nope"])
def test_neither_yes_nor_no(text: str) -> None:
    assert isinstance(value(text, YES_NO), str)


def test_the_expectation_over_the_rating_tokens() -> None:
    top = {"4": math.log(0.6), " 5": math.log(0.2), "The": math.log(0.1), "6": math.log(0.05)}
    assert value("4", **top) == pytest.approx((4 * 0.6 + 5 * 0.2) / 0.8)
    found = read_choices([Choice("4", (("4", top),))], RATING)
    assert isinstance(found, Reading)
    assert found.mass == pytest.approx(0.8)
    top = {"Yes": math.log(0.3), "yes": math.log(0.2), "no": math.log(0.1), "4": math.log(0.3)}
    assert value("Yes", YES_NO, **top) == pytest.approx(0.5 / 0.6)


def test_the_token_of_the_rating_counts_wherever_it_stands() -> None:
    tokens = (
        ("Rating", {"Rating": -0.1, "3": -0.2}),
        (":", {":": -0.01}),
        (" 4", {" 4": math.log(0.5), " 2": math.log(0.5)}),
    )
    found = read_choices([Choice("Rating: 4", tokens)], RATING)
    assert isinstance(found, Reading)
    assert found.value(RATING) == pytest.approx(3.0)


@pytest.mark.parametrize("lie", [math.nan, math.inf, 5.0, -math.inf])
def test_impossible_probabilities_are_not_believed(lie: float) -> None:
    assert value("4", **{"4": lie}) == 4  # read as text
    assert value("4", **{"4": math.log(0.5), "2": lie}) == 4


def test_samples_are_averaged_and_those_that_are_none_left_out() -> None:
    found = read_choices([Choice("2"), Choice("dull"), Choice("5")], RATING)
    assert isinstance(found, Reading)
    assert found.value(RATING) == pytest.approx(3.5)
    assert read_choices([Choice("dull"), Choice("?")], RATING) == (
        "the judge's answer is not a rating from 1 to 5: 'dull'"
    )


@given(st.text(max_size=60), st.sampled_from(["rating", "yes-no", "preference"]))
def test_whatever_is_said_is_a_value_in_range_or_a_reason(text: str, name: str) -> None:
    prompt = read_prompt(name)
    found = value(text, prompt)
    low, high = prompt.range
    assert isinstance(found, str) or (low <= found <= high and found == int(found))


@given(st.lists(st.floats(-1e4, 0), min_size=5, max_size=5))
def test_any_log_probabilities_make_a_distribution(logs: list[float]) -> None:
    found = Reading.of(logs)
    assert isinstance(found, Reading)
    assert math.fsum(found.probabilities) == pytest.approx(1)
    assert 1 <= found.value(RATING) <= 5
    assert isinstance(Reading.of([-math.inf] * 5), str)
