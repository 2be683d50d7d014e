"""Verdicts in words, against statistics of the same numbers made naively."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie import Dialogue, Metric, Plan, Scorer
from causerie.metrics.base import Column, Level, Score
from causerie.report.figures import Figures, Group, Quote
from causerie.report.verdict import Spread, verdict
from causerie.scoring.summary import Summary

NUMBERS = st.lists(st.floats(-1e3, 1e3), max_size=30)


def spread_of(values: list[float]) -> Spread:
    spread = Spread()
    for value in values:
        spread.add(value)
    return spread


@given(NUMBERS, NUMBERS)
def test_spreads_merge(one: list[float], other: list[float]) -> None:
    merged, whole = spread_of(one).merge(spread_of(other)), [*one, *other]
    assert merged.count == len(whole)
    if whole:
        assert merged.mean == pytest.approx(statistics.fmean(whole), abs=1e-6)
    if len(whole) > 1:
        error = statistics.stdev(whole) / math.sqrt(len(whole))
        assert merged.error == pytest.approx(error, rel=1e-5, abs=1e-5)
    else:
        assert merged.error == math.inf


def group(name: str, shares: dict[str, float] | None = None) -> Group:
    """A system in whose 100 replies faults are found in these shares."""
    figures = {}
    for fault, share in (shares or {}).items():
        one = figures[f"faults.{fault}"] = Figures(Column(fault, "x", "lower", (0, 1), limit=0.6))
        for i in range(100):
            one.add([Score(0.9 if i < 100 * share else 0.1)], lambda _: Quote(0, 0, "d", 0))
    return Group(name, name, figures)


def test_the_better_system_comes_first_with_its_interval() -> None:
    talks = {"a": spread_of([40, 42, 38, 41, 39, 40]), "b": spread_of([70, 72, 69, 71, 70, 68])}
    first, second = verdict([group("a"), group("b")], talks)
    assert first == "Quality, of 100: b 70 and a 40."
    assert second.startswith("b is better than a (30 [28, 32], certain)")


def test_what_cannot_be_told_apart_is_not_told_apart() -> None:
    talks = {"a": spread_of([10, 90, 30, 70, 50, 20]), "b": spread_of([80, 20, 60, 40, 90, 15])}
    assert "cannot be told apart" in verdict([group("a"), group("b")], talks)[1]


def test_few_conversations_are_not_compared() -> None:
    talks = {"a": spread_of([10.0] * 3), "b": spread_of([90.0] * 3)}
    assert len(verdict([group("a"), group("b")], talks)) == 1


def test_only_frequent_faults_are_told() -> None:
    talks = {"a": spread_of([50, 60])}
    shares = {"off_topic": 0.31, "echo": 0.17, "dull": 0.05}
    told = verdict([group("a", shares)], talks)
    assert told[1] == "What seems wrong with a: off topic in 31% and echo in 17%."


def test_without_quality_there_is_no_verdict() -> None:
    assert verdict([group("a")], {}) == []


class Longest(Metric):
    """Stands in for quality: a word is worth ten."""

    name = "quality"
    summary = "words"

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column("", "x", range=(0, 100)),)

    def score_one(self, exchange):  # type: ignore[no-untyped-def]
        return 10.0 * len(exchange.response.text.split())


def test_a_summary_takes_the_means_of_conversations() -> None:
    dialogues = [
        Dialogue.from_texts(["hi", *texts], id=f"{system}{n}", system=system)
        for system, texts in (("a", ["one two", "one"]), ("b", ["one two three", "", "one"]))
        for n in range(2)
    ]
    plan = Plan({"quality": Longest()}, speaker="all")
    summary = Summary.of(plan)
    for batch in Scorer(plan).batches(dialogues):
        summary.add(batch)
    assert summary.talks["a"].mean == pytest.approx(15)
    assert summary.talks["b"].mean == pytest.approx((30 + 0 + 10) / 3)
    again = Summary.from_json(summary.to_json())
    assert again.verdict() == summary.verdict()
    assert summary.verdict()[0] == "Quality, of 100: a 15 and b 13."
    both = summary.merge(again)
    assert both.talks["a"].count == 4
