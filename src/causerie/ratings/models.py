"""Rating models behind one interface: fit, predict, and save as tensors."""

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
"""Number of dialogues predicted together."""


@dataclass(frozen=True)
class ModelConfig(TrainingConfig):
    """Options for building and fitting models."""

    width: int = option(32, "width of the representation of a dialogue", least=1)
    head: int = option(16, "width of the hidden layer of a head", least=1)
    dropout: float = option(0.2, "dropout before the representation and in the heads")
    wasserstein: float = option(
        0.1, "weight of the distance between treatments (lambda); the paper's is 1", least=0
    )
    batch: int = option(64, "dialogues per step", least=4)
    epochs: float = option(30.0, "passes over the rated dialogues")
    learning_rate: float = option(3e-3, "peak learning rate")
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0)
    masking: Masking = option(
        "random",
        "prefixes to learn from, too: of all dialogues, cut at random (random), of low-rated ones, "
        "cut at their signals (paper), or none",
    )
    tuning: Kind = option(
        "frozen", "how the transformer tunes its encoder: frozen (not at all), adapter or full"
    )
    patience: int = option(6, "epochs without improvement after which training stops", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise CauserieError(f"dropout must be from 0 to below 1, not {self.dropout}")

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return replace(super().loop(batches_per_epoch), patience=self.patience)


class RatingModel(ABC):
    """Predicts ratings; `Calibration` turns predictions into probabilities and classes."""

    name: ClassVar[str]
    heads: int = 1
    """Number of treatments that it distinguishes; 1 if it ignores them."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    @abstractmethod
    def fit(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        """Fit to rated examples split by `split`; the held-out ones determine when to stop."""

    @abstractmethod
    def outcomes(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Return predictions under every treatment: (examples, heads)."""

    def predict(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Predict each example under its own treatment."""
        outcomes = self.outcomes(examples)
        had = [one.treatment if self.heads > 1 else 0 for one in examples]
        found: NDArray[np.float64] = outcomes[np.arange(len(examples)), had]
        return found

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return all that it learned."""

    @abstractmethod
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what an identically built model learned."""


class Line(RatingModel):
    """Least squares on a constant and, for `Length`, the logarithm of the length."""

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
            raise ValueError("the weights belong to another model")
        self._weights = tensors["line"].double()


class Mean(Line):
    """Predicts the mean rating for every dialogue."""

    name = "mean"
    columns = 1


class Length(Line):
    """Predicts by the least-squares line over the logarithm of the number of turn pairs."""

    name = "length"
    columns = 2


def one_thread() -> AbstractContextManager[None]:
    """Return a context in which one thread computes.

    Networks this small gain nothing from several threads: on busy cores, waiting for other
    threads takes several times as long as computing.
    """
    return used_threads(1)


class Neural(RatingModel):
    """A model with a network, fitted by the common training loop."""

    network: Outcomes
    device: torch.device = torch.device("cpu")
    """Device of the network; small networks are fastest on the CPU."""

    def __init__(self, config: ModelConfig, features: int) -> None:
        super().__init__(config)
        self.features = features
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            network = Outcomes(self.body(), self.heads, config.head)
        self.network = network.to(self.device).eval()

    @abstractmethod
    def body(self) -> Body:
        """Return the network that turns a batch into vectors."""

    def fit(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        check_examples(train, held)
        self.network.start.fill_(math.fsum(one.rating for one in train) / len(train))
        self._run(train, held, self.config.learning_rate)

    def fine_tune(self, train: Sequence[Example], held: Sequence[Example]) -> None:
        """Fine-tune at a lower rate; keep the old weights if held-out examples do not improve."""
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
        """Return a batch on the network's device; running is a feature only if it was learned."""
        if self.config.masking != "random":
            examples = [replace(one, running=False) for one in examples]
        return Batch.of(examples, self.device)

    def threads(self) -> AbstractContextManager[None]:
        """Return a context with the number of threads used for fitting."""
        return one_thread()

    def error(self, examples: Sequence[Example]) -> float:
        """Return the mean squared error of its predictions of rated examples."""
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
            raise ValueError("the weights belong to another network")


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
        """Return a model for more treatments (3.3.4): new heads are fitted first, then all."""
        if treatments <= self.heads:
            raise CauserieError(
                f"this model already has {self.heads} treatments: give more than that"
            )
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
    """Predicts end to end from the text that fits the window.

    With `tuning=adapter` or `full` the encoder is tuned with the head; by default it is frozen,
    and every text is encoded once.
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
        """Return a context that changes nothing, as the encoder gains from several threads."""
        return nullcontext()


_PLAIN: dict[str, Callable[[ModelConfig, int], RatingModel]] = {
    one.name: one for one in (Mean, Length, Mlp, Lstm)
}
MODELS = (Mean.name, Length.name, Transformer.name, Mlp.name, Lstm.name, CfLstm.name)
SENTINELS = (Mean.name, Length.name)
"""Trivial models: one that does not beat them has learned nothing."""


def build(
    name: str,
    config: ModelConfig,
    *,
    features: int,
    treatments: int = 2,
    engines: Engines | None = None,
) -> RatingModel:
    """Build a model by its name, not fitted yet."""
    if name == CfLstm.name:
        return CfLstm(config, features, treatments)
    if name == Transformer.name:
        if engines is None:
            raise CauserieError("the transformer needs an encoder: give engines")
        return Transformer(config, features, engines)
    if name not in _PLAIN:
        raise CauserieError(f"unknown model {name!r}: use {', '.join(MODELS)}")
    return _PLAIN[name](config, features)
