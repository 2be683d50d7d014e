"""What stands on the encoder: a classifier, and for `towers` the network that compares."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

SHARPNESS = 5.0
"""Of the cosines among the features, and of their weight before training."""


class Head(nn.Module):
    """Its last layer is the classifier f(c, r) = W g(c, r); `cross` needs no more."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(width, 1)

    def logits(self, features: Tensor) -> Tensor:
        """f(c, r)."""
        scores: Tensor = self.classifier(features).squeeze(-1)
        return scores


class TowersHead(Head):
    """Features from three vectors: of the context, of its last turn, of the response.

    A small network compares them; beside what it finds, the features hold the two cosines with
    the response, so that before training the classifier already is the encoder's similarity.
    """

    def __init__(self, dimension: int, width: int) -> None:
        super().__init__(width)
        self.narrow = nn.ModuleDict(
            {name: nn.Linear(dimension, width) for name in ("context", "last", "response")}
        )
        self.alone = nn.ModuleDict(
            {name: nn.Linear(width, 2 * width, bias=False) for name in self.narrow}
        )
        self.together = nn.Linear(4 * width, 2 * width)
        self.out = nn.Linear(2 * width, width - 2)
        with torch.no_grad():
            self.classifier.weight[0, -2:] = SHARPNESS / 2

    def features(self, context: Tensor, last: Tensor, response: Tensor) -> Tensor:
        """g(c, r) of vectors that broadcast: contexts, their last turns, responses."""
        vectors = {"context": context, "last": last, "response": response}
        units = {name: functional.normalize(v, dim=-1) for name, v in vectors.items()}
        scale = context.shape[-1] ** 0.5
        narrow = {name: self.narrow[name](scale * unit) for name, unit in units.items()}
        c, t, r = narrow.values()
        # The large layer sees only what depends on both sides: most of the work is there.
        hidden = self.together(torch.cat([c * r, t * r, (c - r).abs(), (t - r).abs()], dim=-1))
        for name, vector in narrow.items():
            hidden = hidden + self.alone[name](vector)
        cosines = [
            SHARPNESS * (units[name] * units["response"]).sum(-1, keepdim=True)
            for name in ("context", "last")
        ]
        return torch.cat([self.out(functional.gelu(hidden)), *cosines], dim=-1)
