"""Tuning a language model on conversations, so that it knows how people react to each other.

How well it knows those that it has not seen is measured twice: nats per character of what is
said, and how often it finds what a user really said to the system among what other users said.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causerie.dialogue import Dialogue, Exchange
from causerie.engines.dialoguetree import DialogueTree
from causerie.engines.likelihood import Likelihood
from causerie.engines.tuning import Tuning
from causerie.engines.turnformat import TurnFormat
from causerie.options import option
from causerie.stats import ClusteredRatio, rank_of_true
from causerie.training.config import LoopConfig, TrainingConfig
from causerie.training.corpus import Batches, Corpus, sample
from causerie.training.loop import Task
from causerie.training.negatives import clusters_of, ranking_items

if TYPE_CHECKING:
    from causerie.models import Backbone

HISTORY = 6
"""Turns that the model sees before a reaction."""
AT_ONCE = 16
"""Dialogues that are scored together."""
VALIDATED = 48
"""Held-out dialogues, and reactions, at every validation during training."""
MEASURED, RANKED = 120, 240
"""Dialogues and reactions at the end."""


@dataclass(frozen=True)
class LanguageConfig(TrainingConfig):
    """How a language model is tuned; the defaults are those of the shipped one, but for epochs."""

    turn_format: Literal["chat", "eos", "plain"] | None = option(
        None, "how turns become text: chat, eos or plain [as the network's own tokenizer has it]"
    )
    rank: int = option(16, "rank of the low-rank adapter", least=1)
    layers: int | None = option(None, "adapt only the last so many layers [all]", least=1)
    longest: int = option(
        192, "tokens of a dialogue that a step sees, at most those the network can", least=64
    )
    batch: int = option(8, "dialogues per step, all of one file", least=1)
    epochs: float = option(1.0, "passes over the training data")
    learning_rate: float = option(5e-4, "highest learning rate, after the warm-up")
    warmup_steps: int = option(50, "steps of warm-up, at most a tenth of all", least=0)
    validate_every: int = option(100, "steps between two validations", least=1)
    patience: int | None = option(
        None, "stop after so many validations without a better score [never]", least=1
    )

    @property
    def tuning(self) -> Tuning:
        return Tuning("adapter", self.rank, self.layers)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        own = super().loop(batches_per_epoch)
        return replace(own, validate_every=self.validate_every, patience=self.patience)


class LanguageModelling(Task):
    """Every token of every utterance from those before it."""

    def __init__(
        self, backbone: Backbone, config: LanguageConfig, train: Corpus, valid: Corpus
    ) -> None:
        self.backbone, self.config = backbone, config
        self.longest = min(config.longest, backbone.window)
        self.module = config.tuning.prepare(backbone.model)
        self.format = self.engine().format
        self.batches = Batches(train.sources, config.batch, config.seed)
        self.dialogues = sample(valid.dialogues, VALIDATED, config.seed)
        self.reactions = sample(reactions(valid, config.seed), VALIDATED, config.seed)

    def engine(self) -> Likelihood:
        """The network as it is now: what an engine remembers is from the weights it saw."""
        return Likelihood(self.backbone, self.config.turn_format)

    def batch(self, index: int) -> tuple[list[Dialogue], random.Random]:
        return self.batches[index], random.Random(f"{self.config.seed}/{index}")

    def loss(self, batch: tuple[list[Dialogue], random.Random]) -> Tensor:
        dialogues, rng = batch
        self.module.eval()  # an adapter sees each text about once: no dropout
        nats, count = torch.zeros((), device=self.backbone.model.device), 0
        for dialogue in dialogues:
            tokens, scored = row(self.format, dialogue, self.longest, rng)
            if not scored:
                continue
            ids = torch.tensor(tokens, device=nats.device)
            before = torch.tensor(scored, device=nats.device) - 1
            output = self.module(input_ids=ids[None], use_cache=False)
            logits = output.logits[0, before].float()
            nats = nats + functional.cross_entropy(logits, ids[before + 1], reduction="sum")
            count += len(scored)
        return nats / max(1, count)

    def validate(self) -> dict[str, float]:
        engine = self.engine()
        scores = {"nats/char": -nats_per_character(engine, self.dialogues).ratio()}
        if self.reactions:
            scores["reactions"] = reactions_found(engine, self.reactions).ratio()
        return scores


def row(
    turn_format: TurnFormat, dialogue: Dialogue, longest: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Tokens of (a part of) a dialogue, and which of them are to be predicted.

    Who is the system is drawn where it is not known; so is where a long dialogue begins.
    """
    turns = dialogue.turns
    exchange = Exchange(dialogue, rng.randrange(max(0, len(turns) - 2), len(turns)))
    roles = [exchange.role_of(turn) for turn in turns]
    segments = [
        turn_format.segment(
            role,
            turn.text,
            after=roles[i - 1] if i else None,
            then=roles[i + 1] if i + 1 < len(roles) else None,
        )
        for i, (turn, role) in enumerate(zip(turns, roles, strict=True))
    ]
    long = sum(len(segment.tokens) for segment in segments) > longest
    start = 0
    if long:  # somewhere with enough after it
        after = accumulate(len(segment.tokens) for segment in reversed(segments))
        start = rng.randrange(sum(tokens >= longest for tokens in after))
    tokens = list(turn_format.prefix)
    scored: list[int] = []
    for segment in segments[start:]:
        scored += range(len(tokens) + segment.start, len(tokens) + segment.stop)
        tokens += segment.tokens
        if len(tokens) >= longest:
            break
    return tokens[:longest], [place for place in scored if 0 < place < longest]


