"""Word vectors from a text file in GloVe's format, or in word2vec's with its header line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causerie.errors import CauserieError
from causerie.text import words

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A table of word vectors."""

    rows: dict[str, int]
    matrix: NDArray[np.float32]
    sha256: str
    """SHA-256 digest of the file."""

    @classmethod
    def read(cls, path: Path) -> WordVectors:
        """Read one word and its numbers per line; of a repeated word, the first vector counts."""
        digest = hashlib.sha256()
        rows: dict[str, int] = {}
        numbers = bytearray()
        dimension = 0
        number = 0
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    digest.update(line)
                    fields = line.split()
                    if not fields or (number == 1 and len(fields) == 2):
                        continue
                    dimension = dimension or len(fields) - 1
                    # In some files, words contain spaces.
                    vector = np.array(fields[-dimension:], dtype=np.float32)
                    word = b" ".join(fields[:-dimension]).decode("utf-8")
                    if not word:
                        raise ValueError("no word")
                    if word not in rows:
                        rows[word] = len(rows)
                        numbers += vector.tobytes()
        except OSError as error:
            raise CauserieError(
                f"{path} cannot be read ({error.strerror}): give a GloVe text file"
            ) from error
        except ValueError as error:
            raise CauserieError(
                f"line {number} of {path} is not a word and its numbers: give a GloVe text file"
            ) from error
        if not rows:
            raise CauserieError(f"{path} has no word vectors: give a GloVe text file")
        matrix = np.frombuffer(numbers, dtype=np.float32).reshape(len(rows), dimension)
        return cls(rows, matrix, digest.hexdigest())

    def word_vectors(self, texts: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        """Yield a matrix for each text, one row per word; unknown words are left out."""
        for text in texts:
            known = [self.rows[word] for word in words(text) if word in self.rows]
            yield self.matrix[known]
