"""Averages over time: L1d by day, and L7d, the rolling average of the last seven days."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

import numpy as np
from scipy import stats

from causerie.ratings.log import HIGHEST, LOWEST
from causerie.render.svg import BLUE, RED, Scale, disc, label, line, picture, polyline
from causerie.render.tables import Cell, Table, markdown_table
from causerie.stats import Estimate, pearson_r

WEEK = 7
LEAST_DAYS = 3
"""Minimum number of averages for a correlation."""
TOO_FEW = "too few days"
NO_VARIATION = "the same every day"
WIDTH, HEIGHT, MARGIN = 780, 280, 46
TICKS = 6
"""Approximate number of dates below a chart."""
LEVEL = 0.95

Averages: TypeAlias = tuple[float, float, float]
"""Averages of ratings, predictions, and predictions of rated dialogues; NaN if unknown."""


@dataclass(frozen=True)
class Day:
    """Averages over the dialogues of one day."""

    day: date
    dialogues: int
    rating: float | None
    """Mean of the users' ratings (L1d); None if nobody rated."""
    predicted: float
    """Mean prediction over all dialogues, rated or not."""
    rating_week: float | None
    """Mean of the daily means of the last seven days (L7d); None before there are seven."""
    predicted_week: float | None
    predicted_of_rated: float | None
    """Mean prediction of the rated dialogues, which is correlated with their ratings."""
    predicted_of_rated_week: float | None
    rating_margin: float | None = None
    """Half-width of the 95% interval of the daily mean; None for fewer than two dialogues."""
    predicted_margin: float | None = None


@dataclass(frozen=True)
class Trend:
    days: tuple[Day, ...]
    """Days in order, without those that have no dialogues."""
    undated: int
    """Number of dialogues without a date."""

    @property
    def daily(self) -> float | None:
        """Pearson correlation of the L1d of rated dialogues.

        None with too few days; NaN if one of the two does not vary.
        """
        return _correlation([(day.predicted_of_rated, day.rating) for day in self.days])

    @property
    def weekly(self) -> float | None:
        """Pearson correlation of the L7d."""
        return _correlation([(day.predicted_of_rated_week, day.rating_week) for day in self.days])


def trend(
    days: Sequence[date | None], ratings: Sequence[float], predictions: Sequence[float]
) -> Trend:
    """Return averages by day of dialogues in any order; missing ratings are NaN.

    A day without dialogues has no average and does not count in that of its week. L7d begins on
    the seventh day, whether or not all days before have dialogues.
    """
    by_day: dict[date, list[Averages]] = defaultdict(list)
    for day, rating, predicted in zip(days, ratings, predictions, strict=True):
        if day is not None:
            of_rated = math.nan if math.isnan(rating) else predicted
            by_day[day].append((rating, predicted, of_rated))
    means = {day: _means(by_day[day]) for day in sorted(by_day)}
    first = min(means, default=date.min)

    def of(day: date) -> Day:
        week = [means[d] for n in range(WEEK) if (d := day - timedelta(n)) in means]
        full = day - first >= timedelta(WEEK - 1)
        rating, predicted, of_rated = means[day]
        rating_week, predicted_week, of_rated_week = _means(week if full else [])
        return Day(
            day,
            len(by_day[day]),
            _known(rating),
            predicted,
            _known(rating_week),
            _known(predicted_week),
            _known(of_rated),
            _known(of_rated_week),
            _margin([one[0] for one in by_day[day]]),
            _margin([one[1] for one in by_day[day]]),
        )

    return Trend(tuple(of(day) for day in means), sum(day is None for day in days))


def figure(correlation: float | None) -> str:
    if correlation is None:
        return TOO_FEW
    return NO_VARIATION if math.isnan(correlation) else f"{correlation:.3f}"


def _means(rows: Sequence[Averages]) -> Averages:
    """Average the known numbers of each column; NaN if there are none."""
    rating, predicted, of_rated = (_mean([row[column] for row in rows]) for column in range(3))
    return rating, predicted, of_rated


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _margin(values: Sequence[float]) -> float | None:
    """Return the half-width of Student's t interval of a mean over dialogues."""
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return None
    error = float(np.std(known, ddof=1)) / math.sqrt(len(known))
    return error * float(stats.t.ppf((1 + LEVEL) / 2, len(known) - 1))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _correlation(days: Sequence[tuple[float | None, float | None]]) -> float | None:
    points = [day for day in days if None not in day]
    if len(points) < LEAST_DAYS:
        return None
    predicted, rating = np.array(points, dtype=np.float64).T
    return pearson_r(predicted, rating)


