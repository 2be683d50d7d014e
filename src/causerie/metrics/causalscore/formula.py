"""Equation 1 and its variants: the score of a response from the classifiers' probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

THRESHOLD = 0.5
"""Probability above which a response counts as dependent on an utterance."""


@dataclass(frozen=True)
class CausalGraph:
    """Probabilities of dependence between the utterances of a window and the response.

    Utterances are identified by their position in the window, oldest first, not by their text.
    """

    unconditional: tuple[float, ...]
    """p(c_i, r) of every utterance."""
    conditional: Mapping[tuple[int, int], float]
    """p(c_i, c_j, r) by (i, j), for every ordered pair of different dependents."""

    @cached_property
    def dependents(self) -> tuple[int, ...]:
        return dependents_of(self.unconditional)

    def given_others(self, utterance: int) -> list[float]:
        """Return p of a dependent given each other one; a single dependent keeps its own p."""
        others = [self.conditional[utterance, j] for j in self.dependents if j != utterance]
        return others or [self.unconditional[utterance]]

    @cached_property
    def direct_causes(self) -> tuple[int, ...]:
        """Dependents that remain dependent given any other."""
        return tuple(i for i in self.dependents if min(self.given_others(i)) > THRESHOLD)

    @cached_property
    def strengths(self) -> tuple[float, ...]:
        """Average the p of each dependent with its mean p given another."""
        return tuple(
            (self.unconditional[i] + _mean(self.given_others(i))) / 2 for i in self.dependents
        )


def dependents_of(unconditional: tuple[float, ...]) -> tuple[int, ...]:
    return tuple(i for i, p in enumerate(unconditional) if p > THRESHOLD)


def unconditional_half(graph: CausalGraph) -> float:
    return _mean([graph.unconditional[i] for i in graph.dependents])


def conditional_half(graph: CausalGraph) -> float:
    return _mean([p for i in graph.dependents for p in graph.given_others(i)])


def equation_1(graph: CausalGraph) -> float:
    return (unconditional_half(graph) + conditional_half(graph)) / 2


def max_ci(graph: CausalGraph) -> float:
    """Return the strongest conditional dependence."""
    return max((p for i in graph.dependents for p in graph.given_others(i)), default=0.0)


def total(graph: CausalGraph) -> float:
    """Return the sum of the strengths of all dependents; equation 1 has their mean."""
    return math.fsum(graph.strengths)


def noisy_or(graph: CausalGraph) -> float:
    """Return the probability of at least one cause, taking strengths as probabilities."""
    return 1 - math.prod(1 - strength for strength in graph.strengths)


SCORES: dict[str, Callable[[CausalGraph], float]] = {
    "mean": equation_1,
    "unconditional": unconditional_half,
    "conditional": conditional_half,
    "max": max_ci,
    "sum": total,
    "noisy-or": noisy_or,
}
"""The paper's score, its ablations, and two variants that grow with the number of causes."""


def _mean(values: list[float]) -> float:
    """Return the mean; 0 without values, for a response that depends on nothing."""
    return math.fsum(values) / len(values) if values else 0.0
