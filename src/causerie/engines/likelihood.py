"""Log-likelihoods of text by a language model, for whole trees of alternatives at once."""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from causerie.engines.cache import Cache, count_cuts
from causerie.engines.language import load_language_model
from causerie.engines.passes import packed, plain, sequences
from causerie.engines.selfcheck import packable
from causerie.engines.settings import Settings
from causerie.engines.tree import Tree
from causerie.engines.trie import Trie
from causerie.engines.turnformat import TurnFormat, turn_format
from causerie.engines.window import Visible, fit
from causerie.errors import CauserieWarning
from causerie.models import Store

if TYPE_CHECKING:
    from torch import Tensor

    from causerie.models import Backbone

TOKEN_BUDGET = 528
"""Tokens per forward pass: more make the attention mask grow faster than the passes shrink."""

_REMEMBERED = 200_000  # segments, about 200 bytes each


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Of some tokens: the sum of their log-probabilities, and how many there are."""

    total: float
    count: int

    @property
    def mean(self) -> float:
        """Per token; not a number where there is no token to score."""
        return self.total / self.count if self.count else math.nan

    def __add__(self, other: LogLikelihood) -> LogLikelihood:
        return LogLikelihood(self.total + other.total, self.count + other.count)


@dataclass(frozen=True)
class LogLikelihoods:
    """The answers to one call of `Likelihood.score`, by node of its tree."""

    _visible: Visible
    _segments: Mapping[int, LogLikelihood]

    def segment(self, node: int) -> LogLikelihood:
        """Of the node's own segment, given everything above it that the model could see."""
        return self._segments[self._visible.nodes[node]]

    def path(self, node: int) -> LogLikelihood:
        """Of everything from the root down to the node that the model could see."""
        path = self._visible.tree.path(self._visible.nodes[node])
        return sum((self._segments[part] for part in path), LogLikelihood(0.0, 0))


class Likelihood:
    """A language model that scores trees of segments.

    Every token of the tree goes through the network once, whatever is asked: equal beginnings
    are shared down to the token, and passes are packed so that a token sees only its ancestors.
    The numbers equal those of scoring every path by itself; with a network for which that is
    not so, every path is in fact scored by itself. Answers are remembered.
    """

    def __init__(
        self, backbone: Backbone, turns: str | None = None, budget: int = TOKEN_BUDGET
    ) -> None:
        self.backbone = backbone
        self.budget = budget
        self.format: TurnFormat = turn_format(backbone.tokenizer, turns, backbone.window)
        self.statistics: Mapping[str, Tensor] = {}
        """What was measured with it when it was tuned, by metric, level and dimension."""
        self.tokens_computed = 0
        self._remembered: Cache[bytes, LogLikelihood] = Cache(_REMEMBERED)
        self._model: Any = backbone.model.eval()
        self._packable = packable(backbone)
        self._told = False
        if not self._packable:
            self._tell("cannot be used with packed passes")

    @classmethod
    def load(cls, store: Store, settings: Settings) -> Likelihood:
        backbone, artifact = load_language_model(store, settings)
        if artifact is None:
            return cls(backbone, settings.turn_format)
        own = artifact.options.get("turn_format")
        made = cls(backbone, settings.turn_format or own)
        if made.format.name == own:
            made.statistics = artifact.statistics
        return made

    def score(
        self,
        tree: Tree,
        segments: Iterable[int] = (),
        paths: Iterable[int] = (),
        shortened: Iterable[int] = (),
    ) -> LogLikelihoods:
        """Score the own segments of some nodes, and the whole paths of others.

        Paths longer than the model's window are cut (see `causerie.engines.window.fit`) and
        counted (see `counted_cuts`), as are those that the caller has `shortened`. The first
        token of a sequence with nothing before it cannot be scored and has no part in the sums.
        """
        segments, paths = set(segments), set(paths)
        asked = segments | paths
        visible = fit(tree, asked, self.backbone.window)
        count_cuts("language model", len(asked & visible.cut.union(shortened)), len(asked))

        wanted = {visible.nodes[node] for node in segments}
        wanted.update(visible.tree.with_ancestors(visible.nodes[node] for node in paths))
        digests = _digests(visible.tree, wanted)
        known = {node: self._remembered.get(digests[node]) for node in wanted}
        found = {node: value for node, value in known.items() if value is not None}
        computed = self._compute(visible.tree, wanted - found.keys())
        for node, value in computed.items():
            self._remembered.put(digests[node], value)
        return LogLikelihoods(visible, found | computed)

    def _compute(self, tree: Tree, nodes: set[int]) -> dict[int, LogLikelihood]:
        """The log-likelihoods of these segments."""
        far = self._far(tree, nodes)
        return self._pass(tree, nodes - far, True) | self._pass(tree, far, False)

    def _far(self, tree: Tree, nodes: set[int]) -> set[int]:
        """The nodes with paths too long to be packed."""
        if self._packable >= self.backbone.window:
            return set()
        lengths = {Tree.ROOT: len(tree.prefix)}
        for node in tree.with_ancestors(nodes):
            lengths[node] = lengths[tree.parent(node)] + len(tree.segment(node).tokens)
        far = {node for node in nodes if lengths[node] > self._packable}
        if far:
            self._tell(f"looks back only {self._packable} tokens in some layers")
        return far

    def _pass(self, tree: Tree, nodes: set[int], pack: bool) -> dict[int, LogLikelihood]:
        if not nodes:
            return {}
        trie = Trie()
        ends = {Tree.ROOT: (trie.insert(Trie.ROOT, tree.prefix) or [Trie.ROOT])[-1]}
        scored: dict[int, list[int]] = {}
        for node in tree.with_ancestors(nodes):
            segment, end = tree.segment(node), ends[tree.parent(node)]
            inserted = trie.insert(end, segment.tokens)
            ends[node] = inserted[-1] if inserted else end
            if node in nodes:
                start = max(segment.start, 1) if end == Trie.ROOT else segment.start
                scored[node] = inserted[start : segment.stop]

        # Only what is above a scored token goes through the network, not the token itself.
        targets = np.array(sorted(set(chain.from_iterable(scored.values()))), dtype=np.int64)
        forest, before = trie.above(targets)
        tokens = np.array(trie.tokens, dtype=np.int64)[targets]
        if pack:
            log_probs = packed(self._model, forest, before, tokens, self.budget)
            self.tokens_computed += len(forest)
        else:
            log_probs = plain(self._model, forest, before, tokens)
            self.tokens_computed += sum(map(len, sequences(forest)))
        return {
            node: LogLikelihood(
                float(log_probs[np.searchsorted(targets, inserted)].sum()), len(inserted)
            )
            for node, inserted in scored.items()
        }

    def _tell(self, why: str) -> None:
        """Say, once, why it takes longer than it might."""
        if not self._told:
            how = "long texts are" if self._packable else "every text is"
            warnings.warn(
                f"{self.backbone.name} {why}: {how} scored separately, which is slower",
                CauserieWarning,
                stacklevel=2,
            )
        self._told = True


def _digests(tree: Tree, nodes: Iterable[int]) -> dict[int, bytes]:
    """A key for each of the nodes and those above: a digest of the whole path."""
    digests = {Tree.ROOT: _digest(tree.scope, tree, Tree.ROOT)}
    for node in tree.with_ancestors(nodes):
        digests[node] = _digest(digests[tree.parent(node)], tree, node)
    return digests


def _digest(above: bytes, tree: Tree, node: int) -> bytes:
    segment = tree.segment(node)
    content = array("q", (segment.start, segment.stop, *segment.tokens)).tobytes()
    return blake2b(above + content, digest_size=16).digest()
