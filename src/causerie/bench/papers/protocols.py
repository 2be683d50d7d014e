"""Protocols: the items, the dimension and the statistics behind a paper's numbers.

They are data (`protocols.json`), so that a paper's column can be read and repeated exactly.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from causerie.bench.sets.judged import JudgedItem, JudgedPair, JudgedSet
from causerie.dialogue import Exchange, Turn
from causerie.errors import CauserieError

STATISTICS = (
    "pearson",
    "spearman",
    "voting.pearson",
    "voting.spearman",
    "ignore-equal.point-biserial",
    "cont2cat.alpha",
)
"""Statistics a protocol can name; the last four are CausalScore's schemas for pairs."""

_CONSISTENT = 1.4826
"""Factor that turns a median absolute deviation into a normal standard deviation."""


@dataclass(frozen=True)
class Protocol:
    """How a paper computed the numbers of one column from one judged set."""

    name: str
    paper: str
    set: str
    dimension: str
    statistics: tuple[str, ...]
    items: int
    """Number of items (or pairs) that remain of the published set."""
    filters: tuple[Mapping[str, Any], ...] = ()
    """Filters in order; each names one of `FILTERS` or `PAIR_FILTERS`, and its arguments."""
    note: str | None = None


@cache
def protocols() -> Mapping[str, Protocol]:
    """Return every protocol by name."""
    text = files("causerie.bench.papers").joinpath("protocols.json").read_text(encoding="utf-8")
    return {name: _protocol(name, facts) for name, facts in json.loads(text).items()}


def protocol(name: str) -> Protocol:
    """Return the protocol of that name."""
    if name not in protocols():
        known = ", ".join(protocols())
        raise CauserieError(f"there is no protocol {name!r}: use one of {known}")
    return protocols()[name]


def apply(protocol: Protocol, judged: JudgedSet) -> JudgedSet:
    """Return the set as the paper used it: the items after all filters, with one dimension."""
    if judged.name != protocol.set:
        raise CauserieError(
            f"the protocol {protocol.name!r} uses the set {protocol.set!r}, not "
            f"{judged.name!r}: use that one"
        )
    if protocol.dimension not in judged.dimensions:
        raise CauserieError(
            f"{judged.name!r} has no ratings of {protocol.dimension!r}, which the protocol "
            f"{protocol.name!r} needs: check the file"
        )
    items: Sequence[JudgedItem] = judged.items
    pairs: Sequence[JudgedPair] = judged.pairs
    for step in protocol.filters:
        arguments = {key: value for key, value in step.items() if key != "filter"}
        if step["filter"] in PAIR_FILTERS:
            pairs = PAIR_FILTERS[step["filter"]](pairs, **arguments)
        else:
            items = FILTERS[step["filter"]](items, **arguments)
    if not (items or pairs):
        raise CauserieError(
            f"the file of {judged.name!r} has no item that the protocol {protocol.name!r} keeps "
            f"(the published one has {protocol.items}): check the file"
        )
    return replace(judged, items=tuple(items), pairs=tuple(pairs), dimensions=(protocol.dimension,))


def among_systems(protocol: Protocol) -> Protocol:
    """Return a protocol of pairs without those that contain a human-written response."""
    return replace(protocol, filters=(*protocol.filters, {"filter": "without-humans"}))


def without_first(items: Sequence[JudgedItem], fraction: float) -> Sequence[JudgedItem]:
    """Leave out the first part of the file, which the authors used for validation."""
    return items[int(len(items) * fraction) :]


def only_systems(items: Sequence[JudgedItem], systems: Sequence[str]) -> Sequence[JudgedItem]:
    return [item for item in items if item.system in systems]


def without_systems(items: Sequence[JudgedItem], systems: Sequence[str]) -> Sequence[JudgedItem]:
    return [item for item in items if item.system not in systems]


def without_outlying_ratings(
    items: Sequence[JudgedItem], dimension: str, deviations: float
) -> Sequence[JudgedItem]:
    """Leave out each item's ratings far from its median, and items without any left."""
    kept = []
    for item in items:
        ratings = _near_median(item.ratings.get(dimension, ()), deviations)
        if ratings:
            kept.append(replace(item, ratings={**item.ratings, dimension: ratings}))
    return kept


def background_as_context(items: Sequence[JudgedItem]) -> Sequence[JudgedItem]:
    """Put the background before the context, one turn per line, spoken by the responder."""
    return [
        replace(item, item=_grounded(item.item)) if isinstance(item.item, Exchange) else item
        for item in items
    ]


def without_humans(pairs: Sequence[JudgedPair]) -> Sequence[JudgedPair]:
    """Leave out pairs that contain a human-written response."""
    return [pair for pair in pairs if not any(pair.humans)]


Filter: TypeAlias = Callable[..., Sequence[JudgedItem]]
PairFilter: TypeAlias = Callable[..., Sequence[JudgedPair]]
FILTERS: Mapping[str, Filter] = {
    "without-first": without_first,
    "only-systems": only_systems,
    "without-systems": without_systems,
    "without-outlying-ratings": without_outlying_ratings,
    "background-as-context": background_as_context,
}
PAIR_FILTERS: Mapping[str, PairFilter] = {"without-humans": without_humans}


def _grounded(exchange: Exchange) -> Exchange:
    dialogue, response = exchange.dialogue, exchange.response
    facts = tuple(Turn(response.speaker, fact, response.role) for fact in dialogue.background)
    whole = replace(dialogue, turns=(*facts, *dialogue.turns), background=())
    return Exchange(whole, exchange.turn + len(facts))


def _near_median(ratings: Sequence[float | None], deviations: float) -> tuple[float | None, ...]:
    given = [rating for rating in ratings if rating is not None]
    if not given:
        return ()
    median = statistics.median(given)
    spread = statistics.median(abs(rating - median) for rating in given)
    limit = deviations * _CONSISTENT * spread
    return tuple(rating for rating in given if abs(rating - median) <= limit)


def _protocol(name: str, facts: dict[str, Any]) -> Protocol:
    facts["statistics"] = tuple(facts["statistics"])
    facts["filters"] = tuple(facts.get("filters", ()))
    return Protocol(name=name, **facts)
