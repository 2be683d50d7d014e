"""What of a long path the model gets to see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from causerie.engines.tree import Segment, Tree
from causerie.errors import CauserieError


@dataclass(frozen=True)
class Visible:
    """A tree whose every path fits the window, and where the original nodes are in it."""

    tree: Tree
    nodes: dict[int, int] = field(default_factory=dict)
    """Original node to visible node."""
    cut: set[int] = field(default_factory=set)
    """Original nodes of whose path something is missing."""


def fit(tree: Tree, nodes: Iterable[int], window: int) -> Visible:
    """Cut the paths to these nodes to a window of that many tokens.

    A history (the prefix and the segments before a node) may fill three quarters of the
    window, so that a quarter is left for what follows. When it is longer, whole segments are
    dropped from its beginning, after the prefix, until it fills at most half: a long
    conversation is cut rarely, and between two cuts everything shares one history. A last
    segment which alone is longer than that keeps its beginning. So does a segment longer than
    what its history leaves of the window. What is visible to a node depends on nothing but its
    path, and siblings see the same history.
    """
    longest, kept = _limits(window)
    if len(tree.prefix) >= kept:
        raise CauserieError(
            f"the turn format's {len(tree.prefix)} opening tokens leave no room in the language "
            f"model's window of {window}: use another --turn-format or --lm"
        )
    visible = Visible(Tree(tree.prefix, tree.scope))
    lengths = {Tree.ROOT: len(tree.prefix)}  # of the path down to each visible node
    histories = {Tree.ROOT: Tree.ROOT}  # original node to the visible history of its children

    def extend(parent: int, segment: Segment) -> int:
        node = visible.tree.add(parent, segment)
        lengths[node] = lengths[parent] + len(segment.tokens)
        return node

    def shorten(node: int) -> int:
        """The last segments of the path to a visible node, as a path of their own."""
        room = kept - len(tree.prefix)
        segments: list[Segment] = []
        last = visible.tree.segment(node)
        while node != Tree.ROOT and (size := len(visible.tree.segment(node).tokens)) <= room:
            segments.append(visible.tree.segment(node))
            room -= size
            node = visible.tree.parent(node)
        shortened = Tree.ROOT
        for segment in reversed(segments or [last.cut(room)]):
            shortened = extend(shortened, segment)
        return shortened

    # A history is worked out for the first child that asks, so that leaves never pay for one.
    shortened: set[int] = set()
    for node in tree.with_ancestors(nodes):
        parent, segment = tree.parent(node), tree.segment(node)
        if parent not in histories:
            history = visible.nodes[parent]
            if lengths[history] > longest:
                history = shorten(history)
                shortened.add(parent)
            histories[parent] = history
        history = histories[parent]
        room = window - lengths[history]
        if parent in visible.cut or parent in shortened or len(segment.tokens) > room:
            visible.cut.add(node)
        visible.nodes[node] = extend(history, segment.cut(room))
    return visible


def first_visible(sizes: Sequence[int], prefix: int, window: int) -> list[int]:
    """For every turn, from which turn on a path that ends with it is visible, by their tokens.

    The rule of `fit`, for those who put the turns of one conversation in several orders and want
    the same ones in each.
    """
    longest, kept = _limits(window)
    first, total, found = 0, prefix, []
    for turn, size in enumerate(sizes):
        total += size
        if total > longest:
            while total > kept and first < turn:
                total -= sizes[first]
                first += 1
        found.append(first)
    return found


def _limits(window: int) -> tuple[int, int]:
    """How long a history may be, and how much is kept of a longer one."""
    return window - window // 4, window // 2
