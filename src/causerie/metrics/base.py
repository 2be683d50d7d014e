"""The metric contract: what a metric says about itself, what it is given, what it returns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, overload

from causerie.dialogue import Dialogue, Exchange

if TYPE_CHECKING:
    from causerie.engines import Engines

Level: TypeAlias = Literal["turn", "dialogue"]


@dataclass(frozen=True, slots=True)
class Score:
    """One number of one metric, or the reason why there is none."""

    value: float | None
    """On the metric's own scale; None if unscored."""
    percentile: float | None = None
    """Share of human responses that score no better, 0 to 100; trained metrics have it."""
    explanation: Mapping[str, Any] | None = None
    """What led to the value, as plain JSON; given on request."""
    reason: str | None = None
    """Why there is no value."""

    @classmethod
    def of(cls, value: float, explanation: Mapping[str, Any] | None = None) -> Score:
        """A score, or an explicit "unscored" if the value is not a finite number."""
        if not math.isfinite(value):
            return cls.unscored(f"the value is {value}")
        return cls(float(value), explanation=explanation)

    @classmethod
    def unscored(cls, reason: str) -> Score:
        return cls(None, reason=reason)


Scores: TypeAlias = tuple[Score, ...]
"""One score per dimension, in the order of `Metric.columns`."""


class Metric(ABC):
    """Turns exchanges or dialogues into scores.

    A subclass sets `name`, `summary` and what it needs, and writes `score_exchanges`;
    everything else has a default. It is made with the engines (all heavy compute is there)
    and its own options as keyword arguments.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `causerie metrics`."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Any of "encoder", "language model", "references"."""
    higher_is_better: ClassVar[bool] = True
    sentinel: ClassVar[bool] = False
    """A trivial metric that any serious one has to beat."""
    calibrated: ClassVar[bool] = False
    """Whether its scores come with a percentile among human responses."""
    files: ClassVar[frozenset[str]] = frozenset()
    """Options that are files: a signature says what is in them, not where they are."""

    explain: bool = True
    """Whether explanations are wanted; a metric may save their cost if not."""

    options: Mapping[str, Any] = {}
    """The options it was loaded with, where they are not the defaults."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines

    def dimensions(self, level: Level) -> tuple[str, ...]:
        """The qualities it scores; empty if the metric is a single number."""
        return ()

    def columns(self, level: Level) -> tuple[str, ...]:
        """Names of its output columns: `name`, or `name.dimension` for each dimension."""
        dimensions = self.dimensions(level)
        return tuple(f"{self.name}.{d}" for d in dimensions) if dimensions else (self.name,)

    @property
    def name_with_options(self) -> str:
        """As in `bleu(order=2)`; without files."""
        said = {key: value for key, value in self.options.items() if key not in self.files}
        options = ",".join(f"{key}={value}" for key, value in sorted(said.items()))
        return f"{self.name}({options})" if options else self.name

    @property
    def signature(self) -> str:
        """What decides its numbers besides the input: metric, options, weights."""
        parts = [self.name_with_options]
        if "encoder" in self.needs:
            parts.append(self.engines.encoder.signature)
        if "language model" in self.needs:
            parts.append(self.engines.likelihood.signature)
        return "|".join(parts)

    @abstractmethod
    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        """Scores of each exchange, in order. Independent of what else is in the batch."""

    def score_dialogues(
        self, dialogues: Sequence[Dialogue], speaker: str | None = None
    ) -> list[Scores]:
        """Scores of each dialogue: by default the mean over its scored exchanges."""
        exchanges = [dialogue.exchanges(speaker) for dialogue in dialogues]
        turn_scores = iter(self.score_exchanges([e for group in exchanges for e in group]))
        return [
            mean_scores([next(turn_scores) for _ in group], len(self.columns("dialogue")))
            for group in exchanges
        ]

    @overload
    def score(self, item: Exchange) -> dict[str, Score]: ...
    @overload
    def score(self, item: Dialogue) -> list[dict[str, Score]]: ...
    def score(self, item: Exchange | Dialogue) -> dict[str, Score] | list[dict[str, Score]]:
        """Score one exchange, or every exchange of one dialogue: column name to score.

        For many dialogues, `causerie.evaluate` is faster: it fills whole batches.
        """
        exchanges = [item] if isinstance(item, Exchange) else item.exchanges()
        columns = self.columns("turn")
        rows = [dict(zip(columns, row, strict=True)) for row in self.score_exchanges(exchanges)]
        return rows[0] if isinstance(item, Exchange) else rows


def mean_scores(rows: Sequence[Scores], columns: int) -> Scores:
    """Column means over the rows that have a value there."""

    def mean(column: int) -> Score:
        values = [v for row in rows if (v := row[column].value) is not None]
        if values:
            return Score.of(math.fsum(values) / len(values))
        reasons = [r for row in rows if (r := row[column].reason)]
        return Score.unscored(reasons[0] if reasons else "no exchange to score")

    return tuple(mean(column) for column in range(columns))
