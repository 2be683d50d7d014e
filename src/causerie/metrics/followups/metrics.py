"""The three follow-up metrics, which differ in how they score a hypothesis after an exchange."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.metrics.base import EMPTY, Column, Level, Metric, Score, Scores
from causerie.metrics.followups import formulas
from causerie.metrics.followups.formulas import Statistics, measured_statistic, read_statistics
from causerie.metrics.followups.hypotheses import OVERALL, Dimension, Dimensions, dimensions
from causerie.metrics.followups.sequences import EXPLAINED, Average, Likelihoods, Order, likelihoods
from causerie.options import option

if TYPE_CHECKING:
    from causerie.engines import Engines

L: TypeAlias = Callable[[Order], float]
"""Returns the average log-likelihood of a sequence with a given hypothesis."""

_NOTHING = Score.unscored("a follow-up has no token that the language model can score")
_NO_TURN = Score.unscored("no turn to score")
_NO_OVERALL = Score.unscored("no dimension has positive and negative follow-ups")
_NO_STATISTICS = Score.unscored("no dimension has statistics")


@dataclass(frozen=True)
class FollowUpMetric(Metric):
    """Judges qualities of a response by what a user might say next.

    `overall` is the mean of the dimensions, each z-scored with the given statistics or those of
    the language model's artifact. Without statistics it is the plain mean of the dimensions with
    both positive and negative hypotheses. At dialogue level, the response is the last turn of the
    system or of the requested speaker (without roles, the last turn); later turns are not seen.
    """

    hypotheses: str | None = option(
        None, "JSON or TOML file that adds or replaces dimensions", file=True
    )
    average: Average = option(
        "sequence", "tokens averaged over: the whole sequence (published), or only the hypothesis"
    )
    history: int | None = option(None, "number of turns seen before the response [all]", least=1)
    statistics: str | None = option(
        None, "JSON or TOML file with statistics of human exchanges", file=True
    )

    needs = frozenset({"language model"})
    orders: ClassVar[tuple[Order, ...]]
    """The sequences whose log-likelihoods it needs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # A faulty file is reported before anything is scored.
        _ = self._dimensions, self._own_statistics

    @property
    def _dimensions(self) -> Dimensions:
        return _read_dimensions(self.hypotheses, _changed(self.hypotheses))

    @property
    def _own_statistics(self) -> dict[Level, Statistics]:
        if self.statistics is None:
            return {}
        return read_statistics(Path(self.statistics), self.name, self._dimensions)

    @abstractmethod
    def scorer(self, likelihood: L) -> float:
        """Return how badly a hypothesis fits the exchange, to be contrasted between the sides."""

    def columns(self, level: Level) -> tuple[Column, ...]:
        said = [(d.name, f"whether it is {d.name}") for d in self._dimensions[level]]
        return tuple(Column(*one) for one in (*said, (OVERALL, "the mean of all dimensions")))

    def signature(self, engines: Engines) -> str:
        said: list[Any] = [
            [[asdict(dimension) for dimension in level] for level in self._dimensions.values()],
            [
                [name, asdict(s)]
                for level in self._own_statistics.values()
                for name, s in level.items()
            ],
        ]
        digest = sha256(json.dumps(said).encode()).hexdigest()[:12]
        return f"{super().signature(engines)}|{digest}"

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        return frozenset({"hypotheses", "statistics"})

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        return self._score(exchanges, "turn", engines, explain)

    def score_dialogues(
        self,
        dialogues: Sequence[Dialogue],
        engines: Engines,
        *,
        speaker: str | None = None,
        explain: bool = False,
    ) -> list[Scores]:
        last = [_last_response(dialogue, speaker) for dialogue in dialogues]
        asked = [e for e in last if e and e.response.text.strip()]
        scores = iter(self._score(asked, "dialogue", engines, explain))
        columns = len(self.columns("dialogue"))

        def row(exchange: Exchange | None) -> Scores:
            if exchange is None:
                return (_NO_TURN,) * columns
            return next(scores) if exchange.response.text.strip() else (EMPTY,) * columns

        return [row(exchange) for exchange in last]

    def _score(
        self, exchanges: Sequence[Exchange], level: Level, engines: Engines, explain: bool
    ) -> list[Scores]:
        # A fixed order, so that every run packs sequences in the same way.
        orders = dict.fromkeys(self.orders + (EXPLAINED if explain else ()))
        texts = dict.fromkeys(h for d in self._dimensions[level] for h in d.hypotheses)
        seen = [e if self.history is None else e.recent(self.history) for e in exchanges]
        found = likelihoods(engines.likelihood, seen, orders, texts, self.average)
        statistics = self._human(level, engines)
        return [self._scores(likelihood, level, statistics, explain) for likelihood in found]

    def _scores(
        self, likelihood: Likelihoods, level: Level, statistics: Statistics | None, explain: bool
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
                Score.of(value, _explanation(dimension, likelihood) if explain else None)
                if dimension in known
                else _NOTHING
                for dimension, value in values.items()
            ),
            Score.of(overall) if isfinite(overall) else missing if known else _NOTHING,
        )

    def measured_as(self, level: Level, dimension: str) -> str:
        """Return the key of a dimension's statistics in a language model's artifact."""
        name = f"{self.name}.{level}.{dimension}"
        return name if self.average == "sequence" else f"{name}.{self.average}"

    def _human(self, level: Level, engines: Engines) -> Statistics | None:
        """Return the statistics of the user's file, or those measured when the model was tuned.

        The latter are valid only for the shipped hypotheses and the whole history.
        """
        if own := self._own_statistics:
            return own[level]
        if self.history is not None:
            return None
        measured, shipped = engines.likelihood.statistics, _read_dimensions(None, None)[level]
        found = {
            dimension.name: measured_statistic(measured[key].tolist())
            for dimension in self._dimensions[level]
            if dimension in shipped and (key := self.measured_as(level, dimension.name)) in measured
        }
        return found or None


