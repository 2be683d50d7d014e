"""Tuning a language model on conversations, so that it predicts how people react to each other.

Two measures on held-out dialogues tell how well it does: nats per character, and how often it
ranks a user's true reaction to the system above the reactions of other users.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
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
from causerie.stats import ClusteredRatio, Estimate, rank_of_true
from causerie.training.checkpoint import draw_scores, read_log
from causerie.training.config import LoopConfig, TrainingConfig
from causerie.training.corpus import Batches, Corpus, sample, sample_evenly
from causerie.training.loop import Task
from causerie.training.negatives import clusters_of, ranking_items

if TYPE_CHECKING:
    from causerie.models import Backbone

HISTORY = 6
"""Number of turns that the model sees before a reaction."""
AT_ONCE = 16
"""Number of dialogues scored together."""
VALIDATED, VALIDATED_TURNS = 60, 12
"""Number of held-out dialogues at every validation during training, and of turns of each."""
MEASURED, RANKED = 120, 240
"""Number of dialogues and of reactions in the final measurement."""
NATS = "nats/char"


@dataclass(frozen=True)
class LanguageConfig(TrainingConfig):
    """How a language model is tuned; the defaults, but for epochs, are those of the shipped one."""

    turn_format: Literal["chat", "eos", "plain"] | None = option(
        None, "how turns become text: chat, eos or plain [as the tokenizer suggests]"
    )
    rank: int = option(16, "rank of the low-rank adapter", least=1)
    layers: int | None = option(None, "number of last layers that are adapted [all]", least=1)
    longest: int = option(
        192, "tokens per dialogue and step, at most the network's window", least=64
    )
    batch: int = option(8, "dialogues per step, all from one file", least=1)
    per_file: int | None = option(
        None, "maximum number of dialogues per file and epoch, for balance [all]", least=1
    )
    epochs: float = option(1.0, "passes over the training data")
    learning_rate: float = option(5e-4, "peak learning rate, reached after the warm-up")
    warmup_steps: int = option(50, "warm-up steps; limited to a tenth of all steps", least=0)
    validate_every: int = option(100, "steps between two validations", least=1)
    patience: int | None = option(
        None, "validations without improvement after which training stops [never]", least=1
    )

    @property
    def tuning(self) -> Tuning:
        return Tuning("adapter", self.rank, self.layers)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        own = super().loop(batches_per_epoch)
        return replace(own, validate_every=self.validate_every, patience=self.patience)


class LanguageModelling(Task):
    """Predicts every token of every utterance from those before it."""

    def __init__(
        self, backbone: Backbone, config: LanguageConfig, train: Corpus, valid: Corpus
    ) -> None:
        self.backbone, self.config = backbone, config
        self.longest = min(config.longest, backbone.window)
        self.module = config.tuning.prepare(backbone.model)
        self.format = self.engine().format
        self.batches = Batches(train.sources, config.batch, config.seed, most=config.per_file)
        self.dialogues = [
            replace(dialogue, turns=dialogue.turns[:VALIDATED_TURNS])
            for dialogue in sample_evenly(valid.sources, VALIDATED, config.seed)
        ]
        known = inspect.signature(backbone.model.forward).parameters
        self._keeps_logits = "logits_to_keep" in known

    def engine(self) -> Likelihood:
        """Return a new engine: the cache of an older one belongs to older weights."""
        return Likelihood(self.backbone, self.config.turn_format)

    def batch(self, index: int) -> tuple[list[Dialogue], random.Random]:
        return self.batches[index], random.Random(f"{self.config.seed}/{index}")

    def loss(self, batch: tuple[list[Dialogue], random.Random]) -> Tensor:
        """Run one dialogue per pass: this needs no padding and is fastest on a CPU."""
        self.module.eval()  # no dropout: an adapter sees each text about once
        nats, count = torch.zeros((), device=self.backbone.model.device), 0
        for tokens, scored in self.rows(*batch):
            if not scored:
                continue
            ids = torch.tensor(tokens, device=nats.device)
            before = torch.tensor(scored, device=nats.device) - 1
            wanted = {"logits_to_keep": before} if self._keeps_logits else {}
            logits = self.module(input_ids=ids[None], use_cache=False, **wanted).logits[0]
            if not self._keeps_logits:
                logits = logits[before]
            loss = functional.cross_entropy(logits.float(), ids[before + 1], reduction="sum")
            nats, count = nats + loss, count + len(scored)
        return nats / max(1, count)

    def rows(
        self, dialogues: Sequence[Dialogue], rng: random.Random
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the tokens that a step sees of each dialogue of its batch."""
        return (row(self.format, dialogue, self.longest, rng) for dialogue in dialogues)

    def tokens_after(self, steps: Iterable[int]) -> dict[int, int]:
        """Return the number of tokens processed by the end of each of these steps."""
        asked = set(steps)
        found, tokens = {0: 0} if 0 in asked else {}, 0
        for step in range(1, max(asked, default=0) + 1):
            tokens += sum(len(seen) for seen, _ in self.rows(*self.batch(step - 1)))
            if step in asked:
                found[step] = tokens
        return found

    def validate(self) -> dict[str, float]:
        found = nats_per_character(self.engine(), self.dialogues)
        interval = found.estimate()
        scores = {NATS: found.ratio(), "low": interval.high or 0.0, "high": interval.low or 0.0}
        return {name: -nats for name, nats in scores.items()}


@dataclass(frozen=True)
class CurvePoint:
    """One validation: the amount of training so far and the result."""

    step: int
    tokens: int
    nats: Estimate
    """Nats per character."""


def learning_curve(task: LanguageModelling, folder: Path) -> list[CurvePoint]:
    """Return all logged validations, and draw them as `learning-curve.svg`."""
    checks = [entry for entry in read_log(folder) if NATS in entry]
    tokens = task.tokens_after(entry["step"] for entry in checks)
    n = len(task.dialogues)
    points = [
        CurvePoint(e["step"], tokens[e["step"]], Estimate(-e[NATS], n, -e["high"], -e["low"]))
        for e in checks
    ]
    drawn = [(point.tokens, point.nats.value or 0.0) for point in points]
    ranges = [(point.nats.low or 0.0, point.nats.high or 0.0) for point in points]
    draw_scores(folder / "learning-curve.svg", drawn, NATS, "tokens", ranges)
    return points


def told(curve: Sequence[CurvePoint]) -> dict[str, str]:
    """Return the curve as rows of a card's table."""
    n = curve[0].nats.n if curve else 0
    start = f"nats per character of the beginnings of {n} dialogues of the validation"
    return {f"{start}, after {point.tokens:,} tokens": point.nats.text(3) for point in curve}


def row(
    turn_format: TurnFormat, dialogue: Dialogue, longest: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Return the tokens of (a part of) a dialogue, and the positions to be predicted.

    The system's side is drawn at random if unknown, and so is the start in a long dialogue.
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
    if long:  # start anywhere with enough tokens after it
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
    """Measure every turn given those before it; without roles, the last speaker is the system."""
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
    """Return ranking items of users' reactions to the system; none without roles.

    The false ones come from the same source: those of another could be told by style alone.
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
    """Return the share of items in which the true reaction has the highest likelihood per token."""
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
    """Measure engines on the same held-out data, and the first one's lead over the others."""
    dialogues = sample_evenly(valid.sources, MEASURED, seed)
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
