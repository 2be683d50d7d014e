"""Treatments: which signals a user gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from causerie.errors import CauserieError
from causerie.metrics.odes import CLASSES, SIGNALS, THRESHOLD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.features import Floats

NONE = 0
"""The treatment of a dialogue in which no signal fired."""


@dataclass(frozen=True)
class Treatments:
    """Groups of signals; treatment t is that a signal of group t fired (counted from 1).

    The default is the paper's single group of all signals. With several, a dialogue in which
    signals of more than one fired has the first of them: name the gravest first.
    """

    groups: tuple[tuple[str, ...], ...] = (SIGNALS,)

    def __post_init__(self) -> None:
        named = [name for group in self.groups for name in group]
        unknown = sorted(set(named) - set(SIGNALS))
        if unknown:
            raise CauserieError(f"unknown signal {unknown[0]!r}: use {', '.join(SIGNALS)}")
        if len(set(named)) < len(named) or not all(self.groups):
            raise CauserieError("a signal is in one treatment, and every treatment has one")

    @property
    def count(self) -> int:
        """Of treatments, with that of no signal."""
        return len(self.groups) + 1

    def of_pairs(self, probabilities: Floats) -> NDArray[np.int64]:
        """The treatment of each turn pair from its odes, one column per class."""
        fired = fired_signals(probabilities)
        found = np.zeros(len(fired), dtype=np.int64)
        for treatment in reversed(range(1, self.count)):
            columns = [CLASSES.index(name) for name in self.groups[treatment - 1]]
            found[fired[:, columns].any(1)] = treatment
        return found


def of_dialogue(pairs: NDArray[np.int64]) -> int:
    """The treatment of a dialogue from those of its pairs."""
    return int(min((t for t in pairs.tolist() if t != NONE), default=NONE))


def fired_signals(probabilities: Floats) -> NDArray[np.bool_]:
    """Which of the 14 classes fire, where nothing said gives no signal."""
    fired: NDArray[np.bool_] = np.nan_to_num(probabilities) > THRESHOLD
    return fired


def signals_in(probabilities: Floats) -> tuple[str, ...]:
    """The signals that fire in any of the rows; `other` is none."""
    fired = fired_signals(probabilities)
    return tuple(name for place, name in enumerate(SIGNALS) if bool(fired[:, place].any()))