def nats_per_character(engine: Likelihood, dialogues: Sequence[Dialogue]) -> ClusteredRatio:
    """Of every turn given those before it; the last speaker is the system where none is known."""
    nats, characters = [], []
    for start in range(0, len(dialogues), AT_ONCE):
        tree = DialogueTree(engine.format)
        paths = []
        for dialogue in dialogues[start : start + AT_ONCE]:
            last = Exchange(dialogue, len(dialogue.turns) - 1)
            paths.append(tree.path(tree.response(last)))
        scores = engine.score(tree, segments=[node for path in paths for node in path])
        nats += [-sum(scores.segment(node).total for node in path) for path in paths]
    for dialogue in dialogues:
        characters.append(sum(len(turn.text) for turn in dialogue.turns))
    return ClusteredRatio(np.array(nats), np.array(characters))


def reactions(corpus: Corpus, seed: int) -> list[list[Exchange]]:
    """What users said to the system, each followed by what others said; none without roles.

    Others of the same source: those of another would be told by style alone.
    """
    items = []
    for source in corpus.sources:
        found = [
            exchange
            for dialogue in source
            for exchange in dialogue.exchanges()
            if exchange.response.role == "user" and exchange.context[-1].role == "system"
        ]
        items += ranking_items(found, seed)
    return items


def reactions_found(engine: Likelihood, items: Sequence[Sequence[Exchange]]) -> ClusteredRatio:
    """How many true reactions have the highest likelihood per token of their item."""
    means = []
    for item in items:
        tree = DialogueTree(engine.format)
        nodes = [tree.response(exchange.recent(HISTORY)) for exchange in item]
        scores = engine.score(tree, segments=nodes)
        means.append([scores.segment(node).mean for node in nodes])
    dialogues = clusters_of(item[0] for item in items)
    return ClusteredRatio.of(rank_of_true(means) == 1, dialogues)


def measure(
    engines: Mapping[str, Callable[[], Likelihood]], valid: Corpus, seed: int
) -> dict[str, str]:
    """Each engine on the same held-out data, and how much the first is better than the others."""
    dialogues = sample(valid.dialogues, MEASURED, seed)
    items = sample(reactions(valid, seed), RANKED, seed)
    found: dict[str, dict[str, ClusteredRatio]] = {"nats per character": {}}
    if items:
        found[f"true reaction first of {max(map(len, items))}"] = {}
    for name, load in engines.items():
        engine = load()
        nats, *ranking = found.values()
        nats[name] = nats_per_character(engine, dialogues)
        for by_name in ranking:
            by_name[name] = reactions_found(engine, items)
    results = {}
    for (what, by_name), n in zip(found.items(), (len(dialogues), len(items)), strict=False):
        (first, tuned), *others = by_name.items()
        several = "" if n == len(tuned.part) else f" in {len(tuned.part):,} dialogues"
        results[f"{what}, {first} (n={n:,}{several})"] = tuned.text()
        for name, shares in others:
            results[f"{what}, {name}"] = shares.text()
            results[f"{what}, {first} minus {name}"] = tuned.text(shares)
    return results
