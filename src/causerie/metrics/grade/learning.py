"""Learning to rank true responses above false ones (section 3.5): tuples, task and measure."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError
from causerie.io import write_whole
from causerie.metrics.grade.network import margin_loss
from causerie.metrics.grade.scorer import Pair, Scorer
from causerie.metrics.grade.topics import Topics
from causerie.stats import wins
from causerie.training.corpus import Corpus, EpochBatches, sample
from causerie.training.encoders import LearnedVectors
from causerie.training.loop import Task
from causerie.training.negatives import (
    Utterances,
    embedding_negatives,
    lexical_negatives,
    random_negatives,
)

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder
    from causerie.metrics.grade.config import GradeConfig

KINDS: Mapping[str, tuple[str, ...]] = {
    "both": ("lexical", "embedding"),
    "lexical": ("lexical",),
    "embedding": ("embedding",),
    "random": ("random", "random"),
}
"""By the setting `negatives`, the false responses of each context."""


@dataclass(frozen=True, slots=True)
class RankingTuple:
    """A context with a true and a false response."""

    context: tuple[str, ...]
    true: str
    false: str
    kind: str
    """How the false response was found."""
    dialogue: int
    """Number of the dialogue in its corpus."""

    def exchange(self, response: str) -> Exchange:
        turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate((*self.context, response)))
        return Exchange(Dialogue(str(self.dialogue), turns), len(turns) - 1)


def draw_tuples(
    corpus: Corpus, negatives: str, count: int | None, encoder: Encoder, config: GradeConfig
) -> list[RankingTuple]:
    """About so many tuples (None: of all exchanges), false responses of the same source.

    `encoder` finds those that are near in meaning.
    """
    kinds = KINDS[negatives]
    numbers = {id(dialogue): number for number, dialogue in enumerate(corpus.dialogues)}
    total = sum(len(dialogue.turns) - 1 for dialogue in corpus.dialogues)
    share = 1.0 if count is None else min(1.0, count / len(kinds) / total)
    tuples = []
    for source in corpus.sources:
        said = Utterances.of(source)
        exchanges = [
            exchange
            for dialogue in source
            for exchange in dialogue.exchanges()
            if exchange.response.text.strip()
        ]
        exchanges = sample(exchanges, max(1, round(share * len(exchanges))), config.seed)
        for place, kind in enumerate(kinds):
            seed, matched = config.seed + place, config.length_matched
            if kind == "lexical":
                found = lexical_negatives(said, exchanges, length_matched=matched)
            elif kind == "embedding":
                found = embedding_negatives(said, exchanges, encoder, seed, length_matched=matched)
            else:
                found = random_negatives(said, exchanges, seed)
            tuples += [
                RankingTuple(
                    tuple(turn.text for turn in exchange.last(config.history)),
                    exchange.response.text,
                    false,
                    kind,
                    numbers[id(exchange.dialogue)],
                )
                for exchange, false in zip(exchanges, found, strict=True)
                if false is not None
            ]
    if not tuples:
        raise CauserieError("a single dialogue has no others to draw responses from: give more")
    return tuples


def write_tuples(file: Path, identity: Mapping[str, Any], tuples: Sequence[RankingTuple]) -> None:
    """One JSON object a line; the first says what the tuples were drawn from and how."""
    lines = [identity, *map(asdict, tuples)]
    write_whole(file, "".join(json.dumps(line) + "\n" for line in lines))


def read_tuples(file: Path, identity: Mapping[str, Any]) -> list[RankingTuple] | None:
    """Those that were drawn with just this identity; None if there are none."""
    try:
        with file.open(encoding="utf-8") as lines:
            if json.loads(next(lines)) != identity:
                return None
            return [
                RankingTuple(**{**fields, "context": tuple(fields["context"])})
                for fields in map(json.loads, lines)
            ]
    except (OSError, StopIteration, ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True, eq=False)
class Example:
    """A tuple with its topic graphs."""

    true: Pair
    false: Pair
    kind: str
    dialogue: int


def examples_of(topics: Topics, tuples: Sequence[RankingTuple]) -> list[Example]:
    """Keywords and hops are computed here, once; a pair that comes again is the same."""
    known: dict[tuple[tuple[str, ...], str], Pair] = {}

    def pair(one: RankingTuple, response: str) -> Pair:
        key = one.context, response
        if key not in known:
            exchange = one.exchange(response)
            (graph,) = topics.graphs([exchange], len(one.context))
            known[key] = Pair(exchange, graph)
        return known[key]

    return [Example(pair(t, t.true), pair(t, t.false), t.kind, t.dialogue) for t in tuples]


class Ranking(Task):
    """The margin ranking loss on tuples; an epoch sees each of them once."""

    def __init__(
        self, scorer: Scorer, examples: Sequence[Example], valid: Sequence[Example]
    ) -> None:
        self.scorer, self.examples, self.valid = scorer, examples, valid
        self.config = scorer.config
        self.encoder = scorer.encoder
        parts = {"head": scorer.network}
        if self.config.learns_encoder:
            parts["encoder"] = self.encoder.model
        self.module = nn.ModuleDict(parts)
        self._vectors = (
            LearnedVectors(self.encoder, self.config.pooling)
            if self.config.learns_encoder
            else scorer.vectors
        )
        self.batches = EpochBatches(len(examples), self.config.batch, self._shuffled)

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> Sequence[Example]:
        return self.batches[index]

    def _shuffled(self, epoch: int) -> list[Example]:
        examples = list(self.examples)
        random.Random(f"{self.config.seed}/{epoch}").shuffle(examples)
        return examples

    def loss(self, batch: Sequence[Example]) -> Tensor:
        # Dropout is the paper's for its full tuning; an adapter sees each text a few times.
        self.encoder.model.train(self.config.learns_encoder and self.config.tuning == "full")
        pairs = [example.true for example in batch] + [example.false for example in batch]
        true, false = self.scorer.outputs(pairs, self._vectors).scores.chunk(2)
        return margin_loss(true, false, self.config.margin)

    def validate(self) -> dict[str, float]:
        if self.config.learns_encoder:
            self.encoder.forget()  # what it remembers is from other weights
        won = wins(*scores_of(self.scorer, self.valid))
        kinds = np.array([example.kind for example in self.valid])
        return {
            "accuracy": float(won.mean()),
            **{kind: float(won[kinds == kind].mean()) for kind in sorted(set(kinds.tolist()))},
        }


def scores_of(
    scorer: Scorer, examples: Sequence[Example]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float32]], ...]:
    """Of the true responses, and of the false ones."""
    true = scorer.scores([example.true for example in examples])
    return true, scorer.scores([example.false for example in examples])
