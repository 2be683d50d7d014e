"""The heads on top of the encoder, and their losses.

Candidates are (contexts, candidates), the true response first in each row; `same` marks those
that are neither true nor false, such as a copy of the true response.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

SHARPNESS = 5.0
"""Scale of the cosines among the features, and initial sum of their weights."""
RECENCY = 0.75
"""Initial weight of each context turn relative to the next one."""
TEMPERATURE = 0.05
"""Temperature of the cosine as a classifier."""
VIEWS, VIEW_WIDTH = 8, 32
"""Number of learned views of a vector, and dimension of each."""
REPETITION = 8
"""Exponent of a cosine that leaves only near-copies above zero."""
AGAINST_REPETITION = 2.0
"""Initial penalty of a repetition, relative to the weight of its cosine."""
_NEVER = float("-inf")

Cosines: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Computes the cosines of unit vectors of turns with those of responses, one per turn."""


class Head(nn.Module):
    """A head with the classifier f(c, r) = W g(c, r), which is all that `cross` needs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(width, 1)

    def logits(self, features: Tensor) -> Tensor:
        """Return f(c, r)."""
        scores: Tensor = self.classifier(features).squeeze(-1)
        return scores


class PairHead(Head):
    """Compares the vectors of a context's turns, newest first, with that of a response.

    The vectors of turns that a short context lacks are 0.
    """

    def features(self, turns: Tensor, responses: Tensor) -> Tensor:
        """Return g(c, r) of contexts (n, history, dimension) and their responses (n, dimension)."""
        turns, responses = functional.normalize(turns, dim=-1), functional.normalize(responses)
        return self.compare(turns, responses, lambda a, b: (a * b[:, None]).sum(-1))

    def table(self, turns: Tensor, responses: Tensor) -> Tensor:
        """Return the same for every context with every response: (contexts, responses, width)."""
        turns, responses = functional.normalize(turns, dim=-1), functional.normalize(responses)
        return self.compare(
            turns[:, None], responses, lambda a, b: (a.squeeze(1) @ b.T).transpose(1, 2)
        )

    @abstractmethod
    def compare(self, turns: Tensor, responses: Tensor, cosines: Cosines) -> Tensor:
        """Return features of unit vectors that broadcast."""


class CosineHead(PairHead):
    """The cosine of the response with a weighted sum of the turns, as a baseline."""

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
    """A small network whose features include the cosines.

    Before training, the classifier therefore nearly equals the encoder's similarity.
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
        # Computed once per side, not once per pair: only the rest depends on both.
        for layer, side in zip(self.alone, (context, last, response), strict=True):
            hidden = hidden + layer(side)
        return torch.cat(
            [self.out(functional.gelu(hidden)), SHARPNESS * cosines(turns, responses)], dim=-1
        )


class ViewsHead(PairHead):
    """Sees only cosines: of the vectors, and of learned views of them.

    A view projects turns and responses differently into a small space, so that matching texts
    need not be similar. The cosine with the most similar turn is also an input of its own, because
    a very low cosine means off topic and a very high one an echo. Before training, the classifier
    is the encoder's similarity minus a penalty for repetition.
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
    """Return unit vectors in each of the small spaces."""
    parts = projected.view(*projected.shape[:-1], VIEWS, VIEW_WIDTH)
    return functional.normalize(parts, dim=-1).unbind(-2)


def selection_loss(logits: Tensor, same: Tensor) -> Tensor:
    """Return eq. 1: the cross-entropy of the true response among the candidates."""
    return -_fine(logits).masked_fill(same, _NEVER).log_softmax(dim=1)[:, 0].mean()


def contrastive_loss(features: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Return eq. 4, averaged over true pairs: they are one class, each negative its own."""
    z = functional.normalize(features, dim=-1)
    count, candidates = z.shape[:2]
    if count < 2:
        return features.sum() * 0  # a single true pair has no other of its class
    similarity = _fine(z[:, 0] @ z.flatten(0, 1).T) / temperature
    true = torch.arange(count, device=z.device) * candidates
    left_out = same.flatten().expand_as(similarity).clone()
    left_out[torch.arange(count, device=z.device), true] = True  # not compared with itself
    similarity = similarity.masked_fill(left_out, _NEVER)
    log_share = (similarity - similarity.logsumexp(dim=1, keepdim=True))[:, true]
    others = ~torch.eye(count, dtype=torch.bool, device=z.device)
    return -log_share[others].mean()


def _fine(values: Tensor) -> Tensor:
    """Convert bfloat16 to float32: it is too coarse for a softmax."""
    return values.float() if values.dtype == torch.bfloat16 else values
