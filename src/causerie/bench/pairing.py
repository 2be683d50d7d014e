"""Pairing the responses of two sides: which answer the same turn, which are dependent, examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import numpy as np

from causerie.dialogue import Dialogue, Exchange, exchanges_of
from causerie.io import Record, Rejected
from causerie.stats import FloatArray
from causerie.text.masking import mask

Key: TypeAlias = Hashable

EXAMPLES = 5

UNNAMED = "dialogue"
"""Id of dialogues made in memory without a name, no two of which are the same."""


@dataclass(frozen=True)
class Response:
    """One response of a file."""

    exchange: Exchange
    key: Key
    """Equal on both sides if both responses answer the same turn."""
    said: Key
    """Key of the preceding user turns alone; None if there are none."""
    cluster: Hashable
    """Shared by responses in one dialogue, or to one context, which are not independent."""


@dataclass(frozen=True)
class Responses:
    """The responses of one file that are compared."""

    source: str
    records: int
    rejected: tuple[Rejected, ...]
    items: tuple[Response, ...]

    @property
    def clusters(self) -> int:
        return len({item.cluster for item in self.items})


@dataclass(frozen=True)
class Example:
    """A pair of responses with very different scores, or one bad response of one side."""

    dialogue_id: str
    turn: int
    context: str
    """Text of the turn before the response."""
    a: str | None
    b: str | None
    score_a: float | None
    score_b: float | None

    def lines(self, width: int = 90) -> list[str]:
        """Return the example as lines for a terminal."""
        lines = [f"  {self.dialogue_id}[{self.turn}]  after: {_excerpt(self.context, width)}"]
        for name, text, score in (("a", self.a, self.score_a), ("b", self.b, self.score_b)):
            if text is not None and score is not None:
                lines.append(f"    {name} {score:>9.4g}  {_excerpt(text, width) or '(empty)'}")
        return lines


def responses_of(records: Iterable[Record], source: str, speaker: str | None = None) -> Responses:
    """Return the responses in the records of one source, optionally of one speaker only."""
    found = list(records)
    rejected = tuple(record for record in found if isinstance(record, Rejected))
    good = [record for record in found if not isinstance(record, Rejected)]
    return Responses(source, len(found), rejected, tuple(_responses(good, speaker)))


def partners(a: Sequence[Response], b: Sequence[Response]) -> list[tuple[int, int]]:
    """Return the indices (in a, in b) of responses that answer the same turn, in the order of a.

    These are the same turn of dialogues with the same id after the same user turns; if that finds
    few, because the files name their dialogues differently, the user turns alone decide.
    """
    by_name = _matched([item.key for item in a], [item.key for item in b])
    if are_most(by_name, a, b):
        return by_name
    return max(by_name, _matched([i.said for i in a], [i.said for i in b]), key=len)


def are_most(
    pairs: Sequence[tuple[int, int]], a: Sequence[Response], b: Sequence[Response]
) -> bool:
    """Return whether at least half of either side's responses have a partner in the other."""
    return 2 * len(pairs) >= max(len(a), len(b))


def differ_most(
    a: Sequence[Response], b: Sequence[Response], x: FloatArray, y: FloatArray, sign: int
) -> tuple[Example, ...]:
    """Return the pairs whose scores differ most."""
    gap = np.abs(x - y)
    order = [i for i in np.argsort(-gap, kind="stable").tolist() if gap[i] > 0][:EXAMPLES]
    return tuple(
        _example(a[i], a[i], b[i], score_a=float(x[i]), score_b=float(y[i])) for i in order
    )


def worst_of_each(
    a: Sequence[Response], b: Sequence[Response], x: FloatArray, y: FloatArray, sign: int
) -> tuple[Example, ...]:
    """Return the worst responses of a, then those of b."""

    def worst(values: FloatArray) -> list[int]:
        order = np.argsort(sign * values, kind="stable").tolist()
        return [i for i in order if not np.isnan(values[i])][:EXAMPLES]

    return (
        *(_example(a[i], a[i], None, score_a=float(x[i])) for i in worst(x)),
        *(_example(b[i], None, b[i], score_b=float(y[i])) for i in worst(y)),
    )


def _example(
    place: Response,
    a: Response | None,
    b: Response | None,
    score_a: float | None = None,
    score_b: float | None = None,
) -> Example:
    exchange = place.exchange
    before = exchange.last(1)
    return Example(
        exchange.dialogue.id,
        exchange.turn,
        mask(before[0].text) if before else "",
        mask(a.exchange.response.text) if a else None,
        mask(b.exchange.response.text) if b else None,
        score_a,
        score_b,
    )


def _excerpt(text: str, width: int) -> str:
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _matched(a: Sequence[Key], b: Sequence[Key]) -> list[tuple[int, int]]:
    """Match equal keys in order: the second response with a key has the other side's second."""
    places = {key: place for place, key in enumerate(_numbered(b)) if key[0] is not None}
    return [(i, places[key]) for i, key in enumerate(_numbered(a)) if key in places]


def _responses(records: Iterable[Dialogue | Exchange], speaker: str | None) -> Iterator[Response]:
    rows: dict[Hashable, Hashable] = {}
    cluster: Hashable
    for number, record in enumerate(records):
        if isinstance(record, Dialogue):
            # A record without an id is named after its file, and its partner after another one.
            name = record.id.removeprefix(f"{_prefix(record.source)}:")
            cluster = ("cluster", number) if record.id == UNNAMED else record.id
            keys = _what_users_said(record)
            for exchange in exchanges_of(record, speaker):
                turn, digest = exchange.turn, keys[exchange.turn]
                said = (turn, digest) if digest else None
                yield Response(exchange, (name, turn, digest), said, cluster)
        elif exchanges_of(record, speaker):
            context = ("context", *(turn.text for turn in record.context))
            row = ("row", record.dialogue.id)
            cluster = rows.get(row) or rows.get(context) or ("cluster", number)
            rows[row] = rows[context] = cluster
            yield Response(record, context, context, cluster)


def _prefix(source: str | None) -> str:
    """Return the prefix by which `causerie.io` names records without an id."""
    return (
        "data" if source is None else "stdin" if source == "-" else Path(source).name.split(".")[0]
    )


def _what_users_said(dialogue: Dialogue) -> list[bytes | None]:
    """Return, per turn, a digest of the user's turns before it and their places, or None.

    Two systems that answer the same user differ in their own turns, so those do not count.
    `Dialogue.role_of` decides which turns are the user's.
    """
    said = {turn.speaker: sha256() for turn in dialogue.turns}
    nothing = sha256().digest()
    digests = []
    for place, turn in enumerate(dialogue.turns):
        digest_before = said[turn.speaker].digest()
        digests.append(None if digest_before == nothing else digest_before)
        entry = f"{place} {len(turn.text)} {turn.text}".encode()
        for speaker, digest in said.items():
            if dialogue.role_of(turn, system=speaker) == "user":
                digest.update(entry)
    return digests


def _numbered(keys: Iterable[Key]) -> Iterator[tuple[Key, int]]:
    seen: Counter[Key] = Counter()
    for key in keys:
        seen[key] += 1
        yield key, seen[key]
