"""Questions to tables of scores, answered by DuckDB from the Parquet files.

No text from outside ever stands in a query. Columns are renamed by their place before anything
else, so every name in a query is ours, and every value is a parameter.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from causerie.server.explorer.runs import ScoredRun, Scores

Values: TypeAlias = dict[str, Any]
"""Parameters of a query by name."""

MEMORY = "384MB"
THREADS = 2
BLANK = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace())
"""What may stand in a text that says nothing."""
SAYS_NOTHING = "(text = '' OR (contains($blank, left(text, 1)) AND trim(text, $blank) = ''))"
"""Whether a reply is empty: it needs the parameter `blank`, which is `BLANK`."""
_KEYS: Mapping[str, tuple[str, str]] = {
    "dialogue": ("dialogue_id", "VARCHAR"),
    "turn": ("turn", "BIGINT"),
    "speaker": ("speaker", "VARCHAR"),
    "file": ("file", "VARCHAR"),
    "system": ("system", "VARCHAR"),
    "text": ("text", "VARCHAR"),
    "explanation": ("explanation", "VARCHAR"),
    "conversation": ("conversation", "VARCHAR"),
}
"""What queries call the columns that are no scores, and what tables call them."""


@dataclass(frozen=True)
class Profile:
    """What one look at a whole table tells about it."""

    dialogues: int
    empty: int
    """Replies that say nothing."""
    scored: Mapping[str, int]
    means: Mapping[str, float | None]
    """Of what is scored, by column."""
    percentiles: Mapping[str, float | None]
    """The mean percentile among human replies, where the table has percentiles."""
    ends: Mapping[str, tuple[float, float] | None]
    """The lowest and the highest value."""

    def worst(self, scores: Scores) -> float | None:
        """What an empty reply counts as; None if it does not count."""
        ends = self.ends[scores.name]
        return scores.about.empty_value(*(ends or (None, None))) if self.empty else None


class Tables:
    """A database without data of its own; threads may share it."""

    def __init__(self) -> None:
        import duckdb

        self._database = duckdb.connect(
            config={
                "memory_limit": MEMORY,
                "threads": THREADS,
                "autoinstall_known_extensions": False,
                "preserve_insertion_order": False,
            }
        )

    def ask(self, query: str, values: Values) -> list[tuple[Any, ...]]:
        """The rows that answer a query."""
        with self._database.cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(query, values).fetchall()
            return rows

    def close(self) -> None:
        self._database.close()

    @lru_cache(maxsize=64)  # noqa: B019 (there is one of these in a process)
    def profile(self, run: ScoredRun) -> Profile:
        """Counts and ends of every column."""
        asked = ", ".join(
            f"count(m{i}), avg(m{i}), avg(p{i}), min(m{i}), max(m{i})"
            for i in range(len(run.scores))
        )
        (row,) = self.ask(
            "SELECT (SELECT count(*) FROM (SELECT DISTINCT dialogue, file, system FROM "
            f"{rows_of(run)})), count_if({SAYS_NOTHING}), {asked} FROM {rows_of(run)}",
            {**source(run), "blank": BLANK},
        )
        found = {name: row[2 + 5 * i : 7 + 5 * i] for i, name in enumerate(run.scores)}
        return Profile(
            dialogues=row[0],
            empty=row[1] or 0,
            scored={name: told[0] for name, told in found.items()},
            means={name: told[1] for name, told in found.items()},
            percentiles={name: told[2] for name, told in found.items()},
            ends={name: told[3:] if told[0] else None for name, told in found.items()},
        )

    def counted(self, run: ScoredRun, scores: Scores) -> tuple[str, Values]:
        """An expression for a value that counts an empty reply as the worst one."""
        place = place_of(run, scores)
        worst = self.profile(run).worst(scores)
        if worst is None:
            return f"m{place}", {}
        return (
            f"coalesce(m{place}, CASE WHEN {SAYS_NOTHING} THEN $worst{place} END)",
            {"blank": BLANK, f"worst{place}": worst},
        )


def place_of(run: ScoredRun, scores: Scores) -> int:
    """Queries call this column of scores m and this number, its percentiles p and the same."""
    return list(run.scores).index(scores.name)


def rows_of(run: ScoredRun, path: str = "path") -> str:
    """The rows of a run as a table in a query: `row`, keys, m0, p0, m1 and so on.

    `path` is the parameter that names the file, as in `source`.
    """
    columns = ", ".join(f"c{i}" for i in range(run.width))
    chosen = ["row"]
    for ours, (theirs, kind) in _KEYS.items():
        place = run.places.get(theirs)
        chosen.append(f"{'NULL' if place is None else f'c{place}'}::{kind} AS {ours}")
    for i, scores in enumerate(run.scores.values()):
        chosen.append(f"{_finite(scores.place)} AS m{i}")
        percentile = scores.percentile
        chosen.append(f"{'NULL::DOUBLE' if percentile is None else _finite(percentile)} AS p{i}")
    return (
        f"(SELECT {', '.join(chosen)} "
        f"FROM read_parquet(${path}, file_row_number = true) AS t({columns}, row)) AS r"
    )


def source(run: ScoredRun, path: str = "path") -> Values:
    """The parameter that says which file a query reads."""
    return {path: str(run.table)}


def _finite(place: int) -> str:
    return f"CASE WHEN isfinite(c{place}::DOUBLE) THEN c{place}::DOUBLE END"
