"""Bad records: how a reader says so, and how the caller hears of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Rejected:
    """A bad record: reported and counted, never an exception.

    The reason counts turns and messages from 0, as the `turn` column of the output does.
    """

    source: str
    """The file name as given; "-" for standard input."""
    line: int
    """1-based line where the record starts; in Parquet, its row."""
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}"


class RecordError(ValueError):
    """Why one record cannot be used; a reader raises or yields it, and goes on."""


Raw: TypeAlias = tuple[int, "Mapping[str, object] | RecordError"]
"""What every format is reduced to: the line and the fields of a record."""

MAX_RECORD = 64 * 2**20
"""Bytes of the longest record that is read."""


def too_long() -> RecordError:
    return RecordError(f"longer than {MAX_RECORD // 2**20} MB: split it")
