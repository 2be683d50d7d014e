"""One plain training loop for every trained metric.

A task defines the batches, the loss and the validation scores; the loop does the rest. Batches
and random numbers depend on the step alone, so a run that was killed and resumed takes the same
steps as one that was not.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from causerie.errors import CauserieError
from causerie.progress import Progress, Watch, ignore
from causerie.training.checkpoint import Checkpoint, Log
from causerie.training.config import LoopConfig


class Task(ABC):
    """A network to train, with its batches, loss and validation scores."""

    module: nn.Module

    def rate(self, name: str) -> float:
        """Return the learning rate of a parameter as a multiple of the configured one."""
        return 1.0

    @abstractmethod
    def batch(self, index: int) -> Any:
        """Return batch number `index`, the same one on every call."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the loss to minimise."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Return scores on held-out data, higher is better; later scores only break ties."""


@dataclass
class LoopState:
    """Progress of a training run: all of its state besides weights and optimiser."""

    steps: int
    """Total number of steps, unless training stops early."""
    step: int = 0
    loss: float = 0.0
    """Training loss, smoothed over about fifty steps."""
    scores: dict[str, float] = field(default_factory=dict)
    """Scores of the last validation."""
    scores_step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    """Scores of the best validation."""
    best_step: int = 0
    validations_since_best: int = 0

    def progress(self) -> Progress:
        """Return the progress to display; fresh validation scores are kept as a note."""
        scores = " ".join(f"{name} {value:.4f}" for name, value in self.scores.items())
        detail = f"loss {self.loss:.4f} {scores}"
        note = f"step {self.step:,} of {self.steps:,}: {detail}"
        just = note if self.scores_step == self.step else None
        return Progress("training", self.step, self.steps, "steps", detail, just)

    def validated(self, scores: dict[str, float]) -> bool:
        """Record new scores; return whether they are the best so far (compared in order)."""
        self.scores, self.scores_step = scores, self.step
        if self.best and tuple(scores.values()) <= tuple(self.best.values()):
            self.validations_since_best += 1
            return False
        self.best, self.best_step, self.validations_since_best = scores, self.step, 0
        return True


def fit(
    task: Task,
    config: LoopConfig,
    folder: Path,
    *,
    identity: Mapping[str, Any] | None = None,
    resume: bool = False,
    restart: bool = False,
    finish: bool = False,
    checkpoint_minutes: float = 3.0,
    watch: Watch = ignore,
) -> LoopState:
    """Train until the steps are done or validation stops improving; keep the best weights.

    Checkpoints, `metrics.jsonl` and `curve.svg` are written to `folder`. `resume` continues an
    interrupted run to the same result, `finish` ends it with its best weights, and `restart`
    overwrites it. `identity` holds whatever else determines the result (data, hyper-parameters);
    a checkpoint with another identity is refused.
    """
    trainable = {n: p for n, p in task.module.named_parameters() if p.requires_grad}
    device = next(iter(trainable.values())).device
    rates = {name: config.learning_rate * task.rate(name) for name in trainable}
    optimizer = torch.optim.AdamW(
        [{"params": [p], "rate": rates[n]} for n, p in trainable.items()],
        weight_decay=config.weight_decay,
    )
    checkpoint = Checkpoint(folder, trainable, optimizer, {**asdict(config), **(identity or {})})
    if restart:
        checkpoint.remove()
    if checkpoint.exists() and not resume:
        raise CauserieError(
            f"{folder} holds an earlier training: add --resume to continue it, or --force to "
            "start again"
        )
    if finish and not checkpoint.exists():
        raise CauserieError(f"{folder} holds no training that could be finished: omit --finish")
    state = LoopState(**checkpoint.load()) if checkpoint.exists() else LoopState(config.steps)
    log = Log(folder, state.step)
    saved = time.monotonic()
    half = config.bfloat16 or device.type == "cuda"

    def validate() -> None:
        task.module.eval()
        with torch.inference_mode():
            scores = task.validate()
        if state.validated(scores):
            checkpoint.save_best()
        log.validation(state.step, scores)

    if finish and state.scores_step < state.step:
        validate()
        checkpoint.save(asdict(state))
    while (
        not finish
        and state.step < config.steps
        and not (config.patience is not None and state.validations_since_best >= config.patience)
    ):
        torch.manual_seed(config.seed * 1_000_003 + state.step)
        task.module.train()
        loss = 0.0
        for part in range(config.accumulate):
            batch = task.batch(state.step * config.accumulate + part)
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                cost = task.loss(batch) / config.accumulate
            cost.backward()  # type: ignore[no-untyped-call]
            loss += cost.item()
        if not math.isfinite(loss):
            raise CauserieError(
                f"the loss is {loss} at step {state.step + 1}: lower learning_rate, delete "
                f"{folder} and train again"
            )
        nn.utils.clip_grad_norm_(trainable.values(), config.clip)
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * _warmup_then_decay(state.step, config)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        state.step += 1
        state.loss += (loss - state.loss) * max(0.02, 1 / state.step)
        log.step(state.step, loss)
        due = state.step % config.validate_every == 0 or state.step == config.steps
        if due:
            validate()
        if due or time.monotonic() - saved > 60 * checkpoint_minutes:
            log.flush()
            checkpoint.save(asdict(state))
            saved = time.monotonic()
        watch(state.progress())

    checkpoint.load_best()
    task.module.eval()
    log.draw()
    return state


def _warmup_then_decay(step: int, config: LoopConfig) -> float:
    """Return the factor of the learning rate: linear warm-up to 1, then linear decay to 0."""
    warmup = min(config.warmup_steps, config.steps // 10)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return max(0.0, (config.steps - step) / max(1, config.steps - warmup))
