"""The three metrics: they differ in how a hypothesis is scored after an exchange."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast, get_args

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Metric, Score, Scores
from causerie.metrics.followups import formulas
from causerie.metrics.followups.hypotheses import OVERALL, Dimension, dimensions
from causerie.metrics.followups.sequences import EXPLAINED, Average, Likelihoods, Order, likelihoods
from causerie.metrics.followups.statistics import Statistics, measured_statistic, read_statistics

if TYPE_CHECKING:
    from causerie.engines import Engines

L: TypeAlias = Callable[[Order], float]
"""The average log-likelihood of a sequence with the hypothesis in question."""

_NOTHING = Score.unscored("a follow-up has no token that the language model can score")
_NO_TURN = Score.unscored("no turn to score")
_NO_OVERALL = Score.unscored("no dimension has positive and negative follow-ups")
_NO_STATISTICS = Score.unscored("no dimension has statistics")


class FollowUpMetric(Metric):
    """Options: `hypotheses` (a JSON or TOML file that adds or replaces dimensions), `average`
    (over the whole `sequence`, as published, or over the `hypothesis` alone), `history` (how
    many turns before the response are seen; all by default), `statistics` (a JSON or TOML file
    of what human exchanges score).

    `overall` is the mean of the dimensions, each z-scored by the statistics (those of the
    language model's artifact if none are given, and it has some). Without statistics it is the
    plain mean of the dimensions that have both positive and negative hypotheses. At dialogue
    level the response is the last turn of the system (or of the speaker asked for), the last
    turn where no role is known; what comes after it is not seen.
    """

    needs = frozenset({"language model"})
    files = frozenset({"hypotheses", "statistics"})
    orders: ClassVar[tuple[Order, ...]]
    """The sequences of which it needs the log-likelihoods."""

    def __init__(
        self,
        engines: Engines,
        hypotheses: str | Path | None = None,
        average: str = "sequence",
        history: int | None = None,
        statistics: str | Path | None = None,
    ) -> None:
        super().__init__(engines)
        if average not in get_args(Average):
            raise CauserieError(f"average is {' or '.join(get_args(Average))}, not {average!r}")
        if history is not None and (type(history) is not int or history < 1):
            raise CauserieError(f"history is a number of turns from 1, not {history!r}")
        self.average = cast(Average, average)
        self.history = history
        self._shipped = dimensions()
        self._dimensions = self._shipped if hypotheses is None else dimensions(Path(hypotheses))
        self._statistics: dict[Level, Statistics] = (
            {}
            if statistics is None
            else read_statistics(Path(statistics), self.name, self._dimensions)
        )

    @abstractmethod
    def scorer(self, likelihood: L) -> float:
        """How little a hypothesis fits the exchange: what is contrasted between the two sides."""

    def dimensions(self, level: Level) -> tuple[str, ...]:
        return (*(dimension.name for dimension in self._dimensions[level]), OVERALL)

    @property
    def signature(self) -> str:
        said: list[Any] = [
            [[asdict(dimension) for dimension in level] for level in self._dimensions.values()],
            [[name, asdict(s)] for level in self._statistics.values() for name, s in level.items()],
        ]
        return f"{super().signature}|{sha256(json.dumps(said).encode()).hexdigest()[:12]}"

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        return self._score(exchanges, "turn")

    def score_dialogues(
        self, dialogues: Sequence[Dialogue], speaker: str | None = None
    ) -> list[Scores]:
        last = [_last_response(dialogue, speaker) for dialogue in dialogues]
        scores = iter(self._score([exchange for exchange in last if exchange], "dialogue"))
        unscored = (_NO_TURN,) * len(self.columns("dialogue"))
        return [next(scores) if exchange else unscored for exchange in last]

    def _score(self, exchanges: Sequence[Exchange], level: Level) -> list[Scores]:
        # In a fixed order, so that every run packs the same passes.
        orders = dict.fromkeys(self.orders + (EXPLAINED if self.explain else ()))
        texts = dict.fromkeys(h for d in self._dimensions[level] for h in d.hypotheses)
        seen = [e if self.history is None else e.recent(self.history) for e in exchanges]
        found = likelihoods(self.engines.likelihood, seen, orders, texts, self.average)
        statistics = self._human(level)
        return [self._scores(likelihood, level, statistics) for likelihood in found]

    def _scores(
        self, likelihood: Likelihoods, level: Level, statistics: Statistics | None
    ) -> Scores:
        def fit(hypothesis: str) -> float:
            return self.scorer(lambda order: likelihood.of(order, hypothesis))

        values = {
            dimension: formulas.contrast(
                [fit(h) for h in dimension.negative], [fit(h) for h in dimension.positive]
            )
            for dimension in self._dimensions[level]
        }
        known = {dimension: value for dimension, value in values.items() if isfinite(value)}
        overall = formulas.overall(known, statistics)
        missing = _NO_OVERALL if statistics is None else _NO_STATISTICS
        return (
            *(
                Score.of(value, self._explanation(dimension, likelihood))
                if dimension in known
                else _NOTHING
                for dimension, value in values.items()
            ),
            Score.of(overall) if isfinite(overall) else missing if known else _NOTHING,
        )

    def _human(self, level: Level) -> Statistics | None:
        """What exchanges score: as the user's file says, or as measured when the model was tuned.

        The latter holds for the shipped hypotheses and the published way to average only.
        """
        if self._statistics:
            return self._statistics[level]
        if (self.average, self.history) != ("sequence", None):
            return None
        measured = self.engines.likelihood.statistics
        found = {
            dimension.name: measured_statistic(measured[key].tolist())
            for dimension in self._dimensions[level]
            if dimension in self._shipped[level]
            and (key := f"{self.name}.{level}.{dimension.name}") in measured
        }
        return found or None

    def _explanation(self, dimension: Dimension, likelihood: Likelihoods) -> dict[str, Any] | None:
        """By how much the response made each hypothesis likelier, in nats per token."""
        if not self.explain:
            return None

        def changes(hypotheses: tuple[str, ...]) -> dict[str, float]:
            found = {h: change for h in hypotheses if isfinite(change := likelihood.change(h))}
            return {h: round(found[h], 4) for h in sorted(found, key=lambda h: -found[h])}

        return {
            "positive": changes(dimension.positive),
            "negative": changes(dimension.negative),
        }


class Fed(FollowUpMetric):
    """How likely the follow-ups are after history and response."""

    name = "fed"
    summary = "qualities of the response, by how likely follow-ups are after it (FED)"
    orders = ("crh",)

    def scorer(self, likelihood: L) -> float:
        return formulas.nll(likelihood("crh"))


class Cpmi(FollowUpMetric):
    """How much history and response tell about each other, given the follow-ups."""

    name = "cpmi"
    summary = "qualities of the response, by what it shares with the history (C-PMI)"
    orders = ("crh", "h", "ch", "rh")

    def scorer(self, likelihood: L) -> float:
        return formulas.cpmi(
            crh=likelihood("crh"), h=likelihood("h"), ch=likelihood("ch"), rh=likelihood("rh")
        )


class CpmiSym(FollowUpMetric):
    """The same, also with the response before the history."""

    name = "cpmi-sym"
    summary = "C-PMI averaged with that of history and response swapped (C-PMI-SYM)"
    orders = ("crh", "rch", "h", "ch", "rh")

    def scorer(self, likelihood: L) -> float:
        return formulas.cpmi_sym(
            crh=likelihood("crh"),
            rch=likelihood("rch"),
            h=likelihood("h"),
            ch=likelihood("ch"),
            rh=likelihood("rh"),
        )


def _last_response(dialogue: Dialogue, speaker: str | None) -> Exchange | None:
    """The turn that stands for the dialogue, with everything before it."""
    wanted = speaker or "system"
    places: Sequence[int] = [
        i for i, turn in enumerate(dialogue.turns) if wanted in (turn.speaker, turn.role)
    ]
    if not places and speaker is None:
        places = range(len(dialogue.turns))
    return Exchange(dialogue, places[-1]) if places else None
