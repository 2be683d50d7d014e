"""What a rating model predicts: a number, whether it is low, or one of five classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from causerie.errors import CauserieError
from causerie.ratings.scale import HIGHEST, LOW, LOWEST

MIDDLE = 3.0


class Target(ABC):
    """From a network's outputs to a prediction, and what a wrong one costs."""

    name: ClassVar[str]
    outputs: ClassVar[int]

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

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        return functional.mse_loss(MIDDLE + outputs[:, 0], ratings)

    def prediction(self, outputs: Tensor) -> Tensor:
        return (MIDDLE + outputs[:, 0]).clamp(LOWEST, HIGHEST)


class Binary(Target):
    """The probability that the rating is low."""

    name = "low"
    outputs = 1

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        low = (ratings < LOW).to(outputs.dtype)
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], low)

    def prediction(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs[:, 0])


class FiveClass(Target):
    """The likeliest class, 1 to 5."""

    name = "class"
    outputs = 5

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        classes = (ratings + 0.5).floor().clamp(LOWEST, HIGHEST).long() - 1
        return functional.cross_entropy(outputs, classes)

    def prediction(self, outputs: Tensor) -> Tensor:
        return (outputs.argmax(1) + 1).to(outputs.dtype)


TARGETS: dict[str, Target] = {one.name: one for one in (Regression(), Binary(), FiveClass())}


def target(name: str) -> Target:
    if name not in TARGETS:
        raise CauserieError(f"unknown target {name!r}: use {', '.join(TARGETS)}")
    return TARGETS[name]
