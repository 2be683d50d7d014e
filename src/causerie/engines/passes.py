"""From a forest of tokens to their log-probabilities: packed forward passes where they are right.

Packing tells the network by an attention mask and by position ids what each token may see. Some
architectures heed neither (they count positions themselves, look back only so far, or have no
attention at all), and rarely say so. So before a network is used, a small tree goes through it
packed and plainly, and where the numbers differ, every path has a plain pass of its own.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache

from causerie.engines.packing import plan
from causerie.engines.trie import Forest, Ints, Trie
from causerie.errors import CauserieError
from causerie.models.sources import first_line

if TYPE_CHECKING:
    from causerie.models import Backbone

Floats = npt.NDArray[np.float64]

_ROWS = 64  # of logits normalised at a time
_LOOKS_BACK = ("sliding_window", "window_size", "attention_window_size", "attention_chunk_size")
"""What configurations call the distance beyond which some layers see nothing."""
_CHECKED_PATH = 18  # tokens; also what a window must have at least to be checked to its end
_LONGEST_CHECKED = 512


class Passes:
    """One network's forward passes, checked before the first."""

    def __init__(self, backbone: Backbone) -> None:
        self.tokens_computed = 0
        self._name = backbone.name
        self._model: Any = backbone.model
        self._packed_depth = self._check(backbone.window)
        """Tokens of the longest path that may be packed."""
        self._told = False
        if self._packed_depth == 0:
            self._tell()

    @torch.inference_mode()
    def log_probs(self, forest: Forest, before: Ints, targets: Ints, budget: int) -> Floats:
        """The log-probability of each target token after a place in the forest.

        At most `budget` tokens go through the network at once, where they are packed.
        """
        if len(forest) == 0:
            return np.zeros(0)
        if int(forest.depths.max()) < self._packed_depth:
            return self._packed(forest, before, targets, budget)
        self._tell()
        return self._plain(forest, before, targets)

    def _packed(self, forest: Forest, before: Ints, targets: Ints, budget: int) -> Floats:
        """Every token once."""
        device, dtype = self._model.device, self._model.dtype
        ends = torch.from_numpy(forest.ends).to(device)
        answers = _Answers(len(forest), before, targets)
        cache, cached = DynamicCache(), np.empty(0, dtype=np.int64)
        for step in plan(forest, budget):
            if step.past == 0:
                cache = DynamicCache()
            elif step.past < len(cached):
                cache.crop(step.past - len(cached))
            cached = np.concatenate([cached[: step.past], step.nodes])
            rows = np.flatnonzero(answers.asked[step.nodes])
            logits = self._model(
                input_ids=torch.from_numpy(forest.tokens[step.nodes])[None].to(device),
                position_ids=torch.from_numpy(forest.depths[step.nodes])[None].to(device),
                attention_mask=_mask(ends, cached, step.nodes, dtype),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=torch.from_numpy(rows).to(device),
            ).logits[0]
            self.tokens_computed += len(step.nodes)
            answers.take(step.nodes[rows], logits)
        return answers.log_probs

    def _plain(self, forest: Forest, before: Ints, targets: Ints) -> Floats:
        """One sequence per forward pass, and nothing but its tokens given: right for any network
        that predicts each token from those before it."""
        known = inspect.signature(self._model.forward).parameters
        answers = _Answers(len(forest), before, targets)
        for path in _paths(forest):
            rows = np.flatnonzero(answers.asked[path])
            kept = torch.from_numpy(rows).to(self._model.device)
            wanted = {"use_cache": False, "logits_to_keep": kept}
            logits = self._model(
                input_ids=torch.from_numpy(forest.tokens[path])[None].to(self._model.device),
                **{name: value for name, value in wanted.items() if name in known},
            ).logits[0]
            if len(logits) != len(rows):
                logits = logits[kept]
            self.tokens_computed += len(path)
            answers.take(path[rows], logits)
            answers.asked[path] = False  # what paths share is answered once
        return answers.log_probs

    @torch.inference_mode()
    def _check(self, window: int) -> int:
        """How many tokens the longest path may have that is packed; 0: pack nothing."""
        config = self._model.config.get_text_config()
        distances = [getattr(config, name, None) for name in _LOOKS_BACK]
        longest = min([window, *(d for d in distances if isinstance(d, int) and d > 0)])
        # Where layers look back only so far, the tree as a whole is larger than that: they must
        # count by position, not by place in the pack.
        length = longest if longest < min(window, _LONGEST_CHECKED) else _CHECKED_PATH
        forest, before, targets = self._tree(min(length, window))
        tolerance = 1e-3 if self._model.dtype == torch.float32 else 0.03
        budget = max(2, len(forest) // 2)
        try:
            plain = self._plain(forest, before, targets)
        except Exception as error:  # of whatever kind: it is the model's own code
            raise self._unusable(f"does not take plain text ({first_line(error)})") from error
        if not np.isfinite(plain).all():
            raise self._unusable(f"gives no finite numbers in {self._model.dtype}")
        try:
            packed = self._packed(forest, before, targets, budget)
        except Exception:  # likewise
            packed = np.full_like(plain, np.nan)
        self.tokens_computed = 0
        if _differ(packed, plain) < tolerance:
            return longest
        # A first part by itself must be what it is in the whole.
        forest, before, targets = _path(forest.tokens[: len(plain) // 3])
        part = self._plain(forest, before, targets)
        self.tokens_computed = 0
        if not _differ(part, plain[: len(part)]) < tolerance:
            raise self._unusable("does not predict each token from those before it alone")
        return 0
