"""The sequences that the formulas are about, as branches of one tree for a batch of exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from causerie.dialogue import Dialogue, Exchange, Role
from causerie.engines.dialoguetree import DialogueTree
from causerie.engines.window import first_visible

if TYPE_CHECKING:
    from causerie.engines.likelihood import Likelihood, LogLikelihood, LogLikelihoods

Order: TypeAlias = Literal["crh", "rch", "ch", "rh", "h"]
"""What comes after what: history (c), response (r), hypothesis (h)."""

EXPLAINED: tuple[Order, ...] = ("crh", "ch")
"""The sequences that `Likelihoods.change` compares."""

Average: TypeAlias = Literal["sequence", "hypothesis"]
"""Over which tokens a sequence's log-likelihood is averaged."""


@dataclass(frozen=True)
class Likelihoods:
    """Average log-likelihoods of the sequences of one exchange."""

    _scores: LogLikelihoods
    _nodes: Mapping[tuple[Order, str], int]
    _average: Average

    def of(self, order: Order, hypothesis: str) -> float:
        """L of a sequence that ends in the hypothesis."""
        node = self._nodes[order, hypothesis]
        found: LogLikelihood = (
            self._scores.path(node) if self._average == "sequence" else self._scores.segment(node)
        )
        return found.mean

    def change(self, hypothesis: str) -> float:
        """By how much the response made the hypothesis likelier, per token of it."""
        after, before = (
            self._scores.segment(self._nodes[order, hypothesis]).mean for order in EXPLAINED
        )
        return after - before


def likelihoods(
    engine: Likelihood,
    exchanges: Sequence[Exchange],
    orders: Iterable[Order],
    hypotheses: Iterable[str],
    average: Average,
) -> list[Likelihoods]:
    """Of every exchange: all these sequences with all these hypotheses, in one call."""
    orders, hypotheses = tuple(orders), tuple(hypotheses)
    tree = DialogueTree(engine.format)
    nodes: list[dict[tuple[Order, str], int]] = []
    shortened: set[int] = set()
    for exchange, seen in zip(exchanges, _visible(engine, exchanges), strict=True):
        follower = _follower(seen)
        before = {order: _before(tree, seen, order, follower) for order in orders}
        branches = {
            (order, hypothesis): tree.say(before[order], follower, hypothesis)
            for order in orders
            for hypothesis in hypotheses
        }
        if seen is not exchange:
            shortened.update(node for (order, _), node in branches.items() if "c" in order)
        nodes.append(branches)
    asked = {node for branches in nodes for node in branches.values()}
    if average == "sequence":
        scores = engine.score(tree, paths=asked, shortened=shortened)
    else:
        scores = engine.score(tree, segments=asked, shortened=shortened)
    return [Likelihoods(scores, branches, average) for branches in nodes]


def _follower(exchange: Exchange) -> Role:
    """Who reacts to the response: the other one."""
    return "user" if exchange.role_of(exchange.response) == "system" else "system"


def _visible(engine: Likelihood, exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Every exchange with what the window shows of its history: the same for every order.

    Left to the engine, a sequence with the response would lose turns that the one without keeps,
    and one that begins with the response would lose the response.
    """
    form, window = engine.format, engine.backbone.window
    first: dict[tuple[int, str], list[int]] = {}
    rest: dict[tuple[int, int], Dialogue] = {}
    for exchange in exchanges:
        dialogue, turn = exchange.dialogue, exchange.turn
        roles = id(dialogue), exchange.response.speaker
        if roles not in first:
            sizes = [len(form.segment(exchange.role_of(t), t.text).tokens) for t in dialogue.turns]
            first[roles] = first_visible(sizes, len(form.prefix), window)
        start = first[roles][turn]
        if start == 0:
            yield exchange
            continue
        part = id(dialogue), start
        if part not in rest:
            rest[part] = replace(dialogue, turns=dialogue.turns[start:])
        yield Exchange(rest[part], turn - start)


def _before(tree: DialogueTree, exchange: Exchange, order: Order, follower: Role) -> int:
    """The node after which the hypothesis comes."""
    if order == "crh":
        return tree.response(exchange)
    if order == "ch":
        return tree.history(exchange, follower)
    turns = {
        "h": (),
        "rh": (exchange.response,),
        "rch": (exchange.response, *exchange.context),
    }[order]
    roles = [*map(exchange.role_of, turns), follower]
    node = tree.ROOT
    for turn, role, then in zip(turns, roles, roles[1:], strict=False):
        node = tree.say(node, role, turn.text, then)
    return node
