"""Active selection: the items that a trained causalscore is least sure about come first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from causerie.annotation.project import Listed, Snapshot
from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.metrics.causalscore import CausalScore
from causerie.metrics.causalscore.formula import CausalGraph


def uncertainty(graph: CausalGraph) -> float:
    """Return the mean entropy, in bits (0 to 1), of all classifier probabilities of a response."""
    chances = [*graph.unconditional, *graph.conditional.values()]
    return math.fsum(map(_entropy, chances)) / len(chances) if chances else 0.0


def priorities(project: Snapshot, metric: CausalScore, engines: Engines) -> Mapping[int, float]:
    """Return the metric's uncertainty about each item that nobody has begun, by item."""
    if project.task.kind != "causes":
        raise CauserieError("selection needs causalscore, which knows only causal relations")
    free = list(_untouched(project))
    graphs = metric.graphs([_exchange(listed) for listed in free], engines)
    return {listed.id: uncertainty(graph) for listed, graph in zip(free, graphs, strict=True)}


def _untouched(project: Snapshot) -> Iterable[Listed]:
    for listed in project.items.values():
        rounds = project.by_item.get(listed.id, {})
        begun = any(project.events.get(one.id) for found in rounds.values() for one in found)
        if listed.gold is None and not begun:
            yield listed


def _exchange(listed: Listed) -> Exchange:
    turns = listed.item.turns
    return Exchange(Dialogue(listed.item.name, turns), len(turns) - 1)


def _entropy(p: float) -> float:
    return -sum(q * math.log2(q) for q in (p, 1 - p) if q > 0)
