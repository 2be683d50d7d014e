"""Which responses of two files answer the same thing, and which of one file belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.io import read
from causerie.io.rejected import Rejected

Key: TypeAlias = Hashable


@dataclass(frozen=True)
class Response:
    """One response of a file."""

    exchange: Exchange
    key: Key
    """Equal in both files if both responses answer the same thing."""
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
    """The responses of a file; only those of one speaker or role if given."""
    records = list(read(source, input_format))
    rejected = tuple(record for record in records if isinstance(record, Rejected))
    good = [record for record in records if not isinstance(record, Rejected)]
    found = list(_responses(good, speaker, Path(source).name.split(".")[0]))
    return Responses(source, len(records), rejected, tuple(_numbered(found)))


def partners(a: Sequence[Response], b: Sequence[Response]) -> list[tuple[int, int]]:
    """Places in both of the responses that answer the same thing, in the order of a."""
    places = {item.key: place for place, item in enumerate(b)}
    return [(i, places[item.key]) for i, item in enumerate(a) if item.key in places]


def _responses(
    records: Iterable[Dialogue | Exchange], speaker: str | None, stem: str
) -> Iterator[Response]:
    rows: dict[Hashable, Hashable] = {}
    for number, record in enumerate(records):
        if isinstance(record, Dialogue):
            # A record without an id is called after its file, which is not its partner's name.
            name = record.id.removeprefix(f"{stem}:")
            keys = _what_users_said(record)
            for exchange in record.exchanges(speaker):
                yield Response(exchange, (name, exchange.turn, keys[exchange.turn]), record.id)
        elif speaker is None or speaker in (record.response.speaker, record.response.role):
            context = ("context", *(turn.text for turn in record.context))
            row = ("row", record.dialogue.id)
            cluster = rows.get(row) or rows.get(context) or ("cluster", number)
            rows[row] = rows[context] = cluster
            yield Response(record, context, cluster)


def _what_users_said(dialogue: Dialogue) -> list[bytes]:
    """Per turn, a digest of the user's turns before it and their places.

    Two systems that answered the same user differ in their own turns, so those do not count.
    Whose turns are the user's is as `Exchange.role_of` says.
    """
    said = {turn.speaker: sha256() for turn in dialogue.turns}
    digests = []
    for place, turn in enumerate(dialogue.turns):
        digests.append(said[turn.speaker].digest())
        entry = f"{place} {len(turn.text)} {turn.text}".encode()
        for speaker, digest in said.items():
            if turn.role == "user" or (turn.role is None and turn.speaker != speaker):
                digest.update(entry)
    return digests


def _numbered(items: Iterable[Response]) -> Iterator[Response]:
    """The second response to the same thing is the partner of the other file's second."""
    seen: Counter[Key] = Counter()
    for item in items:
        seen[item.key] += 1
        yield Response(item.exchange, (item.key, seen[item.key]), item.cluster)
