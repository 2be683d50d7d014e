"""From annotations and unlabelled dialogues to an artifact (section 3.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.io import write_whole
from causerie.metrics.causalscore import CausalScore
from causerie.metrics.causalscore.classifier import (
    CONDITIONAL,
    SECOND_ENCODER,
    UNCONDITIONAL,
    Classifier,
    classifiers,
    dependents,
)
from causerie.metrics.causalscore.config import HEAD, CausalScoreConfig
from causerie.metrics.causalscore.data import Data
from causerie.metrics.causalscore.formula import SCORES
from causerie.metrics.causalscore.learning import (
    Classification,
    Round,
    fingerprint,
    put_weights,
    self_train,
    unlabelled_triples,
    weights_of,
)
from causerie.metrics.causalscore.measure import (
    always_positive,
    answered,
    asked,
    position_only,
    with_random_responses,
)
from causerie.metrics.causalscore.questions import (
    Example,
    Item,
    Pairs,
    PrecedingTwo,
    TrainingSet,
    Triples,
    annotated_items,
    measured_triples,
    unlabelled_items,
)
from causerie.metrics.trained import (
    ENCODER,
    TrainingRun,
    calibration,
    card,
    shared_encoder,
    starting_encoder,
)
from causerie.models.artifact import Artifact, load_artifact
from causerie.stats import auc
from causerie.training.annotated import AnnotatedCorpus
from causerie.training.log import draw_scores
from causerie.training.loop import fit
from causerie.training.vectors import FixedVectors

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder

LATER = ("rounds", "curve")
"""Options that change no training by itself: they can still be set at a resume."""

LIMITS = (
    "English, the kinds of conversation that were annotated; others deserve annotations of their "
    "own.",
    "Causes are sought in a window before the response, and between single utterances.",
    "Judges whether a response answers what was said, not whether it is true.",
)
BY_POSITION = "by position only"
BEHIND = (
    "C_cond finds annotated causes less surely than their place alone does (see the results): "
    "people mostly name the preceding utterance, and the classifier sees texts, not places."
)


class Training:
    """Both classifiers of one run, one after the other."""

    def __init__(self, engines: Engines, run: TrainingRun, data: Data) -> None:
        self.run, self.data = run, data
        self.config: CausalScoreConfig = run.config
        config = self.config
        torch.manual_seed(config.seed)
        self.start = load_artifact(run.init) if run.init else None
        self.encoder = self._encoder(engines, "encoder")
        second = self._encoder(engines, SECOND_ENCODER) if self.own_encoder else self.encoder
        self.unconditional, self.conditional = classifiers(self.encoder, second, config)
        if self.start and self.start.metric == CausalScore.name:
            self.unconditional.head.load_state_dict(self.start.part(UNCONDITIONAL))
            self.conditional.head.load_state_dict(self.start.part(CONDITIONAL))
        self.items = annotated_items(data.annotated, config.history)
        self.valid_items = annotated_items(data.valid, config.history)
        self.free_items = unlabelled_items(
            data.unlabelled,
            config.history,
            config.exchanges,
            config.seed,
            first_source=len(data.annotated.sources),
        )
        self.rounds: list[Round] = []
        self.curve: list[dict[str, Any]] = []

    @property
    def own_encoder(self) -> bool:
        """Whether the conditional classifier has an encoder of its own."""
        return self.config.interaction == "cross"

    def _encoder(self, engines: Engines, part: str) -> Encoder:
        if self.start and self.start.metric == CausalScore.name:
            return starting_encoder(engines, self.config, self.start, (*HEAD, *ENCODER), part)
        return starting_encoder(engines, self.config, self.start)

    def unconditionally(self) -> None:
        """Train C_uncond: annotated causes and preceding utterances, labelled or not."""
        self.run.say("training the unconditional classifier")
        if not self.config.learns_encoder:
            self._remember()
        self.fit(
            self.unconditional,
            Pairs([*self.items, *self.free_items], self.config.seed, self.config.others),
            self.valid_pairs(),
            "unconditional",
            learn_encoder=self.config.learns_encoder,
        )
        self.encoder.forget()
        if self.config.learns_encoder and not self.own_encoder:
            self._remember()

    def conditionally(self) -> None:
        """Train C_cond: the learning curve, then algorithm 1; every round is logged."""
        config = self.config
        valid = self.valid_triples()
        untrained = weights_of(self.conditional)

        def fit_on(name: str, examples: TrainingSet) -> dict[str, float]:
            learn = self.own_encoder and config.learns_encoder
            return self.fit(self.conditional, examples, valid, name, learn_encoder=learn)

        for number in range(1, config.curve):
            part = self.data.annotated.part(number / config.curve, config.seed)
            self.run.say(f"learning curve: {len(part):,} annotated exchanges")
            examples = self._labelled(annotated_items(part, config.history))
            scores = fit_on(f"curve-{number}", examples)
            self.curve.append({"annotations": len(part), **scores})
            put_weights(self.conditional, untrained)
        self.run.say("training the conditional classifier")
        unlabelled = (
            unlabelled_triples(
                self.free_items, dependents(self.unconditional, self.free_items), config.seed
            )
            if config.rounds and config.causes == "annotated"
            else []
        )
        self_train(
            self.conditional,
            partial(self._labelled, self.items),
            unlabelled,
            config,
            lambda number, examples: fit_on(f"conditional-{number}", examples),
            self._log_round,
        )
        if not config.curve:
            return
        first = self.rounds[0]
        self.curve.append(
            {
                "annotations": len(self.data.annotated),
                "auc": first.auc,
                "balanced accuracy": first.balanced_accuracy,
            }
        )
        self._draw_curve()

    def _labelled(self, items: Sequence[Item], pseudo: Sequence[Example] = ()) -> TrainingSet:
        config = self.config
        if config.causes == "preceding two":
            return PrecedingTwo(items, config.seed)
        return Triples(
            items,
            dependents(self.unconditional, items),
            config.seed,
            matched=config.negatives == "matched",
            pseudo=pseudo,
        )

    def valid_pairs(self) -> list[Example]:
        return Pairs(self.valid_items, self.config.seed).epoch(0)

    def valid_triples(self) -> list[Example]:
        found = dependents(self.unconditional, self.valid_items)
        return measured_triples(self.valid_items, found, self.config.seed)

    def fit(
        self,
        classifier: Classifier,
        examples: TrainingSet,
        valid: Sequence[Example],
        name: str,
        *,
        learn_encoder: bool,
    ) -> dict[str, float]:
        """Train on, in a folder of its own; the best validation scores."""
        config = self.config
        task = Classification(classifier, config, examples, valid, learn_encoder=learn_encoder)
        progress = fit(
            task,
            config.loop(len(task.batches)),
            self.run.folder / name,
            identity={
                **{key: value for key, value in asdict(config).items() if key not in LATER},
                "annotations": self.data.annotated.sha256,
                "valid": fingerprint(valid),
                "unlabelled": self.data.unlabelled.sha256,
                "examples": fingerprint(examples.epoch(0)),
                "backbone": self.encoder.sha256,
                "init": self.start.sha256 if self.start else None,
            },
            resume=self.run.resume,
            watch=self.run.watch,
        )
        classifier.encoder.forget()  # what it remembers is from other weights
        return progress.best

    def _remember(self) -> None:
        """From now on the encoders stay as they are: every text is encoded once."""
        self.unconditional.vectors = FixedVectors(self.encoder, self.config.pooling)
        self.conditional.vectors = (
            FixedVectors(self.conditional.encoder, self.config.pooling)
            if self.own_encoder
            else self.unconditional.vectors
        )
        if not self.own_encoder:
            # All at once: which texts are encoded together shows in the last bits of their
            # vectors, and a resumed run must have the same.
            items = (*self.items, *self.valid_items, *self.free_items)
            texts = dict.fromkeys(text for i in items for text in (*i.utterances, i.response))
            self.run.say(f"encoding {len(texts):,} texts")
            self.unconditional.vectors([((text,),) for text in texts])

    def _log_round(self, done: Round) -> None:
        self.rounds.append(done)
        self.run.say(
            f"round {done.round}: {done.positives:,} positives and {done.negatives:,} negatives "
            f"added, AUC {done.auc:.4f}, {'kept' if done.kept else 'not better: dropped'}"
        )
        _write_lines(self.run, "rounds.jsonl", [asdict(one) for one in self.rounds])

    def _draw_curve(self) -> None:
        _write_lines(self.run, "learning-curve.jsonl", self.curve)
        points = [(int(point["annotations"]), float(point["auc"])) for point in self.curve]
        below = f"annotated exchanges: {points[0][0]:,} to {points[-1][0]:,}"
        draw_scores(self.run.folder / "learning-curve.svg", points, "validation AUC", below)

    def weights(self) -> dict[str, torch.Tensor]:
        tuning = self.config.encoder_tuning
        parts = {
            "encoder": tuning.weights(self.encoder.model),
            UNCONDITIONAL: self.unconditional.head.state_dict(),
            CONDITIONAL: self.conditional.head.state_dict(),
        }
        if self.own_encoder:
            parts[SECOND_ENCODER] = tuning.weights(self.conditional.encoder.model)
        return {f"{part}.{key}": t for part, state in parts.items() for key, t in state.items()}


def train(engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
    """Train both classifiers, calibrate and measure on the validation annotations."""
    config: CausalScoreConfig = run.config
    data = Data.read(run)
    training = Training(engines, run, data)
    training.unconditionally()
    training.conditionally()
    bare = Artifact(
        metric=CausalScore.name,
        backbone=training.encoder.name,
        backbone_sha256=training.encoder.sha256,
        options=asdict(config),
        network=training.weights(),
        statistics={},
        card="",
        licence=run.licence,
        encoder_of=shared_encoder(run),
    )
    run.say("measuring on validation data")
    metric = CausalScore(engines, bare)  # the weights as they are saved
    results, behind = measure(metric, data.valid, config.seed)
    facts = {
        "annotated exchanges": f"{len(data.annotated):,}",
        "unlabelled dialogues": f"{len(data.unlabelled):,}",
        "seed": config.seed,
        "backbone (SHA-256)": bare.backbone_sha256[:12],
        "annotations (SHA-256)": data.annotated.sha256[:12],
        "validation annotations (SHA-256)": data.valid.sha256[:12],
        **{
            f"round {one.round} of self-training": f"{one.positives:,} positives added, AUC "
            f"{one.auc:.4f}, {'kept' if one.kept else 'dropped'}"
            for one in training.rounds
        },
        **{
            f"AUC with {point['annotations']:,} annotated exchanges": f"{point['auc']:.4f}"
            for point in training.curve
        },
    }
    artifact = replace(
        bare,
        statistics=calibrate(metric, data.valid),
        card=card(
            CausalScore.name,
            run,
            f"Two classifiers (`{config.interaction}`, tuning `{config.tuning}` of "
            f"{bare.backbone}): whether a response depends on an utterance, and whether it still "
            "does given another. The score is equation 1 over the last "
            f"{config.history} turns; the percentile says how many human responses score no "
            "better.",
            {**facts, **results},
            (*LIMITS, *([BEHIND] if behind else [])),
            held_out="one conversation in five",
        ),
    )
    return artifact, results


def measure(metric: CausalScore, valid: AnnotatedCorpus, seed: int) -> tuple[dict[str, Any], bool]:
    """Results: both classifiers beside trivial answers, true against random responses by every
    score; and whether places of utterances find annotated causes better than C_cond does."""
    results: dict[str, Any] = {}
    surest: dict[str, float] = {}
    for name, (classifier, examples) in asked(metric, valid, seed).items():
        answers = {
            name: answered(classifier, examples),
            f"{name}, {BY_POSITION}": position_only(examples),
            f"{name}, always positive": always_positive(examples),
        }
        for key, given in answers.items():
            measures = given.measures(examples)
            surest[key] = measures["auc"]
            figures = [f"{value:.3f}" for value in measures.values()]
            results[f"{key}: AUC / balanced accuracy"] = " / ".join(figures)
    true = metric.graphs([one.exchange for one in valid.annotations])
    false = metric.graphs([e for s in valid.sources for e in with_random_responses(s, seed)])
    labels = [True] * len(true) + [False] * len(false)
    for name, score in SCORES.items():
        value = auc([score(graph) for graph in true + false], labels)
        results[f"true against random, {name}: AUC"] = f"{value:.3f}"
    return results, surest["C_cond"] < surest[f"C_cond, {BY_POSITION}"]


def calibrate(metric: CausalScore, valid: AnnotatedCorpus) -> dict[str, torch.Tensor]:
    """Quantiles of the scores of held-out human responses and dialogues."""
    groups = [dialogue.exchanges() for dialogue in valid.dialogues.dialogues]
    graphs = metric.graphs([exchange for group in groups for exchange in group])
    tables: dict[str, torch.Tensor] = {}
    for name, score in SCORES.items():
        tables |= calibration(np.array([score(graph) for graph in graphs]), groups, f".{name}")
    return tables


def _write_lines(run: TrainingRun, name: str, entries: Sequence[Mapping[str, Any]]) -> None:
    write_whole(run.folder / name, "".join(json.dumps(entry) + "\n" for entry in entries))
