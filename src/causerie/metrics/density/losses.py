"""The two losses of the response selection model.

Candidates are (contexts, candidates), the true response first in each row; `same` marks those
that are neither true nor false, such as one that has the true one's text.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_NEVER = float("-inf")


def selection_loss(logits: Tensor, same: Tensor) -> Tensor:
    """Eq. 1: cross-entropy of the true response among the candidates."""
    return -logits.masked_fill(same, _NEVER).log_softmax(dim=1)[:, 0].mean()


def contrastive_loss(features: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Eq. 4 as a mean over the true pairs: they are one class, every negative is its own."""
    z = functional.normalize(features, dim=-1)
    count, candidates = z.shape[:2]
    if count < 2:
        return features.sum() * 0  # a single true pair has nothing to be alike
    similarity = z[:, 0] @ z.flatten(0, 1).T / temperature
    true = torch.arange(count, device=z.device) * candidates
    left_out = same.flatten().expand_as(similarity).clone()
    left_out[torch.arange(count, device=z.device), true] = True  # not compared with itself
    similarity = similarity.masked_fill(left_out, _NEVER)
    log_share = (similarity - similarity.logsumexp(dim=1, keepdim=True))[:, true]
    others = ~torch.eye(count, dtype=torch.bool, device=z.device)
    return -log_share[others].mean()
