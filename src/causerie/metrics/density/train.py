"""From corpora to an artifact: selection model, Gaussian, calibration (sections 3.1 to 3.4)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import EXTRACTORS, Extractor
from causerie.metrics.density.gaussian import Gaussian, Moments
from causerie.metrics.density.selection import (
    CrossSelection,
    TowersSelection,
    ranking_items,
    true_ranks,
    with_response,
)
from causerie.metrics.trained import TrainingRun, card, quantiles_of
from causerie.models.artifact import CALIBRATION, save_artifact
from causerie.training import adapters
from causerie.training.attacks import ATTACKS
from causerie.training.corpus import Corpus
from causerie.training.loop import fit

if TYPE_CHECKING:
    from causerie.engines import Engines

VALIDATION_EXCHANGES = 1000
"""Ranked at every validation during training."""
MEASURED_EXCHANGES = 3000
"""Ranked once at the end, for the card."""
CHUNK = 4096


def train(engines: Engines, run: TrainingRun) -> Mapping[str, Any]:
    """Train the extractor, fit the Gaussian to all true pairs, calibrate on validation data."""
    config: DensityConfig = run.config
    data, valid = Corpus.read(run.data), Corpus.read(run.valid)
    held_out = _sample(valid, MEASURED_EXCHANGES, config.seed)
    encoder = engines.new_encoder()
    encoder.model = adapters.prepare(encoder.model, config.tuning, config.rank)
    torch.manual_seed(config.seed)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    task_type = TowersSelection if config.interaction == "towers" else CrossSelection
    task = task_type(extractor, config, data, held_out[:VALIDATION_EXCHANGES])
    training = run.out.with_name(run.out.name + ".training")
    progress = fit(
        task, config.loop(len(task.batches)), training, resume=run.resume, watch=run.watch
    )
    encoder.forget()
    gaussian = fit_gaussian(extractor, data)
    results = {
        "steps": progress.step,
        **measure(extractor, gaussian, held_out, config.seed),
    }
    human = -gaussian.mahalanobis(np.concatenate([*_features(extractor, held_out)]))
    network = {f"head.{k}": t for k, t in extractor.head.state_dict().items()}
    adapter = None
    if config.tuning == "adapter":
        adapter = training / "adapter"
        adapters.save_adapter(encoder.model, adapter)
    elif config.tuning == "full":
        network |= {f"encoder.{k}": t for k, t in encoder.model.state_dict().items()}
    save_artifact(
        run.out,
        metric="density",
        backbone=encoder.name,
        backbone_sha256=encoder.sha256,
        options=asdict(config),
        training={"seed": config.seed, "steps": progress.step, "recipe": run.recipe},
        network=network,
        statistics={
            "mean": torch.from_numpy(gaussian.mean),
            "whitening": torch.from_numpy(gaussian.whitening),
            CALIBRATION: torch.from_numpy(quantiles_of(human)),
        },
        adapter=adapter,
        card=card(
            "density",
            run,
            f"Response selection (`{config.interaction}`, {config.tuning} tuning of "
            f"{encoder.name}) on {data.exchanges()} exchanges, then a Gaussian over the features "
            "of all of them. The score is minus the square root of the Mahalanobis distance; "
            "the percentile says how many human responses score no better.",
            results,
            LIMITS,
        ),
    )
    return results


LIMITS = (
    "English, everyday conversation; other domains deserve training of their own.",
    "Judges whether a response is like what people say there, not whether it is true.",
)


def fit_gaussian(extractor: Extractor, corpus: Corpus) -> Gaussian:
    """Eq. 2 over every true pair of the corpus, a chunk at a time."""
    moments: Moments | None = None
    exchanges = [e for source in corpus.sources for d in source for e in d.exchanges()]
    for features in _features(extractor, exchanges):
        moments = moments or Moments(features.shape[1])
        moments.add(features)
    assert moments is not None  # a corpus is never empty
    return Gaussian.fit(moments)


def measure(
    extractor: Extractor, gaussian: Gaussian, exchanges: Sequence[Exchange], seed: int
) -> dict[str, Any]:
    """R@1 and MRR (1 of 16), and how often a corrupted response scores below the true one."""
    ranks = true_ranks(extractor, ranking_items(exchanges, seed))
    results: dict[str, Any] = {
        "R@1 of 16": f"{(ranks == 1).mean():.4f}",
        "MRR of 16": f"{(1 / ranks).mean():.4f}",
    }
    rng = random.Random(seed)
    others = rng.sample(list(exchanges), len(exchanges))
    attacks: dict[str, list[Exchange]] = {
        "random": [with_response(e, o.response.text) for e, o in zip(exchanges, others, strict=True)]
    }
    for name, attack in ATTACKS.items():
        attacks[name] = [
            with_response(e, attack(e.response.text, e.last(1)[0].text, o.response.text, rng))
            for e, o in zip(exchanges, others, strict=True)
        ]
    true = extractor.features(exchanges)
    for name, corrupted in attacks.items():
        features = extractor.features(corrupted)
        density = gaussian.mahalanobis(true) < gaussian.mahalanobis(features)
        classifier = extractor.logits(true) > extractor.logits(features)
        results[f"true above {name}: density / classifier"] = (
            f"{density.mean():.3f} / {classifier.mean():.3f}"
        )
    return results


def _features(extractor: Extractor, exchanges: Sequence[Exchange]) -> Iterator[np.ndarray]:
    for start in range(0, len(exchanges), CHUNK):
        yield extractor.features(exchanges[start : start + CHUNK])


def _sample(corpus: Corpus, count: int, seed: int) -> list[Exchange]:
    """Exchanges for validation, at most one of any two that are the same conversation twice."""
    exchanges = [e for source in corpus.sources for d in source for e in d.exchanges()]
    return random.Random(seed).sample(exchanges, min(count, len(exchanges)))
