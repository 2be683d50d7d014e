"""From corpora to an artifact: selection model, Gaussian, calibration (sections 3.1 to 3.4)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import EXTRACTORS, Extractor
from causerie.metrics.density.gaussian import Gaussian, Moments
from causerie.metrics.density.selection import SELECTIONS
from causerie.metrics.trained import TrainingRun, card, quantiles_of
from causerie.models.artifact import Artifact, load_artifact
from causerie.training.attacks import ATTACKS
from causerie.training.candidates import ranking_items, with_response
from causerie.training.corpus import Corpus
from causerie.training.loop import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

VALIDATION_EXCHANGES = 1000
"""Ranked at every validation during training."""
MEASURED_EXCHANGES = 3000
"""Ranked once at the end, for the card."""
CHUNK = 4096

LIMITS = (
    "English, everyday conversation; other domains deserve training of their own.",
    "Judges whether a response is like what people say there, not whether it is true.",
)


def train(engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
    """Train the extractor, fit the Gaussian to all true pairs, calibrate on validation data."""
    config: DensityConfig = run.config
    data, valid = _corpora(run)
    held_out = _sample(valid.exchanges, MEASURED_EXCHANGES, config.seed)
    encoder = engines.new_encoder()
    torch.manual_seed(config.seed)
    encoder.model = config.encoder_tuning.prepare(encoder.model)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    start = load_artifact(run.init, "density") if run.init else None
    if start:
        begin(extractor, config, start)
    task = SELECTIONS[config.interaction](extractor, config, data, held_out[:VALIDATION_EXCHANGES])
    progress = fit(
        task,
        config.loop(len(task.batches)),
        run.folder,
        identity={
            **asdict(config),
            "data": data.sha256,
            "valid": valid.sha256,
            "init": start.sha256 if start else None,
        },
        resume=run.resume,
        watch=run.watch,
    )
    weights = {
        "encoder": config.encoder_tuning.weights(encoder.model),
        "head": extractor.head.state_dict(),
    }
    selector = Artifact(
        metric="density",
        backbone=encoder.name,
        backbone_sha256=encoder.sha256,
        options=asdict(config),
        network={f"{part}.{key}": t for part, state in weights.items() for key, t in state.items()},
        statistics={},
        card="",
        licence=run.licence,
    )
    return complete(engines, run, selector, data, valid, progress.step)


def complete(
    engines: Engines, run: TrainingRun, selector: Artifact, data: Corpus, valid: Corpus, steps: int
) -> tuple[Artifact, Mapping[str, Any]]:
    """A trained selector with the Gaussian of its features, its calibration and its card."""
    config = DensityConfig(**selector.options)
    held_out = _sample(valid.exchanges, MEASURED_EXCHANGES, config.seed)
    extractor = restore(engines, selector)  # the weights as they are saved
    human = _sample(data.exchanges, config.gaussian, config.seed)
    run.say(f"fitting the Gaussian to {len(human):,} training exchanges")
    gaussian = fit_gaussian(extractor, human)
    run.say("measuring on validation data")
    results = {
        "steps": steps,
        "data (SHA-256)": data.sha256[:12],
        **measure(extractor, gaussian, held_out, config.seed),
    }
    artifact = replace(
        selector,
        statistics={
            "mean": torch.from_numpy(gaussian.mean),
            "whitening": torch.from_numpy(gaussian.whitening),
            "random_logit": random_logit(extractor, held_out, config.seed),
            **calibrate(extractor, gaussian, valid),
        },
        card=card(
            "density",
            run,
            f"Response selection (`{config.interaction}`, tuning `{config.tuning}` of "
            f"{selector.backbone}) on {len(data.exchanges):,} exchanges of {len(data):,} "
            f"dialogues, then a Gaussian over the features of {len(human):,} of them. The score "
            "is minus the square root of the Mahalanobis distance; the percentile says how many "
            "human responses score no better.",
            results,
            LIMITS,
        ),
    )
    return artifact, results


def begin(extractor: Extractor, config: DensityConfig, start: Artifact) -> None:
    """Take the weights of an earlier training; all that gives them their shape must agree."""
    shape = ("interaction", "tuning", "rank", "layers", "width")
    differs = [key for key in shape if start.options.get(key) != getattr(config, key)]
    if differs:
        raise CauserieError(
            f"--init was trained with {differs[0]}={start.options.get(differs[0])}: set the same"
        )
    if start.backbone_sha256 != extractor.encoder.sha256:
        raise CauserieError(f"--init was trained on {start.backbone}: give the same --encoder")
    config.encoder_tuning.load(extractor.encoder.model, start.part("encoder"))
    extractor.head.load_state_dict(start.part("head"))


def restore(engines: Engines, artifact: Artifact) -> Extractor:
    """The extractor as the artifact's training left it."""
    config = DensityConfig(**artifact.options)
    encoder = engines.tuned_encoder(artifact, config.encoder_tuning)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    extractor.head.load_state_dict(artifact.part("head"))
    return extractor


