"""The sequences that the formulas need, as branches of one tree per dialogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from causerie.dialogue import Dialogue, Exchange, Role
from causerie.engines.dialoguetree import DialogueTree, by_dialogue
from causerie.engines.window import first_visible

if TYPE_CHECKING:
    from causerie.engines.likelihood import Likelihood, LogLikelihoods
    from causerie.engines.turnformat import TurnFormat

Order: TypeAlias = Literal["crh", "rch", "ch", "rh", "h"]
"""Order of history (c), response (r) and hypothesis (h) in a sequence."""

EXPLAINED: tuple[Order, ...] = ("crh", "ch")
"""The sequences that `Likelihoods.change` compares."""

Average: TypeAlias = Literal["sequence", "hypothesis"]
"""The tokens over which a sequence's log-likelihood is averaged."""

Branches: TypeAlias = "dict[tuple[Order, str], int]"
"""The nodes of hypotheses in a tree, by order and text."""
Scored: TypeAlias = "dict[tuple[Order, str], tuple[LogLikelihoods, int]]"
"""The nodes of hypotheses, each with the scores of its tree."""


@dataclass(frozen=True)
class Likelihoods:
    """Average log-likelihoods of the sequences of one exchange."""

    _found: Scored
    _average: Average

    def of(self, order: Order, hypothesis: str) -> float:
        """Return L of a sequence that ends in the hypothesis."""
        scores, node = self._found[order, hypothesis]
        found = scores.path(node) if self._average == "sequence" else scores.segment(node)
        return found.mean

    def change(self, hypothesis: str) -> float:
        """Return by how much the response made the hypothesis more likely, per token of it."""
        found = (self._found[order, hypothesis] for order in EXPLAINED)
        after, before = (scores.segment(node).mean for scores, node in found)
        return after - before


def likelihoods(
    engine: Likelihood,
    exchanges: Sequence[Exchange],
    orders: Iterable[Order],
    hypotheses: Iterable[str],
    average: Average,
) -> list[Likelihoods]:
    """Return for every exchange the likelihoods of all sequences with all hypotheses."""
    orders, hypotheses = tuple(orders), tuple(hypotheses)

    def score(tree: DialogueTree, own: list[Exchange]) -> list[Likelihoods]:
        nodes: list[Branches] = []
        shortened: set[int] = set()
        for exchange, seen in zip(own, _visible(engine, own), strict=True):
            follower = _follower(seen)
            before: dict[Order, int] = {
                order: _before(tree, seen, order, follower) for order in orders if order != "h"
            }
            branches = _branches(tree, before, follower, hypotheses)
            if seen is not exchange:
                shortened.update(node for (order, _), node in branches.items() if "c" in order)
            nodes.append(branches)
        asked = {node for branches in nodes for node in branches.values()}
        scores = _scores(engine, tree, asked, average, shortened)
        return [
            Likelihoods(
                {key: (scores, node) for key, node in branches.items()}
                | (alone(_follower(exchange)) if "h" in orders else {}),
                average,
            )
            for exchange, branches in zip(own, nodes, strict=True)
        ]

    @cache
    def alone(follower: Role) -> Scored:
        """Score hypotheses by themselves, which is the same for every exchange."""
        tree = DialogueTree(engine.format)
        branches = _branches(tree, {"h": tree.ROOT}, follower, hypotheses)
        scores = _scores(engine, tree, set(branches.values()), average, ())
        return {key: (scores, node) for key, node in branches.items()}

    return by_dialogue(exchanges, engine.format, score)


def _branches(
    tree: DialogueTree, before: Mapping[Order, int], follower: Role, hypotheses: Iterable[str]
) -> Branches:
    """Return the node of each hypothesis after each beginning."""
    return {
        (order, hypothesis): tree.say(node, follower, hypothesis)
        for order, node in before.items()
        for hypothesis in hypotheses
    }


def _scores(
    engine: Likelihood,
    tree: DialogueTree,
    nodes: set[int],
    average: Average,
    shortened: Iterable[int],
) -> LogLikelihoods:
    if average == "sequence":
        return engine.score(tree, paths=nodes, shortened=shortened)
    return engine.score(tree, segments=nodes, shortened=shortened)


def _follower(exchange: Exchange) -> Role:
    """Return the role that reacts to the response: the other one."""
    return "user" if exchange.role_of(exchange.response) == "system" else "system"


def _visible(engine: Likelihood, exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield every exchange with the history that fits the window, the same for every order.

    If the engine cut sequences, one with the response would lose turns that the one without it
    keeps, and one that begins with the response would lose the response.
    """
    form, window = engine.format, engine.backbone.window
    first: dict[tuple[int, str], list[int]] = {}
    rest: dict[tuple[int, int], Dialogue] = {}
    for exchange in exchanges:
        dialogue, turn = exchange.dialogue, exchange.turn
        roles = id(dialogue), exchange.response.speaker
        if roles not in first:
            sizes = [_size(form, exchange.role_of(turn), turn.text) for turn in dialogue.turns]
            first[roles] = first_visible(sizes, len(form.prefix), window)
        start = first[roles][turn]
        if start == 0:
            yield exchange
            continue
        part = id(dialogue), start
        if part not in rest:
            rest[part] = replace(dialogue, turns=dialogue.turns[start:])
        yield Exchange(rest[part], turn - start)


def _size(form: TurnFormat, role: Role, text: str) -> int:
    """Return the number of tokens of a turn after one of the other role."""
    other: Role = "user" if role == "system" else "system"
    return len(form.segment(role, text, after=other).tokens)


def _before(tree: DialogueTree, exchange: Exchange, order: Order, follower: Role) -> int:
    """Return the node after which the hypothesis comes."""
    if order == "crh":
        return tree.response(exchange)
    if order == "ch":
        return tree.history(exchange, follower)
    turns = {
        "rh": (exchange.response,),
        "rch": (exchange.response, *exchange.context),
    }[order]
    roles = [*map(exchange.role_of, turns), follower]
    node = tree.ROOT
    for turn, role, then in zip(turns, roles, roles[1:], strict=False):
        node = tree.say(node, role, turn.text, then)
    return node
