"""Training `slips` on dialogues: replies are made faulty, and the classifier learns the faults."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causerie.dialogue import Exchange
from causerie.engines.encoder import pool
from causerie.metrics.slips.classifier import Classifier, counts_of, restore
from causerie.metrics.slips.config import SlipsConfig
from causerie.stats.classification import win_share
from causerie.training.corpus import Corpus, EpochBatches, sample
from causerie.training.encoders import averaged_with_stock, load_heads, starting_encoder
from causerie.training.faulty import FAULTS, Faulty, Replies, good, made
from causerie.training.loop import Task
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

NAME = "slips"
HEAD = ("history", "hidden")
"""Settings that must agree for the weights of --init to fit."""
TRIES = 4
"""Number of faults tried on a reply before it is left unchanged."""
VALIDATED, MEASURED = 1500, 6000
"""Number of validation replies for choosing the weights, and for the final results."""
CHUNK = 64
"""Number of batches within which replies are sorted by length, for little padding."""
LIMITS = (
    "English, everyday conversation.",
    "Learned from faults that were made: those of real systems may look otherwise.",
    "Sees the last turns only; what contradicts something said earlier is not noticed.",
    "Judges the reply as text: whether it is true is not asked.",
)


@dataclass(frozen=True, slots=True)
class Example:
    """A reply after its context, faulty or good."""

    exchange: Exchange
    reply: Faulty

    @property
    def texts(self) -> tuple[list[str], str]:
        return [turn.text for turn in self.exchange.context], self.reply.text


class Drawing:
    """Draws examples from a corpus: every exchange once, some replies left good."""

    def __init__(self, corpus: Corpus, config: SlipsConfig) -> None:
        self._config = config
        self._drawn = [
            (exchange, replies)
            for source in corpus.sources
            for replies in [Replies(source)]
            for dialogue in source
            for exchange in dialogue.exchanges()
            if exchange.response.text.split()
        ]

    def __len__(self) -> int:
        return min(len(self._drawn), self._config.exchanges or len(self._drawn))

    def example(self, exchange: Exchange, replies: Replies, rng: random.Random) -> Example:
        if rng.random() >= self._config.good:
            for fault in rng.sample(FAULTS, TRIES):
                if faulty := made(exchange, fault, replies, rng):
                    return Example(exchange, _untidied(faulty, rng))
        return Example(exchange, _untidied(good(exchange, replies), rng))

    def epoch(self, number: int) -> list[Example]:
        """Return the examples of an epoch, in batches of similar length."""
        seed = f"{self._config.seed}/{number}"
        drawn = sample(self._drawn, len(self), hash_of(seed))
        rng = random.Random(seed)
        rng.shuffle(drawn)
        examples = [self.example(*one, rng) for one in drawn]
        batch = self._config.batch
        groups = [examples[i : i + CHUNK * batch] for i in range(0, len(examples), CHUNK * batch)]
        batches = []
        for group in groups:
            group.sort(key=lambda one: _length(one, self._config.history))
            batches += [group[i : i + batch] for i in range(0, len(group), batch)]
        rng.shuffle(batches)
        batches.sort(key=lambda one: len(one) < batch)  # an incomplete one comes last
        return [one for batch_ in batches for one in batch_]


def hash_of(text: str) -> int:
    """Return a seed that is the same in every process."""
    return random.Random(text).getrandbits(32)


def _length(example: Example, history: int) -> int:
    said = example.exchange.last(history)
    return sum(len(turn.text) for turn in said) + len(example.reply.text)


def _untidied(faulty: Faulty, rng: random.Random) -> Faulty:
    """Remove casing or the last full stop from some replies: they must not indicate faults."""
    text = faulty.text
    if rng.random() < 0.3:
        text = text.rstrip(" .!") or text
    if rng.random() < 0.3:
        text = text.lower()
    return replace(faulty, text=text)


def labels_of(some: Sequence[Example]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which faults replies have, and for which of them that is known."""
    has = np.array([[f in one.reply.faults for f in FAULTS] for one in some], dtype=bool)
    unclear = np.array([[f in one.reply.unclear for f in FAULTS] for one in some], dtype=bool)
    return has.reshape(-1, len(FAULTS)), has.reshape(-1, len(FAULTS)) | ~unclear


