"""Whether packed forward passes are right for a network.

Packing tells the network by an attention mask and by position ids what each token may see. Some
architectures heed neither (they count positions themselves, look back only so far, or have no
attention at all) and most of them do not say so. So a small tree goes through the network both
ways before it is used.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.engines.attention import use_attentions
from causerie.engines.passes import Floats, packed, plain
from causerie.engines.trie import Forest, Ints, Trie
from causerie.errors import CauserieError
from causerie.models.sources import first_line

if TYPE_CHECKING:
    from causerie.models import Backbone

_LOOKS_BACK = ("sliding_window", "window_size", "attention_window_size", "attention_chunk_size")
"""What configurations call the distance beyond which some layers see nothing."""
_PATH, _LONGEST_PATH = 9, 512  # tokens, in the tree that is tried


def packable(backbone: Backbone) -> int:
    """The longest path, in tokens, for which packed passes are right; 0 if they never are.

    Raises `CauserieError` if the network cannot score text in any way.
    """
    model, window = backbone.model, backbone.window
    longest = min([window, *_distances(model.config.get_text_config())])
    # Where layers look back only so far, the tree must be larger than that though its paths are
    # not: some count the distance by position (which is right), some by place in the pass.
    near = longest < min(window, _LONGEST_PATH)
    length = max(3, longest if near else min(window, _PATH))
    third = length // 3
    trunk, branch = length - third, third + 1  # the last token of a branch is only predicted
    draw = random.Random(0)
    vocabulary = model.get_input_embeddings().weight.shape[0]
    tokens = [draw.randrange(vocabulary) for _ in range(trunk + 2 * branch)]

    trie = Trie()
    last = trie.insert(Trie.ROOT, tokens[:trunk])[-1]
    alone = _question(trie)
    trie.insert(last, tokens[trunk : trunk + branch])
    trie.insert(last, tokens[trunk + branch :])
    tree = _question(trie)

    tolerance = 1e-3 if model.dtype == torch.float32 else 0.1
    try:
        expected = plain(model, *tree)
    except Exception as error:  # anything at all: it is the network's own code
        raise _unusable(backbone, f"cannot score plain text ({first_line(error)})") from error
    if not np.isfinite(expected).all():
        raise _unusable(backbone, f"gives numbers that are not finite in {model.dtype}")
    for _ in use_attentions(model):
        try:
            # Two passes: the trunk, then both branches with the trunk in the cache.
            found = packed(model, *tree, budget=trunk)
        except Exception:  # likewise
            continue
        if _distance(found, expected) <= tolerance:
            return longest
    found = plain(model, *alone)
    if _distance(found, expected[: len(found)]) > tolerance:
        raise _unusable(backbone, "does not predict a token from those before it alone")
    return 0


def _distances(config: Any) -> list[int]:
    values = [getattr(config, name, None) for name in _LOOKS_BACK]
    return [value for value in values if isinstance(value, int) and value > 0]


def _question(trie: Trie) -> tuple[Forest, Ints, Ints]:
    """The question that asks for every token but the first."""
    targets = np.arange(1, len(trie.tokens))
    forest, before = trie.above(targets)
    return forest, before, np.array(trie.tokens, dtype=np.int64)[targets]


def _distance(found: Floats, expected: Floats) -> float:
    """Relative to how much the numbers vary; infinite where there are none."""
    distance = float(np.abs(found - expected).mean() / expected.std())
    return distance if np.isfinite(distance) else np.inf


def _unusable(backbone: Backbone, why: str) -> CauserieError:
    return CauserieError(f"{backbone.name} {why}: choose another language model with --lm")
