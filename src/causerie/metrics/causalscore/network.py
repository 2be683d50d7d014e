"""What stands on the encoder: a classifier of tuples of texts."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor, nn
from torch.nn import functional

SHARPNESS = 5.0
"""Of the cosines: how much they weigh before training."""


class CrossHead(nn.Module):
    """The texts were read together: one vector, one logit."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(dimension, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        logits: Tensor = self.classifier(vectors).squeeze(-1)
        return logits


class TowersHead(nn.Module):
    """The texts were read each by itself: a small network compares their vectors.

    It sees each vector, the products and differences of every two, and their cosines; before
    training the logit is mostly the cosine of the first text and the last, an utterance and a
    response.
    """

    def __init__(self, texts: int, dimension: int, width: int, dropout: float) -> None:
        super().__init__()
        self.pairs = list(combinations(range(texts), 2))
        self.narrow = nn.Linear(dimension, width)
        self.hidden = nn.Linear((texts + 2 * len(self.pairs)) * width, 2 * width)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * width + len(self.pairs), 1)
        with torch.no_grad():
            self.classifier.weight[0, 2 * width :] = 0
            self.classifier.weight[0, 2 * width + self.pairs.index((0, texts - 1))] = SHARPNESS

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits of (tuples, texts, dimension)."""
        units = functional.normalize(vectors, dim=-1)
        narrow = self.narrow(vectors.shape[-1] ** 0.5 * units).unbind(dim=1)
        seen = [*narrow]
        for i, j in self.pairs:
            seen += [narrow[i] * narrow[j], (narrow[i] - narrow[j]).abs()]
        hidden = self.dropout(functional.gelu(self.hidden(self.dropout(torch.cat(seen, dim=-1)))))
        cosines = [(units[:, i] * units[:, j]).sum(-1, keepdim=True) for i, j in self.pairs]
        logits: Tensor = self.classifier(torch.cat([hidden, *cosines], dim=-1)).squeeze(-1)
        return logits


class GivenHead(nn.Module):
    """C_cond of two towers: what C_uncond says, and how the given utterance changes it.

    It sees what C_uncond, which stays as it is, says of the utterance and of the given one with
    the response, and of each with the other: whether one answers the other tells which came
    first. Before training the logit is all but C_uncond's for the utterance and the response.
    """

    ASKED = ((0, 2), (1, 2), (0, 1), (1, 0))

    def __init__(
        self, unconditional: TowersHead, dimension: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self._unconditional = (unconditional,)  # in a tuple: no part of this network's weights
        self.change = TowersHead(3, dimension, width, dropout)
        self.weigh = nn.Linear(len(self.ASKED), 1)
        with torch.no_grad():
            self.change.classifier.weight.mul_(0.1)
            self.change.classifier.bias.zero_()
            self.weigh.weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
            self.weigh.bias.zero_()

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits of (tuples, texts, dimension): the utterance, the given one, the response."""
        (unconditional,) = self._unconditional
        unconditional.eval()
        with torch.no_grad():
            said = torch.stack([unconditional(vectors[:, pair]) for pair in self.ASKED], dim=-1)
        logits: Tensor = self.change(vectors) + self.weigh(said).squeeze(-1)
        return logits
