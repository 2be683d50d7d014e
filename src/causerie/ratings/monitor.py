"""Ratings while a conversation still runs."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from causerie.dialogue import Dialogue, Turn
from causerie.errors import CauserieError
from causerie.ratings.examples import signals_in
from causerie.ratings.features import Floats
from causerie.ratings.pairs import TurnPair, turn_pairs
from causerie.ratings.predictor import RatingPredictor

LIMIT = 0.5
"""A probability of a low rating above it is an alarm."""


@dataclass(frozen=True)
class Reading:
    """How the conversation stands after a turn."""

    turn: int
    """0-based number of the turn."""
    rating: float
    """What the conversation would be rated if it ended here."""
    low: float
    """Probability that the final rating is low."""
    signals: tuple[str, ...]
    """That this turn fired."""
    alarm: bool
    seconds: float
    """How long it took to measure the new turn and to predict."""
    feature_seconds: float


class RatingMonitor:
    """Give it every turn as it comes; it measures only what is new."""

    def __init__(
        self, predictor: RatingPredictor, system: str | None = None, limit: float = LIMIT
    ) -> None:
        """`system` names the speaker who is the system, where neither roles nor names tell."""
        if not 0 < limit < 1:
            raise CauserieError(f"the limit is a probability between 0 and 1, not {limit:g}")
        self._predictor, self._system, self._limit = predictor, system, limit
        self._turns: list[Turn] = []
        width = len(predictor.preparation.extractor.features)
        self._complete: Floats = np.empty((0, width), dtype=np.float32)
        """Features of the pairs that are complete."""

    def update(self, turn: Turn) -> Reading:
        """The reading after this turn."""
        start = perf_counter()
        said = (*self._turns, turn)
        pairs = turn_pairs(Dialogue("now", said), self._system)
        self._turns.append(turn)
        (new,) = self._predictor.preparation.extractor([pairs[len(self._complete) :]])
        rows = np.concatenate([self._complete, new])
        measured = perf_counter()
        (prediction,) = self._predictor.predict_raw([pairs], [rows])
        # All pairs but the last can no longer change; the last may still grow.
        self._complete = rows[:-1]
        end = perf_counter()
        return Reading(
            len(self._turns) - 1,
            prediction.rating,
            prediction.low,
            self._signals(pairs[-1], rows[-1:]),
            prediction.low > self._limit,
            end - start,
            measured - start,
        )

    def _signals(self, pair: TurnPair, row: Floats) -> tuple[str, ...]:
        if pair.response is not None:  # the user's part was told when it came
            return ()
        return signals_in(self._predictor.preparation.extractor.signals(row))
