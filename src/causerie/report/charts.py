"""Histograms as inline SVG: one per system, on one axis, so that they can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from causerie.report.distribution import Distribution, quantile

WIDTH = 340
HEIGHT = 52
BARS_PER_STEP = 5
SLACK = 1e-6
"""In steps: values are known as the middles of tiny cells, so a 1 is a little more than 1."""


def figure(value: float | None) -> str:
    """A number as a reader wants it: three digits, and a real minus sign."""
    if value is None or not math.isfinite(value):
        return "–"
    digits = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return digits.replace("-", "−")


@dataclass(frozen=True)
class Axis:
    """A range cut into steps with round numbers at their ends, and bars within each step."""

    first: int
    last: int
    step: float
    below: int
    """How many values lie under the axis; they are counted in the first bar."""
    above: int

    @classmethod
    def of(cls, cells: list[tuple[float, int]]) -> Axis:
        """An axis for the bulk of the values: far outliers must not flatten everything else."""
        low, high = cells[0][0], cells[-1][0]
        lower, upper = quantile(cells, 0.25), quantile(cells, 0.75)
        fence = 3 * (upper - lower)
        inner_low, inner_high = max(low, lower - fence), min(high, upper + fence)
        if fence and inner_high - inner_low < (high - low) / 2:
            low, high = inner_low, inner_high
        if high - low < 1e-9 * max(abs(low), 1.0):
            margin = max(abs(low), 1.0) / 2
            low, high = low - margin, high + margin
        step = _round_step((high - low) / 6)
        first = math.floor(low / step + SLACK)
        last = max(math.ceil(high / step - SLACK), first + 1)
        return cls(
            first,
            last,
            step,
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

    def x(self, value: float) -> float:
        share = (value / self.step - self.first) / (self.last - self.first)
        return WIDTH * max(0.0, min(1.0, share))


def _round_step(rough: float) -> float:
    power = float(10.0 ** math.floor(math.log10(rough)))
    return next(f * power for f in (1.0, 2.0, 2.5, 5.0, 10.0) if f * power >= rough * 0.999)


def histograms(labels: Sequence[str], distributions: Sequence[Distribution]) -> str:
    """One labelled histogram per distribution, their common axis, and a remark on outliers."""
    pooled = sorted(cell for distribution in distributions for cell in distribution.cells())
    if not pooled:
        return '<p class="quiet">No response has this score.</p>'
    axis = Axis.of(pooled)
    shares = [_shares(distribution, axis) for distribution in distributions]
    tallest = max(max(bars) for bars in shares)
    rows = [
        _histogram(label, distribution, axis, bars, tallest)
        for label, distribution, bars in zip(labels, distributions, shares, strict=True)
    ]
    return "".join(rows) + _ticks(axis) + _remark(axis)


def _shares(distribution: Distribution, axis: Axis) -> list[float]:
    bars = [0.0] * axis.bars
    for value, count in distribution.cells():
        bars[axis.bar_of(value)] += count / distribution.count
    return bars


def _histogram(
    label: str, distribution: Distribution, axis: Axis, bars: Sequence[float], tallest: float
) -> str:
    if not distribution.count:
        return (
            f'<div class="legend"><bdi>{escape(label)}</bdi>'
            '<span class="quiet">nothing scored</span></div>'
        )
    width = WIDTH / axis.bars
    drawn = []
    for bar, share in enumerate(bars):
        if share:
            height = max(1.5, share / tallest * (HEIGHT - 6))
            drawn.append(
                f'<rect x="{bar * width + 0.5:.2f}" y="{HEIGHT - height:.2f}"'
                f' width="{width - 1:.2f}" height="{height:.2f}"><title>'
                f"{_tick(axis.edge(bar))} to {_tick(axis.edge(bar + 1))}: {share:.0%}"
                f"</title></rect>"
            )
    mean = axis.x(distribution.mean) if math.isfinite(distribution.mean) else 0.0
    spoken = (
        f"{label}: {distribution.count} scores from {figure(distribution.least)} to "
        f"{figure(distribution.greatest)}, mean {figure(distribution.mean)}"
    )
    return (
        f'<div class="legend"><bdi>{escape(label)}</bdi>'
        f"<span>mean {figure(distribution.mean)}</span></div>"
        f'<svg class="bars" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(spoken)}">'
        f'{"".join(drawn)}<path class="base" d="M0 {HEIGHT - 0.5}H{WIDTH}"/>'
        f'<path class="mean" d="M{mean:.2f} 0V{HEIGHT}"/></svg>'
    )


def _ticks(axis: Axis) -> str:
    drawn = []
    every = 1 if axis.last - axis.first <= 5 else 2  # more labels than that would touch
    for number in range(axis.first, axis.last + 1, every):
        anchor = {axis.first: "start", axis.last: "end"}.get(number, "middle")
        x = axis.x(number * axis.step)
        drawn.append(
            f'<text x="{x:.2f}" y="13" text-anchor="{anchor}">{_tick(number * axis.step)}</text>'
        )
    return f'<svg class="ticks" viewBox="0 0 {WIDTH} 18" aria-hidden="true">{"".join(drawn)}</svg>'


def _tick(value: float) -> str:
    return f"{value:.5g}".replace("-", "−")


def _remark(axis: Axis) -> str:
    beyond = []
    if axis.below:
        beyond.append(f"{axis.below:,} below")
    if axis.above:
        beyond.append(f"{axis.above:,} above")
    if not beyond:
        return ""
    return f'<p class="quiet">{" and ".join(beyond)} this range, in the outermost bars.</p>'
