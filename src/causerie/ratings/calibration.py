"""Calibration of predictions: a distribution of ratings, and limits for alarms.

Both are learned from out-of-fold predictions. The predicted rating, the probability of a low one
and the class come from the same distribution and so cannot contradict each other: a dialogue with
a higher predicted rating has a lower probability of a low rating.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from scipy import optimize, special

from causerie.errors import CauserieError
from causerie.ratings.log import HIGHEST, LOW, LOWEST

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

Array: TypeAlias = "NDArray[np.float64]"

BOUNDS = (1.5, 2.5, LOW, 3.5, 4.5)
"""Boundaries between ratings: those of the classes, and that of low ratings."""
CLASSES = tuple(place for place, bound in enumerate(BOUNDS) if bound != LOW)
BUDGETS = np.arange(1, 51) / 100
"""Shares of false alarms for which limits are learned."""
FALSE_ALARMS = 0.05
"""Default share of false alarms."""
LEAST_OTHERS = 20
"""Minimum number of dialogues not rated low from which limits can be learned."""
OWN_LIMIT = 50
"""Minimum number of such dialogues at a turn pair with a limit of its own; later pairs share it."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Distribution of ratings given a model's prediction (proportional odds model)."""

    cuts: Array
    """Cut points for `BOUNDS`, non-decreasing."""
    slope: float
    """Slope, at least 0."""
    means: Array
    """Mean rating below the first bound, between bounds, and above the last."""

    @classmethod
    def of(cls, predicted: Array, ratings: Array) -> Distribution:
        """Fit by maximum likelihood to predictions and ratings.

        Half a pseudo-dialogue in every class, at the mean prediction, gives classes without
        ratings a positive probability.
        """
        places = np.digitize(ratings, BOUNDS)
        count, mean = len(BOUNDS) + 1, float(predicted.mean())
        # Predictions are rounded to hundredths and counted together, for speed.
        x, row = np.unique([*np.round(predicted, 2), mean], return_inverse=True)
        counts = np.zeros((len(x), count))
        np.add.at(counts, (row[:-1], places), 1.0)
        counts[row[-1]] += 0.5

        def loss(free: Array) -> float:
            cuts, slope = _unpacked(free)
            below = special.expit(cuts - slope * (x - mean)[:, None])
            likely = np.diff(below, prepend=0.0, append=1.0)
            return float(-(counts * np.log(np.maximum(likely, 1e-12))).sum() / counts.sum())

        cuts = special.logit(np.cumsum(counts.sum(0))[:-1] / counts.sum())
        start = np.array([cuts[0], *np.log(np.maximum(np.diff(cuts), 1e-3)), math.log(0.5)])
        cuts, slope = _unpacked(optimize.minimize(loss, start, method="BFGS").x)
        edges = (LOWEST, *BOUNDS, HIGHEST)
        middles = [(a + b) / 2 for a, b in pairwise(edges)]
        means = [
            float(ratings[places == place].mean()) if (places == place).any() else middle
            for place, middle in enumerate(middles)
        ]
        return cls(cuts + slope * mean, slope, np.array(means))

    def below(self, predicted: ArrayLike) -> Array:
        """Return the probabilities of ratings below each of `BOUNDS`: (predictions, bounds)."""
        values: Array = special.expit(self.cuts - self.slope * np.asarray(predicted)[..., None])
        return values

    def rating(self, predicted: ArrayLike) -> Array:
        """Return the mean of the distribution."""
        below = self.below(predicted)
        mean: Array = self.means[-1] - below @ np.diff(self.means)
        return mean

    def low(self, predicted: ArrayLike) -> Array:
        """Return the probability of a rating below 3."""
        return self.below(predicted)[..., BOUNDS.index(LOW)]

    def five(self, predicted: ArrayLike) -> NDArray[np.int64]:
        """Return the class of the median, 1 to 5: below 3 only if a low rating is more likely."""
        classes: NDArray[np.int64] = 1 + (self.below(predicted)[..., CLASSES] < 0.5).sum(-1)
        return classes


def _unpacked(free: Array) -> tuple[Array, float]:
    """Convert unconstrained parameters to increasing cuts and a positive slope."""
    steps = np.exp(np.clip(free[1:-1], -30, 10))
    return np.concatenate([free[:1], free[0] + np.cumsum(steps)]), float(
        np.exp(np.clip(free[-1], -30, 5))
    )


