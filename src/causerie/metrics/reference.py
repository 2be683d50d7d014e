"""The base of all metrics that compare a response with reference answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from causerie.dialogue import Exchange
from causerie.metrics.base import Metric, Score, Scores

if TYPE_CHECKING:
    from causerie.engines import Engines


@dataclass(frozen=True, slots=True)
class Comparison:
    """A response and the references that it is compared with, at least one."""

    response: str
    references: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The response followed by the references."""
        return (self.response, *self.references)


@dataclass(frozen=True)
class ReferenceMetric(Metric):
    """A metric that needs references and leaves exchanges without one unscored."""

    needs = frozenset({"references"})

    @abstractmethod
    def compare(self, comparisons: Sequence[Comparison], engines: Engines) -> Iterable[Scores]:
        """Return one row of scores per comparison, in input order."""

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        references = [tuple(r for r in e.references if r.strip()) for e in exchanges]
        compared = iter(
            self.compare(
                [
                    Comparison(e.response.text, answers)
                    for e, answers in zip(exchanges, references, strict=True)
                    if answers
                ],
                engines,
            )
        )
        none = tuple(Score.unscored("no reference") for _ in self.columns("turn"))
        return [next(compared) if answers else none for answers in references]
