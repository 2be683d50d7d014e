"""From a forest of tokens to log-probabilities: packed forward passes, or one per sequence."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache

from causerie.engines import attention
from causerie.engines.packing import plan
from causerie.engines.shapes import filled_up
from causerie.engines.trie import Forest, Ints

Floats = npt.NDArray[np.float64]

_ROWS = 64  # of logits normalised at a time


@torch.inference_mode()
def packed(model: Any, forest: Forest, before: Ints, targets: Ints, budget: int) -> Floats:
    """The log-probability of each target token after a place in the forest.

    Every token goes through the network once, at most `budget` of them at a time. The network
    must heed position ids and the attention mask (see `causerie.engines.selfcheck`).

    With attention by paths (see `causerie.engines.attention`) a number depends on nothing but the
    tokens above: passes and rows of logits are filled up, so that they are never too few for the
    routine that multiplies large matrices.
    """
    by_paths = model.config._attn_implementation == attention.NAME
    ends = torch.from_numpy(forest.ends).to(model.device)
    answers = _Answers(len(forest), before, targets)
    cache, cached = DynamicCache(), np.empty(0, dtype=np.int64)
    for step in plan(forest, budget):
        if step.past == 0:
            cache = DynamicCache()
        elif step.past < len(cached):
            cache.crop(step.past - len(cached))
        nodes = filled_up(step.nodes) if by_paths else step.nodes
        cached = np.concatenate([cached[: step.past], nodes])
        rows = np.flatnonzero(answers.open[step.nodes])
        kept, options = rows, {}
        if by_paths:
            kept = filled_up(rows)
            options["looks"] = attention.looks(forest, cached, nodes, model.dtype, model.device)
        logits = model(
            input_ids=torch.from_numpy(forest.tokens[nodes])[None].to(model.device),
            position_ids=torch.from_numpy(forest.depths[nodes])[None].to(model.device),
            attention_mask=_mask(ends, cached, nodes, model.dtype),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=torch.from_numpy(kept).to(model.device),
            **options,
        ).logits[0]
        answers.take(step.nodes[rows], logits)
    return answers.log_probs


@torch.inference_mode()
def plain(model: Any, forest: Forest, before: Ints, targets: Ints) -> Floats:
    """The same, one sequence per forward pass and nothing given but its tokens.

    Right for every network that predicts a token from those before it.
    """
    known = inspect.signature(model.forward).parameters
    answers = _Answers(len(forest), before, targets)
    for path in sequences(forest):
        rows = np.flatnonzero(answers.open[path])
        kept = torch.from_numpy(rows).to(model.device)
        options = {"use_cache": False, "logits_to_keep": kept}
        logits = model(
            input_ids=torch.from_numpy(forest.tokens[path])[None].to(model.device),
            **{name: value for name, value in options.items() if name in known},
        ).logits[0]
        answers.take(path[rows], logits if len(logits) == len(rows) else logits[kept])
    return answers.log_probs


def sequences(forest: Forest) -> Iterator[Ints]:
    """The places from a root down to every leaf."""
    path = np.empty(int(forest.depths.max(initial=-1)) + 1, dtype=np.int64)
    for place, (depth, end) in enumerate(zip(forest.depths, forest.ends, strict=True)):
        path[depth] = place
        if end == place + 1:
            yield path[: depth + 1].copy()


class _Answers:
    """Log-probabilities as they come in, each place of the forest once."""

    def __init__(self, places: int, before: Ints, targets: Ints) -> None:
        self.open = np.zeros(places, dtype=bool)
        """The places after which a token is still to be predicted."""
        self.open[before] = True
        self.log_probs = np.zeros(len(targets))
        self._before, self._targets = before, targets
        self._row_of = np.full(places, -1, dtype=np.int64)

    def take(self, places: Ints, logits: torch.Tensor) -> None:
        """A row of logits for each of these places."""
        self._row_of[places] = np.arange(len(places))
        rows = self._row_of[self._before]
        here = np.flatnonzero(rows >= 0)
        self.log_probs[here] = _gather(logits, rows[here], self._targets[here])
        self._row_of[places] = -1
        self.open[places] = False


def _mask(ends: torch.Tensor, keys: Ints, queries: Ints, dtype: torch.dtype) -> torch.Tensor:
    """What to add to the attention scores so that each token sees itself and its ancestors."""
    key = torch.from_numpy(keys).to(ends.device)
    query = torch.from_numpy(queries).to(ends.device)[:, None]
    hidden = (query < key) | (query >= ends[key])
    mask = torch.zeros(hidden.shape, dtype=dtype, device=ends.device)
    return mask.masked_fill_(hidden, torch.finfo(dtype).min)[None, None]


def _gather(logits: torch.Tensor, rows: Ints, tokens: Ints) -> Floats:
    """The log-probabilities of tokens, each in a row of logits."""
    norms = torch.cat([part.float().logsumexp(-1) for part in torch.split(logits, _ROWS)])
    row = torch.from_numpy(rows).to(logits.device)
    token = torch.from_numpy(tokens).to(logits.device)
    values: Floats = (logits[row, token].float() - norms[row]).double().cpu().numpy()
    return values
