"""What is visible of a long conversation, against the documented cut done naively."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from causerie.engines.tree import Segment
from causerie.engines.window import first_visible
from engines.oracle import seen

WINDOW = 64


@given(
    sizes=st.lists(st.integers(1, WINDOW // 4), min_size=1, max_size=60),
    prefix=st.integers(0, WINDOW // 4),
)
def test_first_visible_is_what_a_hypothesis_after_the_turn_sees(sizes: list[int], prefix: int):
    turns = [Segment.of([turn] * size) for turn, size in enumerate(sizes)]
    for turn, first in enumerate(first_visible(sizes, prefix, WINDOW)):
        *history, _ = seen((0,) * prefix, [*turns[: turn + 1], Segment.of([-1])], WINDOW)
        assert [segment.tokens[0] for segment in history] == list(range(first, turn + 1))


def test_a_turn_longer_than_the_window_stands_alone():
    assert first_visible([10, 10, 100, 5], 0, WINDOW) == [0, 0, 2, 3]
