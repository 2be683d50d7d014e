"""Predicting ratings of running conversations, with at most one alarm each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from causerie.dialogue import Dialogue, Turn
from causerie.ratings.calibration import FALSE_ALARMS, check_budget
from causerie.ratings.examples import signals_in
from causerie.ratings.features import Floats
from causerie.ratings.pairs import TurnPair, turn_pairs
from causerie.ratings.predictor import RatingPredictor

MOST = 10_000
"""Number of conversations followed at once; the longest silent is forgotten first."""


@dataclass(frozen=True)
class Reading:
    """The state of a conversation after a turn."""

    turn: int
    """0-based number of the turn."""
    rating: float
    """Predicted final rating of the conversation."""
    low: float
    """Probability that the rating will be low."""
    signals: tuple[str, ...]
    """Signals that fired in this turn."""
    alarm: bool
    """Whether the conversation's only alarm is raised at this turn."""
    seconds: float
    """Seconds taken to measure the new turn and to predict."""
    feature_seconds: float


class RatingMonitor:
    """Follows one conversation turn by turn, measuring only new turns."""

    def __init__(
        self,
        predictor: RatingPredictor,
        system: str | None = None,
        false_alarms: float = FALSE_ALARMS,
    ) -> None:
        """`system` names the speaker who is the system, if neither roles nor names tell.

        `false_alarms` is the share of conversations not rated low that may have an alarm.
        """
        self._predictor, self._system = predictor, system
        self._budget, self._alarmed = check_budget(false_alarms), False
        self.turns: list[Turn] = []
        width = len(predictor.preparation.extractor.features)
        self._complete: Floats = np.empty((0, width), dtype=np.float32)
        """Features of the complete pairs."""

    def update(self, turn: Turn) -> Reading:
        """Add a turn; return the reading after it."""
        start = perf_counter()
        said = (*self.turns, turn)
        pairs = turn_pairs(Dialogue("now", said), self._system)
        self.turns.append(turn)
        (new,) = self._predictor.preparation.extractor([pairs[len(self._complete) :]])
        rows = np.concatenate([self._complete, new])
        measured = perf_counter()
        (prediction,) = self._predictor.predict_raw([pairs], [rows], running=True)
        # Only the last pair can still grow; all others are final.
        self._complete = rows[:-1]
        alarm = self._is_alarm(pairs, prediction.low)
        self._alarmed |= alarm
        end = perf_counter()
        return Reading(
            len(self.turns) - 1,
            prediction.rating,
            prediction.low,
            self._signals(pairs[-1], rows[-1:]),
            alarm,
            end - start,
            measured - start,
        )

    def _is_alarm(self, pairs: Sequence[TurnPair], low: float) -> bool:
        """Whether to raise the alarm: limits hold only after the system has answered."""
        if self._alarmed or pairs[-1].response is None:
            return False
        return low > self._predictor.calibration.limit(len(pairs), self._budget)

    def _signals(self, pair: TurnPair, row: Floats) -> tuple[str, ...]:
        if pair.response is not None:  # the user's signals were reported with the user's turn
            return ()
        return signals_in(self._predictor.preparation.extractor.signals(row))


class Switchboard:
    """Monitors of many conversations, by name."""

    def __init__(
        self,
        predictor: RatingPredictor,
        system: str | None = None,
        false_alarms: float = FALSE_ALARMS,
        most: int = MOST,
    ) -> None:
        self._predictor, self._system, self._most = predictor, system, most
        self._budget = check_budget(false_alarms)
        self._monitors: OrderedDict[str, RatingMonitor] = OrderedDict()

    def next(self, name: str, turn: Turn) -> Reading:
        """Add the next turn of a conversation; return the reading after it."""
        return self._monitor(name).update(turn)

    def so_far(self, name: str, turns: Sequence[Turn]) -> list[Reading]:
        """Return readings of new turns, given all so far; start again if earlier turns differ."""
        known = [(turn.speaker, turn.text) for turn in self._monitor(name).turns]
        if known != [(turn.speaker, turn.text) for turn in turns[: len(known)]]:
            self.end(name)
            known = []
        return [self.next(name, turn) for turn in turns[len(known) :]]

    def end(self, name: str) -> None:
        """Forget a conversation."""
        self._monitors.pop(name, None)

    def _monitor(self, name: str) -> RatingMonitor:
        if name not in self._monitors:
            monitor = RatingMonitor(self._predictor, self._system, self._budget)
            self._monitors[name] = monitor
            if len(self._monitors) > self._most:
                self._monitors.popitem(last=False)
        self._monitors.move_to_end(name)
        return self._monitors[name]
