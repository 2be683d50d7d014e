"""Queries on tables of scores, answered by DuckDB from the Parquet files.

No foreign text ever appears in a query: columns are first renamed by their index, so every name
in a query is ours, and every value is a parameter.
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
"""All whitespace characters, which a text that says nothing may contain."""
SAYS_NOTHING = "(text = '' OR (contains($blank, left(text, 1)) AND trim(text, $blank) = ''))"
"""SQL for whether a reply is empty; needs the parameter `blank`, which is `BLANK`."""
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
"""Columns that are not scores: their names in queries, and their names and types in tables."""


@dataclass(frozen=True)
class Profile:
    """Figures from one scan of a whole table."""

    dialogues: int
    empty: int
    """Number of replies that say nothing."""
    scored: Mapping[str, int]
    means: Mapping[str, float | None]
    """Mean of the scored values, by column."""
    percentiles: Mapping[str, float | None]
    """Mean percentile among human replies, by column; None without percentiles."""
    ends: Mapping[str, tuple[float, float] | None]
    """Lowest and highest value by column; None without values."""

    def worst(self, scores: Scores) -> float | None:
        """Return the value that an empty reply counts as; None if it does not count."""
        ends = self.ends[scores.name]
        return scores.about.empty_value(*(ends or (None, None))) if self.empty else None


class Tables:
    """A DuckDB database without data of its own, which threads may share."""

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
        """Return the rows that answer a query."""
        with self._database.cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(query, values).fetchall()
            return rows

    def close(self) -> None:
        self._database.close()

    @lru_cache(maxsize=64)  # noqa: B019 (a process has only one of these)
    def profile(self, run: ScoredRun) -> Profile:
        """Return counts, means and ends of every column."""
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
        """Return an SQL expression for a value that counts an empty reply as the worst one."""
        place = place_of(run, scores)
        worst = self.profile(run).worst(scores)
        if worst is None:
            return f"m{place}", {}
        return (
            f"coalesce(m{place}, CASE WHEN {SAYS_NOTHING} THEN $worst{place} END)",
            {"blank": BLANK, f"worst{place}": worst},
        )


def place_of(run: ScoredRun, scores: Scores) -> int:
    """Return the number i of a column of scores, called m{i} in queries (its percentile p{i})."""
    return list(run.scores).index(scores.name)


def rows_of(run: ScoredRun, path: str = "path") -> str:
    """Return a subquery for the rows of a run: `row`, keys, m0, p0, m1 and so on.

    `path` is the parameter with the file's name, as in `source`.
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
    """Return the parameter with the file that a query reads."""
    return {path: str(run.table)}


def _finite(place: int) -> str:
    return f"CASE WHEN isfinite(c{place}::DOUBLE) THEN c{place}::DOUBLE END"
