"""Charts as SVG: axes with round numbers, bars, lines and intervals.

All text in a chart is escaped here. A drawing inside a page is styled by the page; a picture is
a file of its own, in colours that colour-blind readers can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from causerie.render.page import shown
from causerie.render.tables import Measured

BLUE, RED = "#4477aa", "#ee6677"
Anchor: TypeAlias = Literal["start", "middle", "end"]
Shape: TypeAlias = Literal["metric", "sentinel", "ceiling"]
"""Drawn as a disc, a hollow diamond and an upright bar, which differ without colour."""
SLACK = 1e-6
"""Tolerance in steps: values may be the middles of tiny cells, so a 1 can be slightly above 1."""


def drawing(
    width: float, height: float, parts: Iterable[str], *, kind: str, spoken: str = ""
) -> str:
    """Return a drawing of the class `kind` inside a page.

    `spoken` is its description for screen readers; without it, the text beside it describes it.
    """
    said = f'role="img" aria-label="{escape(shown(spoken))}"' if spoken else 'aria-hidden="true"'
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f" {said}>{''.join(parts)}</svg>"
    )


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    """Return a drawing as a file of its own, on a white background."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" '
        f'fill="white"/>{"".join(parts)}</svg>\n'
    )


def label(x: float, y: float, text: str, *, anchor: Anchor = "start", colour: str = "") -> str:
    """Return a text whose anchor is at x and y."""
    fill = f' fill="{colour}"' if colour else ""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{_place(x)}" y="{_place(y)}"{place}{fill}>{escape(shown(text))}</text>'


