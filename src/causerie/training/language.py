"""Tuning a language model on conversations, so that it knows how people react to each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from causerie.dialogue import Dialogue, Exchange
from causerie.engines.language import LM
from causerie.engines.likelihood import Likelihood
from causerie.engines.tuning import Tuning
from causerie.engines.turnformat import FORMATS, TurnFormat
from causerie.errors import CauserieError
from causerie.progress import Watch, ignore
from causerie.stats import ClusteredRatio
from causerie.training.config import LoopConfig
from causerie.training.corpus import Batches, Corpus, sample
from causerie.training.heldout import nats_per_character, reactions, reactions_found
from causerie.training.loop import LoopState, Task, fit

if TYPE_CHECKING:
    from pathlib import Path

    from causerie.models import Backbone

VALIDATED = 48
"""Held-out dialogues, and reactions, at every validation during training."""
MEASURED, RANKED = 120, 240
"""Dialogues and reactions at the end."""


@dataclass(frozen=True)
class LanguageConfig:
    """How a language model is tuned; the defaults are those of the shipped one, but for epochs."""

    turn_format: str | None = None
    """How turns become text: chat, eos or plain; null: as the network's own tokenizer has it."""
    rank: int = 16
    """Of the low-rank adapter."""
    layers: int | None = None
    """Adapt only the last so many layers; null: all."""
    longest: int = 192
    """Tokens of a dialogue that a step sees."""
    batch: int = 8
    """Dialogues per step, all of one file."""
    epochs: float = 1.0
    learning_rate: float = 5e-4
    warmup_steps: int = 50
    """At most a tenth of all steps."""
    clip: float = 1.0
    validate_every: int = 100
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.turn_format not in (None, *FORMATS):
            raise CauserieError(f"turn_format is one of {', '.join(FORMATS)}")
        _ = self.tuning
        for key, least in (("longest", 64), ("batch", 1), ("validate_every", 1), ("patience", 1)):
            value = getattr(self, key)
            if value is not None and value < least:
                raise CauserieError(f"{key} is at least {least}, not {value}")

    @property
    def tuning(self) -> Tuning:
        return Tuning("adapter", self.rank, self.layers)

    def loop(self, batches_per_epoch: int) -> LoopConfig:
        return LoopConfig(
            steps=max(1, round(self.epochs * batches_per_epoch)),
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            weight_decay=0.0,
            clip=self.clip,
            validate_every=self.validate_every,
            patience=self.patience,
            seed=self.seed,
        )


class LanguageModelling(Task):
    """Every token of every utterance from those before it."""

    def __init__(
        self, backbone: Backbone, config: LanguageConfig, train: Corpus, valid: Corpus
    ) -> None:
        self.backbone, self.config = backbone, config
        self.module = config.tuning.prepare(backbone.model)
        self.format = self.engine().format
        self.batches = Batches(train, config.batch, config.seed)
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
            tokens, scored = row(self.format, dialogue, self.config.longest, rng)
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


def tune(
    backbone: Backbone,
    config: LanguageConfig,
    train: Corpus,
    valid: Corpus,
    folder: Path,
    *,
    resume: bool = False,
    watch: Watch = ignore,
) -> tuple[dict[str, Tensor], LoopState]:
    """The adapter's weights; checkpoints and the log go to `folder`."""
    torch.manual_seed(config.seed)
    task = LanguageModelling(backbone, config, train, valid)
    progress = fit(
        task,
        config.loop(len(task.batches)),
        folder,
        identity={
            **asdict(config),
            "data": train.sha256,
            "valid": valid.sha256,
            "backbone": backbone.sha256,
        },
        resume=resume,
        watch=watch,
    )
    weights = config.tuning.weights(task.module)
    return {f"{LM}.{name}": tensor for name, tensor in weights.items()}, progress


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
