"""Averages by day, on logs with numbers worked out by hand."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

import numpy as np
import pytest
from scipy import stats

from causerie.ratings.trend import NO_VARIATION, TOO_FEW, chart, figure, trend, trend_table

START = date(2026, 3, 1)


def on(day: int) -> date:
    return START + timedelta(day)


def test_daily_and_weekly_averages_by_hand() -> None:
    # two dialogues on the first day, one on each of days 1 to 7
    days = [on(0), on(0), *(on(n) for n in range(1, 8))]
    ratings = [1.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 5.0]
    predicted = [2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 4.0]
    found = trend(days, ratings, predicted)
    assert [day.rating for day in found.days] == [2, 4, 4, 4, 4, 4, 4, 5]
    assert found.days[0].dialogues == 2
    assert [day.rating_week for day in found.days[:6]] == [None] * 6
    assert found.days[6].rating_week == pytest.approx((2 + 6 * 4) / 7)
    assert found.days[7].rating_week == pytest.approx((6 * 4 + 5) / 7)
    assert found.days[7].predicted_week == pytest.approx((6 * 3 + 4) / 7)
    expected = np.corrcoef([2, 3, 3, 3, 3, 3, 3, 4], [2, 4, 4, 4, 4, 4, 4, 5])[0, 1]
    assert found.daily == pytest.approx(expected)
    assert found.weekly is None
    assert figure(found.weekly) == TOO_FEW


def test_days_without_dialogues_are_gaps() -> None:
    found = trend([on(0), on(2), on(8), on(30)], [1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 5.0])
    assert [day.day for day in found.days] == [on(0), on(2), on(8), on(30)]
    weeks = [day.rating_week for day in found.days]
    assert weeks == [None, None, pytest.approx(2.5), 5.0]  # days 2 to 8; day 30 alone
    assert found.daily == pytest.approx(1.0)


def test_order_and_undated_dialogues_do_not_matter() -> None:
    rng = Random(0)
    rows = [(on(n % 11), 1 + rng.random() * 4, 1 + rng.random() * 4) for n in range(60)]
    shuffled = rng.sample(rows, len(rows))
    a = trend(*zip(*rows, strict=True))
    b = trend(*zip(*[*shuffled, (None, 1.0, 5.0)], strict=True))
    assert [d.day for d in a.days] == [d.day for d in b.days]
    for one, two in zip(a.days, b.days, strict=True):
        assert one.rating == pytest.approx(two.rating)
    assert (a.undated, b.undated) == (0, 1)


def test_dialogues_that_nobody_rated_count_among_predictions() -> None:
    nan = float("nan")
    found = trend([on(0), on(0), on(1)], [4.0, nan, nan], [3.0, 5.0, 2.0])
    assert [(day.rating, day.predicted) for day in found.days] == [(4.0, 4.0), (None, 2.0)]
    assert found.daily is None  # one day with both
    week = trend([on(n) for n in range(7)], [nan] * 6 + [3.0], [2.0] * 6 + [3.0]).days[-1]
    assert (week.rating_week, week.predicted_week) == (3.0, pytest.approx(15 / 7))


def test_ratings_are_correlated_with_the_predictions_of_rated_dialogues() -> None:
    days = [on(n) for n in range(9)] * 2
    rng = Random(1)
    rated = [1 + 4 * rng.random() for _ in range(9)]
    predicted = [1 + 4 * rng.random() for _ in range(9)]
    unrated = [1 + 4 * rng.random() for _ in range(9)]
    found = trend(days, rated + [float("nan")] * 9, predicted + unrated)
    assert found.daily == pytest.approx(np.corrcoef(rated, predicted)[0, 1])
    weeks = [[np.mean(one[n : n + 7]) for n in range(3)] for one in (rated, predicted)]
    assert found.weekly == pytest.approx(np.corrcoef(*weeks)[0, 1])
    assert found.days[0].predicted == pytest.approx((predicted[0] + unrated[0]) / 2)


def test_what_does_not_vary_is_not_called_too_few_days() -> None:
    found = trend([on(n) for n in range(5)], [1.0, 2.0, 3.0, 4.0, 5.0], [3.0] * 5)
    assert found.daily is not None
    assert figure(found.daily) == NO_VARIATION
    assert figure(found.weekly) == TOO_FEW


def test_nothing_dated_has_no_trend() -> None:
    found = trend([None], [3.0], [3.0])
    assert (found.days, found.daily, found.weekly, chart({"": found})) == ((), None, None, "")


def test_intervals_of_daily_means_are_those_of_student() -> None:
    ratings = [2.0, 3.0, 5.0]
    one, alone = trend([on(0)] * 3 + [on(1)], [*ratings, 4.0], [3.0] * 4).days
    expected = stats.t.interval(0.95, 2, np.mean(ratings), stats.sem(ratings))
    assert one.rating_margin == pytest.approx(expected[1] - np.mean(ratings))
    assert one.predicted_margin == 0
    assert alone.rating_margin is None
    (day, *_), (_, _, rated, *_) = (
        trend_table("", trend([on(0)] * 3, ratings, ratings)).rows[0],
        (trend_table("x", trend([on(0)] * 3, ratings, ratings)).rows[0]),
    )
    assert day == "2026-03-01"
    assert (rated.low, rated.high) == (1.0, 5.0)  # type: ignore[union-attr]


def test_the_chart_draws_no_line_over_gaps() -> None:
    found = trend([on(n) for n in range(10)], [3.0] * 10, [2.0] * 10)
    assert chart({"": found}).count("<polyline") == 4
    days = [n for n in range(10) if n != 4]
    gap = trend([on(n) for n in days], [3.0] * 9, [2.0] * 9)
    assert chart({"": gap}).count("<polyline") == 6  # dotted ones are in two parts
    assert chart({"": gap}).count("<circle") == 18
    two = chart({"": found, "bot <b>": gap})
    assert two.count("<polyline") == 10
    assert "bot &lt;b&gt;: mean rating, 1 to 5" in two
    assert "2026-03-01" in two