def fit_gaussian(extractor: Extractor, exchanges: Sequence[Exchange]) -> Gaussian:
    """Eq. 2 over true pairs, a chunk at a time."""
    chunks = _features(extractor, exchanges)
    first = next(chunks)
    moments = Moments(first.shape[1])
    moments.add(first)
    for features in chunks:
        moments.add(features)
    return Gaussian.fit(moments)


def distances(
    extractor: Extractor, gaussian: Gaussian, features: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """The score by each distance, higher is better (eq. 3 and its alternatives)."""
    return {
        "mahalanobis": -gaussian.mahalanobis(features),
        "euclidean": -gaussian.euclidean(features),
        "classifier": extractor.logits(features),
    }


def random_logit(extractor: Extractor, exchanges: Sequence[Exchange], seed: int) -> torch.Tensor:
    """The classifier's score of an average random response: selection learns only differences.

    The logistic of what a response has above it is the probability that the classifier picks
    the response and not the random one.
    """
    others = random.Random(seed).sample(list(exchanges), len(exchanges))
    drawn = [with_response(e, o.response.text) for e, o in zip(exchanges, others, strict=True)]
    return torch.tensor(extractor.logits(extractor.features(drawn)).mean())


def calibrate(extractor: Extractor, gaussian: Gaussian, valid: Corpus) -> dict[str, torch.Tensor]:
    """Quantiles of the scores of held-out human responses and dialogues."""
    groups = [dialogue.exchanges() for dialogue in valid.dialogues]
    exchanges = [exchange for group in groups for exchange in group]
    features = np.concatenate([*_features(extractor, exchanges)])
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    tables = {}
    for name, scores in distances(extractor, gaussian, features).items():
        means = np.add.reduceat(scores, starts) / [len(group) for group in groups]
        tables[f"calibration.turn.{name}"] = torch.from_numpy(quantiles_of(scores))
        tables[f"calibration.dialogue.{name}"] = torch.from_numpy(quantiles_of(means))
    return tables


def measure(
    extractor: Extractor, gaussian: Gaussian, exchanges: Sequence[Exchange], seed: int
) -> dict[str, Any]:
    """R@1 and MRR (1 of 16), and how often a corrupted response scores below the true one."""
    ranks = extractor.true_ranks(ranking_items(exchanges, seed))
    results: dict[str, Any] = {
        "R@1 of 16": f"{(ranks == 1).mean():.4f}",
        "MRR of 16": f"{(1 / ranks).mean():.4f}",
    }
    rng = random.Random(seed)
    others = rng.sample(list(exchanges), len(exchanges))
    pairs = list(zip(exchanges, others, strict=True))
    corrupted = {"random": [with_response(e, o.response.text) for e, o in pairs]}
    for name, attack in ATTACKS.items():
        corrupted[name] = [
            with_response(e, attack(e.response.text, e.last(1)[0].text, o.response.text, rng))
            for e, o in pairs
        ]
    true = distances(extractor, gaussian, extractor.features(exchanges))
    for name, responses in corrupted.items():
        false = distances(extractor, gaussian, extractor.features(responses))
        shares = [f"{(true[d] > false[d]).mean():.3f}" for d in ("mahalanobis", "classifier")]
        results[f"true above {name}: density / classifier"] = " / ".join(shares)
    return results


def _corpora(run: TrainingRun) -> tuple[Corpus, Corpus]:
    data = Corpus.read(run.data, lambda record: run.say(f"skipped {record}"))
    if not run.valid:
        return data.split(run.config.seed)
    return data, Corpus.read(run.valid, lambda record: run.say(f"skipped {record}"))


def _sample(exchanges: Sequence[Exchange], count: int | None, seed: int) -> list[Exchange]:
    if count is None or count >= len(exchanges):
        return list(exchanges)
    return random.Random(seed).sample(exchanges, count)


def _features(extractor: Extractor, exchanges: Sequence[Exchange]) -> Iterator[NDArray[Any]]:
    for start in range(0, len(exchanges), CHUNK):
        yield extractor.features(exchanges[start : start + CHUNK])
