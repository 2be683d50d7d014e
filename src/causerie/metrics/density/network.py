"""What stands on the encoder, and the losses that train it.

Candidates are (contexts, candidates), the true response first in each row; `same` marks those
that are neither true nor false, such as one that has the true one's text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

SHARPNESS = 5.0
"""Of the cosines among the features, and of all their weights together before training."""
RECENCY = 0.75
"""How much less than the next turn each turn of the context counts before training."""
TEMPERATURE = 0.05
"""Of the cosine as a classifier."""
VIEWS, VIEW_WIDTH = 8, 32
"""Learned views of a vector, and the dimensions of each."""
REPETITION = 8
"""Power of a cosine that leaves only what is almost the same text."""
AGAINST_REPETITION = 2.0
"""How much more a repetition costs before training than its cosines are worth."""
_NEVER = float("-inf")

Cosines: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Cosines of unit vectors of turns with those of responses, one for each turn."""


class Head(nn.Module):
    """Its last layer is the classifier f(c, r) = W g(c, r); `cross` needs no more."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(width, 1)

    def logits(self, features: Tensor) -> Tensor:
        """f(c, r)."""
        scores: Tensor = self.classifier(features).squeeze(-1)
        return scores


class PairHead(Head):
    """Compares the vectors of a context's turns, the newest first, with a response's.

    Where a context has fewer turns than `history`, their vectors are 0.
    """

    def features(self, turns: Tensor, responses: Tensor) -> Tensor:
        """g(c, r) of each context (n, history, dimension) with its response (n, dimension)."""
        turns, responses = functional.normalize(turns, dim=-1), functional.normalize(responses)
        return self.compare(turns, responses, lambda a, b: (a * b[:, None]).sum(-1))

    def table(self, turns: Tensor, responses: Tensor) -> Tensor:
        """The same of every context with every response: (contexts, responses, width)."""
        turns, responses = functional.normalize(turns, dim=-1), functional.normalize(responses)
        return self.compare(
            turns[:, None], responses, lambda a, b: (a.squeeze(1) @ b.T).transpose(1, 2)
        )

    @abstractmethod
    def compare(self, turns: Tensor, responses: Tensor, cosines: Cosines) -> Tensor:
        """Features of unit vectors that broadcast."""


class CosineHead(PairHead):
    """The cosine of the response with a weighted sum of the turns: two towers and no more."""

    def __init__(self, dimension: int, width: int, history: int) -> None:
        super().__init__(dimension)
        self.recency = nn.Parameter(RECENCY ** torch.arange(history))
        self.classifier.requires_grad_(False)
        with torch.no_grad():
            self.classifier.weight.fill_(1 / TEMPERATURE)
            self.classifier.bias.zero_()

    def compare(self, turns: Tensor, responses: Tensor, cosines: Cosines) -> Tensor:
        context = (self.recency[:, None] * turns).sum(-2)
        return functional.normalize(context, dim=-1) * responses


class TowersHead(PairHead):
    """A small network compares; beside what it finds, the features hold the cosines.

    So before training the classifier already is nearly the encoder's similarity.
    """

    def __init__(self, dimension: int, width: int, history: int) -> None:
        super().__init__(width)
        self.context = nn.Linear(history * dimension, width)
        self.last = nn.Linear(dimension, width)
        self.response = nn.Linear(dimension, width)
        self.alone = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(3))
        self.together = nn.Linear(4 * width, 2 * width)
        self.out = nn.Linear(2 * width, width - history)
        weights = RECENCY ** torch.arange(history)
        with torch.no_grad():
            self.classifier.weight[0, -history:] = SHARPNESS * weights / weights.sum()

    def compare(self, turns: Tensor, responses: Tensor, cosines: Cosines) -> Tensor:
        scale = responses.shape[-1] ** 0.5
        context = self.context(scale * turns.flatten(-2))
        last = self.last(scale * turns[..., 0, :])
        response = self.response(scale * responses)
        both = torch.cat(
            [
                context * response,
                last * response,
                (context - response).abs(),
                (last - response).abs(),
            ],
            dim=-1,
        )
        hidden = self.together(both)
        # Once per side and not once per pair: most of the work is what depends on both.
        for layer, side in zip(self.alone, (context, last, response), strict=True):
            hidden = hidden + layer(side)
        return torch.cat(
            [self.out(functional.gelu(hidden)), SHARPNESS * cosines(turns, responses)], dim=-1
        )


class ViewsHead(PairHead):
    """Sees nothing but cosines: of the vectors, and of learned views of them.

    A view is a projection into a small space, one for what is answered and one for the answer, so
    what goes together need not be alike. The nearest to a repetition of any turn is told apart:
    of the cosines' ends one is off the topic, and the other an echo. Before training the
    classifier is the encoder's similarity, less what is repeated.
    """

    def __init__(self, dimension: int, width: int, history: int) -> None:
        super().__init__(width)
        self.turn = nn.Linear(dimension, VIEWS * VIEW_WIDTH, bias=False)
        self.response = nn.Linear(dimension, VIEWS * VIEW_WIDTH, bias=False)
        seen = history * (1 + VIEWS) + 1
        self.hidden = nn.Linear(seen, 8 * width)
        self.out = nn.Linear(8 * width, width)
        self.direct = nn.Linear(seen, width, bias=False)
        recency = RECENCY ** torch.arange(history)
        with torch.no_grad():
            self.direct.weight *= 0.1
            self.direct.weight[0] = 0
            self.direct.weight[0, :history] = SHARPNESS * recency / recency.sum()
            self.direct.weight[0, -1] = -AGAINST_REPETITION * SHARPNESS
            self.classifier.weight *= 0.1
            self.classifier.weight[0, 0] = SHARPNESS

    def compare(self, turns: Tensor, responses: Tensor, cosines: Cosines) -> Tensor:
        alike = cosines(turns, responses)
        views = zip(_views(self.turn(turns)), _views(self.response(responses)), strict=True)
        repeated = alike.clamp_min(0).amax(-1, keepdim=True) ** REPETITION
        seen = torch.cat([alike, *(cosines(a, b) for a, b in views), repeated], dim=-1)
        hidden = functional.gelu(self.hidden(SHARPNESS * seen))
        features: Tensor = self.out(hidden) + self.direct(seen)
        return features


def _views(projected: Tensor) -> tuple[Tensor, ...]:
    """Unit vectors in each of the small spaces."""
    parts = projected.view(*projected.shape[:-1], VIEWS, VIEW_WIDTH)
    return functional.normalize(parts, dim=-1).unbind(-2)


def selection_loss(logits: Tensor, same: Tensor) -> Tensor:
    """Eq. 1: cross-entropy of the true response among the candidates."""
    return -_fine(logits).masked_fill(same, _NEVER).log_softmax(dim=1)[:, 0].mean()


def contrastive_loss(features: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Eq. 4 as a mean over the true pairs: they are one class, every negative is its own."""
    z = functional.normalize(features, dim=-1)
    count, candidates = z.shape[:2]
    if count < 2:
        return features.sum() * 0  # a single true pair has nothing to be alike
    similarity = _fine(z[:, 0] @ z.flatten(0, 1).T) / temperature
    true = torch.arange(count, device=z.device) * candidates
    left_out = same.flatten().expand_as(similarity).clone()
    left_out[torch.arange(count, device=z.device), true] = True  # not compared with itself
    similarity = similarity.masked_fill(left_out, _NEVER)
    log_share = (similarity - similarity.logsumexp(dim=1, keepdim=True))[:, true]
    others = ~torch.eye(count, dtype=torch.bool, device=z.device)
    return -log_share[others].mean()


def _fine(values: Tensor) -> Tensor:
    """What was computed in bfloat16 is too coarse for a softmax."""
    return values.float() if values.dtype == torch.bfloat16 else values
