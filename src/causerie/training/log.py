"""The log of a training run: one JSON object a line, and a picture of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from causerie.render.svg import BLUE, RED, Anchor, Scale, label, picture, polyline

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
            _line(_smooth(losses), BLUE, "loss", "start"),
            _line(scores, RED, name, "end"),
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
    _write(path, [_line(points, RED, name, "end")], below)


def _write(path: Path, lines: list[str], below: str) -> None:
    parts = [*lines, label(WIDTH / 2, HEIGHT - 8, below, anchor="middle")]
    path.write_text(picture(WIDTH, HEIGHT, parts), encoding="utf-8")


def _smooth(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Means over at most 200 groups of consecutive points."""
    size = max(1, len(points) // 200)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(group[-1][0], sum(loss for _, loss in group) / len(group)) for group in groups]


def _line(points: list[tuple[int, float]], colour: str, name: str, side: Anchor) -> str:
    """Return a line over the whole width with its own vertical scale, labelled at one side."""
    if not points:
        return ""
    steps, values = [p[0] for p in points], [p[1] for p in points]
    x = Scale(min(steps), max(steps), MARGIN, WIDTH - MARGIN)
    y = Scale(min(values), max(values), HEIGHT - MARGIN, MARGIN)
    edge = 6 if side == "start" else WIDTH - 6
    highest = label(edge, MARGIN - 24, f"{name} {y.high:.3g}", anchor=side, colour=colour)
    lowest = label(edge, HEIGHT - MARGIN + 18, f"{y.low:.3g}", anchor=side, colour=colour)
    return polyline([(x(s), y(v)) for s, v in points], colour, thick=1.5) + highest + lowest
