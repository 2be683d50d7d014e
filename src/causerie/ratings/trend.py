"""Averages by day: L1d, and L7d, the rolling average of the last seven days."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

import numpy as np

from causerie.render.svg import BLUE, RED, Scale, label, picture, polyline
from causerie.render.tables import Cell, Table, markdown_table
from causerie.stats import pearson_r

WEEK = 7
LEAST_DAYS = 3
"""Fewer averages have no correlation worth the name."""
TOO_FEW = "too few days"
NO_VARIATION = "the same every day"
WIDTH, HEIGHT, MARGIN = 720, 260, 40

Averages: TypeAlias = tuple[float, float, float]
"""Averages of ratings, predictions, and predictions of rated dialogues; nan if unknown."""


@dataclass(frozen=True)
class Day:
    """The dialogues of one day."""

    day: date
    dialogues: int
    rating: float | None
    """Mean of the users' ratings (L1d); None if nobody rated."""
    predicted: float
    """Mean over all dialogues, rated or not."""
    rating_week: float | None
    """Mean of the daily means of the last seven days (L7d); None before there are seven."""
    predicted_week: float | None
    predicted_of_rated: float | None
    """Mean of the predictions of those that were rated, which ratings are correlated with."""
    predicted_of_rated_week: float | None


@dataclass(frozen=True)
class Trend:
    days: tuple[Day, ...]
    """Days in order, those without a dialogue left out."""
    undated: int
    """Dialogues that have no day."""

    @property
    def daily(self) -> float | None:
        """Pearson correlation of the L1d of rated dialogues.

        None: too few days; nan: one of the two does not vary.
        """
        return _correlation([(day.predicted_of_rated, day.rating) for day in self.days])

    @property
    def weekly(self) -> float | None:
        """Pearson correlation of the L7d."""
        return _correlation([(day.predicted_of_rated_week, day.rating_week) for day in self.days])


def trend(
    days: Sequence[date | None], ratings: Sequence[float], predictions: Sequence[float]
) -> Trend:
    """Averages by day of dialogues in any order; the rating of one that has none is nan.

    A day without dialogues has no average and does not count in those of its week; L7d begins
    on the seventh day after the first, whether or not all of them have dialogues.
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
        )

    return Trend(tuple(of(day) for day in means), sum(day is None for day in days))


def figure(correlation: float | None) -> str:
    if correlation is None:
        return TOO_FEW
    return NO_VARIATION if math.isnan(correlation) else f"{correlation:.3f}"


def _means(rows: Sequence[Averages]) -> Averages:
    """Average the known numbers of each column; nan if there is none."""
    rating, predicted, of_rated = (_mean([row[column] for row in rows]) for column in range(3))
    return rating, predicted, of_rated


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _correlation(days: Sequence[tuple[float | None, float | None]]) -> float | None:
    points = [day for day in days if None not in day]
    if len(points) < LEAST_DAYS:
        return None
    predicted, rating = np.array(points, dtype=np.float64).T
    return pearson_r(predicted, rating)


def trend_table(one: Trend) -> Table:
    """Return a row per day."""
    rows: list[list[Cell]] = []
    for day in one.days:
        values = (day.rating, day.predicted, day.rating_week, day.predicted_week)
        shown = ["" if value is None else value for value in values]
        rows.append([str(day.day), day.dialogues, *shown])
    headings = ["day", "dialogues", "rated (L1d)", "predicted", "rated (L7d)", "predicted (L7d)"]
    return Table(headings, rows, "Averages by day", digits=2)


def trend_markdown(one: Trend) -> str:
    """Return the table, and the correlations."""
    correlations = f"Pearson: L1d {figure(one.daily)}, L7d {figure(one.weekly)}."
    return "\n".join([markdown_table(trend_table(one)), "", correlations, ""])


def chart(one: Trend) -> str:
    """Return both averages over the days, as a picture (SVG)."""
    if not one.days:
        return ""
    first, last = one.days[0].day, one.days[-1].day
    x = Scale(0, (last - first).days, MARGIN, WIDTH - MARGIN)
    y = Scale(1, 5, HEIGHT - MARGIN, MARGIN)

    def over(colour: str, dash: str, values: Sequence[float | None]) -> str:
        points = zip(one.days, values, strict=True)
        places = [(x((d.day - first).days), y(v)) for d, v in points if v is not None]
        return polyline(places, colour, dash=dash)

    below = HEIGHT - 12
    return picture(
        WIDTH,
        HEIGHT,
        [
            over(BLUE, "2 3", [day.rating for day in one.days]),
            over(RED, "2 3", [day.predicted for day in one.days]),
            over(BLUE, "", [day.rating_week for day in one.days]),
            over(RED, "", [day.predicted_week for day in one.days]),
            label(MARGIN, below, first.isoformat()),
            label(WIDTH - MARGIN, below, last.isoformat(), anchor="end"),
            label(8, MARGIN + 4, "5"),
            label(8, HEIGHT - MARGIN + 4, "1"),
            label(MARGIN, 18, "rated", colour=BLUE),
            label(MARGIN + 60, 18, "predicted", colour=RED),
            label(MARGIN + 150, 18, "dotted: by day, solid: seven days"),
        ],
    )
