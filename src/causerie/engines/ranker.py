"""Rankers: how likely a response is to be replied to, by networks such as DialogRPT.

A ranker reads the turns before a response and the response, with end-of-text between turns, and
has one output, whose sigmoid is its score. What exceeds its window is cut by whole turns, the
oldest first; a response that alone exceeds it keeps its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.engines.cache import count_cuts
from causerie.engines.shapes import batches, padded_length, rows_to_add
from causerie.engines.turnformat import turn_format
from causerie.models import load_backbone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.settings import Settings
    from causerie.models import Backbone, Store

BUDGET = 2048
"""Padded tokens of a batch."""


class Ranker:
    """One number from 0 to 1 for every exchange."""

    def __init__(self, backbone: Backbone, budget: int = BUDGET) -> None:
        """`budget` is the number of padded tokens in a batch; it does not change results."""
        self._model: Any = backbone.model
        self._window, self._budget = backbone.window, budget
        self._padding = int(backbone.tokenizer.pad_token_id)
        self._model.config.pad_token_id = self._padding  # it looks for the last other token
        self._format = turn_format(backbone.tokenizer, "eos", backbone.window)

    @classmethod
    def load(cls, store: Store, settings: Settings, name: str) -> Ranker:
        return cls(
            load_backbone(
                store,
                name,
                "ranker",
                dtype=settings.torch_dtype(),
                device=settings.torch_device(),
            )
        )

    def score(self, exchanges: Sequence[Exchange]) -> NDArray[np.float32]:
        """Return one score per exchange, in input order."""
        rows = [self._row(exchange) for exchange in exchanges]
        scores = np.empty(len(rows), dtype=np.float32)
        for batch in batches([len(row) for row in rows], self._budget):
            scores[batch] = self._infer([rows[i] for i in batch])
        return scores

    def _row(self, exchange: Exchange) -> tuple[int, ...]:
        whole = self._format.segment("system", exchange.response.text).tokens[:-1]
        row = whole[: self._window]
        cut = len(row) < len(whole)
        for turn in reversed(exchange.context):
            before = self._format.segment("user", turn.text).tokens
            if len(before) + len(row) > self._window:
                cut = True
                break
            row = before + row
        count_cuts("ranker", int(cut), 1)
        return row

    def _infer(self, rows: Sequence[tuple[int, ...]]) -> NDArray[np.float32]:
        length = min(padded_length(max(map(len, rows))), self._window)
        shape = len(rows) + rows_to_add(len(rows), length), length
        ids = torch.full(shape, self._padding)
        mask = torch.zeros(shape, dtype=torch.long)
        mask[len(rows) :, 0] = 1
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        device = self._model.device
        with torch.inference_mode():
            logits = self._model(ids.to(device), attention_mask=mask.to(device)).logits
        scores: NDArray[np.float32] = torch.sigmoid(logits[:, 0].float()).cpu().numpy()
        return scores[: len(rows)]
