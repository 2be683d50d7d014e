"""Who could give a signal, when, and what was known until then: the landmarks of a log.

A dialogue is looked at before every utterance of its user, as long as no signal has fired. What
comes later decides neither who is compared nor with what: of two dialogues that went alike so
far, one has the signal now and the other has none.
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
"""Users, or else dialogues, with the signal that an effect can be estimated from; also dialogues
of a bot, and signals at a place, that are told from the others."""


@dataclass(frozen=True, eq=False)
class Observed:
    """A dialogue as an effect sees it, by turn pairs."""

    features: Array
    """(pairs, features), signals left out."""
    spoke: NDArray[np.bool_]
    """Whether the user said anything in the pair: who does not cannot give a signal."""
    fired: NDArray[np.bool_]
    """(pairs, signals)"""
    rating: float
    bot: str | None = None
    user: str | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """Landmarks: what was before, whether the signal fired, what the rating was; a row each."""

    covariates: Array
    """(rows, covariates)"""
    treated: NDArray[np.bool_]
    """Whether the signal fires: in one row of a dialogue at most, its first signal."""
    ratings: Array
    """The rating of the dialogue."""
    dialogue: NDArray[np.int64]
    unit: NDArray[np.int64]
    """Rows of one are not independent: those of a user, or of a dialogue whose user is unknown."""

    def part(self, rows: NDArray[np.bool_]) -> Study:
        return Study(
            self.covariates[rows],
            self.treated[rows],
            self.ratings[rows],
            self.dialogue[rows],
            self.unit[rows],
        )


def study_of(dialogues: Sequence[Observed], signals: Sequence[int]) -> Study:
    """Landmarks for the effect of any of some signals, given as columns of `fired`.

    A row is treated if one of them fires there, and a control if nothing does; where only other
    signals fire there is no row. Covariates are the mean and the last of what was measured
    before, how far the dialogue had come (places with many signals each by itself), and its bot.
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
    """Sums over the earlier pairs of the same dialogue."""
    sums = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    before: Array = sums[:-1] - sums[starts]
    return before


def _bots(dialogues: Sequence[Observed]) -> Array:
    """A column per bot that has enough dialogues, for each dialogue."""
    counts = Counter(one.bot for one in dialogues if one.bot is not None)
    names = sorted(name for name, count in counts.items() if count >= LEAST)
    return np.array([[one.bot == name for name in names] for one in dialogues], dtype=np.float64)


def _units(dialogues: Sequence[Observed]) -> NDArray[np.int64]:
    """Dialogues of one user have the same number."""
    numbers: dict[str | int, int] = {}
    keys = (index if one.user is None else one.user for index, one in enumerate(dialogues))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
