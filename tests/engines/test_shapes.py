"""Rows share passes in shapes that follow from themselves alone."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from causerie.engines.shapes import ROWS, batches, filled, padded_length, rows_to_add, rowwise

lengths = st.integers(1, 5000)


@given(lengths, lengths)
def test_the_padded_length_is_enough_not_much_more_and_monotone(one: int, other: int) -> None:
    padded = padded_length(one)
    assert one <= padded <= max(8, one + max(1, one // 8))
    assert padded_length(padded) == padded
    assert (one <= other) <= (padded <= padded_length(other))


@given(st.lists(lengths, max_size=80), st.integers(1, 4096))
def test_batches_hold_every_row_once_of_one_padded_length(rows: list[int], budget: int) -> None:
    made = list(batches(rows, budget))
    assert sorted(place for batch in made for place in batch) == list(range(len(rows)))
    for batch in made:
        (padded,) = {padded_length(rows[place]) for place in batch}
        assert len(batch) == 1 or len(batch) * padded <= budget


@given(st.integers(1, 100), st.integers(8, 500))
def test_a_pass_is_never_tiny(rows: int, length: int) -> None:
    assert (rows + rows_to_add(rows, length)) * length >= 32
    assert rows_to_add(rows, length) * length < 32 + length


@given(st.lists(st.integers(), min_size=1, max_size=50))
def test_filled_keeps_what_is_there(items: list[int]) -> None:
    assert filled(items)[: len(items)] == items
    assert len(filled(items)) % ROWS == 0
    assert len(filled(items)) - len(items) < ROWS


def test_a_head_says_the_same_of_a_row_in_any_company() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(300, 384, generator=generator)
    network = torch.nn.Sequential(torch.nn.Linear(384, 96), torch.nn.GELU(), torch.nn.Linear(96, 1))
    with torch.inference_mode():
        whole = rowwise(network, rows)
        for count in (1, 2, 3, 5, 17, 64, 299):
            assert torch.equal(rowwise(network, rows[:count]), whole[:count])
            assert torch.equal(rowwise(network, rows[-count:]), whole[-count:])


def test_a_head_may_take_several_inputs() -> None:
    one, other = torch.ones(3, 2), torch.full((3, 2), 2.0)
    assert rowwise(lambda a, b: a + b, one, other).tolist() == [[3.0, 3.0]] * 3
