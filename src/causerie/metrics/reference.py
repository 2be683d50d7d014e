"""What metrics share that compare a response with reference answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from causerie.dialogue import Exchange
from causerie.metrics.base import Metric, Score, Scores


@dataclass(frozen=True, slots=True)
class Comparison:
    """A response and the answers it is measured by: at least one."""

    response: str
    references: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The response, then the references."""
        return (self.response, *self.references)


class ReferenceMetric(Metric):
    """A metric that needs references: leaves exchanges without one unscored."""

    needs = frozenset({"references"})

    @abstractmethod
    def compare(self, comparisons: Sequence[Comparison]) -> Iterable[Scores]:
        """Scores of each comparison, in order."""

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        references = [tuple(r for r in e.references if r.strip()) for e in exchanges]
        compared = iter(
            self.compare(
                [
                    Comparison(e.response.text, answers)
                    for e, answers in zip(exchanges, references, strict=True)
                    if answers
                ]
            )
        )
        none = tuple(Score.unscored("no reference") for _ in self.columns("turn"))
        return [next(compared) if answers else none for answers in references]
