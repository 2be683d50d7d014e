"""The plan of forward passes, without any network."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.engines.packing import plan
from causerie.engines.trie import Trie

paths = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=30).map(tuple), min_size=1)


def grow(paths):
    """A forest of everything above the last token of each path, and its paths, node by node."""
    trie = Trie()
    lasts = sorted({trie.insert(Trie.ROOT, path)[-1] for path in paths})
    forest, before = trie.above(np.array(lasts))
    beginnings: list[tuple[int, ...]] = []
    stack: list[tuple[int, tuple[int, ...]]] = []
    for node in range(len(forest)):
        while stack and stack[-1][0] <= node:
            stack.pop()
        beginning = (*(stack[-1][1] if stack else ()), int(forest.tokens[node]))
        beginnings.append(beginning)
        stack.append((int(forest.ends[node]), beginning))
    return trie, lasts, forest, before, beginnings


@given(paths)
def test_the_forest_holds_every_distinct_beginning_once(paths):
    trie, lasts, forest, before, beginnings = grow(paths)
    assert sorted(beginnings) == sorted({p[:n] for p in paths for n in range(1, len(p))})
    assert [len(beginning) - 1 for beginning in beginnings] == forest.depths.tolist()
    # Where each path's last token is predicted from.
    predicted = {
        beginnings[place] + (trie.tokens[last],) for place, last in zip(before, lasts, strict=True)
    }
    assert predicted == set(paths)


@settings(max_examples=200)
@given(paths, st.integers(1, 80))
def test_every_pass_finds_what_it_needs_in_the_cache(paths, budget):
    _, _, forest, _, beginnings = grow(paths)
    done: list[int] = []
    cache: list[int] = []
    for step in plan(forest, budget):
        nodes = step.nodes.tolist()
        assert 0 < len(nodes) <= budget
        assert 0 <= step.past <= len(cache)
        cache = cache[: step.past] + nodes
        place = {node: i for i, node in enumerate(cache)}
        for node in nodes:
            for length in range(1, len(beginnings[node])):
                above = beginnings.index(beginnings[node][:length])
                assert place[above] < place[node]
        done.extend(nodes)
    assert sorted(done) == list(range(len(forest)))


def test_small_trees_share_a_pass_and_a_trunk_is_not_run_twice():
    trunk = tuple(range(100, 160))
    hypotheses = [(*trunk[:turn], n, n) for turn in range(10, 60, 10) for n in range(5)]
    _, _, forest, _, _ = grow([trunk, *hypotheses])
    steps = list(plan(forest, 40))
    assert len(steps) <= 4  # 59 + 25 tokens, the trunk in two
    single = list(plan(grow([(n, n, n) for n in range(10)])[2], 40))
    assert [(step.past, len(step.nodes)) for step in single] == [(0, 20)]


def test_a_path_as_deep_as_a_window_needs_no_recursion():
    deep = [(1,) * n + (2, 3) for n in range(2_000)]
    _, _, forest, _, _ = grow(deep)
    assert sum(len(step.nodes) for step in plan(forest, 1)) == len(forest)
