"""Training `causalscore` on annotations and dialogues, or on dialogues alone (section 3.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.errors import CauserieError
from causerie.io import write_whole
from causerie.metrics.causalscore import CausalScore
from causerie.metrics.causalscore.classifier import (
    SECOND_ENCODER,
    Classifier,
    Classifiers,
    dependents,
    restore,
)
from causerie.metrics.causalscore.config import HEAD, CausalScoreConfig
from causerie.metrics.causalscore.data import Alignment, Data
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
    DRAWN,
    always_positive,
    evaluation_examples,
    position_only,
    predict,
    with_random_responses,
)
from causerie.metrics.causalscore.questions import (
    Example,
    Item,
    Pairs,
    PrecedingTwo,
    TrainingSet,
    Triples,
    items_of,
    measured_triples,
)
from causerie.metrics.trained import calibration
from causerie.metrics.verdict import verdict
from causerie.stats import Estimate, auc_of_clusters, estimates_of, ranking_estimates
from causerie.training.checkpoint import draw_scores
from causerie.training.corpus import AnnotatedCorpus
from causerie.training.encoders import FixedVectors, load_heads, starting_encoder
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines

NAME = "causalscore"
LATER = ("rounds", "curve")
"""Options that do not change the training of a single classifier, so a resume may change them."""

LIMITS = (
    "English, the kinds of conversation that it was trained on; others deserve a training of their "
    "own.",
    "Causes are sought in a window before the response, and between single utterances.",
    "Judges whether a response answers what was said, not whether it is true.",
)
BY_POSITION = "by position only"
WEAK = (
    "Nobody annotated the causes that C_cond learned from: they are weak labels, by an alignment "
    "of responses with what they answer, and the results for C_cond above tell how well it repeats "
    "them. How well it finds causes that people annotated is in docs/causalscore.md."
)
BEHIND = (
    "C_cond finds causes less surely than their place alone does (see the results): mostly the "
    "preceding utterance is one."
)


class Training:
    """Trains both classifiers of a run, one after the other."""

    def __init__(self, engines: Engines, run: TrainingRun, data: Data) -> None:
        self.run, self.data = run, data
        self.config: CausalScoreConfig = run.config
        config = self.config
        torch.manual_seed(config.seed)
        self.encoder = starting_encoder(engines, run, NAME, HEAD)
        second = self.encoder
        if self.own_encoder:
            second = starting_encoder(engines, run, NAME, HEAD, SECOND_ENCODER)
        self.classifiers = Classifiers.untrained(self.encoder, second, config)
        self.unconditional = self.classifiers.unconditional
        self.conditional = self.classifiers.conditional
        load_heads(run, NAME, self.classifiers.heads)
        self.items = items_of(data.annotated, config.history)
        self.valid_items = items_of(data.valid, config.history)
        first = len(data.annotated.sources)
        self.free_items = items_of(data.unlabelled, config.history, first)
        self.rounds: list[Round] = []
        self.curve: list[dict[str, Any]] = []

    @property
    def own_encoder(self) -> bool:
        """Whether the conditional classifier has an encoder of its own."""
        return self.config.interaction == "cross"

    def train_unconditional(self) -> None:
        """Train C_uncond: annotated causes and preceding utterances, labelled or not."""
        self.run.say("training the unconditional classifier")
        if not self.config.learns_encoder:
            self._remember()
        self.fit(
            self.unconditional,
            Pairs(
                [*self.items, *self.free_items],
                self.config.seed,
                self.config.others,
                said=self.config.said,
            ),
            self.valid_pairs(),
            "unconditional",
            learn_encoder=self.config.learns_encoder,
        )
        self.encoder.forget()
        if self.config.learns_encoder and not self.own_encoder:
            self._remember()

    def find_causes(self) -> None:
        """Add weak labels, by C_uncond and distance, to exchanges without annotations."""
        history = self.config.history
        aligned = Alignment.learn(self.unconditional, self.items)
        shares = ", ".join(f"{share:.3f}" for share in aligned.shares)
        self.run.say(f"how often an utterance is answered, the preceding one first: {shares}")
        self.data = replace(
            self.data,
            annotated=aligned.label(self.unconditional, self.data.annotated, history),
            valid=aligned.label(self.unconditional, self.data.valid, history),
        )
        self.items = items_of(self.data.annotated, history)
        self.valid_items = items_of(self.data.valid, history)

    def train_conditional(self) -> None:
        """Train C_cond: first the learning curve, then algorithm 1 with every round logged."""
        config = self.config
        valid = self.valid_triples()
        untrained = weights_of(self.conditional)

        def fit_on(name: str, examples: TrainingSet) -> dict[str, float]:
            learn = self.own_encoder and config.learns_encoder
            return self.fit(self.conditional, examples, valid, name, learn_encoder=learn)

        def mark(part: AnnotatedCorpus, scores: dict[str, float]) -> None:
            found = self._auc(valid)
            ends = {"low": found.low, "high": found.high}
            self.curve.append({"annotations": len(part), **scores, **ends})

        for number in range(1, config.curve):
            part = self.data.annotated.part(number / config.curve, config.seed)
            self.run.say(f"learning curve: {len(part):,} annotated exchanges")
            examples = self._labelled(items_of(part, config.history))
            mark(part, fit_on(f"curve-{number}", examples))
            put_weights(self.conditional, untrained)
        self.run.say("training the conditional classifier")
        unlabelled = (
            unlabelled_triples(
                self.free_items, dependents(self.unconditional, self.free_items), config.seed
            )
            if config.rounds and config.causes == "annotated"
            else []
        )

        def fit_round(number: int, examples: TrainingSet) -> dict[str, float]:
            scores = fit_on(f"conditional-{number}", examples)
            if config.curve and number == 0:
                mark(self.data.annotated, scores)
            return scores

        self_train(
            self.conditional,
            partial(self._labelled, self.items),
            unlabelled,
            config,
            fit_round,
            self._log_round,
        )
        if config.curve:
            self._draw_curve()

    def _auc(self, valid: Sequence[Example]) -> Estimate:
        """Return the present AUC of C_cond, with an interval clustered by conversation."""
        answers = predict(self.conditional, valid).scores
        labels = [example.label for example in valid]
        clusters = [example.conversation for example in valid]
        statistic = auc_of_clusters(answers, labels, clusters)
        (found,) = estimates_of(statistic, len(valid), seed=self.config.seed)
        return found

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
        """Continue training in a subfolder of its own; return the best validation scores."""
        config = self.config
        task = Classification(classifier, config, examples, valid, learn_encoder=learn_encoder)
        progress = self.run.fit(
            task,
            config.loop(len(task.batches)),
            {
                "annotations": self.data.annotated.sha256,
                "valid": fingerprint(valid),
                "unlabelled": self.data.unlabelled.sha256,
                "examples": fingerprint(examples.epoch(0)),
                "backbone": self.encoder.sha256,
            },
            folder=name,
            later=LATER,
        )
        classifier.encoder.forget()  # its cache belongs to older weights
        return progress.best

    def _remember(self) -> None:
        """Cache the vectors of the encoders, which are not trained further."""
        self.unconditional.vectors = FixedVectors(self.encoder, self.config.pooling)
        self.conditional.vectors = (
            FixedVectors(self.conditional.encoder, self.config.pooling)
            if self.own_encoder
            else self.unconditional.vectors
        )
        if not self.own_encoder:
            # All at once: the last bits of vectors depend on which texts are encoded
            # together, and a resumed run must have the same.
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
        ends = [(one["low"] or 0.0, one["high"] or 1.0) for one in self.curve]
        below = f"annotated exchanges: {points[0][0]:,} to {points[-1][0]:,}"
        draw_scores(self.run.folder / "learning-curve.svg", points, "validation AUC", below, ends)

    def parts(self) -> dict[str, Mapping[str, torch.Tensor]]:
        """Return the weights by part of the artifact."""
        tuning = self.config.encoder_tuning
        parts: dict[str, Mapping[str, torch.Tensor]] = {
            "encoder": tuning.weights(self.encoder.model),
            **{part: head.state_dict() for part, head in self.classifiers.heads.items()},
        }
        if self.own_encoder:
            parts[SECOND_ENCODER] = tuning.weights(self.conditional.encoder.model)
        return parts


def train(engines: Engines, run: TrainingRun) -> Trained:
    """Train both classifiers, calibrate and measure on the validation annotations."""
    run = _with_causes(run)
    config: CausalScoreConfig = run.config
    training = Training(engines, run, Data.read(run))
    training.train_unconditional()
    if config.causes == "weak":
        training.find_causes()
    training.train_conditional()
    data = training.data
    bare = run.artifact(NAME, training.encoder, config, training.parts())
    run.say("measuring on validation data")
    saved = restore(engines, bare)  # with the weights as they will be saved
    results, behind = measure(saved, data.valid, config.seed)
    labelled = "annotated exchanges" if run.annotations else "exchanges without annotations"
    facts = {
        labelled: f"{len(data.annotated):,}",
        "unlabelled exchanges": f"{len(data.unlabelled):,}",
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
            f"AUC with {point['annotations']:,} annotated exchanges": Estimate(
                point["auc"], len(data.valid), point["low"], point["high"]
            ).text(4)
            for point in training.curve
        },
    }
    artifact = replace(bare, statistics=calibrate(saved, data.valid))
    results |= verdict(CausalScore, engines, run, artifact, data.valid.dialogues)
    return replace(
        artifact,
        card=run.card(
            NAME,
            f"Two classifiers (`{config.interaction}`, tuning `{config.tuning}` of "
            f"{bare.backbone}): whether a response depends on an utterance, and whether it still "
            "does given another. The score is equation 1 over the last "
            f"{config.history} turns; the percentile says how many human responses score no "
            "better.",
            {**facts, **results},
            (
                *LIMITS,
                *([WEAK] if config.causes == "weak" else []),
                *([BEHIND] if behind else []),
            ),
            held_out="one conversation in five" if run.annotations else "one dialogue in twenty",
        ),
    ), results


def _with_causes(run: TrainingRun) -> TrainingRun:
    """Return the run, with weak labels if there are no annotations."""
    config: CausalScoreConfig = run.config
    if run.annotations and config.causes == "weak":
        raise CauserieError("causes=weak learns from dialogues alone: omit --annotations")
    if run.annotations or config.causes != "annotated":
        return run
    run.say(
        "no annotations: the conditional classifier learns from weak labels, which depend on the "
        "unconditional classifier and on the distance from the response"
    )
    return replace(run, config=replace(config, causes="weak"))


def measure(by: Classifiers, valid: AnnotatedCorpus, seed: int) -> tuple[dict[str, Any], bool]:
    """Return results, and whether distance alone finds annotated causes better than C_cond.

    The results compare both classifiers with trivial baselines, and true with random responses
    by every score.
    """
    results: dict[str, Any] = {}
    surest: dict[str, float] = {}
    for name, (classifier, examples) in evaluation_examples(by, valid, seed).items():
        answers = {
            name: predict(classifier, examples),
            f"{name}, {BY_POSITION}": position_only(examples),
            f"{name}, always positive": always_positive(examples),
        }
        for key, given in answers.items():
            measures = given.measures(examples)
            surest[key] = measures["auc"]
            figures = [f"{value:.3f}" for value in measures.values()]
            results[f"{key}: AUC / balanced accuracy"] = " / ".join(figures)
    true = by.graphs([one.exchange for one in valid.annotations])
    false = by.graphs([e for s in valid.sources for e in with_random_responses(s, seed)])
    conversations = [one.conversation for one in valid.annotations]
    for name, score in SCORES.items():
        others = np.reshape([score(graph) for graph in false], (len(true), DRAWN))
        items = np.column_stack([[score(graph) for graph in true], others])
        found = ranking_estimates(list(items), conversations)
        results[f"true against random, {name}: R@1 of {1 + DRAWN} / above one"] = (
            f"{found.recall.text(3)} / {found.above.text(3)}"
        )
    return results, surest["C_cond"] < surest[f"C_cond, {BY_POSITION}"]


def calibrate(by: Classifiers, valid: AnnotatedCorpus) -> dict[str, torch.Tensor]:
    """Return quantiles of the scores of held-out human responses and dialogues."""
    groups = [dialogue.exchanges() for dialogue in valid.dialogues.dialogues]
    graphs = by.graphs([exchange for group in groups for exchange in group])
    tables: dict[str, torch.Tensor] = {}
    for name, score in SCORES.items():
        tables |= calibration(np.array([score(graph) for graph in graphs]), groups, f".{name}")
    return tables


def _write_lines(run: TrainingRun, name: str, entries: Sequence[Mapping[str, Any]]) -> None:
    write_whole(run.folder / name, "".join(json.dumps(entry) + "\n" for entry in entries))