class Recognition(Task):
    """Binary cross-entropy over all faults that a reply is known to have or not to have."""

    def __init__(self, classifier: Classifier, drawing: Drawing, valid: list[Example]) -> None:
        self.classifier, self._valid = classifier, valid
        self.config = classifier.config
        self.module = torch.nn.ModuleDict(
            {"head": classifier.head, "encoder": classifier.encoder.model}
        )
        self.batches = EpochBatches(len(drawing), self.config.batch, drawing.epoch)

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> Sequence[Example]:
        return self.batches[index]

    def loss(self, batch: Sequence[Example]) -> Tensor:
        has, known = (torch.from_numpy(one).float() for one in labels_of(batch))
        logits = self._logits(batch).float().cpu()
        losses = functional.binary_cross_entropy_with_logits(logits, has, known, reduction="sum")
        return losses / known.sum()

    def _logits(self, batch: Sequence[Example]) -> Tensor:
        encoder = self.classifier.encoder
        texts = [one.texts for one in batch]
        rows = encoder.input.rows([self.classifier.input(*both) for both in texts])
        collated = encoder.input.collate(rows)
        vectors = pool(encoder.forward(collated), collated["attention_mask"], self.config.pooling)
        logits: Tensor = self.classifier.head(vectors, counts_of(texts).to(encoder.device))
        return logits

    def validate(self) -> dict[str, float]:
        self.classifier.encoder.forget()
        areas = areas_under(self.classifier, self._valid)
        return {"mean AUC": float(np.nanmean(list(areas.values())))}


def scores_of(classifier: Classifier, some: Sequence[Example]) -> NDArray[np.float32]:
    return classifier.logits([one.exchange.with_response(one.reply.text) for one in some])


def areas_under(classifier: Classifier, some: Sequence[Example]) -> dict[str, float]:
    """Return the AUC of each fault: replies that have it against good ones."""
    logits, (has, _) = scores_of(classifier, some), labels_of(some)
    good_ones = ~has.any(1)
    return {
        fault: win_share(logits[has[:, i], i], logits[good_ones, i])
        for i, fault in enumerate(FAULTS)
    }


def train(engines: Engines, run: TrainingRun) -> Trained:
    """Train, choosing the weights on one half of the validation data and measuring on the other."""
    config: SlipsConfig = run.config
    data, valid = run.corpora()
    torch.manual_seed(config.seed)
    encoder = starting_encoder(engines, run, NAME, HEAD)
    classifier = Classifier(encoder, config)
    load_heads(run, NAME, {"head": classifier.head})
    drawing = Drawing(data, config)
    if run.own_start(NAME) is None:
        first = drawing.epoch(0)[:VALIDATED]
        classifier.head.standardise(counts_of([one.texts for one in first]))
    choosing, measuring = (_fixed(half, config) for half in valid.halves(config.seed))
    task = Recognition(classifier, drawing, choosing[:VALIDATED])
    progress = run.fit(
        task,
        config.loop(len(task.batches)),
        {"data": data.sha256, "valid": valid.sha256, "backbone": encoder.sha256},
    )
    encoder.forget()
    parts = {
        "encoder": averaged_with_stock(engines, config.encoder_tuning, encoder, config.stock),
        "head": classifier.head.state_dict(),
    }
    bare = run.artifact(NAME, encoder, config, parts)
    run.say("measuring on validation data")
    saved = restore(engines, bare)  # with the weights as they will be saved
    results = measure(saved, measuring[:MEASURED])
    facts = {
        "steps": progress.best_step,
        "seed": config.seed,
        "backbone (SHA-256)": bare.backbone_sha256[:12],
        "training data (SHA-256)": data.sha256[:12],
        "validation data (SHA-256)": valid.sha256[:12],
    }
    about = (
        f"Recognises {len(FAULTS)} faults of replies: {bare.backbone} (tuning `{config.tuning}`) "
        "reads context and reply together, and a small network sees its vector and what can be "
        "counted in the texts. The faults were made from good replies."
    )
    card = run.card(NAME, about, {**facts, **results}, LIMITS)
    return replace(bare, card=card), results


def _fixed(corpus: Corpus, config: SlipsConfig) -> list[Example]:
    """Return examples of held-out dialogues in random order."""
    drawing = Drawing(corpus, replace(config, exchanges=None, good=0.5))
    return random.Random(config.seed).sample(drawing.epoch(0), len(drawing))


def measure(classifier: Classifier, some: Sequence[Example]) -> dict[str, Any]:
    """Return the AUC of replies with each fault against good ones, for the card."""
    count = int((~labels_of(some)[0].any(1)).sum())
    return {
        "good replies that were measured": f"{count:,}",
        **{f"{f}: AUC": f"{a:.3f}" for f, a in areas_under(classifier, some).items()},
    }
