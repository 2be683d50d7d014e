"""Assertions for other people's tests: when they pass, when they fail, what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from causerie import CauserieError, Exchange, Metric
from causerie.metrics.base import Column, Level
from causerie.testing import assert_better, assert_no_worse

DOCS = Path(__file__).parents[1] / "docs" / "testing.md"


@dataclass(frozen=True)
class Words(Metric):
    """Words of the response."""

    better: str = "higher"

    name: ClassVar[str] = "words"
    summary: ClassVar[str] = "words"

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(better=self.better, range=(0, 50)),)  # type: ignore[arg-type]

    def score_one(self, exchange: Exchange) -> float:
        return len(exchange.response.text.split())


@dataclass(frozen=True)
class Two(Words):
    name: ClassVar[str] = "two"

    def columns(self, level: Level) -> tuple[Column, ...]:
        return Column("words"), Column("letters")

    def score_one(self, exchange: Exchange) -> dict[str, float]:  # type: ignore[override]
        text = exchange.response.text
        return {"words": len(text.split()), "letters": len(text)}


def talks(*lengths: int) -> list[list[str]]:
    return [[f"question {i}", "x " * length] for i, length in enumerate(lengths)]


SHORT, LONG = talks(1, 2, 3, 2, 1, 2), talks(4, 6, 5, 6, 4, 5)
FEWER = Words("lower")


def test_better_is_beyond_the_margin_with_the_whole_interval() -> None:
    found = assert_better(LONG, SHORT, Words())
    assert found.difference.value == pytest.approx(19 / 6)
    low = found.difference.low or 0
    assert_better(LONG, SHORT, Words(), margin=low - 1e-6)
    with pytest.raises(AssertionError, match="not surely better"):
        assert_better(LONG, SHORT, Words(), margin=low)
    with pytest.raises(AssertionError, match="not surely better"):
        assert_better(SHORT, LONG, Words())
    with pytest.raises(AssertionError, match="not surely better"):
        assert_better(SHORT, SHORT, Words())


def test_no_worse_allows_the_margin_and_no_more() -> None:
    assert_no_worse(SHORT, SHORT, Words(), margin=0)
    assert_no_worse(LONG, SHORT, Words(), margin=0)
    with pytest.raises(AssertionError, match="may be worse than old by more than 3"):
        assert_no_worse(SHORT, LONG, Words(), margin=3)
    assert_no_worse(SHORT, LONG, Words(), margin=6)


def test_little_data_is_no_proof() -> None:
    """The mean is the same, but it might as well be worse by one."""
    old, new = talks(3, 3, 3, 3, 3, 3), talks(1, 5, 2, 4, 1, 5)
    with pytest.raises(AssertionError, match="may be worse"):
        assert_no_worse(new, old, Words(), margin=1)


def test_where_less_is_better() -> None:
    assert_better(SHORT, LONG, FEWER)
    assert_no_worse(SHORT, LONG, FEWER, margin=0)
    with pytest.raises(AssertionError):
        assert_better(LONG, SHORT, FEWER)
    with pytest.raises(AssertionError):
        assert_no_worse(LONG, SHORT, FEWER, margin=1)


def test_more_confidence_asks_for_more() -> None:
    old, new = talks(*[3] * 8), talks(4, 4, 2, 5, 4, 3, 4, 4)
    assert_better(new, old, Words(), confidence=0.5)
    with pytest.raises(AssertionError, match=r"99\.9% interval"):
        assert_better(new, old, Words(), confidence=0.999)


def test_silence_is_worse() -> None:
    silent = [[question, "" if i % 2 else reply] for i, (question, reply) in enumerate(LONG)]
    with pytest.raises(AssertionError) as failed:
        assert_no_worse(silent, LONG, Words(), margin=0.5)
    assert "(empty)" in str(failed.value)


def test_the_message_says_what_was_found() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_better(SHORT, LONG, Words())
    first, second, third, *examples = str(failed.value).splitlines()
    assert first.startswith("new is not surely better than old by more than 0, by words ↑: ")
    assert re.search(r"difference -3\.167, 95% interval -\S+ to -\S+$", first)
    assert second == "n = 6 pairs (old: 6 dialogues, new: 6); mean of old 5, of new 1.833"
    assert third == "replies that differ most (a is old, b is new):"
    assert examples[:3] == [
        "  data:2[1]  after: question 1",
        "    a         6  x x x x x x",
        "    b         2  x x",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "length"}, "neither end of length is the better one"),
        ({"metric": "bleu"}, "cannot be compared by bleu"),
        ({"metric": Two()}, r"column=, of two\.words, two\.letters"),
        ({"metric": "bleu,length"}, "column=, of bleu, length"),
        ({"metric": "blue"}, "unknown metric 'blue'"),
        ({"metric": Words(), "confidence": 95}, "between 0 and 1, not 95"),
        ({"metric": Words(), "confidence": "95%"}, "between 0 and 1, not '95%'"),
        ({"metric": Words(), "margin": -1}, "0 or more, not -1"),
        ({"metric": Words(), "margin": "1"}, "0 or more, not '1'"),
        ({"metric": Words(), "margin": float("nan")}, "0 or more, not nan"),
        ({"metric": Words(), "speaker": "nobody"}, "has no response to compare"),
        ({"metric": Words(), "new": talks(1), "old": talks(2)}, "at least two dialogues"),
    ],
)
def test_what_cannot_be_compared_is_no_failed_assertion(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CauserieError, match=message):
        assert_better(**{"new": LONG, "old": SHORT, **options})


def test_a_wrong_argument_is_an_error() -> None:
    for name in ("sede", "metrics", "level"):
        with pytest.raises(CauserieError, match=f"no argument '{name}': use one of metric, margin"):
            assert_better(LONG, SHORT, Words(), **{name: 1})


def test_few_dialogues_are_refused_however_much_they_differ() -> None:
    found = assert_better(LONG, SHORT, Words())
    assert (found.clusters_a, found.clusters_b) == (6, 6)
    with pytest.raises(CauserieError, match=r"at least 6 dialogues .* not 5 old and 5 new"):
        assert_better(LONG[:5], SHORT[:5], Words())
    with pytest.raises(CauserieError, match="not 5 old and 5 new"):
        assert_no_worse(LONG[:5], SHORT, Words(), margin=1)
    others = [[f"other {question}", reply] for question, reply in LONG[:3]]
    with pytest.raises(CauserieError, match="not 6 old and 3 new"):
        assert_better(others, SHORT, Words())


def test_replies_of_one_dialogue_are_not_many_dialogues() -> None:
    old, new = [["q", "x", "r", "x", "s", "x"]] * 3, [["q", "x x", "r", "x x", "s", "x x"]] * 3
    with pytest.raises(CauserieError, match="not 3 old and 3 new"):
        assert_better(new, old, Words(), speaker="B")


def test_the_assertions_are_found_without_an_import_of_their_own() -> None:
    code = "import causerie; print(causerie.testing.assert_better.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "assert_better"


def test_a_column_of_several() -> None:
    assert assert_better(LONG, SHORT, Two(), column="two.letters").column == "two.letters"


def test_the_example_in_the_documents(default_models: object) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    tests = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
