"""Intervals as small bars on a common axis, drawn as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from causerie.stats import Estimate

Kind: TypeAlias = Literal["metric", "sentinel", "ceiling"]
"""Drawn as a disc, a hollow diamond and an upright bar: told apart without colour."""

_MARGIN = 8.0


@dataclass(frozen=True)
class Axis:
    """A range with round ends on a drawing of a given size."""

    low: float
    high: float
    step: float
    width: int
    height: int

    @classmethod
    def around(cls, estimates: Iterable[Estimate], chance: float, width: int, height: int) -> Axis:
        """An axis that holds every value and interval, and what chance gives."""
        ends = [chance, chance + 0.2]
        for estimate in estimates:
            ends += [v for v in (estimate.value, estimate.low, estimate.high) if v is not None]
        span = max(ends) - min(ends)
        step = next((s for s in (0.1, 0.2, 0.5) if span / s <= width / 34), 1.0)
        low = math.floor(min(ends) / step + 1e-9) * step
        high = math.ceil(max(ends) / step - 1e-9) * step
        return cls(low, high, step, width, height)

    def x(self, value: float) -> float:
        return _MARGIN + (value - self.low) / (self.high - self.low) * (self.width - 2 * _MARGIN)

    def line(self, value: float | None, kind: str) -> str:
        """An upright line across the whole height; nothing for no value."""
        if value is None:
            return ""
        return f'<path class="{kind}" d="M{self.x(value):.1f} 0V{self.height}"/>'

    def ticks(self) -> str:
        """The numbers under (or over) the drawing, as an SVG of their own."""
        count = round((self.high - self.low) / self.step)
        drawn = []
        for index in range(count + 1):
            value = self.low + index * self.step
            text = f"{round(value, 1) + 0:g}".replace("-", "−")
            drawn.append(f'<text x="{self.x(value):.1f}" y="12" text-anchor="middle">{text}</text>')
        return (
            f'<svg class="axis" viewBox="0 0 {self.width} 16" width="{self.width}" height="16"'
            f' aria-hidden="true">{"".join(drawn)}</svg>'
        )

    def draw(self, parts: Iterable[str], spoken: str = "") -> str:
        """The drawing; `spoken` (escaped) describes it where no text beside it does."""
        said = f'role="img" aria-label="{spoken}"' if spoken else 'aria-hidden="true"'
        return (
            f'<svg class="forest" viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
            f' height="{self.height}" {said}>{"".join(parts)}</svg>'
        )

    def mark(self, estimate: Estimate, kind: Kind) -> str:
        """The interval as a bar and the value as a mark of its kind; nothing for no value."""
        if estimate.value is None:
            return ""
        y, x = self.height / 2, self.x(estimate.value)
        bar = ""
        if estimate.low is not None and estimate.high is not None:
            low, high = self.x(estimate.low), self.x(estimate.high)
            bar = f'<path class="interval" d="M{low:.1f} {y}H{high:.1f}"/>'
        shape = {
            "metric": f'<circle cx="{x:.1f}" cy="{y}" r="4.5"/>',
            "sentinel": f'<path class="shape" d="M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z"/>',
            "ceiling": f'<path class="shape" d="M{x - 2:.1f} {y - 8}h4v16h-4z"/>',
        }[kind]
        return f'<g class="{kind}">{bar}{shape}</g>'
