"""The Gaussian of human features, and the distance of a response from its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from causerie.metrics.density.extractor import Extractor

Floats: TypeAlias = NDArray[np.floating]

FLOOR = 1e-3
"""Floor of the eigenvalues, as a share of their mean: contrastive training leaves many directions
almost flat, and the noise in them must not determine distances."""


class Moments:
    """Mean and covariance of a stream of features, computed in float64 (eq. 2)."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self.mean = np.zeros(width)
        self._scatter = np.zeros((width, width))

    def add(self, features: Floats) -> None:
        batch = np.asarray(features, dtype=np.float64)
        count, middle = len(batch), batch.mean(axis=0)
        centred = batch - middle
        shift = middle - self.mean
        total = self.count + count
        self._scatter += centred.T @ centred + np.outer(shift, shift) * self.count * count / total
        self.mean = self.mean + shift * count / total
        self.count = total

    @property
    def covariance(self) -> Floats:
        return self._scatter / self.count


@dataclass(frozen=True)
class Gaussian:
    """A fitted Gaussian: distances become Euclidean after centring and whitening."""

    mean: Floats
    whitening: Floats
    """Whitening matrix: times its transpose, the inverse of the floored covariance."""

    @classmethod
    def fit(cls, moments: Moments, floor: float = FLOOR) -> Gaussian:
        values, vectors = np.linalg.eigh(moments.covariance)
        values = np.maximum(values, floor * values.mean())
        return cls(moments.mean.astype(np.float32), (vectors / np.sqrt(values)).astype(np.float32))

    def mahalanobis(self, features: Floats) -> Floats:
        """Return the Mahalanobis distance of each row (the square root of that in eq. 3)."""
        import torch

        from causerie.engines.shapes import rowwise

        centred = torch.from_numpy(np.ascontiguousarray(features - self.mean, dtype=np.float32))
        whitening = torch.from_numpy(self.whitening)
        distances: Floats = rowwise(lambda rows: (rows @ whitening).norm(dim=1), centred).numpy()
        return distances

    def euclidean(self, features: Floats) -> Floats:
        distances: Floats = np.linalg.norm(features - self.mean, axis=1)
        return distances


def distances(gaussian: Gaussian, extractor: Extractor, features: Floats) -> dict[str, Floats]:
    """Return the scores by eq. 3 and by the paper's alternatives, higher is better."""
    seen = extractor.seen(features)
    return {
        "mahalanobis": -gaussian.mahalanobis(seen),
        "euclidean": -gaussian.euclidean(seen),
        "classifier": extractor.logits(features),
    }
