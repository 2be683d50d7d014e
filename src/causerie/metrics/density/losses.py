"""The two losses of the response selection model."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def selection_loss(logits: Tensor) -> Tensor:
    """Eq. 1: cross-entropy of the true response, which is the first candidate of each row."""
    return -logits.log_softmax(dim=1)[:, 0].mean()


def contrastive_loss(features: Tensor, temperature: float) -> Tensor:
    """Eq. 4 as a mean over the true pairs: they are one class, every negative is its own.

    `features` are (contexts, candidates, width), the true response first in each row.
    """
    z = functional.normalize(features, dim=-1)
    true = z[:, 0]
    count, candidates = z.shape[:2]
    similarity = true @ z.reshape(count * candidates, -1).T / temperature
    itself = torch.arange(count, device=z.device) * candidates  # where the true pairs are
    similarity[torch.arange(count, device=z.device), itself] = float("-inf")
    log_share = (similarity - similarity.logsumexp(dim=1, keepdim=True))[:, itself]
    others = ~torch.eye(count, dtype=torch.bool, device=z.device)
    return -log_share[others].mean()
