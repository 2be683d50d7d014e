"""A corpus of dialogues as a source: word frequencies, answer edges and usage vectors.

Each function reads the files again, so that memory stays flat.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.graph.cooccurrence import cooccurrence
from causerie.graph.edges import Edge
from causerie.graph.usage import usage_vectors
from causerie.graph.vectors import WordVector
from causerie.io import Rejected, read
from causerie.progress import Progress, Watch, ignore
from causerie.text.keywords import Frequencies, KeywordExtractor, candidates


def count_words(
    paths: Sequence[Path],
    watch: Watch = ignore,
) -> Frequencies:
    """Count the utterances in which each word occurs; bad records are reported to `watch`."""
    found = Frequencies.count(chain.from_iterable(_dialogues(paths, "counting words", watch)))
    if not found.utterances:
        raise CauserieError(f"{', '.join(map(str, paths))}: no utterances found")
    return found


def read_answers(
    paths: Sequence[Path],
    frequencies: Frequencies,
    words: Container[str] | None = None,
    watch: Watch = ignore,
) -> Iterator[Edge]:
    """Yield edges between keywords that co-occur in neighbouring turns more than by chance.

    `words` restricts the keywords: fewer pairs are tested, so more of them are significant.
    """
    extractor = KeywordExtractor(frequencies)
    return cooccurrence(
        [
            {keyword.word for keyword in found if words is None or keyword.word in words}
            for found in extractor.extract(turns)
        ]
        for turns in _dialogues(paths, "finding answers", watch, noted=False)
    )


def read_usage(
    paths: Sequence[Path], words: Sequence[str], dimension: int, watch: Watch = ignore
) -> Iterator[WordVector]:
    """Yield each word with a vector of the words it is used with."""
    dialogues = (
        list(candidates(turns)) for turns in _dialogues(paths, "counting usage", watch, noted=False)
    )
    yield from zip(words, usage_vectors(dialogues, words, dimension), strict=True)


def _dialogues(
    paths: Sequence[Path], task: str, watch: Watch, *, noted: bool = True
) -> Iterator[list[str]]:
    """Yield the utterances of each dialogue; progress counts the bytes of all files together."""
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths]
    for place, path in enumerate(paths):
        reading = partial(_reading, watch, task, sum(sizes[:place]), sum(sizes))
        for record in read(path, watch=reading):
            if not isinstance(record, Rejected):
                dialogue = record.dialogue if isinstance(record, Exchange) else record
                yield [turn.text for turn in dialogue.turns]
            elif noted:
                watch(Progress(task, note=f"skipped {record}"))


def _reading(watch: Watch, task: str, before: int, total: int, position: int) -> None:
    watch(Progress(task, before + position, total, "bytes"))
