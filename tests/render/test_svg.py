"""Charts: axes with round ends, marks, lines and pictures that are valid XML."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.render.page import shown
from causerie.render.svg import (
    IntervalChart,
    Scale,
    bar,
    drawing,
    label,
    outline,
    picture,
    polyline,
    round_ends,
)
from causerie.stats import Estimate


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 0.5)), max_size=5))
def test_the_axis_holds_every_interval_at_round_ends(values: list[tuple[float, float]]) -> None:
    estimates = [Estimate(v, 9, v - around, v + around) for v, around in values]
    chart = IntervalChart.around(estimates, 0.0, 200, 30)
    ends = [end for e in estimates for end in (e.low, e.high) if end is not None]
    assert all(0 <= chart.axis.x(end) <= 200 for end in (0.0, *ends))
    assert chart.axis.low / chart.axis.step == pytest.approx(
        round(chart.axis.low / chart.axis.step)
    )
    ticks = [t.replace("−", "-") for t in re.findall(r">([−\d.]+)</text>", chart.ticks())]
    assert 2 <= len(ticks) <= 8
    assert [float(t) for t in ticks] == sorted({float(t) for t in ticks})


def test_nothing_to_draw_is_nothing_drawn() -> None:
    chart = IntervalChart.around([], 0.5, 200, 30)
    assert chart.mark(Estimate(None, 0, reason="none"), "metric") == ""
    assert "interval" not in chart.mark(Estimate(0.5, 3), "metric")
    assert 'aria-hidden="true"' in chart.draw([])


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_round_ends_hold_both_numbers_in_about_so_many_steps(
    low: float, span: float, most: int
) -> None:
    first, last, step = round_ends(low, low + span, most)
    slack = 1e-5 * step
    assert first * step <= low + slack
    assert last * step >= low + span - slack
    assert 1 <= last - first <= most + 2
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(mantissa - one) for one in (1, 2, 2.5, 5)) < 1e-6


def test_a_scale_goes_from_one_end_to_the_other_and_survives_a_single_value() -> None:
    upwards = Scale(1, 5, 200, 40)
    assert [upwards(v) for v in (1, 3, 5)] == [200, 120, 40]
    assert Scale(2, 2, 10, 90)(2) == 10


def test_outlined_bars_stand_on_the_floor_and_none_that_counts_is_invisible() -> None:
    path = outline([0, 1, 1000], 1000, left=10, right=40, top=5, floor=55)
    assert path == "M10 55V55.0h10.00V54.0h10.00V5.0h10.00V55Z"


@given(st.text())
def test_whatever_the_text_a_picture_is_valid_xml(text: str) -> None:
    allowed = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
    parts = [
        label(1, 2, allowed, anchor="end", colour="red"),
        bar(0, 0, 3, 4, said=allowed),
        polyline([(0, 1), (2, 3)], "blue", dash="2 3"),
        drawing(9, 9, [], kind="bars", spoken=allowed),
    ]
    root = ElementTree.fromstring(picture(20, 10, parts))
    read = root.findtext("{http://www.w3.org/2000/svg}text")
    assert (read or "") == shown(allowed).replace("\r\n", "\n").replace("\r", "\n")