@dataclass(frozen=True, eq=False)
class Calibration:
    """Turns the predictions of one model into distributions and alarms."""

    whole: Distribution
    """Distribution for dialogues that are over."""
    running: Distribution
    """Distribution of the final rating for dialogues that are still running."""
    limits: Array
    """(budgets, turn pairs): an alarm is raised if the probability of a low rating is above."""

    @classmethod
    def of(cls, whole: Array, running: Sequence[Array], ratings: Array) -> Calibration:
        """Fit to predictions of whole dialogues, and of each after each of its pairs."""
        lengths = [len(one) for one in running]
        as_run = Distribution.of(np.concatenate(running), np.repeat(ratings, lengths))
        others = [
            as_run.low(one) for one, rated in zip(running, ratings, strict=True) if rated >= LOW
        ]
        return cls(Distribution.of(whole, ratings), as_run, alarm_limits(others))

    def limit(self, pairs: int, budget: float = FALSE_ALARMS) -> float:
        """Return the limit after this many turn pairs."""
        row = self.limits[int(np.searchsorted(BUDGETS, check_budget(budget) + 1e-9)) - 1]
        return float(row[min(pairs, len(row)) - 1])

    def tensors(self) -> dict[str, Tensor]:
        """Return all parameters, to be saved."""
        found = {"limits": self.limits}
        for name, one in (("whole", self.whole), ("running", self.running)):
            found |= {f"{name}.cuts": one.cuts, f"{name}.means": one.means}
            found[f"{name}.slope"] = np.array([one.slope])
        return {name: torch.from_numpy(values.copy()) for name, values in found.items()}

    @classmethod
    def load(cls, tensors: Mapping[str, Tensor]) -> Calibration:
        """Restore from `tensors`; raise `ValueError` or `KeyError` if they are damaged."""

        def numbers(name: str, *shape: int) -> Array:
            values: Array = tensors[name].double().numpy()
            if values.shape != shape or np.isnan(values).any():
                raise ValueError(f"{name} has the wrong shape or NaN")
            return values

        whole, running = (
            Distribution(
                numbers(f"{name}.cuts", len(BOUNDS)),
                float(numbers(f"{name}.slope", 1)[0]),
                numbers(f"{name}.means", len(BOUNDS) + 1),
            )
            for name in ("whole", "running")
        )
        return cls(whole, running, numbers("limits", len(BUDGETS), tensors["limits"].shape[-1]))


def check_budget(budget: float) -> float:
    """Refuse a share of false alarms for which there are no limits."""
    if not BUDGETS[0] <= budget <= BUDGETS[-1]:
        raise CauserieError(
            f"false alarms must be from {BUDGETS[0]:.0%} to {BUDGETS[-1]:.0%}, not {budget:.4g}"
        )
    return budget


def alarm_limits(others: Sequence[Array]) -> Array:
    """Return limits for each budget and number of pairs, from dialogues not rated low.

    `others` has the probability of a low rating after each pair of each of them. After any number
    of pairs, the same share of the remaining dialogues is above the limit: the largest share for
    which the dialogues that are ever above stay within the budget. With too few dialogues, limits
    are infinite.
    """
    if len(others) < LEAST_OTHERS:
        return np.full((len(BUDGETS), 1), np.inf)
    lengths = np.array([len(one) for one in others])
    longest = int(lengths.max())
    came = [int((lengths >= pairs).sum()) for pairs in range(1, longest + 1)]
    own = max(1, sum(count >= OWN_LIMIT for count in came))
    values = np.concatenate(others)
    dialogue = np.repeat(np.arange(len(others)), lengths)
    place = np.minimum(np.concatenate([np.arange(n) for n in lengths]), own - 1)
    columns = [np.sort(values[place == number]) for number in range(own)]

    def limits(share: float) -> Array:
        kept = [math.ceil((1 - share) * len(column)) - 1 for column in columns]
        return np.array([column[max(0, n)] for n, column in zip(kept, columns, strict=True)])

    def false(share: float) -> float:
        return len(np.unique(dialogue[values > limits(share)[place]])) / len(others)

    found = []
    for budget in BUDGETS:
        low, high = 0.0, 1.0
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if false(middle) <= budget else (low, middle)
        found.append(limits(low))
    return np.array(found)
