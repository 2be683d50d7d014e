"""Models of ratings, one interface: fit, predict, and the tensors that save them."""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causerie.engines import used_threads
from causerie.engines.tuning import Kind, Tuning
from causerie.errors import CauserieError
from causerie.options import option
from causerie.ratings.examples import Example, Masking, check_examples, check_treatments
from causerie.ratings.log import HIGHEST, LOWEST
from causerie.ratings.networks import (
    Batch,
    Body,
    Fitting,
    Outcomes,
    Recurrent,
    Summarised,
    TextBody,
    factual,
)
from causerie.training.config import LoopConfig, TrainingConfig
from causerie.training.encoders import FixedVectors, LearnedVectors
from causerie.training.loop import fit as run_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

AT_ONCE = 256
"""Dialogues predicted together."""


@dataclass(frozen=True)
class ModelConfig(TrainingConfig):
    """How models are built and fitted."""

    width: int = option(32, "of the representation of a dialogue", least=1)
    head: int = option(16, "of the hidden layer of a head", least=1)
    dropout: float = option(0.2, "before the representation and in the heads")
    wasserstein: float = option(
        0.1, "weight of the distance between treatments (lambda); the paper's is 1", least=0
    )
    batch: int = option(64, "dialogues per step", least=4)
    epochs: float = option(30.0, "passes over the rated dialogues")
    learning_rate: float = option(3e-3, "highest learning rate")
    weight_decay: float = option(0.01, "of AdamW", least=0)
    masking: Masking = option(
        "random",
        "beginnings to learn from too: of all dialogues, cut anywhere (random), of low-rated ones, "
        "cut at their signals (paper), or none",
    )
    tuning: Kind = option(
        "frozen", "what the transformer trains of its encoder: frozen (nothing), adapter or full"
    )
    patience: int = option(6, "stop after so many epochs without getting better", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise CauserieError(f"dropout is from 0 to below 1, not {self.dropout}")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(super().loop(batches_per_epoch), patience=self.patience)


class RatingModel(ABC):
    """Predicts ratings; what a prediction means for low ones and classes is `Calibration`'s."""

    name: ClassVar[str]
    heads: int = 1
    """Treatments that it tells apart; 1: it ignores them."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    @abstractmethod
    def fit(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        """Learn from rated examples, as `split` gives them; those held out say when to stop."""

    @abstractmethod
    def outcomes(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Predictions under every treatment: (examples, heads)."""

    def predict(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Predict each under the treatment that it had."""
        outcomes = self.outcomes(examples)
        had = [one.treatment if self.heads > 1 else 0 for one in examples]
        found: NDArray[np.float64] = outcomes[np.arange(len(examples)), had]
        return found

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that it learned."""

    @abstractmethod
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take what an equally built model learned."""


class Line(RatingModel):
    """Least squares over a column of ones and columns that say nothing but how long it is."""

    columns: ClassVar[int]

    def __init__(self, config: ModelConfig, features: int = 0) -> None:
        super().__init__(config)
        self._weights = torch.full((self.columns,), math.nan, dtype=torch.float64)

    def fit(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        check_examples(train, held)
        examples = [*train, *held]
        ratings = torch.tensor([one.rating for one in examples], dtype=torch.float64)
        solved = torch.linalg.lstsq(self._design(examples), ratings[:, None], driver="gelsd")
        self._weights = solved.solution[:, 0]

    def outcomes(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        predicted = self._design(examples) @ self._weights
        return predicted.clamp(LOWEST, HIGHEST).unsqueeze(1).numpy()

    def _design(self, examples: Sequence[Example]) -> Tensor:
        pairs = torch.tensor([one.pairs for one in examples], dtype=torch.float64)
        return torch.stack([torch.ones_like(pairs), pairs.log1p()], dim=1)[:, : self.columns]

    def tensors(self) -> dict[str, Tensor]:
        return {"line": self._weights}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        if tensors["line"].shape != self._weights.shape:
            raise ValueError("the weights are of another model")
        self._weights = tensors["line"].double()


class Mean(Line):
    """The same for every dialogue: the mean rating."""

    name = "mean"
    columns = 1


class Length(Line):
    """A line over the logarithm of how long the dialogue is, the best there is."""

    name = "length"
    columns = 2


def one_thread() -> AbstractContextManager[None]:
    """Compute with one thread meanwhile.

    Networks as small as these have nothing to share out: where cores are busy, waiting for
    other threads takes several times as long as the computing.
    """
    return used_threads(1)


class Neural(RatingModel):
    """A model with a network, fitted in the training room's loop."""

    network: Outcomes
    device: torch.device = torch.device("cpu")
    """Where the network is: a small one is quickest on the CPU."""

    def __init__(self, config: ModelConfig, features: int) -> None:
        super().__init__(config)
        self.features = features
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            network = Outcomes(self.body(), self.heads, config.head)
        self.network = network.to(self.device).eval()

    @abstractmethod
    def body(self) -> Body:
        """Turns a batch into vectors."""

    def fit(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        check_examples(train, held)
        self.network.start.fill_(math.fsum(one.rating for one in train) / len(train))
        self._run(train, held, self.config.learning_rate)

    def fine_tune(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        """Learn on, gently; where that does not help those held out, it stays as it was."""
        known = {name: tensor.clone() for name, tensor in self.tensors().items()}
        before = self.error(held)
        self._run(train, held, self.config.learning_rate / 5)
        if self.error(held) >= before:
            self.load(known)

    def _run(self, train: Sequence[Example], held: Sequence[Example], learning_rate: float) -> None:
        if self.heads > 1:
            check_treatments(train, self.heads)
        task = Fitting(self, train, held)
        loop = replace(self.config.loop(len(task.batches)), learning_rate=learning_rate)
        with tempfile.TemporaryDirectory() as folder, self.threads():
            run_loop(task, loop, Path(folder))

    def batch(self, examples: Sequence[Example]) -> Batch:
        """Some examples where the network is; it is told which still run if it learned such."""
        if self.config.masking != "random":
            examples = [replace(one, running=False) for one in examples]
        return Batch.of(examples, self.device)

    def threads(self) -> AbstractContextManager[None]:
        """Return a context with as many threads as it is fitted with."""
        return one_thread()

    def error(self, examples: Sequence[Example]) -> float:
        """What its predictions of rated examples cost on average."""
        batch = self.batch(examples)
        self.network.eval()
        with torch.inference_mode():
            _, outcomes = self.network(batch)
            return float(functional.mse_loss(factual(outcomes, batch.treatments), batch.ratings))

    def outcomes(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        parts = [np.empty((0, self.heads))]
        self.network.eval()
        with torch.inference_mode():
            for start in range(0, len(examples), AT_ONCE):
                some = examples[start : start + AT_ONCE]
                _, outcomes = self.network(self.batch(some))
                parts.append(outcomes.clamp(LOWEST, HIGHEST).double().cpu().numpy())
        return np.concatenate(parts)

    def tensors(self) -> dict[str, Tensor]:
        trained = {n: p.detach() for n, p in self.network.named_parameters() if p.requires_grad}
        return {**trained, "start": self.network.start}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        found = self.network.load_state_dict(tensors, strict=False)
        if found.unexpected_keys or not self.tensors().keys() <= tensors.keys():
            raise ValueError("the weights are of another network")


class Mlp(Neural):
    name = "mlp"

    def body(self) -> Body:
        return Summarised(self.features, self.config.width, self.config.dropout)


class Lstm(Neural):
    name = "lstm"

    def body(self) -> Body:
        return Recurrent(self.features, self.config.width, self.config.dropout)


class CfLstm(Lstm):
    """The counterfactual LSTM: a head per treatment on a shared LSTM (section 3.3)."""

    name = "cf-lstm"

    def __init__(self, config: ModelConfig, features: int, treatments: int = 2) -> None:
        self.heads = treatments
        super().__init__(config, features)

    def transferred(
        self, treatments: int, train: Sequence[Example], held: Sequence[Example]
    ) -> CfLstm:
        """The model for more treatments (3.3.4): new heads first, all else frozen; then all."""
        if treatments <= self.heads:
            raise CauserieError(f"this model has {self.heads} treatments already")
        check_examples(train, held)
        larger = CfLstm(self.config, self.features, treatments)
        larger.network.load_state_dict(self.network.state_dict(), strict=False)
        new = tuple(f"heads.{t}." for t in range(self.heads, treatments))
        for name, parameter in larger.network.named_parameters():
            parameter.requires_grad_(name.startswith(new))
        larger._run(train, held, self.config.learning_rate)
        larger.network.requires_grad_(True)
        larger.fine_tune(train, held)
        return larger


class Transformer(Neural):
    """End to end on the text, as far as it fits the window.

    With `tuning=adapter` or `full` the encoder learns with the head; by default it stays as it
    is, and every text is encoded once.
    """

    name = "transformer"

    def __init__(self, config: ModelConfig, features: int, engines: Engines) -> None:
        frozen = config.tuning == "frozen"
        self._encoder = engines.encoder if frozen else engines.new_encoder()
        self.device = self._encoder.device
        super().__init__(config, features)

    def body(self) -> Body:
        encoder, config = self._encoder, self.config
        shape = encoder.dimension, config.width, config.dropout
        if config.tuning == "frozen":
            return TextBody(FixedVectors(encoder, encoder.pooling), *shape)
        encoder.model = Tuning(config.tuning).prepare(encoder.model)
        return TextBody(LearnedVectors(encoder, encoder.pooling), *shape, encoder.model)

    def threads(self) -> AbstractContextManager[None]:
        """Leave them as they are: the encoder is no small network."""
        return nullcontext()


_PLAIN: dict[str, Callable[[ModelConfig, int], RatingModel]] = {
    one.name: one for one in (Mean, Length, Mlp, Lstm)
}
MODELS = (Mean.name, Length.name, Transformer.name, Mlp.name, Lstm.name, CfLstm.name)
SENTINELS = (Mean.name, Length.name)
"""What does not beat them has learned nothing."""


def build(
    name: str,
    config: ModelConfig,
    *,
    features: int,
    treatments: int = 2,
    engines: Engines | None = None,
) -> RatingModel:
    """A model of that name, not fitted yet."""
    if name == CfLstm.name:
        return CfLstm(config, features, treatments)
    if name == Transformer.name:
        if engines is None:
            raise CauserieError("the transformer reads with an encoder: give engines")
        return Transformer(config, features, engines)
    if name not in _PLAIN:
        raise CauserieError(f"unknown model {name!r}: use {', '.join(MODELS)}")
    return _PLAIN[name](config, features)
