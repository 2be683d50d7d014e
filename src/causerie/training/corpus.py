"""What is trained on: dialogues and annotated exchanges by source file, and batches of them."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from causerie.dialogue import Dialogue, Exchange, Fields, named_value
from causerie.errors import CauserieError
from causerie.io import Annotation, Rejected, read, read_annotations
from causerie.io.annotations import opening

HELD_OUT = 20
"""One dialogue in so many is kept for validation when there is no file for it."""
HELD_OUT_ANNOTATED = 5
"""The same for annotated conversations, of which there are few."""
LEAST = 8
"""Dialogues in a file that can be split."""
SHARED_WORDS = 8
"""Words in an exchange that two corpora must not share."""

Thing = TypeVar("Thing")

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Corpus:
    """Dialogues by source file: negatives from another source would be told by style alone."""

    sources: tuple[tuple[Dialogue, ...], ...]

    @classmethod
    def read(
        cls,
        paths: Sequence[Path],
        rejected: Callable[[Rejected], None] = lambda record: None,
        without: Fields | None = None,
    ) -> Corpus:
        """Every good dialogue of at least two turns; bad records are handed to `rejected`.

        Those that have one of the values of `without` are left out.
        """
        sources = []
        for path in paths:
            dialogues = []
            for record in read(path):
                if isinstance(record, Rejected):
                    rejected(record)
                    continue
                dialogue = record.dialogue if isinstance(record, Exchange) else record
                if without and named_value(dialogue, without):
                    continue
                if not all(turn.text for turn in dialogue.turns):  # silence teaches nothing
                    said = tuple(turn for turn in dialogue.turns if turn.text)
                    dialogue = replace(dialogue, turns=said)
                if len(dialogue.turns) > 1:
                    dialogues.append(dialogue)
            if not dialogues:
                raise CauserieError(f"{path} has no dialogue of at least two turns to train on")
            sources.append(tuple(dialogues))
        return cls(tuple(sources))

    def split(self, seed: int) -> tuple[Corpus, Corpus]:
        """The dialogues to train on, and those held out: some of each file, of other users."""
        kept, held = [], []
        for source in self.sources:
            if len(source) < LEAST:
                raise CauserieError(
                    f"a file with {len(source)} dialogues cannot spare some for validation: "
                    "give --valid"
                )
            count = max(len(source) // HELD_OUT, min(16, len(source) // 4))
            some, others = _drawn(source, count, seed)
            held.append(some)
            kept.append(others)
        return Corpus(tuple(kept)), Corpus(tuple(held))

    def halves(self, seed: int) -> tuple[Corpus, Corpus]:
        """Two halves of each file with different users; what cannot be halved is in both."""
        pairs = [_drawn(source, len(source) // 2, seed, least=2) for source in self.sources]
        one = tuple(first or second for first, second in pairs)
        return Corpus(one), Corpus(tuple(second or first for first, second in pairs))

    def without(self, other: Corpus) -> Corpus:
        """Only dialogues that share no exchange with the other corpus.

        Corpora hold near-copies of dialogues; what "Thanks." answers is everybody's, so only
        exchanges of some length count.
        """
        known = {key for dialogue in other.dialogues for key in _exchange_keys(dialogue)}
        return Corpus(
            tuple(
                tuple(d for d in source if known.isdisjoint(_exchange_keys(d)))
                for source in self.sources
            )
        )

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    @property
    def dialogues(self) -> list[Dialogue]:
        return [dialogue for source in self.sources for dialogue in source]

    @property
    def exchanges(self) -> list[Exchange]:
        return [exchange for dialogue in self.dialogues for exchange in dialogue.exchanges()]

    @cached_property
    def sha256(self) -> str:
        """Of who says what in which source, whatever the file format."""
        digest = hashlib.sha256()
        for source in self.sources:
            for dialogue in source:
                for turn in dialogue.turns:
                    digest.update(f"{turn.speaker}\0{turn.text}\0".encode("utf-8", "replace"))
                digest.update(b"\1")
            digest.update(b"\2")
        return digest.hexdigest()


@dataclass(frozen=True)
class AnnotatedCorpus:
    """Annotations by source file: responses from another would be told by style alone."""

    sources: tuple[tuple[Annotation, ...], ...]

    @classmethod
    def read(
        cls, paths: Sequence[Path], say: Callable[[str], None] = lambda text: None
    ) -> AnnotatedCorpus:
        """Every good annotation; bad records and spans that are in no turn are said."""
        sources = []
        for path in paths:
            found: list[Annotation] = []
            for record in read_annotations(path):
                if isinstance(record, Rejected):
                    say(f"skipped {record}")
                    continue
                for span in record.unmatched:
                    say(f"{path.name}: {record.exchange.dialogue.id}: in no turn: {span!r}")
                found.append(record)
            if not found:
                raise CauserieError(f"{path} has no annotated exchange")
            sources.append(tuple(found))
        return cls(tuple(sources))

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    @property
    def annotations(self) -> list[Annotation]:
        return [annotation for source in self.sources for annotation in source]

    @property
    def conversations(self) -> set[tuple[str, ...]]:
        return {annotation.conversation for annotation in self.annotations}

    @property
    def dialogues(self) -> Corpus:
        """Of every conversation as much as the longest of its exchanges shows."""
        return Corpus(tuple(tuple(_longest(source)) for source in self.sources))

    def split(self, seed: int) -> tuple[AnnotatedCorpus, AnnotatedCorpus]:
        """What to train on and what to hold out: whole conversations of each file."""
        held: set[tuple[str, ...]] = set()
        for source in self.sources:
            known = sorted({annotation.conversation for annotation in source})
            if len(known) < HELD_OUT_ANNOTATED:
                raise CauserieError(
                    f"a file with {len(known)} conversations cannot spare some for validation: "
                    f"give --valid, or at least {HELD_OUT_ANNOTATED} conversations"
                )
            # negatives are of another conversation: one alone has none
            held.update(random.Random(seed).sample(known, max(2, len(known) // HELD_OUT_ANNOTATED)))
        return self.without(held), self.without(self.conversations - held)

    def part(self, share: float, seed: int) -> AnnotatedCorpus:
        """About that share of the annotations of each file: whole conversations, at least one."""
        kept: set[tuple[str, ...]] = set()
        for source in self.sources:
            known = sorted({annotation.conversation for annotation in source})
            random.Random(seed).shuffle(known)
            kept.update(known[: max(1, round(share * len(known)))])
        return self.without(self.conversations - kept)

    def apart_from(self, other: AnnotatedCorpus) -> AnnotatedCorpus:
        """The annotations of conversations that are not in the other, nor share an exchange."""
        free = self.dialogues.without(other.dialogues)
        kept = {opening(dialogue.turns) for dialogue in free.dialogues}
        return self.without(self.conversations - (kept - other.conversations))

    def without(self, conversations: Iterable[tuple[str, ...]]) -> AnnotatedCorpus:
        """The annotations of all other conversations."""
        left_out = set(conversations)
        return AnnotatedCorpus(
            tuple(
                tuple(one for one in source if one.conversation not in left_out)
                for source in self.sources
            )
        )

    @cached_property
    def sha256(self) -> str:
        """Of who says what and why, whatever the file format."""
        digest = hashlib.sha256()
        for source in self.sources:
            for one in source:
                for turn in (*one.exchange.context, one.exchange.response):
                    digest.update(f"{turn.speaker}\0{turn.text}\0".encode("utf-8", "replace"))
                digest.update(f"\1{sorted(one.causes)}".encode())
            digest.update(b"\2")
        return digest.hexdigest()


def _longest(source: Sequence[Annotation]) -> list[Dialogue]:
    found: dict[tuple[str, ...], Dialogue] = {}
    for annotation in source:
        dialogue = annotation.exchange.dialogue
        known = found.get(annotation.conversation)
        if known is None or len(known.turns) < len(dialogue.turns):
            found[annotation.conversation] = dialogue
    return list(found.values())


def sample(things: Sequence[Thing], count: int | None, seed: int) -> list[Thing]:
    """So many of them, drawn at random; all where there are no more, or the count is None."""
    if count is None or count >= len(things):
        return list(things)
    return random.Random(seed).sample(things, count)


def sample_evenly(groups: Sequence[Sequence[Thing]], count: int, seed: int) -> list[Thing]:
    """About so many of them: an equal share of each group, as far as it goes."""
    share = -(-count // max(1, len(groups)))
    return [thing for group in groups for thing in sample(group, share, seed)]


def _drawn(
    source: Sequence[Dialogue], count: int, seed: int, least: int = LEAST
) -> tuple[tuple[Dialogue, ...], tuple[Dialogue, ...]]:
    """At least so many dialogues, and the others; nobody is in both where users are named.

    A file that names fewer users than `least` is divided by dialogue.
    """
    by_user: dict[object, list[Dialogue]] = {}
    for number, dialogue in enumerate(source):
        user = dialogue.metadata.get("user")
        by_user.setdefault(number if user is None else repr(user), []).append(dialogue)
    groups = list(by_user.values())
    if len(groups) < least:
        groups = [[dialogue] for dialogue in source]
    drawn: list[Dialogue] = []
    others: list[Dialogue] = []
    for group in random.Random(seed).sample(groups, len(groups)):
        (drawn if len(drawn) < count else others).extend(group)
    return tuple(drawn), tuple(others)


def _exchange_keys(dialogue: Dialogue) -> set[tuple[str, ...]]:
    """The words of every turn and the one before it, where there are enough of them."""
    words = [_WORD.findall(turn.text.lower()) for turn in dialogue.turns]
    keys = ((*last, "|", *response) for last, response in pairwise(words))
    return {key for key in keys if len(key) > SHARED_WORDS}


class EpochBatches(Generic[Thing]):
    """Batches of examples that `draw` gives for every epoch; an incomplete one is left out."""

    def __init__(self, count: int, size: int, draw: Callable[[int], Sequence[Thing]]) -> None:
        """`count` is how many examples an epoch has."""
        self._count, self._size, self._draw = count, size, draw
        self._epoch: tuple[int, Sequence[Thing]] = (-1, ())

    def __len__(self) -> int:
        """Batches in an epoch."""
        return max(1, self._count // self._size)

    def __getitem__(self, index: int) -> Sequence[Thing]:
        """Batch number `index`, counted on through the epochs."""
        epoch, place = divmod(index, len(self))
        if self._epoch[0] != epoch:
            self._epoch = epoch, self._draw(epoch)
        return self._epoch[1][place * self._size : (place + 1) * self._size]


class Batches(Generic[Thing]):
    """Batches of about `size` things of one source; an epoch has each of them exactly once.

    Every epoch has an order of its own. What does not fill a batch is spread over the others of
    its source. With `most`, an epoch draws only so many of a source that has more. `order` may say
    in which order the things of a source are dealt out, so that neighbours come into one batch.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[Thing]],
        size: int,
        seed: int,
        *,
        most: int | None = None,
        order: Callable[[int, random.Random], Sequence[int]] | None = None,
    ) -> None:
        self._sources, self._size, self._seed = sources, size, seed
        self._most, self._order = most, order
        self._epoch: int | None = None
        self._batches: list[list[Thing]] = []

    def __len__(self) -> int:
        """Batches in an epoch."""
        return sum(map(self._count, self._sources))

    def __getitem__(self, index: int) -> list[Thing]:
        """Batch number `index`, counted on through the epochs."""
        epoch, place = divmod(index, len(self))
        if epoch != self._epoch:
            self._epoch = epoch
            self._batches = self._shuffled(random.Random(f"{self._seed}/{epoch}"))
        return self._batches[place]

    def _count(self, source: Sequence[Thing]) -> int:
        return max(1, self._drawn(source) // self._size)

    def _drawn(self, source: Sequence[Thing]) -> int:
        return len(source) if self._most is None else min(len(source), self._most)

    def _shuffled(self, rng: random.Random) -> list[list[Thing]]:
        batches = []
        for number, source in enumerate(self._sources):
            count = self._count(source)
            if self._order is None:
                order = rng.sample(source, self._drawn(source))
                batches += [order[place::count] for place in range(count)]
            else:
                order = [source[place] for place in self._order(number, rng)]
                cuts = [round(place * len(order) / count) for place in range(count + 1)]
                batches += [order[start:stop] for start, stop in pairwise(cuts)]
        rng.shuffle(batches)
        return batches
