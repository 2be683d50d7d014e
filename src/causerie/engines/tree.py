"""What the likelihood engine is asked to score: segments of tokens, each given its ancestors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens that come one after another: usually a turn with its scaffold."""

    tokens: tuple[int, ...]
    start: int
    """The first token that is scored; those before it only set the scene."""
    stop: int
    """One past the last token that is scored."""

    @classmethod
    def of(cls, tokens: Iterable[int]) -> Segment:
        """A segment of which every token is scored."""
        tokens = tuple(tokens)
        return cls(tokens, 0, len(tokens))

    def cut(self, length: int) -> Segment:
        """Its first `length` tokens."""
        return Segment(self.tokens[:length], min(self.start, length), min(self.stop, length))


class Tree:
    """Segments under a common prefix: a conversation is a path, alternatives are branches.

    Every path starts with the prefix, which is never scored. Nodes are numbered in the order
    they are added, so a parent's number is smaller than its children's.
    """

    ROOT: ClassVar[int] = 0
    """The prefix: the parent of every first segment."""

    def __init__(self, prefix: Iterable[int] = (), scope: bytes = b"") -> None:
        """Answers are remembered by `scope`: what another one had computed is computed again."""
        self.prefix, self.scope = tuple(prefix), scope
        self._parents = [-1]
        self._segments = [Segment(self.prefix, 0, 0)]
        self._nodes: dict[tuple[int, Segment], int] = {}

    def add(self, parent: int, segment: Segment) -> int:
        """The node of this segment after `parent`; an equal one is not added twice."""
        if not 0 <= parent < len(self):
            raise IndexError(f"no node {parent} in a tree of {len(self)}")
        node = self._nodes.setdefault((parent, segment), len(self))
        if node == len(self):
            self._parents.append(parent)
            self._segments.append(segment)
        return node

    def parent(self, node: int) -> int:
        return self._parents[node]

    def segment(self, node: int) -> Segment:
        return self._segments[node]

    def path(self, node: int) -> list[int]:
        """The nodes from the root (left out) down to this one."""
        nodes = []
        while node != self.ROOT:
            nodes.append(node)
            node = self._parents[node]
        return nodes[::-1]

    def with_ancestors(self, nodes: Iterable[int]) -> list[int]:
        """The nodes and everything above them except the root, parents first."""
        found: set[int] = set()
        for node in nodes:
            while node != self.ROOT and node not in found:
                found.add(node)
                node = self._parents[node]
        return sorted(found)

    def __len__(self) -> int:
        return len(self._parents)
