"""How a language model reads a reply: token by token, with and without the turns before it.

Where the likelihood engine answers with sums, this answers with what every token was worth:
its log-probability, the entropy of what might have stood there, and what the network's layers
made of the reply. Every reply goes through the network by itself, filled up to a length that
every number of threads shares out alike (see `causerie.engines.shapes`), so its numbers depend
on nothing but its own text and context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.engines.cache import count_cuts
from causerie.engines.dialoguetree import DialogueTree
from causerie.engines.shapes import filled_up
from causerie.engines.window import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.likelihood import Likelihood

    Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a language model found in a reply; all arrays are empty if it saw none of it."""

    log_probs: Floats
    """Of every token of the reply."""
    entropies: Floats
    """Of the distributions that these tokens were drawn from, in nats."""
    layers: Floats
    """(layers, dimension): the mean over the reply's tokens of what each asked layer says."""


def read_replies(
    engine: Likelihood, exchanges: Sequence[Exchange], turns: int, layers: Sequence[int] = ()
) -> list[Reading]:
    """Read each response after the last `turns` turns of its context; 0 reads it by itself.

    `layers` are counted from 1, the first above the embeddings.
    """
    known: dict[tuple[tuple[int, ...], int, int], Reading] = {}
    readings, cut = [], 0
    for exchange in exchanges:
        tokens, start, stop, was_cut = _sequence(engine, exchange, turns)
        cut += was_cut
        key = tokens, start, stop
        if key not in known:
            known[key] = _read(engine, *key, layers)
        readings.append(known[key])
    count_cuts("language model", cut, len(readings))
    return readings


def _sequence(
    engine: Likelihood, exchange: Exchange, turns: int
) -> tuple[tuple[int, ...], int, int, bool]:
    """Tokens that the network sees, and which of them are the reply's."""
    tree = DialogueTree(engine.format)
    if turns:
        node = tree.response(exchange.recent(turns))
    else:
        node = tree.say(tree.ROOT, exchange.role_of(exchange.response), exchange.response.text)
    visible = fit(tree, [node], engine.backbone.window)
    shown = visible.nodes[node]
    segments = [visible.tree.segment(one) for one in visible.tree.path(shown)]
    before = len(tree.prefix) + sum(len(one.tokens) for one in segments[:-1])
    tokens = (*tree.prefix, *(token for one in segments for token in one.tokens))
    start = max(1, before + segments[-1].start)  # nothing predicts the first token
    return tokens, start, before + segments[-1].stop, node in visible.cut


@torch.inference_mode()
def _read(
    engine: Likelihood, tokens: tuple[int, ...], start: int, stop: int, layers: Sequence[int]
) -> Reading:
    model: Any = engine.backbone.model
    if start >= stop:
        nothing = np.zeros(0, dtype=np.float32)
        width = int(model.config.hidden_size)
        return Reading(nothing, nothing, np.zeros((len(layers), width), dtype=np.float32))
    # What comes after a token changes nothing of it.
    shown = filled_up(np.array(tokens[:stop], dtype=np.int64))[: engine.backbone.window]
    ids = torch.from_numpy(shown)[None].to(model.device)
    rows = torch.from_numpy(filled_up(np.arange(start - 1, stop - 1))).to(model.device)
    found = model(
        input_ids=ids, use_cache=False, logits_to_keep=rows, output_hidden_states=bool(layers)
    )
    spread = found.logits[0, : stop - start].float().log_softmax(-1)
    log_probs = spread.gather(1, ids[0, start:stop, None])[:, 0]
    entropies = -(spread.exp() * spread).sum(-1)
    states = [found.hidden_states[layer][0, start:stop].float().mean(0) for layer in layers]
    width = int(model.config.hidden_size)
    stacked = torch.stack(states) if states else torch.zeros(0, width)
    return Reading(log_probs.cpu().numpy(), entropies.cpu().numpy(), stacked.cpu().numpy())