@dataclass(frozen=True)
class Fed(FollowUpMetric):
    """FED: how likely the follow-ups are after history and response."""

    name = "fed"
    summary = "qualities of the response, by how likely follow-ups are after it (FED)"
    orders = ("crh",)

    def scorer(self, likelihood: L) -> float:
        return formulas.nll(likelihood("crh"))


@dataclass(frozen=True)
class Cpmi(FollowUpMetric):
    """C-PMI: how much information history and response share, given the follow-ups."""

    name = "cpmi"
    summary = "qualities of the response, by what it shares with the history (C-PMI)"
    orders = ("crh", "h", "ch", "rh")

    def scorer(self, likelihood: L) -> float:
        return formulas.cpmi(
            crh=likelihood("crh"), h=likelihood("h"), ch=likelihood("ch"), rh=likelihood("rh")
        )


@dataclass(frozen=True)
class CpmiSym(FollowUpMetric):
    """C-PMI-SYM: C-PMI averaged over both orders of history and response."""

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


def _explanation(dimension: Dimension, likelihood: Likelihoods) -> dict[str, Any]:
    """Return by how much the response made each hypothesis more likely, in nats per token."""

    def changes(hypotheses: tuple[str, ...]) -> dict[str, float]:
        found = {h: change for h in hypotheses if isfinite(change := likelihood.change(h))}
        return {h: round(found[h], 4) for h in sorted(found, key=lambda h: -found[h])}

    return {"positive": changes(dimension.positive), "negative": changes(dimension.negative)}


def _changed(path: str | None) -> tuple[int, int] | None:
    """Return modification time and size of a file; None if there is no file."""
    try:
        status = Path(path or "").stat() if path is not None else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if status else None


@lru_cache(32)
def _read_dimensions(path: str | None, state: tuple[int, int] | None) -> Dimensions:
    """Read the dimensions of a file, once for each state of it."""
    return dimensions() if path is None else dimensions(Path(path))


def _last_response(dialogue: Dialogue, speaker: str | None) -> Exchange | None:
    """Return the turn that stands for the dialogue, with everything before it."""
    places = dialogue.turns_by(speaker)
    return Exchange(dialogue, places[-1]) if places else None
