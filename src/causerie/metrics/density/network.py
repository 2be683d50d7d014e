"""Feature extractors g(c, r): the paper's cross-encoder, and one that encodes each turn once."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class CrossHead(nn.Module):
    """The paper's: features are the encoder's output for "context [SEP] response" itself."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(dimension, 1)

    def logits(self, features: Tensor) -> Tensor:
        """f(c, r)."""
        scores: Tensor = self.classifier(features).squeeze(-1)
        return scores


class TowersHead(nn.Module):
    """Features from turn vectors: a small transformer reads the context's, a network compares.

    Each turn is encoded once, whether it is a response, part of a context, or a negative, so
    that a training step has hundreds of negatives and scoring costs one turn per response.
    """

    def __init__(self, dimension: int, history: int, width: int = 128) -> None:
        super().__init__()
        self.history = history
        self.position = nn.Parameter(torch.zeros(history, dimension))
        self.reader = nn.TransformerEncoderLayer(
            dimension, 6, 2 * dimension, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.narrow = nn.ModuleDict(
            {name: nn.Linear(dimension, width) for name in ("context", "last", "response")}
        )
        self.compare = nn.Sequential(
            nn.Linear(7 * width + 2, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.classifier = nn.Linear(width, 1)

    def context(self, turns: Tensor, known: Tensor) -> Tensor:
        """(contexts, history, dimension), the latest turn last, to one vector per context.

        `known` marks the places that hold a turn.
        """
        read = self.reader(turns + self.position, src_key_padding_mask=~known)
        context: Tensor = turns[:, -1] + read[:, -1]
        return context

    def features(self, context: Tensor, last: Tensor, response: Tensor) -> Tensor:
        """g(c, r) for vectors that broadcast against each other, of context, last turn, response."""
        scale = context.shape[-1] ** 0.5
        context, last, response = (
            functional.normalize(v, dim=-1) for v in (context, last, response)
        )
        c = self.narrow["context"](scale * context)
        t = self.narrow["last"](scale * last)
        r = self.narrow["response"](scale * response)
        shape = torch.broadcast_shapes(c.shape, r.shape)
        parts = [c, t, r, c * r, t * r, (c - r).abs(), (t - r).abs()]
        cosines = [10 * (context * response).sum(-1, keepdim=True)]
        cosines += [10 * (last * response).sum(-1, keepdim=True)]
        joined = [p.expand(*shape[:-1], p.shape[-1]) for p in parts + cosines]
        compared: Tensor = self.compare(torch.cat(joined, dim=-1))
        return compared

    def logits(self, features: Tensor) -> Tensor:
        """f(c, r)."""
        scores: Tensor = self.classifier(features).squeeze(-1)
        return scores
