"""Equation 1, its ablations and its variants against naive implementations."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.metrics.causalscore.formula import SCORES, CausalGraph, dependents_of

P = st.floats(0, 1)


@st.composite
def graphs(draw: st.DrawFn, size: int = 6) -> CausalGraph:
    unconditional = tuple(draw(st.lists(P, max_size=size)))
    pairs = permutations(dependents_of(unconditional), 2)
    return CausalGraph(unconditional, {pair: draw(P) for pair in pairs})


def naive(graph: CausalGraph, variant: str) -> float:
    """Compute the paper's formula, with the edge cases of its published code."""
    u = [i for i in range(len(graph.unconditional)) if graph.unconditional[i] > 0.5]
    if not u:
        return 0.0
    p = [graph.unconditional[i] for i in u]
    c = [graph.conditional[i, j] for i in u for j in u if i != j]
    if len(u) == 1:
        c = p
    if variant == "mean":
        return 0.5 * (sum(p) / len(p) + sum(c) / len(c))
    if variant == "unconditional":
        return sum(p) / len(p)
    if variant == "conditional":
        return sum(c) / len(c)
    if variant == "max":
        return max(c)
    if variant == "sum":
        return len(u) * 0.5 * (sum(p) / len(p) + sum(c) / len(c))
    none = 1.0
    for i in u:
        given = [graph.conditional[i, j] for j in u if j != i] or [graph.unconditional[i]]
        none *= 1 - 0.5 * (graph.unconditional[i] + sum(given) / len(given))
    return 1 - none


@pytest.mark.parametrize("variant", SCORES)
@given(graph=graphs())
def test_equals_the_naive_version(variant: str, graph: CausalGraph) -> None:
    assert SCORES[variant](graph) == pytest.approx(naive(graph, variant), abs=1e-12)


def test_by_hand() -> None:
    three = CausalGraph(
        (0.9, 0.2, 0.7, 0.5, 0.8),
        {(0, 2): 0.6, (0, 4): 0.4, (2, 0): 0.9, (2, 4): 0.7, (4, 0): 0.1, (4, 2): 0.3},
    )
    assert three.dependents == (0, 2, 4)  # 0.5 is not above the threshold
    assert three.direct_causes == (2,)
    assert SCORES["mean"](three) == pytest.approx((0.8 + 0.5) / 2)
    assert SCORES["unconditional"](three) == pytest.approx(0.8)
    assert SCORES["conditional"](three) == pytest.approx(0.5)
    assert SCORES["max"](three) == 0.9
    assert SCORES["sum"](three) == pytest.approx(3 * 0.65)
    strengths = [(0.9 + 0.5) / 2, (0.7 + 0.8) / 2, (0.8 + 0.2) / 2]
    assert three.strengths == pytest.approx(strengths)
    assert SCORES["noisy-or"](three) == pytest.approx(1 - 0.3 * 0.25 * 0.5)


def test_nobody_and_one() -> None:
    for nothing in (CausalGraph((), {}), CausalGraph((0.5, 0.1), {})):
        assert {score(nothing) for score in SCORES.values()} == {0.0}
        assert nothing.direct_causes == ()
    one = CausalGraph((0.3, 0.8), {})
    for variant, score in SCORES.items():
        assert score(one) == pytest.approx(0.8), variant
    assert one.direct_causes == (1,)


def test_variants_count_causes_where_the_mean_does_not() -> None:
    spurious = CausalGraph((0.8,), {})
    three = CausalGraph((0.6,) * 3, dict.fromkeys(permutations(range(3), 2), 0.6))
    assert SCORES["mean"](spurious) > SCORES["mean"](three)
    for variant in ("sum", "noisy-or"):
        assert SCORES[variant](spurious) < SCORES[variant](three)


@pytest.mark.parametrize("variant", SCORES)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_order_of_utterances_does_not_matter(variant: str, graph: CausalGraph, seed: int) -> None:
    order = list(range(len(graph.unconditional)))
    random.Random(seed).shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    other = CausalGraph(
        tuple(graph.unconditional[old] for old in order),
        {(place[i], place[j]): p for (i, j), p in graph.conditional.items()},
    )
    assert SCORES[variant](other) == pytest.approx(SCORES[variant](graph), abs=1e-12)


@given(graph=graphs(), noise=st.lists(st.floats(0, 0.5), max_size=4))
def test_what_the_response_does_not_depend_on_does_not_matter(
    graph: CausalGraph, noise: list[float]
) -> None:
    longer = CausalGraph((*graph.unconditional, *noise), graph.conditional)
    for score in SCORES.values():
        assert score(longer) == score(graph)


@given(graph=graphs())
def test_scores_stay_in_their_range(graph: CausalGraph) -> None:
    for variant, score in SCORES.items():
        top = len(graph.dependents) if variant == "sum" else 1
        assert -1e-12 <= score(graph) <= top + 1e-12
    assert SCORES["noisy-or"](graph) >= max(graph.strengths, default=0) - 1e-12
