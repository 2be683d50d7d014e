"""Which responses of two files answer the same thing, and which of one file belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from causerie.dialogue import Dialogue, Exchange, exchanges_of
from causerie.io import Rejected, read

Key: TypeAlias = Hashable


@dataclass(frozen=True)
class Response:
    """One response of a file."""

    exchange: Exchange
    key: Key
    """Equal in both files if both responses answer the same thing."""
    said: Key
    """The same by what the user said before alone; None if that is nothing."""
    cluster: Hashable
    """Shared by responses of one dialogue, or to one context: they are not independent."""


@dataclass(frozen=True)
class Responses:
    """What is compared of one file."""

    source: str
    records: int
    rejected: tuple[Rejected, ...]
    items: tuple[Response, ...]

    @property
    def clusters(self) -> int:
        return len({item.cluster for item in self.items})


def read_responses(
    source: str, speaker: str | None = None, input_format: str | None = None
) -> Responses:
    """The responses of a file that `exchanges_of` finds for a speaker or role."""
    records = list(read(source, input_format))
    rejected = tuple(record for record in records if isinstance(record, Rejected))
    good = [record for record in records if not isinstance(record, Rejected)]
    found = tuple(_responses(good, speaker, Path(source).name.split(".")[0]))
    return Responses(source, len(records), rejected, found)


def partners(a: Sequence[Response], b: Sequence[Response]) -> list[tuple[int, int]]:
    """Places in both of the responses that answer the same thing, in the order of a.

    That is the same turn of the dialogue of the same name after the same words of the user;
    where that finds few because the files name their dialogues otherwise, the same words alone.
    """
    by_name = _matched([item.key for item in a], [item.key for item in b])
    if are_most(by_name, a, b):
        return by_name
    return max(by_name, _matched([i.said for i in a], [i.said for i in b]), key=len)


def are_most(
    pairs: Sequence[tuple[int, int]], a: Sequence[Response], b: Sequence[Response]
) -> bool:
    """Whether at least half of the responses of either file have a partner in the other."""
    return 2 * len(pairs) >= max(len(a), len(b))


def _matched(a: Sequence[Key], b: Sequence[Key]) -> list[tuple[int, int]]:
    """The second response to the same thing is the partner of the other file's second."""
    places = {key: place for place, key in enumerate(_numbered(b)) if key[0] is not None}
    return [(i, places[key]) for i, key in enumerate(_numbered(a)) if key in places]


def _responses(
    records: Iterable[Dialogue | Exchange], speaker: str | None, stem: str
) -> Iterator[Response]:
    rows: dict[Hashable, Hashable] = {}
    for number, record in enumerate(records):
        if isinstance(record, Dialogue):
            # A record without an id is called after its file, which is not its partner's name.
            name = record.id.removeprefix(f"{stem}:")
            keys = _what_users_said(record)
            for exchange in exchanges_of(record, speaker):
                turn, digest = exchange.turn, keys[exchange.turn]
                said = (turn, digest) if digest else None
                yield Response(exchange, (name, turn, digest), said, record.id)
        elif exchanges_of(record, speaker):
            context = ("context", *(turn.text for turn in record.context))
            row = ("row", record.dialogue.id)
            cluster = rows.get(row) or rows.get(context) or ("cluster", number)
            rows[row] = rows[context] = cluster
            yield Response(record, context, context, cluster)


def _what_users_said(dialogue: Dialogue) -> list[bytes | None]:
    """Per turn, a digest of the user's turns before it and their places; None if there are none.

    Two systems that answered the same user differ in their own turns, so those do not count.
    Whose turns are the user's is as `Exchange.role_of` says.
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
