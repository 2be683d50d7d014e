"""Attention that gives a token the same numbers whatever shares its pass.

Sums of floating-point numbers depend, in their last digits, on where the terms stand. In a packed
pass the tokens above one stand among those of its neighbours, so with ordinary attention its
numbers would tell who they are. Here a few tokens of one path at a time look at nothing but that
path, in order, filled up to a length that follows from their own depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from causerie.engines.shapes import padded_length
from causerie.engines.trie import Forest, Ints

NAME = "causerie_paths"
ROWS = 8
"""Tokens of a path that look at it together; where there are fewer, some are there twice."""
_TOGETHER = 1 << 21
"""Keys times rows of one call: what is copied for it stays small."""


@dataclass(frozen=True)
class Looks:
    """Groups of tokens that look at equally long paths."""

    queries: Tensor
    """(groups, ROWS): their places in the pass."""
    keys: Tensor
    """(groups, length): the places of their paths in the cache, in order."""
    mask: Tensor
    """(groups, 1, ROWS, length): what is to be added to the scores."""


def use_attentions(model: Any) -> Iterator[str]:
    """Let the network's packed passes use this attention and, whoever asks for more, its own."""
    own = model.config._attn_implementation
    if own == "sdpa":
        AttentionInterface.register(NAME, _attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        model.set_attn_implementation(NAME)
        yield model.config._attn_implementation
        model.set_attn_implementation(own)
    yield own


def looks(
    forest: Forest, cached: Ints, nodes: Ints, dtype: torch.dtype, device: torch.device
) -> list[Looks]:
    """How the nodes of a pass look at their paths, all of which are in the cache."""
    place = np.full(len(forest), -1, dtype=np.int64)
    place[cached[::-1]] = np.arange(len(cached))[::-1]
    lengths = np.array([padded_length(depth + 1) for depth in forest.depths[nodes].tolist()])
    groups = list(_groups(forest, nodes, lengths))
    queries = np.array([group + group[-1:] * (ROWS - len(group)) for group in groups])
    keys = place[_paths(forest, nodes[queries[:, -1]])]
    depths = forest.depths[nodes[queries]]
    found = []
    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths[queries[:, 0]] == length)
        size = max(1, _TOGETHER // (ROWS * int(length)))
        for start in range(0, len(alike), size):
            part = alike[start : start + size]
            hidden = np.arange(length) > depths[part][..., None]
            mask = torch.zeros(hidden.shape, dtype=dtype)
            mask.masked_fill_(torch.from_numpy(hidden), torch.finfo(dtype).min)
            seen = np.pad(keys[part], ((0, 0), (0, max(0, length - keys.shape[1]))))[:, :length]
            tensors = torch.from_numpy(queries[part]), torch.from_numpy(seen), mask[:, None]
            found.append(Looks(*(tensor.to(device) for tensor in tensors)))
    return found


def _groups(forest: Forest, nodes: Ints, lengths: Ints) -> Iterator[list[int]]:
    """Places of nodes that follow each other on one path and see equally much of it."""
    group: list[int] = []
    for at, node in enumerate(nodes):
        if group and (
            len(group) == ROWS
            or forest.parents[node] != nodes[group[-1]]
            or lengths[at] != lengths[group[-1]]
        ):
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def _paths(forest: Forest, ends: Ints) -> Ints:
    """The nodes from a root down to each end; what is left of a row is the root again."""
    paths = np.empty((len(ends), int(forest.depths[ends].max()) + 1), dtype=np.int64)
    rows, nodes = np.arange(len(ends)), ends
    while len(rows):
        paths[rows, forest.depths[nodes]] = nodes
        nodes = forest.parents[nodes]
        rows, nodes = rows[nodes >= 0], nodes[nodes >= 0]
    behind = np.arange(paths.shape[1]) > forest.depths[ends][:, None]
    return np.where(behind, paths[:, :1], paths)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    looks: list[Looks] | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every layer; keys and values are those of the whole cache."""
    if looks is None:  # an ordinary pass
        ordinary: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return ordinary
    found = torch.empty_like(query)
    for look in looks:
        found[0, :, look.queries] = scaled_dot_product_attention(
            query[0][:, look.queries].transpose(0, 1),
            key[0][:, look.keys].transpose(0, 1),
            value[0][:, look.keys].transpose(0, 1),
            attn_mask=look.mask,
            scale=scaling,
            enable_gqa=len(key[0]) < len(query[0]),
        ).transpose(0, 1)
    return found.transpose(1, 2).contiguous(), None
