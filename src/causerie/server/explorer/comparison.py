"""Comparison of two runs, or of systems in them, in pairs where they share turns."""

from __future__ import annotations

from dataclasses import dataclass

from causerie.errors import CauserieError
from causerie.server.explorer.overview import moments
from causerie.server.explorer.replies import PAGE
from causerie.server.explorer.runs import ScoredRun, Scores
from causerie.server.explorer.tables import Tables, Values, rows_of, source
from causerie.stats import Estimate, difference


@dataclass(frozen=True)
class Side:
    """A run, or the rows of one system in it."""

    run: ScoredRun
    system: str | None = None
    """A system; empty for rows without a system, None for all rows."""

    def rows(self, tables: Tables, scores: Scores, letter: str) -> tuple[str, Values]:
        """Return its rows as a subquery with keys, `value`, and a number for repeated keys."""
        counted, values = tables.counted(self.run, scores)
        # the two sides may need different values of the same parameter
        for name in sorted(values, key=len, reverse=True):
            counted = counted.replace(f"${name}", f"${name}_{letter}")
        named = {f"{name}_{letter}": value for name, value in values.items()}
        where = "true"
        if self.system is not None:
            where = f"coalesce(system, '') = $system_{letter}"
            named[f"system_{letter}"] = self.system
        return (
            "(SELECT row, dialogue, file, coalesce(turn, -1) AS turn, "
            f"{counted} AS value, row_number() OVER "
            "(PARTITION BY dialogue, turn ORDER BY row) AS time "
            f"FROM {rows_of(self.run, f'path_{letter}')} WHERE {where})",
            {**source(self.run, f"path_{letter}"), **named},
        )


@dataclass(frozen=True)
class Versus:
    """The comparison of b with a by one column."""

    pairs: int | None
    """Number of compared pairs; None if the sides have different conversations."""
    a: Estimate
    b: Estimate
    difference: Estimate
    """Mean of b minus mean of a."""
    p: float | None
    changed: list[tuple[int, int, float, float]]
    """The pairs that changed most, each as (row of a, row of b, value in a, value in b)."""


def versus(
    tables: Tables, a: Side, b: Side, column: str | None = None, page: int = 0, order: str = "most"
) -> Versus:
    """Compare two sides by a column that both have.

    They are compared in pairs if at least half of the rows of either side have a partner: the same
    turn of the dialogue with the same id. Rows without a partner are then left out.
    """
    if a == b:
        raise CauserieError("both sides are the same replies: choose another run or system")
    one = a.run.column(column)
    if one.name not in b.run.scores:
        raise CauserieError(f"{b.run.name} has no scores named {one.name!r}: choose another column")
    other = b.run.column(one.name)
    (rows_a, values_a), (rows_b, values_b) = (
        side.rows(tables, scores, letter)
        for side, scores, letter in ((a, one, "a"), (b, other, "b"))
    )
    values = {**values_a, **values_b}
    joined = f"{rows_a} AS a JOIN {rows_b} AS b USING (dialogue, turn, time)"
    ((pairs, most),) = tables.ask(
        f"SELECT (SELECT count(*) FROM {joined}), "
        f"greatest((SELECT count(*) FROM {rows_a}), (SELECT count(*) FROM {rows_b}))",
        values,
    )
    if not pairs or pairs * 2 < most:
        mean_a, mean_b = (
            moments(tables, f"{rows} AS a WHERE a.value IS NOT NULL", "a.value", own)
            for rows, own in ((rows_a, values_a), (rows_b, values_b))
        )
        gap, p = difference(mean_a, mean_b)
        return Versus(None, mean_a.estimate(), mean_b.estimate(), gap, p, [])
    joined += " WHERE a.value IS NOT NULL AND b.value IS NOT NULL"
    mean_a, mean_b, gaps = (
        moments(tables, joined, value, values)
        for value in ("a.value", "b.value", "(b.value - a.value)")
    )
    changed = tables.ask(
        f"SELECT a.row, b.row, a.value, b.value FROM {joined} "
        f"ORDER BY {_ORDERS[order]}, a.row LIMIT {PAGE} OFFSET $start",
        {**values, "start": page * PAGE},
    )
    return Versus(
        pairs,
        mean_a.estimate(),
        mean_b.estimate(),
        gaps.estimate(),
        gaps.p(),
        [(int(i), int(j), x, y) for i, j, x, y in changed],
    )


_ORDERS = {
    "most": "abs(b.value - a.value) DESC",
    "down": "b.value - a.value ASC",
    "up": "b.value - a.value DESC",
}
"""SQL by name of the order of pairs."""
