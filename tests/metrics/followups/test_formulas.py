"""The formulas of FED and C-PMI on numbers that can be checked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.metrics.followups.formulas import Statistic, contrast, cpmi, cpmi_sym, nll, overall
from causerie.metrics.followups.hypotheses import Dimension

numbers = st.floats(-50, 0)


def test_contrast():
    assert contrast([3.0, 5.0], [1.0]) == 3.0
    assert contrast([3.0, 5.0], []) == 4.0
    assert contrast([], [1.0, 2.0]) == -1.5
    assert nll(-2.5) == 2.5


@given(numbers, numbers, numbers, numbers)
def test_cpmi_is_the_logarithm_of_the_printed_ratio(crh, h, ch, rh):
    # To base 2: any base is right, and powers of two do not underflow here.
    ratio = 2.0**crh * 2.0**h / (2.0**ch * 2.0**rh)
    assert cpmi(crh, h, ch, rh) == pytest.approx(math.log2(ratio), abs=1e-9)


@given(numbers, numbers, numbers, numbers, numbers)
def test_the_symmetric_one_is_symmetric(crh, rch, h, ch, rh):
    score = cpmi_sym(crh, rch, h, ch, rh)
    assert score == pytest.approx(cpmi_sym(rch, crh, h, rh, ch), abs=1e-9)
    assert cpmi_sym(crh, crh, h, ch, rh) == pytest.approx(cpmi(crh, h, ch, rh), abs=1e-9)
    assert 2 * score == pytest.approx(cpmi(crh, h, ch, rh) + cpmi(rch, h, rh, ch), abs=1e-9)


def test_overall():
    both = Dimension("both", ("Yes.",), ("No.",))
    more = Dimension("more", ("Good.",), ("Bad.",))
    negative = Dimension("negative", (), ("No.",))
    values = {both: 1.0, more: 2.0, negative: 30.0}
    assert overall(values, None) == 1.5
    statistics = {
        "both": Statistic(0.5, 0.25),
        "more": Statistic(0.0, 1.0),
        "negative": Statistic(40.0, 2.0),
        "of another list": Statistic(0.0, 1.0),
    }
    assert overall(values, statistics) == pytest.approx((2 + 2 - 5) / 3)
    assert overall({**values, Dimension("own", ("Hm.",), ()): 9.0}, statistics) == pytest.approx(
        (2 + 2 - 5) / 3
    )
    assert math.isnan(overall({negative: 1.0}, None))
    assert math.isnan(overall(values, {}))
