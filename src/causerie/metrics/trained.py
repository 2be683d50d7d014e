"""What all trained metrics share: an artifact, its networks, and percentiles."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from causerie.metrics.base import Metric, Score, Scores
from causerie.models.artifact import Artifact, ArtifactInfo, damaged, research_variant
from causerie.models.registry import read_registry
from causerie.options import option
from causerie.training.trainable import Trainable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from causerie.dialogue import Exchange
    from causerie.engines import Engines

QUANTILES = 1001
"""Number of quantiles of human scores that an artifact stores."""


@dataclass(frozen=True)
class TrainedMetric(Metric, Trainable):
    """A metric with trained weights, shipped or trained with `causerie train`."""

    artifact: str | None = option(
        None, "name of a shipped artifact, or the folder of one that you trained", file=True
    )

    research: ClassVar[str | None] = None
    """Name of the artifact trained on research-only data, as in the metric's paper."""

    exact: ClassVar[bool] = False
    """Whether its ranking of replies needs encoders in float32: `tuned_encoder` is told, too."""

    @property
    def info(self) -> ArtifactInfo:
        """Description of its artifact, read without the weights."""
        return ArtifactInfo.find(self.artifact or self.name, self.name)

    def restored(self, engines: Engines) -> tuple[Artifact, Any]:
        """Return the artifact and its restored networks, shared by all metrics that use it."""
        info = engines.steady(self.info)

        def restore() -> tuple[Artifact, Any]:
            artifact = engines.artifact(info)
            try:
                return artifact, self.restore(engines, artifact)
            except (KeyError, TypeError, RuntimeError, ValueError) as error:
                raise damaged(f"of {self.name}", error) from error

        return engines.shared((type(self), info.sha256, *self._restored_by), restore)

    def for_research(self) -> Metric:
        """Return the metric with its research artifact, if it has one and none was chosen."""
        if self.research is None or self.artifact is not None:
            return self
        research_variant(self.research)
        return replace(self, artifact=self.research)

    @property
    def _restored_by(self) -> tuple[Any, ...]:
        """Options that determine what `restore` returns."""
        return ()

    @abstractmethod
    def restore(self, engines: Engines, artifact: Artifact) -> Any:
        """Return the trained networks of an artifact."""

    @property
    def uses(self) -> frozenset[str]:
        """An artifact names its own encoder; `--encoder` can only give a folder's new path."""
        known = {entry.name for entry in read_registry()}
        return frozenset() if self.info.backbone in known else frozenset({"encoder"})

    def signature(self, engines: Engines) -> str:
        named = f"{self._with_options()}@{engines.steady(self.info).sha256[:12]}"
        encodes = "encoder" in self.needs
        backend = engines.backend_of(self.info.backbone, exact=self.exact) if encodes else "torch"
        return "|".join([named, *self._code(), engines.precision(backend)])

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        return frozenset({"artifact"})


@dataclass(frozen=True)
class MeanMetric(TrainedMetric):
    """A trained metric that scores a dialogue by the mean of its turns, with a percentile."""

    @property
    def dialogue_table(self) -> str:
        """Name of the artifact's table of scores of human dialogues."""
        return "dialogue"

    def join_turns(self, turns: Sequence[Scores], empty: int, engines: Engines) -> Scores:
        (score,) = super().join_turns(turns, empty, engines)
        if score.value is None:
            return (score,)
        artifact, _ = self.restored(engines)
        return (calibrated_score(artifact, score.value, self.dialogue_table),)


def calibrated_score(
    artifact: Artifact, value: float, table: str, explanation: Mapping[str, Any] | None = None
) -> Score:
    """Return a score with its percentile in one of the artifact's tables of human scores."""
    quantiles = artifact.statistics.get(f"calibration.{table}")
    if quantiles is None or not math.isfinite(value):
        return Score.of(value, explanation)
    percentile = percentile_of(value, quantiles.numpy())
    return Score(value, percentile, {"percentile": percentile, **(explanation or {})})


def with_context(
    exchanges: Sequence[Exchange], score: Callable[[list[Exchange]], Sequence[Score]]
) -> list[Scores]:
    """Score the exchanges that have a context; a first turn responds to nothing."""
    scored = [exchange for exchange in exchanges if exchange.turn > 0]
    found = iter(score(scored) if scored else ())
    return [
        (next(found) if exchange.turn > 0 else Score.unscored("no context"),)
        for exchange in exchanges
    ]


def quantiles_of(scores: NDArray[Any]) -> NDArray[np.float32]:
    """Return the quantiles of human scores that an artifact stores."""
    levels = np.linspace(0, 1, QUANTILES)
    quantiles: NDArray[np.float32] = np.quantile(scores, levels).astype(np.float32)
    return quantiles


def calibration(
    scores: NDArray[Any], groups: Sequence[Sequence[Exchange]], name: str = ""
) -> dict[str, Tensor]:
    """Return an artifact's tables: quantiles of the scores of human responses and dialogues.

    `groups` has the exchanges of each dialogue, in the order of the scores.
    """
    import torch

    starts = np.cumsum([0, *map(len, groups)])[:-1]
    means = np.add.reduceat(scores, starts) / [len(group) for group in groups]
    return {
        f"calibration.{level}{name}": torch.from_numpy(quantiles_of(values))
        for level, values in (("turn", scores), ("dialogue", means))
    }


def percentile_of(value: float, quantiles: NDArray[Any]) -> float:
    """Return the percentage of human responses that score no better, 0 to 100."""
    below = np.searchsorted(quantiles, np.float32(value), side="right")
    return round(100 * float(below) / len(quantiles), 1)
