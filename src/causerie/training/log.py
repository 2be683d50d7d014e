"""The log of a training run: one JSON object a line, and a picture of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, MARGIN = 640, 280, 44


class Log:
    """`metrics.jsonl` and `curve.svg` in the folder of a training run."""

    def __init__(self, folder: Path, step: int) -> None:
        """Continue the log at `step`: what an interrupted run logged after it is dropped."""
        self._folder = folder
        self._file = folder / "metrics.jsonl"
        self._pending: list[dict[str, Any]] = []
        kept = [e for e in self._entries() if e["step"] <= step]
        self._file.write_text("".join(json.dumps(e) + "\n" for e in kept), encoding="utf-8")

    def step(self, step: int, loss: float) -> None:
        self._pending.append({"step": step, "loss": round(loss, 6)})

    def validation(self, step: int, scores: dict[str, float]) -> None:
        self._pending.append({"step": step, **scores})

    def flush(self) -> None:
        with open(self._file, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self._pending)
        self._pending.clear()

    def draw(self) -> None:
        """Write the loss and the deciding validation score over the steps as a picture."""
        self.flush()
        entries = self._entries()
        losses = [(e["step"], e["loss"]) for e in entries if "loss" in e]
        checks = [e for e in entries if "loss" not in e]
        name = next((key for e in checks for key in e if key != "step"), "score")
        scores = [(e["step"], e[name]) for e in checks]
        lines = [
            _line(_smooth(losses), "#4477aa", "loss", "start"),
            _line(scores, "#ee6677", name, "end"),
        ]
        _write(self._folder / "curve.svg", lines, f"steps: {entries[-1]['step'] if entries else 0}")

    def _entries(self) -> list[dict[str, Any]]:
        if not self._file.exists():
            return []
        entries = []
        for line in self._file.read_text(encoding="utf-8").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:  # the last line of a killed run
                break
        return entries


def draw_scores(path: Path, points: list[tuple[int, float]], name: str, below: str) -> None:
    """Write one score as a line over whole numbers, which `below` names."""
    _write(path, [_line(points, "#ee6677", name, "end")], below)


def _write(path: Path, lines: list[str], below: str) -> None:
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>{"".join(lines)}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{below}</text></svg>\n',
        encoding="utf-8",
    )


def _smooth(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Means over at most 200 groups of consecutive points."""
    size = max(1, len(points) // 200)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(group[-1][0], sum(loss for _, loss in group) / len(group)) for group in groups]


def _line(points: list[tuple[int, float]], colour: str, label: str, side: str) -> str:
    """A polyline over the whole width with its own vertical scale, labelled at one side."""
    if not points:
        return ""
    steps, values = [p[0] for p in points], [p[1] for p in points]
    low, high = min(values), max(values)
    span, length = (high - low) or 1.0, (max(steps) - min(steps)) or 1

    def place(step: int, value: float) -> str:
        x = MARGIN + (WIDTH - 2 * MARGIN) * (step - min(steps)) / length
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - low) / span
        return f"{x:.1f},{y:.1f}"

    x = 6 if side == "start" else WIDTH - 6
    texts = ((MARGIN - 24, f"{label} {high:.3g}"), (HEIGHT - MARGIN + 18, f"{low:.3g}"))
    return (
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" '
        f'points="{" ".join(place(s, v) for s, v in points)}"/>'
        + "".join(
            f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{side}">{text}</text>'
            for y, text in texts
        )
    )
