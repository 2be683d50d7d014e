"""The sequences that the formulas are about, as branches of one tree for a batch of exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, TypeAlias

from causerie.dialogue import Exchange, Role
from causerie.engines.dialoguetree import DialogueTree

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
    for exchange in exchanges:
        follower = _follower(exchange)
        before = {}
        for order in orders:
            seen = _fitting(engine, exchange) if order == "rch" else exchange
            if seen is not exchange:
                engine.truncation.truncated += len(hypotheses)
            before[order] = _before(tree, seen, order, follower)
        nodes.append(
            {
                (order, hypothesis): tree.say(before[order], follower, hypothesis)
                for order in orders
                for hypothesis in hypotheses
            }
        )
    asked = {node for branches in nodes for node in branches.values()}
    if average == "sequence":
        scores = engine.score(tree, paths=asked)
    else:
        scores = engine.score(tree, segments=asked)
    return [Likelihoods(scores, branches, average) for branches in nodes]


def _follower(exchange: Exchange) -> Role:
    """Who reacts to the response: the other one."""
    return "user" if exchange.role_of(exchange.response) == "system" else "system"


def _fitting(engine: Likelihood, exchange: Exchange) -> Exchange:
    """With the last turns of the history that leave room for the response before them.

    Cut from the left, as long histories are, the response would be the first to go.
    """
    window = engine.backbone.window
    turns = (exchange.response, *reversed(exchange.context))
    sizes = [len(engine.format.segment(exchange.role_of(t), t.text).tokens) for t in turns]
    ends = [len(engine.format.prefix) + end for end in accumulate(sizes)]
    if ends[-1] <= window - window // 4:
        return exchange
    return exchange.recent(max(0, sum(end <= window // 2 for end in ends) - 1))


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
