"""What a rating model predicts: a number, whether it is low, or one of five classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from causerie.errors import CauserieError
from causerie.ratings.scale import HIGHEST, LOW, LOWEST


class Target(ABC):
    """From a network's outputs to a prediction, and what a wrong one costs."""

    name: ClassVar[str]
    outputs: ClassVar[int]

    @abstractmethod
    def start(self, ratings: Tensor) -> Tensor:
        """The outputs that say what is so on average, where a network starts from."""

    @abstractmethod
    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        """Mean over the rows."""

    @abstractmethod
    def prediction(self, outputs: Tensor) -> Tensor:
        """One number per row."""


class Regression(Target):
    """The rating itself, by mean squared error."""

    name = "rating"
    outputs = 1

    def start(self, ratings: Tensor) -> Tensor:
        return ratings.mean().unsqueeze(0)

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        return functional.mse_loss(outputs[:, 0], ratings)

    def prediction(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0].clamp(LOWEST, HIGHEST)


class Binary(Target):
    """The probability that the rating is low."""

    name = "low"
    outputs = 1

    def start(self, ratings: Tensor) -> Tensor:
        low = int((ratings < LOW).sum())
        return torch.tensor([(low + 0.5) / (len(ratings) + 1)]).logit()

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        low = (ratings < LOW).to(outputs.dtype)
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], low)

    def prediction(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs[:, 0])


class FiveClass(Target):
    """The likeliest class, 1 to 5."""

    name = "class"
    outputs = 5

    def start(self, ratings: Tensor) -> Tensor:
        counts = self._classes(ratings).bincount(minlength=self.outputs) + 0.5
        return (counts / counts.sum()).log()

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, self._classes(ratings))

    def prediction(self, outputs: Tensor) -> Tensor:
        return (outputs.argmax(1) + 1).to(outputs.dtype)

    def _classes(self, ratings: Tensor) -> Tensor:
        return (ratings + 0.5).floor().clamp(LOWEST, HIGHEST).long() - 1


TARGETS: dict[str, Target] = {one.name: one for one in (Regression(), Binary(), FiveClass())}


def target(name: str) -> Target:
    if name not in TARGETS:
        raise CauserieError(f"unknown target {name!r}: use {', '.join(TARGETS)}")
    return TARGETS[name]