def polyline(
    points: Iterable[tuple[float, float]], colour: str, *, thick: float = 2, dash: str = ""
) -> str:
    """Return a line through the points."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline fill="none" stroke="{colour}" stroke-width="{thick}"{dashes} '
        f'points="{places}"/>'
    )


def line(
    x: float, y: float, to_x: float, to_y: float, *, colour: str = "#999", thick: float = 2
) -> str:
    """Return a straight line from (x, y) to (to_x, to_y)."""
    ends = " ".join(
        f'{n}="{_place(v)}"'
        for n, v in zip(("x1", "y1", "x2", "y2"), (x, y, to_x, to_y), strict=True)
    )
    return f'<line {ends} stroke="{colour}" stroke-width="{thick}"/>'


def disc(x: float, y: float, *, colour: str, edge: str = "", radius: float = 4) -> str:
    """Return a disc, outlined in the colour `edge` if one is given."""
    around = f' stroke="{edge}" stroke-width="2"' if edge else ""
    return f'<circle cx="{_place(x)}" cy="{_place(y)}" r="{radius}" fill="{colour}"{around}/>'


def bar(
    x: float, y: float, width: float, height: float, *, colour: str = "", said: str = ""
) -> str:
    """Return a bar with its upper left corner at x and y; `said` is its tooltip."""
    fill = f' fill="{colour}"' if colour else ""
    end = f"><title>{escape(shown(said))}</title></rect>" if said else "/>"
    return (
        f'<rect x="{_place(x)}" y="{_place(y)}" width="{_place(width)}" '
        f'height="{_place(height)}"{fill}{end}'
    )


def outline(
    counts: Sequence[float], tallest: float, *, left: float, right: float, top: float, floor: float
) -> str:
    """Return the outline of adjoining bars, as the data of a path.

    They stand on `floor`; the count `tallest` reaches `top`, and any non-zero count is visible.
    """
    step = (right - left) / len(counts)
    heights = [max(1.0, (floor - top) * count / tallest) if count else 0.0 for count in counts]
    steps = "".join(f"V{floor - height:.1f}h{step:.2f}" for height in heights)
    return f"M{_place(left)} {_place(floor)}{steps}V{_place(floor)}Z"


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map of the numbers from `low` to `high` to the positions from `start` to `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.stop - self.start)


@dataclass(frozen=True)
class Axis:
    """A horizontal axis whose ends and steps are round numbers."""

    first: int
    """The left end in steps, as `last` is the right one."""
    last: int
    step: float
    width: int
    margin: float = 0.0

    @property
    def low(self) -> float:
        return self.first * self.step

    @property
    def high(self) -> float:
        return self.last * self.step

    def x(self, value: float) -> float:
        """Return the position of a number; numbers outside the axis are at its ends."""
        share = (value / self.step - self.first) / (self.last - self.first)
        return self.margin + (self.width - 2 * self.margin) * max(0.0, min(1.0, share))

    def ticks(self, *, kind: str, every: int = 1) -> str:
        """Return the tick labels above or below a drawing, as a drawing of their own."""
        drawn = []
        for number in range(self.first, self.last + 1, every):
            ends: dict[int, Anchor] = {self.first: "start", self.last: "end"}
            anchor = "middle" if self.margin else ends.get(number, "middle")
            text = tick(number * self.step)
            drawn.append(label(self.x(number * self.step), 12, text, anchor=anchor))
        return drawing(self.width, 16, drawn, kind=kind)


def round_ends(low: float, high: float, most: float) -> tuple[int, int, float]:
    """Return the first and last of about `most` round steps that cover a range, and the step."""
    rough = (high - low) / most
    power = float(10.0 ** math.floor(math.log10(rough)))
    step = next(f * power for f in (1.0, 2.0, 2.5, 5.0, 10.0) if f * power >= rough * 0.999)
    first = math.floor(low / step + SLACK)
    return first, max(math.ceil(high / step - SLACK), first + 1), step


def tick(value: float) -> str:
    """Return a number as the label of a tick or bar."""
    return f"{value:.5g}".replace("-", "−")


@dataclass(frozen=True)
class IntervalChart:
    """Intervals as small bars, each in its own drawing, on a common axis."""

    axis: Axis
    height: int

    @classmethod
    def around(
        cls, measured: Iterable[Measured], chance: float, width: int, height: int
    ) -> IntervalChart:
        """Return a chart whose axis covers every value, every interval and the chance level."""
        ends = [chance, chance + 0.2]
        for one in measured:
            ends += [end for end in (one.value, one.low, one.high) if end is not None]
        return cls(Axis(*round_ends(min(ends), max(ends), width / 34), width, 8.0), height)

    def line(self, value: float | None, kind: str) -> str:
        """Return a vertical line over the whole height, or nothing for None."""
        return "" if value is None else upright(self.axis.x(value), self.height, kind)

    def mark(self, measured: Measured, shape: Shape) -> str:
        """Return the interval as a bar and the value as its shape, or nothing without a value."""
        if measured.value is None:
            return ""
        y, x = self.height / 2, self.axis.x(measured.value)
        interval = ""
        if measured.low is not None and measured.high is not None:
            low, high = self.axis.x(measured.low), self.axis.x(measured.high)
            interval = f'<path class="interval" d="M{low:.1f} {y}H{high:.1f}"/>'
        drawn = {
            "metric": f'<circle cx="{x:.1f}" cy="{y}" r="4.5"/>',
            "sentinel": f'<path class="shape" d="M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z"/>',
            "ceiling": f'<path class="shape" d="M{x - 2:.1f} {y - 8}h4v16h-4z"/>',
        }[shape]
        return f'<g class="{shape}">{interval}{drawn}</g>'

    def draw(self, parts: Iterable[str], spoken: str = "") -> str:
        return drawing(self.axis.width, self.height, parts, kind="forest", spoken=spoken)

    def ticks(self) -> str:
        return self.axis.ticks(kind="axis")


def upright(x: float, height: float, kind: str) -> str:
    """Return a vertical line of the class `kind` from top to bottom."""
    return f'<path class="{kind}" d="M{x:.1f} 0V{height}"/>'


def _place(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
