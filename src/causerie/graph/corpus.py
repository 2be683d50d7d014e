"""A corpus as a source: which words are said how often, and which answer each other.

Each question reads the files again, so memory stays flat.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import chain
from pathlib import Path

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.graph.cooccurrence import cooccurrence
from causerie.graph.edges import Edge, Watch
from causerie.io import Rejected, read
from causerie.text.keywords import Frequencies, KeywordExtractor


def count_words(
    paths: Sequence[Path],
    watch: Watch = lambda position: None,
    rejected: Callable[[Rejected], None] = lambda record: None,
) -> Frequencies:
    """In how many utterances words occur; bad records are handed to `rejected`."""
    found = Frequencies.count(chain.from_iterable(_dialogues(paths, watch, rejected)))
    if not found.utterances:
        raise CauserieError(f"{', '.join(map(str, paths))}: no utterance was found")
    return found


def read_answers(
    paths: Sequence[Path],
    frequencies: Frequencies,
    words: Container[str] | None = None,
    watch: Watch = lambda position: None,
) -> Iterator[Edge]:
    """Edges between keywords of neighbouring turns that meet more often than by chance.

    With `words`, only of these: fewer pairs are tested, so more of them are significant.
    """
    extractor = KeywordExtractor(frequencies)
    return cooccurrence(
        [
            {keyword.word for keyword in found if words is None or keyword.word in words}
            for found in extractor.extract(turns)
        ]
        for turns in _dialogues(paths, watch, lambda record: None)
    )


def _dialogues(
    paths: Sequence[Path], watch: Watch, rejected: Callable[[Rejected], None]
) -> Iterator[list[str]]:
    """The utterances of each dialogue; `watch` counts the bytes of all files together."""
    for before, path in zip(_sizes(paths), paths, strict=True):
        for record in read(path, watch=_shifted(watch, before)):
            if isinstance(record, Rejected):
                rejected(record)
            else:
                dialogue = record.dialogue if isinstance(record, Exchange) else record
                yield [turn.text for turn in dialogue.turns]


def _sizes(paths: Sequence[Path]) -> list[int]:
    """How many bytes come before each file."""
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _shifted(watch: Watch, before: int) -> Watch:
    return lambda position: watch(before + position)
