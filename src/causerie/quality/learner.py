"""What learns judgements from features: boosted trees and a line, stored as plain arrays.

LightGBM grows the trees; scoring needs nothing but numpy. A reply's prediction is the mean of
both learners' ranks, so neither rules by its scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAF = -1
"""Instead of a feature, where a tree ends."""
LARGEST = 3.0
"""The line sees features within so many standard deviations: no absurd text decides."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted regression trees: (trees, nodes) arrays, the root of each first."""

    feature: NDArray[np.int16]
    threshold: Floats
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: Floats

    def __call__(self, x: Floats) -> Floats:
        """The sum of the leaves that each row falls into."""
        trees = np.arange(len(self.feature))
        node = np.zeros((len(x), len(trees)), dtype=np.int16)
        rows = np.arange(len(x))[:, None]
        while True:
            feature = self.feature[trees, node]
            inside = feature != LEAF
            if not inside.any():
                break
            goes_left = x[rows, np.maximum(feature, 0)] <= self.threshold[trees, node]
            below = np.where(goes_left, self.left[trees, node], self.right[trees, node])
            node = np.where(inside, below, node).astype(np.int16)
        total: Floats = self.value[trees, node].astype(np.float64).sum(axis=1)
        return total

    @classmethod
    def grow(
        cls, x: Floats, y: Floats, weights: Floats, *, trees: int, leaves: int, seed: int
    ) -> Trees:
        """Fit them; weights say how much a reply counts."""
        try:
            import lightgbm
        except ImportError as error:
            raise CauserieError(
                "learning from judgements needs LightGBM: pip install 'causerie[learn]'"
            ) from error
        settings = {
            "objective": "regression",
            "num_leaves": leaves,
            "learning_rate": 0.03,
            "feature_fraction": 0.4,
            "bagging_fraction": 0.6,
            "bagging_freq": 1,
            "min_data_in_leaf": min(60, max(2, len(x) // 20)),
            "lambda_l2": 20.0,
            "verbosity": -1,
            "num_threads": 1,
            "deterministic": True,
            "seed": seed,
        }
        data = lightgbm.Dataset(x, y, weight=weights)
        model = lightgbm.train(settings, data, trees).dump_model()
        return cls._of([_nodes(one["tree_structure"]) for one in model["tree_info"]])

    @classmethod
    def _of(cls, grown: list[list[dict[str, Any]]]) -> Trees:
        shape = len(grown), max(map(len, grown))
        feature = np.full(shape, LEAF, dtype=np.int16)
        threshold, value = np.zeros(shape), np.zeros(shape)
        left, right = np.zeros(shape, dtype=np.int16), np.zeros(shape, dtype=np.int16)
        for tree, nodes in enumerate(grown):
            for place, node in enumerate(nodes):
                if "leaf_value" in node:
                    value[tree, place] = node["leaf_value"]
                else:
                    feature[tree, place] = node["split_feature"]
                    threshold[tree, place] = node["threshold"]
                    left[tree, place], right[tree, place] = node["left"], node["right"]
        return cls(feature, threshold, left, right, value)


def _nodes(root: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of a tree of LightGBM's; `left` and `right` are their places."""
    nodes: list[dict[str, Any]] = []

    def add(node: dict[str, Any]) -> int:
        place = len(nodes)
        if "leaf_value" in node:
            nodes.append({"leaf_value": node["leaf_value"]})
        else:
            own = {"split_feature": node["split_feature"], "threshold": node["threshold"]}
            nodes.append(own)
            own["left"] = add(node["left_child"])
            own["right"] = add(node["right_child"])
        return place

    add(root)
    return nodes


@dataclass(frozen=True, eq=False)
class Line:
    """Ridge regression on standardised features."""

    mean: Floats
    scale: Floats
    weights: Floats
    offset: float

    def __call__(self, x: Floats) -> Floats:
        found: Floats = (self._standard(x) * self.weights).sum(axis=1) + self.offset
        return found

    def _standard(self, x: Floats) -> Floats:
        standard: Floats = np.clip((x - self.mean) / self.scale, -LARGEST, LARGEST)
        return standard

    @classmethod
    def fit(cls, x: Floats, y: Floats, weights: Floats, *, penalty: float) -> Line:
        """Least squares with squared weights penalised."""
        scale = x.std(0)
        line = cls(x.mean(0), np.where(scale > 1e-9, scale, 1.0), np.zeros(x.shape[1]), 0.0)
        z = line._standard(x)
        share = weights / weights.sum()
        middle, level = share @ z, float(share @ y)
        centred = z - middle
        gram = (centred * weights[:, None]).T @ centred
        moment = (centred * weights[:, None]).T @ (y - level)
        found = np.linalg.solve(gram + penalty * np.eye(len(gram)), moment)
        return cls(line.mean, line.scale, found, level - float(middle @ found))


@dataclass(frozen=True, eq=False)
class Learner:
    """Trees and a line over the same features, in equal parts of their spreads.

    What is not a number becomes the feature's usual value.
    """

    usual: Floats
    trees: Trees
    line: Line
    spreads: tuple[float, float]
    """Standard deviations of what each of them says, where they were fitted."""

    def __call__(self, x: Floats) -> Floats:
        x = np.where(np.isfinite(x), x, self.usual)
        found: Floats = self.trees(x) / self.spreads[0] + self.line(x) / self.spreads[1]
        return found

    @classmethod
    def fit(
        cls,
        x: Floats,
        y: Floats,
        weights: Floats,
        *,
        trees: int = 200,
        leaves: int = 8,
        penalty: float = 300.0,
        seed: int = 0,
    ) -> Learner:
        finite = np.where(np.isfinite(x), x, np.nan)
        usual = np.nan_to_num(np.nanmedian(finite, axis=0))
        x = np.where(np.isfinite(x), x, usual)
        grown = Trees.grow(x, y, weights, trees=trees, leaves=leaves, seed=seed)
        line = Line.fit(x, y, weights, penalty=penalty)
        spreads = (float(grown(x).std()) or 1.0, float(line(x).std()) or 1.0)
        return cls(usual, grown, line, spreads)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it is, by name; `from_arrays` reads it."""
        trees, line = self.trees, self.line
        return {
            "usual": self.usual,
            "spreads": np.array(self.spreads),
            **{f"trees.{name}": value for name, value in vars(trees).items()},
            "line.mean": line.mean,
            "line.scale": line.scale,
            "line.weights": line.weights,
            "line.offset": np.array([line.offset]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Learner:
        places = (arrays[f"trees.{name}"].astype(np.int16) for name in ("feature", "left", "right"))
        feature, left, right = places
        trees = Trees(feature, arrays["trees.threshold"], left, right, arrays["trees.value"])
        line = Line(
            arrays["line.mean"],
            arrays["line.scale"],
            arrays["line.weights"],
            float(arrays["line.offset"][0]),
        )
        one, other = arrays["spreads"].tolist()
        return cls(arrays["usual"], trees, line, (one, other))
