"""What all trained metrics share: an artifact, a percentile, a way to be trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from causerie.metrics.base import Metric, Score
from causerie.models.artifact import CALIBRATION, Artifact, load_artifact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from causerie.engines import Engines

QUANTILES = 1001


@dataclass(frozen=True)
class TrainingRun:
    """What a metric is trained on and where the result goes."""

    config: Any
    """The metric's own configuration."""
    data: tuple[Path, ...]
    valid: tuple[Path, ...]
    out: Path
    licence: str = "not stated"
    """Of the data; it is written on the card."""
    recipe: str = ""
    """The command that makes this artifact again."""
    resume: bool = False
    watch: Callable[[Any], None] = lambda progress: None


class TrainedMetric(Metric):
    """A metric with trained weights: shipped, or made by `causerie train`."""

    calibrated: ClassVar[bool] = True
    config: ClassVar[type]
    """The dataclass whose fields `causerie train --set` can change."""

    def __init__(self, engines: Engines, artifact: str | None = None) -> None:
        super().__init__(engines)
        self.artifact: Artifact = load_artifact(artifact or self.name, self.name)

    @classmethod
    @abstractmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Mapping[str, Any]:
        """Train, save the artifact to `run.out`, return what was measured on validation data."""

    @property
    def signature(self) -> str:
        return f"{self.name}@{self.artifact.sha256[:12]}|{self.artifact.backbone}"

    def calibrate(self, value: float, explanation: Mapping[str, Any] | None = None) -> Score:
        """A score with its percentile among held-out human responses."""
        quantiles = self.artifact.statistics[CALIBRATION].numpy()
        return Score(value, percentile_of(value, quantiles), explanation)


def quantiles_of(scores: NDArray[Any]) -> NDArray[np.float32]:
    """What an artifact keeps of the scores of human responses."""
    quantiles: NDArray[np.float32] = np.quantile(scores, np.linspace(0, 1, QUANTILES)).astype(
        np.float32
    )
    return quantiles


def percentile_of(value: float, quantiles: NDArray[Any]) -> float:
    """Share of human responses that score no better, 0 to 100."""
    return round(100 * float(np.searchsorted(quantiles, value, side="right")) / len(quantiles), 1)


def card(
    title: str,
    run: TrainingRun,
    about: str,
    results: Mapping[str, Any],
    limits: Sequence[str],
) -> str:
    """The text that goes with an artifact."""
    lines = [f"# {title}", "", about, "", "## Data", ""]
    lines += [f"- trained on `{path.name}`" for path in run.data]
    lines += [f"- validated on `{path.name}`" for path in run.valid]
    lines += ["", f"Licence of the data: {run.licence}", "", "## Recipe", ""]
    lines += ["```", run.recipe, "```", "", "## Results on validation data", ""]
    lines += ["| what | value |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in results.items()]
    lines += ["", "## Limits", "", *(f"- {limit}" for limit in limits), ""]
    return "\n".join(lines)