def trend_table(name: str, one: Trend) -> Table:
    """Return a row per day, daily means with their intervals."""
    rows: list[list[Cell]] = []
    for day in one.days:
        daily = [
            Estimate(value, day.dialogues, *_ends(value, margin))
            for value, margin in (
                (day.rating, day.rating_margin),
                (day.predicted, day.predicted_margin),
            )
        ]
        rows.append([str(day.day), day.dialogues, *daily, day.rating_week, day.predicted_week])
    headings = ["day", "dialogues", "rated (L1d)", "predicted", "rated (L7d)", "predicted (L7d)"]
    title = f"Averages by day{', ' if name else ''}{name}, in points from 1 to 5"
    return Table(headings, rows, title, digits=2)


def _ends(value: float | None, margin: float | None) -> tuple[float | None, float | None]:
    """Return the interval, clipped to the scale."""
    if value is None or margin is None:
        return None, None
    return max(LOWEST, value - margin), min(HIGHEST, value + margin)


def trend_markdown(name: str, one: Trend) -> str:
    """Return the table and the correlations in Markdown."""
    table = trend_table(name, one)
    correlations = f"Pearson: L1d {figure(one.daily)}, L7d {figure(one.weekly)}."
    return "\n".join([f"{table.title}:", "", markdown_table(table), "", correlations, ""])


def chart(trends: Mapping[str, Trend]) -> str:
    """Return the averages over time as a chart (SVG), with a panel for each trend with days.

    Bars are 95% intervals of daily means. Lines join only consecutive days: a day without
    dialogues is a gap.
    """
    dated = {name: one for name, one in trends.items() if one.days}
    if not dated:
        return ""
    first = min(one.days[0].day for one in dated.values())
    last = max(one.days[-1].day for one in dated.values())
    parts: list[str] = []
    for place, (name, one) in enumerate(dated.items()):
        parts += _panel(name or "all dialogues", one, first, last, place * HEIGHT)
    return picture(WIDTH, HEIGHT * len(dated), parts)


def _panel(name: str, one: Trend, first: date, last: date, top: float) -> list[str]:
    span = (last - first).days
    x = Scale(0, max(1, span), MARGIN, WIDTH - MARGIN)
    y = Scale(LOWEST, HIGHEST, top + HEIGHT - MARGIN, top + MARGIN)
    parts = [
        line(MARGIN, y(number), WIDTH - MARGIN, y(number), thick=0.5)
        + label(MARGIN - 8, y(number) + 4, str(number), anchor="end")
        for number in range(int(LOWEST), int(HIGHEST) + 1)
    ]
    step = max(1, math.ceil(span / TICKS))
    for after in range(0, span + 1, step):
        shown = (first + timedelta(after)).isoformat()
        parts.append(line(x(after), y(LOWEST), x(after), y(LOWEST) + 4))
        parts.append(label(x(after), top + HEIGHT - 22, shown, anchor="middle"))
    for colour, shift, daily, margins, weekly in (
        (BLUE, -2, "rating", "rating_margin", "rating_week"),
        (RED, 2, "predicted", "predicted_margin", "predicted_week"),
    ):
        days = [((day.day - first).days, day) for day in one.days]
        for number, day in days:
            low, high = _ends(getattr(day, daily), getattr(day, margins))
            if low is not None and high is not None:
                place = x(number) + shift
                parts.append(line(place, y(low), place, y(high), colour=colour, thick=1))
            if (value := getattr(day, daily)) is not None:
                parts.append(disc(x(number) + shift, y(value), colour=colour, radius=2.5))
        for field, dash in ((daily, "2 3"), (weekly, "")):
            known = [(n, v) for n, day in days if (v := getattr(day, field)) is not None]
            runs = np.split(
                np.arange(len(known)), np.flatnonzero(np.diff([n for n, _ in known]) > 1) + 1
            )
            for run in runs:
                if len(run) > 1:
                    places = [(x(known[i][0]) + shift, y(known[i][1])) for i in run.tolist()]
                    parts.append(polyline(places, colour, dash=dash))
    words = top + 18
    return [
        *parts,
        label(MARGIN, words, f"{name}: mean rating, 1 to 5"),
        label(MARGIN + 270, words, "rated", colour=BLUE),
        label(MARGIN + 320, words, "predicted", colour=RED),
        label(MARGIN + 390, words, "dotted: by day, with 95% intervals; solid: seven days"),
    ]
