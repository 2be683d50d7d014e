"""From dialogues to an artifact: tuples, ranking, calibration (section 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.graph.graph import lasting_name
from causerie.metrics.grade import Grade
from causerie.metrics.grade.config import HEAD, GradeConfig
from causerie.metrics.grade.learning import (
    Example,
    Ranking,
    RankingTuple,
    draw_tuples,
    examples_of,
    read_tuples,
    scores_of,
    write_tuples,
)
from causerie.metrics.grade.scorer import Scorer, open_topics, restore
from causerie.metrics.grade.topics import Topics
from causerie.metrics.trained import calibration
from causerie.metrics.verdict import verdict
from causerie.models.artifact import Artifact
from causerie.stats import ranking_estimates
from causerie.text import words
from causerie.training.corpus import Corpus
from causerie.training.encoders import FixedVectors, load_heads, starting_encoder
from causerie.training.loop import LoopState
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder

NAME = "grade"
VALID_TUPLES = 4000
DRAWING = ("history", "negatives", "length_matched", "tuples", "seed")
"""Settings that decide which tuples are drawn."""

LIMITS = (
    "English, everyday conversation; other domains deserve training of their own.",
    "Sees the last utterances of the context only: what was said before them is unknown to it.",
    "A response without keywords is judged by the utterances alone; in very long utterances hardly "
    "any word is frequent enough to be one.",
    "Trained to rank, not to rate: differences between scores have no unit.",
)


@dataclass(frozen=True, eq=False)
class Materials:
    """What training needs besides its settings; several trainings can share a fixed encoder."""

    data: Corpus
    valid: Corpus
    encoder: Encoder
    topics: Topics
    vectors: FixedVectors | None
    """None if the encoder is learned, too."""
    train: Sequence[Example]
    measured: Sequence[Example]
    """Of the validation data, false responses of both kinds."""


def train(engines: Engines, run: TrainingRun) -> Trained:
    """Draw tuples, learn to rank them, calibrate on validation data."""
    materials = prepare(engines, run)
    run = replace(run, config=with_graph(run.config, materials.topics))
    scorer, progress = learn(materials, run)
    return complete(engines, run, materials, scorer, progress.best_step)


def prepare(engines: Engines, run: TrainingRun) -> Materials:
    """Read the data, draw the tuples and find their topics."""
    config: GradeConfig = run.config
    data, valid = run.corpora()
    torch.manual_seed(config.seed)
    encoder = starting_encoder(engines, run, NAME, HEAD)
    topics = open_topics(config)
    train = draw_once(engines, run, "tuples.jsonl", data, config.negatives, config.tuples)
    measured = draw_once(engines, run, "valid-tuples.jsonl", valid, "both", VALID_TUPLES)
    run.say(f"finding the topics of {len(train) + len(measured):,} tuples")
    return Materials(
        data,
        valid,
        encoder,
        topics,
        None if config.learns_encoder else FixedVectors(encoder, config.pooling),
        examples_of(topics, train),
        examples_of(topics, measured),
    )


def draw_once(
    engines: Engines,
    run: TrainingRun,
    name: str,
    corpus: Corpus,
    negatives: str,
    count: int | None,
) -> list[RankingTuple]:
    """Tuples of a corpus; those that are in the folder already are read."""
    config = run.config
    identity = {
        **{key: getattr(config, key) for key in DRAWING},
        "negatives": negatives,
        "tuples": count,
        "data": corpus.sha256,
        "encoder": engines.encoder.sha256,
    }
    file = run.folder / name
    tuples = read_tuples(file, identity)
    if tuples is None:
        run.say(f"drawing false responses ({negatives})")
        tuples = draw_tuples(corpus, negatives, count, engines.encoder, config)
        run.folder.mkdir(parents=True, exist_ok=True)
        write_tuples(file, identity, tuples)
    return tuples


def with_graph(config: GradeConfig, topics: Topics) -> GradeConfig:
    """The configuration with the name and the digest of the graph that is used."""
    return replace(config, graph=lasting_name(config.graph), graph_sha256=topics.sha256)


def learn(materials: Materials, run: TrainingRun) -> tuple[Scorer, LoopState]:
    """Train a network on the materials; the best scorer by validation, and how it came about."""
    config: GradeConfig = run.config
    torch.manual_seed(config.seed)
    scorer = Scorer(materials.encoder, materials.topics, config)
    load_heads(run, NAME, {"network": scorer.network})
    if materials.vectors is not None:
        scorer.vectors = materials.vectors
    task = Ranking(scorer, materials.train, materials.measured)
    progress = run.fit(
        task,
        config.loop(len(task.batches)),
        {
            "data": materials.data.sha256,
            "valid": materials.valid.sha256,
            "backbone": materials.encoder.sha256,
        },
    )
    materials.encoder.forget()
    return scorer, progress


def uncalibrated(scorer: Scorer, run: TrainingRun) -> Artifact:
    """The artifact of a scorer, without anything that is measured."""
    config = scorer.config
    parts = {
        "encoder": config.encoder_tuning.weights(scorer.encoder.model),
        "network": scorer.network.state_dict(),
    }
    return run.artifact(NAME, scorer.encoder, config, parts)


def complete(
    engines: Engines, run: TrainingRun, materials: Materials, scorer: Scorer, steps: int
) -> Trained:
    """The trained scorer with its calibration and its card."""
    config = scorer.config
    bare = uncalibrated(scorer, run)
    run.say("measuring on validation data")
    saved = restore(engines, bare)  # the weights as they are saved
    results = measure(engines, saved, materials.measured)
    groups = [dialogue.exchanges() for dialogue in materials.valid.dialogues]
    human = saved.scores(saved.pairs([exchange for group in groups for exchange in group]))
    about = materials.topics.graph.about
    facts = {
        "steps": steps,
        "seed": config.seed,
        "tuples": f"{len(materials.train):,}",
        "backbone (SHA-256)": bare.backbone_sha256[:12],
        "training data (SHA-256)": materials.data.sha256[:12],
        "validation data (SHA-256)": materials.valid.sha256[:12],
        "commonsense graph": f"{Path(config.graph).name}, {about.nodes:,} words, "
        f"{about.edges:,} edges (SHA-256 {materials.topics.sha256[:12]})",
    }
    branches = "utterances and topic graph" if config.graph_branch else "utterances alone"
    artifact = replace(bare, statistics=calibration(human, groups))
    results |= verdict(Grade, engines, run, artifact, materials.valid)
    return replace(
        artifact,
        card=run.card(
            NAME,
            f"Ranking of true above false responses (negatives: {config.negatives}) by {branches}, "
            f"`{config.interaction}`, tuning `{config.tuning}` of {bare.backbone}"
            f"{', left as it was' if config.fixed else ''}. The score is from 0 to 1; the "
            "percentile says how many human responses score no better.",
            {**facts, **results},
            LIMITS,
        ),
    ), results


def measure(engines: Engines, scorer: Scorer, examples: Sequence[Example]) -> dict[str, Any]:
    """Ranking accuracy, negatives of each kind apart, beside answers that nobody learned."""
    if not examples:
        raise CauserieError("there is nothing to measure on: give more validation data")
    pairs = {
        NAME: np.stack(scores_of(scorer, examples), axis=1),
        "cosine of the untrained encoder": np.stack(_cosines(engines.encoder, examples), axis=1),
        "the longer response": np.stack(_lengths(examples), axis=1),
    }
    dialogues = np.array([example.dialogue for example in examples])
    kinds = np.array([example.kind for example in examples])
    results = {}
    for kind in sorted(set(kinds.tolist())):
        here = kinds == kind
        for name, values in pairs.items():
            share = ranking_estimates(values[here], dialogues[here].tolist()).above
            results[f"{kind} negatives (n={here.sum():,}), true above false: {name}"] = share.text(
                3
            )
    return results


def _cosines(encoder: Encoder, examples: Sequence[Example]) -> tuple[NDArray[Any], ...]:
    def cosines(exchanges: Sequence[Exchange]) -> NDArray[Any]:
        contexts = [(tuple(turn.text for turn in e.context),) for e in exchanges]
        responses = [((e.response.text,),) for e in exchanges]
        one, other = (encoder.encode(inputs) for inputs in (contexts, responses))
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        found: NDArray[Any] = (one * other).sum(axis=1) / np.maximum(lengths, 1e-12)
        return found

    return (
        cosines([example.true.exchange for example in examples]),
        cosines([example.false.exchange for example in examples]),
    )


def _lengths(examples: Sequence[Example]) -> tuple[NDArray[Any], ...]:
    def lengths(exchanges: Sequence[Exchange]) -> NDArray[Any]:
        return np.array([len(words(exchange.response.text)) for exchange in exchanges])

    return (
        lengths([example.true.exchange for example in examples]),
        lengths([example.false.exchange for example in examples]),
    )
