"""Training `density`: selection model, Gaussian, calibration (sections 3.1 to 3.4)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.metrics.density import Density
from causerie.metrics.density.config import HEAD, DensityConfig
from causerie.metrics.density.extractor import EXTRACTORS, Extractor, restore
from causerie.metrics.density.gaussian import Gaussian, Moments, distances
from causerie.metrics.density.selection import SELECTIONS
from causerie.metrics.similarity import untrained_cosines
from causerie.metrics.trained import calibration, quantiles_of
from causerie.metrics.verdict import verdict
from causerie.models.artifact import Artifact
from causerie.stats import ranking_estimates
from causerie.training.corpus import Corpus, sample
from causerie.training.encoders import averaged_with_stock, load_heads, starting_encoder
from causerie.training.negatives import clusters_of, corpus_items, corruptions
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder

NAME = "density"
VALIDATION_EXCHANGES = 1000
"""Number of exchanges ranked at every validation during training."""
MEASURED_EXCHANGES = 3000
"""Number of exchanges ranked at the end, for the card."""
CHUNK = 4096

LIMITS = (
    "English, everyday conversation; other domains deserve training of their own.",
    "Judges whether a response is like what people say there, not whether it is true.",
    "Corrupted responses above are made as in training, where some were negatives.",
)


def train(engines: Engines, run: TrainingRun) -> Trained:
    """Train the extractor, fit the Gaussian to all true pairs, calibrate on validation data."""
    config: DensityConfig = run.config
    data, valid = run.corpora()
    torch.manual_seed(config.seed)
    start = run.own_start(NAME)
    other_head = start and start.options["interaction"] != config.interaction
    if other_head:
        run.say(f"--init lacks interaction={config.interaction}: only its encoder is used")
    encoder = starting_encoder(engines, run, NAME, () if other_head else HEAD)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    if not other_head:
        load_heads(run, NAME, {"head": extractor.head})
    items = corpus_items(valid, VALIDATION_EXCHANGES, config.seed)
    task = SELECTIONS[config.interaction](extractor, config, data, items)
    progress = run.fit(
        task,
        config.loop(len(task.batches)),
        {"data": data.sha256, "valid": valid.sha256, "backbone": encoder.sha256},
        later=("stock", "unit", "gaussian"),
    )
    share = config.stock if config.learns_encoder else 0.0
    weights = {
        "encoder": averaged_with_stock(engines, config.encoder_tuning, encoder, share),
        "head": extractor.head.state_dict(),
    }
    selector = run.artifact(NAME, encoder, config, weights)
    return complete(engines, run, selector, data, valid, progress.best_step)


def complete(
    engines: Engines, run: TrainingRun, selector: Artifact, data: Corpus, valid: Corpus, steps: int
) -> Trained:
    """Complete a trained selector with its Gaussian, calibration and card."""
    config = DensityConfig(**selector.options)
    items = corpus_items(valid, MEASURED_EXCHANGES, config.seed)
    extractor = restore(engines, selector)  # with the weights as they will be saved
    human = sample(data.exchanges, config.gaussian, config.seed)
    run.say(f"fitting the Gaussian to {len(human):,} training exchanges")
    gaussian = fit_gaussian(extractor, human)
    run.say("measuring on validation data")
    results = measure(extractor, gaussian, engines.encoder, items, config.seed)
    facts = {
        "steps": steps,
        "seed": config.seed,
        "backbone (SHA-256)": selector.backbone_sha256[:12],
        "training data (SHA-256)": data.sha256[:12],
        "validation data (SHA-256)": valid.sha256[:12],
    }
    artifact = replace(
        selector,
        statistics={
            "mean": torch.from_numpy(gaussian.mean),
            "whitening": torch.from_numpy(gaussian.whitening),
            "random_logit": random_logit(extractor, items),
            **calibrate(extractor, gaussian, valid),
        },
    )
    results |= verdict(Density, engines, run, artifact, valid)
    return replace(
        artifact,
        card=run.card(
            NAME,
            f"Response selection (`{config.interaction}`, tuning `{config.tuning}` of "
            f"{selector.backbone}) on {len(data.exchanges):,} exchanges of {len(data):,} "
            f"dialogues, then a Gaussian over the features of {len(human):,} of them. The score "
            "is the negative Mahalanobis distance; the percentile says how many human responses "
            "score no better.",
            {**facts, **results},
            LIMITS,
        ),
    ), results


def fit_gaussian(extractor: Extractor, exchanges: Sequence[Exchange]) -> Gaussian:
    """Fit the Gaussian (eq. 2) to true pairs, a chunk at a time."""
    chunks = _features(extractor, exchanges)
    first = extractor.seen(next(chunks))
    moments = Moments(first.shape[1])
    moments.add(first)
    for features in chunks:
        moments.add(extractor.seen(features))
    return Gaussian.fit(moments)


def random_logit(extractor: Extractor, items: Sequence[Sequence[Exchange]]) -> torch.Tensor:
    """Return the mean logit of random responses, as selection learns only differences.

    The logistic of a response's logit minus this one is the probability that the classifier
    prefers the response to a random one.
    """
    return torch.tensor(extractor.logits(extractor.features([item[1] for item in items])).mean())


def calibrate(extractor: Extractor, gaussian: Gaussian, valid: Corpus) -> dict[str, torch.Tensor]:
    """Return quantiles of the scores of held-out human responses and dialogues."""
    groups = [dialogue.exchanges() for dialogue in valid.dialogues]
    exchanges = [exchange for group in groups for exchange in group]
    features = np.concatenate([*_features(extractor, exchanges)])
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    tables: dict[str, torch.Tensor] = {}
    for name, scores in distances(gaussian, extractor, features).items():
        tables |= calibration(scores, groups, f".{name}")
        if name != "classifier":
            squares = np.add.reduceat(scores**2, starts) / [len(group) for group in groups]
            tables[f"calibration.rms.{name}"] = torch.from_numpy(quantiles_of(-np.sqrt(squares)))
    return tables


def measure(
    extractor: Extractor,
    gaussian: Gaussian,
    untrained: Encoder,
    items: Sequence[Sequence[Exchange]],
    seed: int,
) -> dict[str, Any]:
    """Measure R@1 and MRR beside the untrained cosine, and wins over corrupted responses."""
    rng = random.Random(seed)
    exchanges: list[Exchange] = []  # grouped by context, whose turns are then encoded once
    rows: list[slice] = []
    pairs: dict[str, list[tuple[int, int]]] = {}
    for item in items:
        true = len(exchanges)
        exchanges += item
        rows.append(slice(true, len(exchanges)))
        pairs.setdefault("random", []).append((true, true + 1))
        for name, text in corruptions(item[0], item[1].response.text, rng).items():
            pairs.setdefault(name, []).append((true, len(exchanges)))
            exchanges.append(item[0].with_response(text))
    scores = distances(gaussian, extractor, extractor.features(exchanges))
    clusters = clusters_of(item[0] for item in items)
    ranked = {name: [own[row] for row in rows] for name, own in scores.items()}
    ranked["cosine"] = [untrained_cosines(untrained, exchanges[row]) for row in rows]
    found = {name: ranking_estimates(own, clusters) for name, own in ranked.items()}
    count = max(map(len, items))
    results: dict[str, Any] = {
        f"R@1 of {count}": found["classifier"].recall.text(4),
        f"MRR of {count}": found["classifier"].mrr.text(4),
        f"R@1 of {count} by density": found["mahalanobis"].recall.text(4),
        f"R@1 of {count} by the untrained cosine": found["cosine"].recall.text(4),
    }
    for name, places in pairs.items():
        both = np.array(places)
        clusters = clusters_of(exchanges[true] for true, _ in places)
        shares = [
            ranking_estimates(scores[d][both], clusters).above.text(3)
            for d in ("mahalanobis", "classifier")
        ]
        results[f"true above {name} (n={len(both):,}): density / classifier"] = " / ".join(shares)
    return results


def _features(extractor: Extractor, exchanges: Sequence[Exchange]) -> Iterator[NDArray[Any]]:
    for start in range(0, len(exchanges), CHUNK):
        yield extractor.features(exchanges[start : start + CHUNK])
