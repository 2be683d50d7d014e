"""The loop against plain torch, and a killed and resumed run against an uninterrupted one."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from causerie.errors import CauserieError
from causerie.progress import Progress
from causerie.training.checkpoint import draw_scores
from causerie.training.config import LoopConfig
from causerie.training.loop import LoopState, Task, fit

SVG = "http://www.w3.org/2000/svg"


class Line(Task):
    """Fits y = 3x - 1, with dropout so that random numbers matter."""

    def __init__(self, scores: list[float] | None = None) -> None:
        torch.manual_seed(1)
        self.module = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
        self._scores = iter(scores) if scores else None

    def batch(self, index: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(16, 1, generator=torch.Generator().manual_seed(index))
        return x, 3 * x - 1

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        return nn.functional.mse_loss(self.module(x), y)

    def validate(self) -> dict[str, float]:
        if self._scores:
            return {"score": next(self._scores)}
        x, y = self.batch(10**6)
        return {"negative_error": -nn.functional.mse_loss(self.module(x), y).item()}


CONFIG = LoopConfig(steps=60, learning_rate=0.01, warmup_steps=5, validate_every=20)


def weights(task: Task) -> list[Tensor]:
    return [p.detach().clone() for p in task.module.parameters()]


def test_learns(tmp_path: Path) -> None:
    task = Line()
    before = task.validate()["negative_error"]
    progress = fit(task, LoopConfig(steps=300, learning_rate=0.02, warmup_steps=10), tmp_path)
    assert progress.best["negative_error"] > before / 5
    assert task.validate() == progress.best


def test_computes_in_bfloat16_where_it_is_told(tmp_path: Path) -> None:
    seen: dict[bool, torch.dtype] = {}

    class Watched(Line):
        def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
            seen[half] = self.module(batch[0]).dtype
            return super().loss(batch)

    for half in (False, True):
        fit(Watched(), replace(CONFIG, bfloat16=half), tmp_path / str(half))
    assert seen == {False: torch.float32, True: torch.bfloat16}


def test_equals_a_naive_loop(tmp_path: Path) -> None:
    task = Line()
    config = LoopConfig(
        steps=21, learning_rate=0.01, warmup_steps=2, accumulate=2, clip=0.5, seed=3
    )
    fit(task, config, tmp_path)

    naive = Line()
    optimizer = torch.optim.AdamW(naive.module.parameters(), lr=0.01, weight_decay=0.01)
    for step in range(21):
        factor = (step + 1) / 3 if step < 2 else (21 - step) / 19
        optimizer.param_groups[0]["lr"] = 0.01 * factor
        torch.manual_seed(3 * 1_000_003 + step)
        naive.module.train()
        optimizer.zero_grad()
        for part in range(2):
            (naive.loss(naive.batch(2 * step + part)) / 2).backward()
        nn.utils.clip_grad_norm_(naive.module.parameters(), 0.5)
        optimizer.step()
    for ours, theirs in zip(weights(task), weights(naive), strict=True):
        torch.testing.assert_close(ours, theirs)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("dies_at", [1, 19, 20, 33, 59])
def test_killed_and_resumed_gives_the_same_weights(tmp_path: Path, dies_at: int) -> None:
    whole = Line()
    expected = fit(whole, CONFIG, tmp_path / "whole")

    def die(progress: Progress) -> None:
        if progress.done == dies_at:
            raise KilledError

    folder = tmp_path / "broken"
    with pytest.raises(KilledError):
        fit(Line(), CONFIG, folder, checkpoint_minutes=0, watch=die)
    resumed = Line()
    progress = fit(resumed, CONFIG, folder, resume=True)
    assert progress == expected
    for ours, theirs in zip(weights(resumed), weights(whole), strict=True):
        assert torch.equal(ours, theirs)
    read = [(tmp_path / n / "metrics.jsonl").read_text() for n in ("whole", "broken")]
    assert read[0] == read[1]


def test_best_weights_are_kept_and_patience_stops(tmp_path: Path) -> None:
    task = Line(scores=[0.1, 0.5, 0.4, 0.3, 0.9])
    seen: list[Tensor] = []

    def remember(progress: Progress) -> None:
        if progress.done == 40:
            seen.extend(weights(task))

    config = LoopConfig(steps=100, warmup_steps=0, validate_every=20, patience=2)
    progress = fit(task, config, tmp_path, watch=remember)
    assert (progress.step, progress.best_step, progress.best) == (80, 40, {"score": 0.5})
    for ours, best in zip(weights(task), seen, strict=True):
        assert torch.equal(ours, best)


def test_other_settings_or_a_damaged_checkpoint_are_said(tmp_path: Path) -> None:
    fit(Line(), CONFIG, tmp_path)
    with pytest.raises(CauserieError, match="add --resume"):
        fit(Line(), CONFIG, tmp_path)
    with pytest.raises(CauserieError, match="other settings"):
        fit(Line(), LoopConfig(steps=61), tmp_path, resume=True)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"no")
    with pytest.raises(CauserieError, match="damaged"):
        fit(Line(), CONFIG, tmp_path, resume=True)


def test_log_and_picture(tmp_path: Path) -> None:
    fit(Line(), CONFIG, tmp_path)
    entries = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [e["step"] for e in entries if "loss" in e] == list(range(1, 61))
    assert [e["step"] for e in entries if "loss" not in e] == [20, 40, 60]
    assert all(math.isfinite(e["loss"]) for e in entries if "loss" in e)
    picture = ElementTree.parse(tmp_path / "curve.svg").getroot()
    assert len(picture.findall(f"{{{SVG}}}polyline")) == 2


def test_scores_are_drawn_on_a_fixed_scale(tmp_path: Path) -> None:
    """Changes appear in proportion: 0.628 to 0.634 is a flat line."""

    def heights(name: str, values: list[float]) -> list[float]:
        draw_scores(tmp_path / name, list(enumerate(values)), "R@1", "steps")
        (line,) = ElementTree.parse(tmp_path / name).getroot().findall(f"{{{SVG}}}polyline")
        return [float(point.split(",")[1]) for point in line.attrib["points"].split()]

    flat, steep = heights("flat.svg", [0.628, 0.634]), heights("steep.svg", [0.2, 0.8])
    assert (flat[0] - flat[1]) / (steep[0] - steep[1]) == pytest.approx(0.01, rel=0.1)
    below, above = heights("below.svg", [-2.0, -1.0]), heights("above.svg", [1.0, 2.0])
    for line in (below, above):
        assert line[0] - line[1] == pytest.approx((steep[0] - steep[1]) / 1.2, rel=0.01)


def test_a_loss_that_is_no_number_stops_the_training(tmp_path: Path) -> None:
    class Broken(Line):
        def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
            return super().loss(batch) * math.nan

    with pytest.raises(CauserieError, match="loss is nan at step 1: lower learning_rate"):
        fit(Broken(), CONFIG, tmp_path)


def test_equal_scores_are_decided_by_the_next() -> None:
    progress = LoopState(steps=3)
    assert progress.validated({"r@1": 0.5, "mrr": 0.6})
    assert not progress.validated({"r@1": 0.5, "mrr": 0.6})
    assert progress.validated({"r@1": 0.5, "mrr": 0.7})
    assert not progress.validated({"r@1": 0.4, "mrr": 0.9})


@pytest.mark.parametrize("file", ["checkpoint.safetensors", "best.safetensors"])
def test_files_without_what_they_should_hold_are_damaged(tmp_path: Path, file: str) -> None:
    fit(Line(), CONFIG, tmp_path)
    save_file({"other": torch.ones(1)}, tmp_path / file)
    with pytest.raises(CauserieError, match="is damaged"):
        fit(Line(), CONFIG, tmp_path, resume=True)


def test_an_interrupted_training_is_finished_with_its_best_weights(tmp_path: Path) -> None:
    def die(progress: Progress) -> None:
        if progress.done == 50:
            raise KilledError

    with pytest.raises(CauserieError, match="no training that could be finished"):
        fit(Line(), CONFIG, tmp_path, finish=True)
    killed = Line()
    with pytest.raises(KilledError):
        fit(killed, CONFIG, tmp_path, checkpoint_minutes=0, watch=die)
    finished = Line()
    state = fit(finished, CONFIG, tmp_path, resume=True, finish=True)
    assert (state.step, state.scores_step) == (50, 50)  # what it learned last was validated, too
    assert finished.validate() == state.best
    assert state.best_step in (20, 40, 50)
    entries = [json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    scores = {e["step"]: e["negative_error"] for e in entries if "loss" not in e}
    assert max(scores, key=lambda step: scores[step]) == state.best_step
    assert sorted(scores) == [20, 40, 50]
    resumed = fit(Line(), CONFIG, tmp_path, resume=True)
    assert resumed.step == 60
