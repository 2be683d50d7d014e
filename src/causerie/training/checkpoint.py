"""The files that a training run writes: checkpoints for resuming, a log and its curve."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from causerie.errors import CauserieError
from causerie.render.svg import BLUE, RED, Anchor, Scale, label, picture, polyline

LOG = "metrics.jsonl"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Checkpoint:
    """The state of one training run in its folder."""

    def __init__(
        self,
        folder: Path,
        trainable: Mapping[str, nn.Parameter],
        optimizer: torch.optim.AdamW,
        config: Mapping[str, Any],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._trainable, self._optimizer = trainable, optimizer
        self._config = json.dumps(config, sort_keys=True)
        self._latest = folder / "checkpoint.safetensors"
        self._best = folder / "best.safetensors"

    def exists(self) -> bool:
        return self._latest.exists()

    def remove(self) -> None:
        """Delete the checkpoint of an earlier run."""
        self._latest.unlink(missing_ok=True)

    def save(self, progress: Mapping[str, Any]) -> None:
        tensors = {f"weight/{n}": p.detach() for n, p in self._trainable.items()}
        for name, parameter in self._trainable.items():
            for moment, value in self._optimizer.state[parameter].items():
                tensors[f"{moment}/{name}"] = value
        metadata = {"config": self._config, "progress": json.dumps(progress)}
        _replace(self._latest, tensors, metadata)

    def load(self) -> dict[str, Any]:
        """Restore weights and optimiser; return the progress that was saved with them."""
        try:
            with safe_open(str(self._latest), framework="pt") as file:
                metadata = file.metadata()
            tensors = load_file(self._latest)
            saved, progress = metadata["config"], json.loads(metadata["progress"])
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise _damaged(self._latest, error) from error
        if saved != self._config:
            raise CauserieError(
                f"{self._latest} was written with other settings or data: use the same, or delete "
                f"{self._latest.parent}"
            )
        with torch.no_grad():
            for name, parameter in self._trainable.items():
                parameter.copy_(tensors[f"weight/{name}"])
                self._optimizer.state[parameter] = {
                    moment: tensors[f"{moment}/{name}"].to(
                        parameter.device if moment != "step" else "cpu"
                    )
                    for moment in _MOMENTS
                    if f"{moment}/{name}" in tensors
                }
        return dict(progress)

    def save_best(self) -> None:
        _replace(self._best, {n: p.detach() for n, p in self._trainable.items()}, {})

    def load_best(self) -> None:
        try:
            best = load_file(self._best)
            with torch.no_grad():
                for name, parameter in self._trainable.items():
                    parameter.copy_(best[name])
        except (SafetensorError, OSError, KeyError) as error:
            raise _damaged(self._best, error) from error


def _damaged(path: Path, error: Exception) -> CauserieError:
    return CauserieError(
        f"{path} is damaged: delete {path.parent} and train again ({type(error).__name__}: {error})"
    )


def _replace(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    temporary = path.with_suffix(".tmp")
    save_file({n: t.contiguous() for n, t in tensors.items()}, temporary, metadata)
    os.replace(temporary, path)


WIDTH, HEIGHT, MARGIN = 640, 280, 44


class Log:
    """`metrics.jsonl` and `curve.svg` in the folder of a training run."""

    def __init__(self, folder: Path, step: int) -> None:
        """Continue the log at `step`; later entries of an interrupted run are dropped."""
        self._folder = folder
        self._file = folder / LOG
        self._pending: list[dict[str, Any]] = []
        kept = [e for e in read_log(folder) if e["step"] <= step]
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
        """Draw the loss and the first validation score over the steps."""
        self.flush()
        entries = read_log(self._folder)
        losses = [(e["step"], e["loss"]) for e in entries if "loss" in e]
        checks = [e for e in entries if "loss" not in e]
        name = next((key for e in checks for key in e if key != "step"), "score")
        scores = [(e["step"], e[name]) for e in checks]
        lines = [
            _line(_smooth(losses), BLUE, "loss", "start"),
            _line(scores, RED, name, "end"),
        ]
        _write(self._folder / "curve.svg", lines, f"steps: {entries[-1]['step'] if entries else 0}")


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return what a run has logged so far: steps with their loss, and validations."""
    file = folder / LOG
    if not file.exists():
        return []
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:  # the last line of a killed run
            break
    return entries


def draw_scores(
    path: Path,
    points: list[tuple[int, float]],
    name: str,
    below: str,
    intervals: Sequence[tuple[float, float]] = (),
) -> None:
    """Draw a score with its intervals over whole numbers; `below` labels that axis."""
    _write(path, [_line(points, RED, name, "end", intervals)], below)


def _write(path: Path, lines: list[str], below: str) -> None:
    parts = [*lines, label(WIDTH / 2, HEIGHT - 8, below, anchor="middle")]
    path.write_text(picture(WIDTH, HEIGHT, parts), encoding="utf-8")


def _smooth(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Average consecutive points to about 200 points."""
    size = max(1, len(points) // 200)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(group[-1][0], sum(loss for _, loss in group) / len(group)) for group in groups]


def _line(
    points: list[tuple[int, float]],
    colour: str,
    name: str,
    side: Anchor,
    intervals: Sequence[tuple[float, float]] = (),
) -> str:
    """Return a line over the whole width with its own vertical scale, labelled at one side.

    The scale includes 0, and spans 0 to 1 if the values lie there (shares, AUC), so that changes
    appear in proportion and the curves of several runs can be compared.
    """
    if not points:
        return ""
    steps, values = [p[0] for p in points], [p[1] for p in points]
    x = Scale(min(steps), max(steps), MARGIN, WIDTH - MARGIN)
    shown = [*values, *(end for ends in intervals for end in ends)]
    top = max(0.0, *shown) if min(shown) < 0 else max(1.0, *shown)
    y = Scale(min(0.0, *shown), top, HEIGHT - MARGIN, MARGIN)
    edge = 6 if side == "start" else WIDTH - 6
    highest = label(edge, MARGIN - 24, f"{name} {y.high:.3g}", anchor=side, colour=colour)
    lowest = label(edge, HEIGHT - MARGIN + 18, f"{y.low:.3g}", anchor=side, colour=colour)
    bars = [
        polyline([(x(step), y(low)), (x(step), y(high))], colour, thick=1)
        for step, (low, high) in zip(steps, intervals, strict=False)
    ]
    line = polyline([(x(s), y(v)) for s, v in points], colour, thick=1.5)
    return line + "".join(bars) + highest + lowest
