"""From annotations and unlabelled dialogues to an artifact (section 3.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causerie.errors import CauserieError
from causerie.io import write_whole
from causerie.metrics.causalscore.classifier import (
    SECOND_ENCODER,
    Classifier,
    Classifiers,
    dependents,
    restore,
)
from causerie.metrics.causalscore.config import HEAD, CausalScoreConfig
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
    annotated_items,
    measured_triples,
    unlabelled_items,
)
from causerie.metrics.trained import calibration
from causerie.stats import ranking_estimates
from causerie.training.checkpoint import draw_scores
from causerie.training.corpus import AnnotatedCorpus, Corpus
from causerie.training.encoders import FixedVectors, load_heads, starting_encoder
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines

NAME = "causalscore"
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


@dataclass(frozen=True)
class Data:
    """What a training run reads."""

    annotated: AnnotatedCorpus
    valid: AnnotatedCorpus
    unlabelled: Corpus

    @classmethod
    def read(cls, run: TrainingRun) -> Data:
        """No conversation is in two of them, nor in what is to stay unseen."""
        annotated = AnnotatedCorpus.read(run.annotations, run.say)
        if run.valid:
            valid = AnnotatedCorpus.read(run.valid, run.say)
        else:
            annotated, valid = annotated.split(run.config.seed)
        unseen = AnnotatedCorpus.read(run.unseen, run.say)
        held, valid = valid, valid.apart_from(unseen)
        apart = annotated.apart_from(unseen).apart_from(valid)
        for what, before, after in (("validation", held, valid), ("training", annotated, apart)):
            if len(after) < len(before):
                left = len(before) - len(after)
                run.say(f"left out {left:,} {what} annotations that share an exchange with others")
            if not all(after.sources):
                raise CauserieError(f"all {what} annotations of a file are in --unseen or --valid")
        unlabelled = Corpus.read(run.data, lambda record: run.say(f"skipped {record}"))
        free = unlabelled.without(valid.dialogues).without(unseen.dialogues)
        if len(free) < len(unlabelled):
            shared = len(unlabelled) - len(free)
            run.say(f"left out {shared:,} dialogues that share an exchange with held-out ones")
        return cls(apart, valid, free)


class Training:
    """Both classifiers of one run, one after the other."""

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

    def train_unconditional(self) -> None:
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

    def train_conditional(self) -> None:
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

    def parts(self) -> dict[str, Mapping[str, torch.Tensor]]:
        """The weights, as an artifact keeps them."""
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
    config: CausalScoreConfig = run.config
    data = Data.read(run)
    training = Training(engines, run, data)
    training.train_unconditional()
    training.train_conditional()
    bare = run.artifact(NAME, training.encoder, config, training.parts())
    run.say("measuring on validation data")
    saved = restore(engines, bare)  # the weights as they are saved
    results, behind = measure(saved, data.valid, config.seed)
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
        statistics=calibrate(saved, data.valid),
        card=run.card(
            NAME,
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


def measure(by: Classifiers, valid: AnnotatedCorpus, seed: int) -> tuple[dict[str, Any], bool]:
    """Results: both classifiers beside trivial answers, true against random responses by every
    score; and whether places of utterances find annotated causes better than C_cond does."""
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
    """Quantiles of the scores of held-out human responses and dialogues."""
    groups = [dialogue.exchanges() for dialogue in valid.dialogues.dialogues]
    graphs = by.graphs([exchange for group in groups for exchange in group])
    tables: dict[str, torch.Tensor] = {}
    for name, score in SCORES.items():
        tables |= calibration(np.array([score(graph) for graph in graphs]), groups, f".{name}")
    return tables


def _write_lines(run: TrainingRun, name: str, entries: Sequence[Mapping[str, Any]]) -> None:
    write_whole(run.folder / name, "".join(json.dumps(entry) + "\n" for entry in entries))
