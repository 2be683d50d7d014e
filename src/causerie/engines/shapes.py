"""How rows share a forward pass without changing each other's numbers.

The last digits of what a network says of a row depend on the shape of the pass: how long the
row is padded, and whether there are so few rows that another routine multiplies the matrices.
So every row is padded to a length that follows from its own length alone, only rows of one
padded length share a pass, and where there are few rows, empty ones are added. Whole, resumed,
one by one or in threads: a row's numbers are the same to the last bit, on one machine.
Language models fill their passes up likewise, and look at one path at a time (see
`causerie.engines.attention`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Item = TypeVar("Item")

SHORTEST = 8
FEWEST_TOKENS = 32
"""A pass has so many: with fewer, each of several CPU threads might be left with too few rows."""
ROWS = 16
"""A head is given a multiple of so many rows."""
SHARED_OUT = 48
"""A language model's pass has a multiple of so many tokens: two, three, four, six, eight or twelve
threads then get equal shares of it, none of which ends in the middle of what a processor computes
at once."""


def padded_length(length: int) -> int:
    """The length that a row of that many tokens is padded to, at most an eighth longer or by 7."""
    if length <= SHORTEST:
        return SHORTEST
    step = max(2, (1 << (length.bit_length() - 1)) // 8)
    return -(-length // step) * step


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Places of rows that may share a pass of at most `budget` padded tokens, short ones first.

    A longer row has a pass of its own.
    """
    by_length: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        by_length.setdefault(padded_length(length), []).append(place)
    for length, places in sorted(by_length.items()):
        size = max(1, budget // length)
        yield from (places[start : start + size] for start in range(0, len(places), size))


def rows_to_add(rows: int, length: int) -> int:
    """How many empty rows make a pass of these large enough."""
    return max(0, -(-FEWEST_TOKENS // length) - rows)


def filled(items: Sequence[Item]) -> list[Item]:
    """The items with as many copies of the last as make a multiple of `ROWS`."""
    return [*items, *(items[-1] for _ in range(-len(items) % ROWS))]


def filled_up(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places with as many copies of the last as make a multiple of `SHARED_OUT`."""
    missing = -len(places) % SHARED_OUT
    return np.pad(places, (0, missing), mode="edge") if missing else places


def rowwise(network: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """What a network that looks at each row by itself makes of the rows of its inputs."""
    count = len(inputs[0])
    missing = -count % ROWS
    if missing:
        inputs = tuple(torch.cat([i, i.new_zeros(missing, *i.shape[1:])]) for i in inputs)
    return network(*inputs)[:count]
