"""Training data: dialogues and annotated exchanges by source file, their splits and batches."""

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
"""Without a validation file, one dialogue in this many is held out."""
HELD_OUT_ANNOTATED = 5
"""The same for annotated conversations, which are fewer."""
LEAST = 8
"""Minimum number of dialogues in a file that can be split."""
SHARED_WORDS = 8
"""An exchange with more words than this may not occur in two corpora."""

Thing = TypeVar("Thing")

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Corpus:
    """Dialogues by source file: negatives from another source could be told by style alone."""

    sources: tuple[tuple[Dialogue, ...], ...]

    @classmethod
    def read(
        cls,
        paths: Sequence[Path],
        rejected: Callable[[Rejected], None] = lambda record: None,
        without: Fields | None = None,
    ) -> Corpus:
        """Read every valid dialogue of at least two turns; bad records are passed to `rejected`.

        Dialogues with one of the values in `without` are left out.
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
                if not all(turn.text for turn in dialogue.turns):  # empty turns teach nothing
                    said = tuple(turn for turn in dialogue.turns if turn.text)
                    dialogue = replace(dialogue, turns=said)
                if len(dialogue.turns) > 1:
                    dialogues.append(dialogue)
            if not dialogues:
                raise CauserieError(f"{path} has no dialogue of at least two turns to train on")
            sources.append(tuple(dialogues))
        return cls(tuple(sources))

    def split(self, seed: int) -> tuple[Corpus, Corpus]:
        """Split into training and held-out dialogues: some of each file, with different users."""
        kept, held = [], []
        for source in self.sources:
            if len(source) < LEAST:
                raise CauserieError(
                    f"a file with {len(source)} dialogues is too small to hold some out for "
                    "validation: give --valid"
                )
            count = max(len(source) // HELD_OUT, min(16, len(source) // 4))
            some, others = _drawn(source, count, seed)
            held.append(some)
            kept.append(others)
        return Corpus(tuple(kept)), Corpus(tuple(held))

    def halves(self, seed: int) -> tuple[Corpus, Corpus]:
        """Return two halves of each file with different users; one-dialogue files are in both."""
        pairs = [_drawn(source, len(source) // 2, seed, least=2) for source in self.sources]
        one = tuple(first or second for first, second in pairs)
        return Corpus(one), Corpus(tuple(second or first for first, second in pairs))

    def without(self, other: Corpus) -> Corpus:
        """Return only the dialogues that share no exchange with the other corpus.

        Corpora contain near-copies of dialogues. Short exchanges ("Thanks.") occur everywhere, so
        only exchanges of more than `SHARED_WORDS` words count.
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
        """Digest of speakers and texts by source, independent of the file format."""
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
    """Annotations by source file: responses from another could be told by style alone."""

    sources: tuple[tuple[Annotation, ...], ...]

    @classmethod
    def read(
        cls, paths: Sequence[Path], say: Callable[[str], None] = lambda text: None
    ) -> AnnotatedCorpus:
        """Read every valid annotation; bad records and unmatched spans are reported to `say`."""
        sources = []
        for path in paths:
            found: list[Annotation] = []
            for record in read_annotations(path):
                if isinstance(record, Rejected):
                    say(f"skipped {record}")
                    continue
                for span in record.unmatched:
                    say(f"{path.name}: {record.exchange.dialogue.id}: no turn contains {span!r}")
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
        """Every conversation, as far as its longest exchange shows it."""
        return Corpus(tuple(tuple(_longest(source)) for source in self.sources))

    def split(self, seed: int) -> tuple[AnnotatedCorpus, AnnotatedCorpus]:
        """Split into training and held-out annotations, by whole conversations of each file."""
        held: set[tuple[str, ...]] = set()
        for source in self.sources:
            known = sorted({annotation.conversation for annotation in source})
            if len(known) < HELD_OUT_ANNOTATED:
                raise CauserieError(
                    f"a file with {len(known)} conversations is too small to hold some out for "
                    f"validation: give --valid, or at least {HELD_OUT_ANNOTATED} conversations"
                )
            # negatives come from another conversation, so one alone has none
            held.update(random.Random(seed).sample(known, max(2, len(known) // HELD_OUT_ANNOTATED)))
        return self.without(held), self.without(self.conversations - held)

    def part(self, share: float, seed: int) -> AnnotatedCorpus:
        """Return about that share of each file: whole conversations, at least one."""
        kept: set[tuple[str, ...]] = set()
        for source in self.sources:
            known = sorted({annotation.conversation for annotation in source})
            random.Random(seed).shuffle(known)
            kept.update(known[: max(1, round(share * len(known)))])
        return self.without(self.conversations - kept)

    def apart_from(self, other: AnnotatedCorpus) -> AnnotatedCorpus:
        """Return the annotations of conversations that share no exchange with the other corpus."""
        free = self.dialogues.without(other.dialogues)
        kept = {opening(dialogue.turns) for dialogue in free.dialogues}
        return self.without(self.conversations - (kept - other.conversations))

    def without(self, conversations: Iterable[tuple[str, ...]]) -> AnnotatedCorpus:
        """Return the annotations without those of these conversations."""
        left_out = set(conversations)
        return AnnotatedCorpus(
            tuple(
                tuple(one for one in source if one.conversation not in left_out)
                for source in self.sources
            )
        )

    @cached_property
    def sha256(self) -> str:
        """Digest of speakers, texts and causes, independent of the file format."""
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
    """Draw `count` things at random; all if there are no more or the count is None."""
    if count is None or count >= len(things):
        return list(things)
    return random.Random(seed).sample(things, count)


def sample_evenly(groups: Sequence[Sequence[Thing]], count: int, seed: int) -> list[Thing]:
    """Draw about `count` things: an equal number from each group, or all of a smaller one."""
    share = -(-count // max(1, len(groups)))
    return [thing for group in groups for thing in sample(group, share, seed)]


def _drawn(
    source: Sequence[Dialogue], count: int, seed: int, least: int = LEAST
) -> tuple[tuple[Dialogue, ...], tuple[Dialogue, ...]]:
    """Split dialogues into at least `count` and the others; no named user is in both.

    A file that names fewer users than `least` is split by dialogue.
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
    """Return the words of every pair of consecutive turns that has enough of them."""
    words = [_WORD.findall(turn.text.lower()) for turn in dialogue.turns]
    keys = ((*last, "|", *response) for last, response in pairwise(words))
    return {key for key in keys if len(key) > SHARED_WORDS}


class EpochBatches(Generic[Thing]):
    """Batches of the examples that `draw` returns for every epoch; incomplete ones are dropped."""

    def __init__(self, count: int, size: int, draw: Callable[[int], Sequence[Thing]]) -> None:
        """`count` is the number of examples per epoch."""
        self._count, self._size, self._draw = count, size, draw
        self._epoch: tuple[int, Sequence[Thing]] = (-1, ())

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return max(1, self._count // self._size)

    def __getitem__(self, index: int) -> Sequence[Thing]:
        """Return batch number `index`, counted across epochs."""
        epoch, place = divmod(index, len(self))
        if self._epoch[0] != epoch:
            self._epoch = epoch, self._draw(epoch)
        return self._epoch[1][place * self._size : (place + 1) * self._size]


class Batches(Generic[Thing]):
    """Batches of about `size` things of one source; each thing occurs exactly once an epoch.

    Every epoch is shuffled anew. A remainder that does not fill a batch is spread over the other
    batches of its source. `most` limits how many things of a source an epoch draws. `order`
    returns the order of a source's things, so that neighbours come into the same batch.
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
        """Return the number of batches per epoch."""
        return sum(map(self._count, self._sources))

    def __getitem__(self, index: int) -> list[Thing]:
        """Return batch number `index`, counted across epochs."""
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
