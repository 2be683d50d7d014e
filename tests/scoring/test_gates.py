"""Conditions: what they mean, what cannot be one, and what a CI server is told about them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.metrics.base import Column
from causerie.scoring.gates import Condition, Verdict, exit_status, parse_condition, write_junit

COLUMNS = {"cosine": Column(), "density": Column(calibrated=True), "fed.fluent": Column("fluent")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cosine < 0.3", Condition("mean", "cosine", "<", 0.3)),
        ("mean(cosine)<0.3", Condition("mean", "cosine", "<", 0.3)),
        (" percentile( density ) < 40 ", Condition("percentile", "density", "<", 40)),
        ("percentile(density) < 40%", Condition("percentile", "density", "<", 40)),
        ("unscored(fed.fluent) > 5%", Condition("unscored", "fed.fluent", ">", 0.05)),
        ("unscored(cosine) > 0.05", Condition("unscored", "cosine", ">", 0.05)),
        ("skipped > 1%", Condition("skipped", None, ">", 0.01)),
        ("cosine > -2e-3", Condition("mean", "cosine", ">", -0.002)),
    ],
)
def test_conditions_are_read(text: str, expected: Condition) -> None:
    read = parse_condition(text, COLUMNS, "mean")
    assert (read.quantity, read.column, read.operator) == (
        expected.quantity,
        expected.column,
        expected.operator,
    )
    assert read.limit == pytest.approx(expected.limit)
    assert parse_condition(str(read), COLUMNS, "mean") == read


def test_a_bare_column_is_what_the_command_is_about() -> None:
    condition = parse_condition("cosine < -0.02", COLUMNS, "difference")
    assert condition == Condition("difference", "cosine", "<", -0.02)
    assert parse_condition("mean(cosine) < 1", COLUMNS, "difference").quantity == "mean"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cosine", "cannot be read"),
        ("cosine <= 3", "cannot be read"),
        ("cosine = 3", "cannot be read"),
        ("cosine < much", "write a number"),
        ("cosine < nan", "write a number"),
        ("cosin < 3", "use one of cosine, density, fed.fluent"),
        ("difference(cosine) < 3", "mean(COLUMN), percentile(COLUMN), unscored(COLUMN) or skipped"),
        ("median(cosine) < 3", "mean(COLUMN)"),
        ("skipped(cosine) < 3", "or skipped"),
        ("percentile(cosine) < 3", "use one of density"),
        ("unscored(cosine) > 5", "write 5%"),
        ("skipped > 101%", "between 0 and 1"),
    ],
)
def test_what_is_no_condition_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(CauserieError) as error:
        parse_condition(text, COLUMNS, "mean")
    assert said in str(error.value)


@given(st.floats(-10, 10), st.sampled_from("<>"), st.floats(-10, 10))
def test_a_condition_holds_as_written(value: float, operator: str, limit: float) -> None:
    condition = Condition("mean", "cosine", "<" if operator == "<" else ">", limit)
    assert condition.judge(value).holds is eval(f"{value!r} {operator} {limit!r}")
    assert condition.judge(None).holds is None
    assert condition.judge(float("nan")).holds is None


def test_the_exit_status_of_the_gate_wins() -> None:
    condition = Condition("mean", "cosine", "<", 0)
    holds, not_, undecided = (condition.judge(value) for value in (-1.0, 1.0, None))
    assert exit_status([], skipped=False) == 0
    assert exit_status([not_], skipped=True) == 1
    assert exit_status([not_, undecided], skipped=True) == 2
    assert exit_status([undecided, holds, not_], skipped=True) == 3


def test_junit_is_valid_and_escaped(tmp_path: Path) -> None:
    hostile = '<a href="x">&\x1b]]>\ud800'
    condition = Condition("mean", hostile, "<", 0.5)
    verdicts = [condition.judge(0.1), condition.judge(0.9), Verdict(condition, None, None, hostile)]
    path = tmp_path / "new" / "junit.xml"
    write_junit(path, hostile, verdicts)
    suite = ElementTree.fromstring(path.read_bytes())
    assert (suite.tag, suite.get("tests")) == ("testsuite", "3")
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    assert suite.get("name") == '<a href="x">&�]]>�'
    failure, passed, undecided = suite
    assert "it is 0.1" in failure[0].get("message", "")
    assert failure[0].tag == "failure"
    assert list(passed) == []
    assert undecided[0].tag == "error"
