"""Training data (section 3.5): contexts, each with the true response and a false one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError
from causerie.io import write_whole
from causerie.training.corpus import Corpus, sample
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
            seed = config.seed + place
            if kind == "lexical":
                found = lexical_negatives(said, exchanges, config.retrieved)
            elif kind == "embedding":
                found = embedding_negatives(said, exchanges, encoder, seed)
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
