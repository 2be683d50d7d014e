"""Numbers and lists of names as a reader sees them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from causerie.render.numbers import brief, counted, listed, mean_and_deviation, number


def test_numbers_and_lists_in_words() -> None:
    assert [number(v) for v in (None, -0.0001, -0.25, 0.12345)] == ["–", "0.000", "−0.250", "0.123"]
    assert [brief(v) for v in (0.0, -1.5, 12345.0, 1e9)] == ["0", "−1.5", "12,345", "1e+09"]
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (float("nan"), "–"), (0.12345, "0.123"), (-1.5, "−1.5"), (12345.6, "12,346")],
)
def test_brief_numbers(value: float | None, shown: str) -> None:
    assert brief(value) == shown


def test_one_is_singular() -> None:
    assert [counted(n, "turn") for n in (0, 1, 1200)] == ["0 turns", "1 turn", "1,200 turns"]


def test_means_of_runs_have_a_deviation_if_there_are_several() -> None:
    values = [0.25, 0.5, 1.0]
    assert mean_and_deviation(values) == f"{np.mean(values):.3f} ± {np.std(values):.3f}"
    assert mean_and_deviation([0.25, math.nan], percent=True) == "25.0%"
    assert mean_and_deviation([math.nan]) == "–"
