"""The oracle of the likelihood engine: one plain forward pass per path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from causerie.engines.tree import Segment, Tree
from causerie.models import Store, load_backbone

VOCABULARY = 300


@dataclass
class Network:
    """A loaded backbone with a window of our choice."""

    name: str
    sha256: str
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    window: int


def load(folder, dtype=torch.float32) -> Network:
    backbone = load_backbone(
        Store(), str(folder), "language model", dtype=dtype, device=torch.device("cpu")
    )
    return Network(
        backbone.name, backbone.sha256, backbone.model, backbone.tokenizer, backbone.window
    )


# The oracle: the documented cut, done naively, then one sequence through the plain model.


def seen(prefix: tuple[int, ...], path: list[Segment], window: int) -> list[Segment]:
    def used(segments: list[Segment]) -> int:
        return len(prefix) + sum(len(s.tokens) for s in segments)

    visible: list[Segment] = []
    for segment in path:
        if used(visible) > window - window // 4:
            while len(visible) > 1 and used(visible) > window // 2:
                visible.pop(0)
            if used(visible) > window // 2:
                visible = [first(visible[0], window // 2 - len(prefix))]
        visible.append(first(segment, window - used(visible)))
    return visible


def first(segment: Segment, count: int) -> Segment:
    tokens = segment.tokens[:count]
    return Segment(tokens, min(segment.start, len(tokens)), min(segment.stop, len(tokens)))


@torch.inference_mode()
def one_by_one(
    network: Network, prefix: tuple[int, ...], path: list[Segment]
) -> list[tuple[float, int]]:
    """(sum, count) of each segment that is visible at the end of the path."""
    visible = seen(prefix, path, network.window)
    tokens = list(prefix)
    scored = []
    for segment in visible:
        low = len(tokens)
        tokens.extend(segment.tokens)
        scored.append(range(max(1, low + segment.start), low + segment.stop))
    if not tokens:
        return [(0.0, 0) for _ in visible]
    logits = network.model(input_ids=torch.tensor([tokens])).logits[0].double()
    log_probs = logits.log_softmax(-1)
    return [
        (sum(float(log_probs[i - 1, tokens[i]]) for i in where), len(where)) for where in scored
    ]


def path_of(tree: Tree, node: int) -> list[Segment]:
    return [tree.segment(n) for n in tree.path(node)]


def agrees(found, expected: tuple[float, int]) -> None:
    total, count = expected
    assert found.count == count
    assert found.total == pytest.approx(total, rel=1e-4, abs=1e-6)


# Few distinct tokens, so that segments often share their beginnings.
@st.composite
def segments(draw, longest: int = 12):
    tokens = tuple(draw(st.lists(st.integers(0, 4), max_size=longest)))
    start = draw(st.integers(0, len(tokens)))
    return Segment(tokens, start, draw(st.integers(start, len(tokens))))


@st.composite
def trees(draw, longest: int = 12, nodes: int = 25):
    tree = Tree(draw(st.lists(st.integers(0, VOCABULARY - 1), max_size=4)))
    for segment in draw(st.lists(segments(longest), min_size=1, max_size=nodes)):
        newest_first = draw(st.integers(0, 3))  # sometimes a chain, sometimes a bush
        parents = range(max(0, len(tree) - newest_first - 1), len(tree))
        tree.add(draw(st.sampled_from(parents)), segment)
    return tree
