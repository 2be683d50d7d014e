"""Landmarks of a log: the moments at which a user could give a signal, with what was known then.

Every utterance of a user is a landmark as long as no signal has fired before it. Nothing later
decides which landmarks are compared: of two dialogues with a similar past, one has the signal now
and the other has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"

LEAST = 20
"""Minimum number of users (or dialogues, if users are unknown) with the signal for an effect; also
of dialogues of a bot, and of signals at a position, that get a covariate of their own."""


@dataclass(frozen=True, eq=False)
class Observed:
    """The data of a dialogue for estimating effects, by turn pairs."""

    features: Array
    """(pairs, features), without signals."""
    spoke: NDArray[np.bool_]
    """Whether the user said anything in the pair, as otherwise no signal is possible."""
    fired: NDArray[np.bool_]
    """(pairs, signals)"""
    rating: float
    bot: str | None = None
    user: str | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """Landmarks, one per row: covariates, whether the signal fired, and the rating."""

    covariates: Array
    """(rows, covariates)"""
    treated: NDArray[np.bool_]
    """Whether the signal fires; in at most one row of a dialogue, its first signal."""
    ratings: Array
    """The rating of the dialogue."""
    dialogue: NDArray[np.int64]
    unit: NDArray[np.int64]
    """Cluster of each row: its user, or its dialogue if the user is unknown."""

    def part(self, rows: NDArray[np.bool_]) -> Study:
        return Study(
            self.covariates[rows],
            self.treated[rows],
            self.ratings[rows],
            self.dialogue[rows],
            self.unit[rows],
        )


def study_of(dialogues: Sequence[Observed], signals: Sequence[int]) -> Study:
    """Return the landmarks for the effect of any of some signals, given as columns of `fired`.

    A row is treated if one of them fires there, and a control if nothing does; moments at which
    only other signals fire have no row. Covariates are the mean and the last of the earlier
    features, the position (with an indicator for positions with many signals), and the bot.
    """
    lengths = np.array([len(one.features) for one in dialogues], dtype=np.int64)
    dialogue = np.repeat(np.arange(len(dialogues)), lengths)
    starts = (np.cumsum(lengths) - lengths)[dialogue]
    place = np.arange(len(dialogue)) - starts
    fired = np.concatenate([one.fired for one in dialogues])
    treated: NDArray[np.bool_] = np.any(fired[:, list(signals)], axis=1)
    anything: NDArray[np.bool_] = np.any(fired, axis=1)
    if not treated.any():
        raise CauserieError("no dialogue has the signal: there is no effect to estimate")
    silent = _before(anything[:, None].astype(np.float64), starts)[:, 0] == 0
    spoke = np.concatenate([one.spoke for one in dialogues])
    rows = np.flatnonzero(silent & spoke & (treated | ~anything))
    features = np.concatenate([one.features for one in dialogues]).astype(np.float64)
    mean = _before(features, starts) / np.maximum(place, 1)[:, None]
    last = np.where(place[:, None] > 0, np.roll(features, 1, axis=0), 0.0)
    common = np.flatnonzero(np.bincount(place[rows][treated[rows]]) >= LEAST)
    own = place[:, None] == np.union1d([0], common)  # at 0 nothing was measured yet
    far = np.column_stack([place, np.log1p(place), own])
    bots = _bots(dialogues)[dialogue]
    ratings = np.array([one.rating for one in dialogues], dtype=np.float64)
    return Study(
        np.hstack([mean, last, far, bots])[rows],
        treated[rows],
        ratings[dialogue][rows],
        dialogue[rows],
        _units(dialogues)[dialogue][rows],
    )


def _before(values: Array, starts: NDArray[np.int64]) -> Array:
    """Return sums over the earlier pairs of the same dialogue."""
    sums = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    before: Array = sums[:-1] - sums[starts]
    return before


def _bots(dialogues: Sequence[Observed]) -> Array:
    """Return an indicator column for each bot with enough dialogues."""
    counts = Counter(one.bot for one in dialogues if one.bot is not None)
    names = sorted(name for name, count in counts.items() if count >= LEAST)
    return np.array([[one.bot == name for name in names] for one in dialogues], dtype=np.float64)


def _units(dialogues: Sequence[Observed]) -> NDArray[np.int64]:
    """Return the number of each dialogue's user; unknown users are all different."""
    numbers: dict[str | int, int] = {}
    keys = (index if one.user is None else one.user for index, one in enumerate(dialogues))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
