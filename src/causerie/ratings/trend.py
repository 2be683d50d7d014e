"""Averages by day: L1d, and L7d, the rolling average of the last seven days."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape
from typing import TypeAlias

import numpy as np

from causerie.stats import pearson_r

WEEK = 7
LEAST_DAYS = 3
"""Fewer averages have no correlation worth the name."""
TOO_FEW = "too few days"
NO_VARIATION = "the same every day"
WIDTH, HEIGHT, MARGIN = 720, 260, 40

Averages: TypeAlias = tuple[float, float, float]
"""Of ratings, of predictions, and of predictions of rated dialogues; nan if unknown."""


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
    """In order; days without a dialogue are not there."""
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
        """Of the L7d."""
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
    """Of each column the numbers that are known; nan if none is."""
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


def trend_markdown(one: Trend) -> str:
    """A row per day, and the correlations."""
    lines = [
        "| day | dialogues | rated (L1d) | predicted | rated (L7d) | predicted |",
        "|---|---|---|---|---|---|",
    ]
    for day in one.days:
        values = (day.rating, day.predicted, day.rating_week, day.predicted_week)
        cells = ["" if value is None else f"{value:.2f}" for value in values]
        lines.append(f"| {day.day} | {day.dialogues:,} | {' | '.join(cells)} |")
    correlations = f"Pearson: L1d {figure(one.daily)}, L7d {figure(one.weekly)}."
    return "\n".join([*lines, "", correlations, ""])


def chart(one: Trend) -> str:
    """Both averages over the days, as a picture (SVG)."""
    if not one.days:
        return ""
    first, last = one.days[0].day, one.days[-1].day
    span = max(1, (last - first).days)

    def line(colour: str, dash: str, points: list[tuple[date, float | None]]) -> str:
        places = " ".join(
            f"{MARGIN + (WIDTH - 2 * MARGIN) * (day - first).days / span:.1f},"
            f"{HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - 1) / 4:.1f}"
            for day, value in points
            if value is not None
        )
        return (
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}" points="{places}"/>'
        )

    drawn = [
        line("#4477aa", "2 3", [(day.day, day.rating) for day in one.days]),
        line("#ee6677", "2 3", [(day.day, day.predicted) for day in one.days]),
        line("#4477aa", "", [(day.day, day.rating_week) for day in one.days]),
        line("#ee6677", "", [(day.day, day.predicted_week) for day in one.days]),
    ]
    labels = [
        f'<text x="{MARGIN}" y="{HEIGHT - 12}">{escape(first.isoformat())}</text>',
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 12}" text-anchor="end">'
        f"{escape(last.isoformat())}</text>",
        f'<text x="8" y="{MARGIN + 4}">5</text><text x="8" y="{HEIGHT - MARGIN + 4}">1</text>',
        f'<text x="{MARGIN}" y="18" fill="#4477aa">rated</text>',
        f'<text x="{MARGIN + 60}" y="18" fill="#ee6677">predicted</text>',
        f'<text x="{MARGIN + 150}" y="18">dotted: by day, solid: seven days</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="white"/>{"".join(drawn)}{"".join(labels)}</svg>\n'
    )
