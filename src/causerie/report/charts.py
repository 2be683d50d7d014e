"""Histograms as inline SVG: one per system, on a common axis, so that they can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from causerie.render.numbers import brief
from causerie.render.page import outside
from causerie.render.svg import SLACK, Axis, bar, drawing, round_ends, tick, upright
from causerie.report.figures import Figures, quantile

WIDTH = 340
HEIGHT = 52
BARS_PER_STEP = 5


@dataclass(frozen=True)
class BarAxis(Axis):
    """An axis whose steps are divided into bars; values outside fall into the outermost bars."""

    below: int = 0
    """Number of values below the axis."""
    above: int = 0

    @classmethod
    def of(cls, cells: list[tuple[float, int]]) -> BarAxis:
        """Return an axis for the bulk of the values: far outliers must not flatten the rest."""
        low, high = cells[0][0], cells[-1][0]
        lower, upper = quantile(cells, 0.25), quantile(cells, 0.75)
        fence = 3 * (upper - lower)
        inner_low, inner_high = max(low, lower - fence), min(high, upper + fence)
        if fence and inner_high - inner_low < (high - low) / 2:
            low, high = inner_low, inner_high
        if high - low < 1e-9 * max(abs(low), 1.0):
            margin = max(abs(low), 1.0) / 2
            low, high = low - margin, high + margin
        first, last, step = round_ends(low, high, 6)
        return cls(
            first,
            last,
            step,
            WIDTH,
            below=sum(count for value, count in cells if value / step < first - SLACK),
            above=sum(count for value, count in cells if value / step > last + SLACK),
        )

    @property
    def bars(self) -> int:
        return (self.last - self.first) * BARS_PER_STEP

    def bar_of(self, value: float) -> int:
        bar = math.floor((value / self.step - self.first) * BARS_PER_STEP)
        return max(0, min(self.bars - 1, bar))

    def edge(self, bar: int) -> float:
        return (self.first + bar / BARS_PER_STEP) * self.step


def histograms(groups: Sequence[tuple[str, Figures]]) -> str:
    """Return a labelled histogram per group, the common axis, and a remark on outliers."""
    pooled = sorted(cell for _, figures in groups for cell in figures.distribution())
    if not pooled:
        return '<p class="quiet">No response has this score.</p>'
    axis = BarAxis.of(pooled)
    shares = [_shares(figures, axis) for _, figures in groups]
    tallest = max(max(bars) for bars in shares)
    rows = [
        _histogram(label, figures, axis, bars, tallest)
        for (label, figures), bars in zip(groups, shares, strict=True)
    ]
    every = 1 if axis.last - axis.first <= 5 else 2  # more labels would touch each other
    return "".join(rows) + axis.ticks(kind="ticks", every=every) + _remark(axis)


def _shares(figures: Figures, axis: BarAxis) -> list[float]:
    bars = [0.0] * axis.bars
    for value, count in figures.distribution():
        bars[axis.bar_of(value)] += count / figures.scored
    return bars


def _histogram(
    label: str, figures: Figures, axis: BarAxis, bars: Sequence[float], tallest: float
) -> str:
    if not figures.scored:
        return (
            f'<div class="legend">{outside(label)}<span class="quiet">nothing scored</span></div>'
        )
    width = WIDTH / axis.bars
    drawn = []
    for place, share in enumerate(bars):
        if share:
            height = max(1.5, share / tallest * (HEIGHT - 6))
            said = f"{tick(axis.edge(place))} to {tick(axis.edge(place + 1))}: {share:.0%}"
            drawn.append(bar(place * width + 0.5, HEIGHT - height, width - 1, height, said=said))
    mean = figures.mean
    assert mean is not None
    spoken = (
        f"{label}: {figures.scored} scores from {brief(figures.low)} to "
        f"{brief(figures.high)}, mean {brief(mean)}"
    )
    base = f'<path class="base" d="M0 {HEIGHT - 0.5}H{WIDTH}"/>'
    parts = [*drawn, base, upright(axis.x(mean) if math.isfinite(mean) else 0.0, HEIGHT, "mean")]
    return (
        f'<div class="legend">{outside(label)}<span>mean {brief(mean)}</span></div>'
        f"{drawing(WIDTH, HEIGHT, parts, kind='bars', spoken=spoken)}"
    )


def _remark(axis: BarAxis) -> str:
    beyond = []
    if axis.below:
        beyond.append(f"{axis.below:,} below")
    if axis.above:
        beyond.append(f"{axis.above:,} above")
    if not beyond:
        return ""
    return f'<p class="quiet">{" and ".join(beyond)} this range, in the outermost bars.</p>'
