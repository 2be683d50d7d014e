"""Filters: which rows of a run to show, and in which order, as encoded in an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from causerie.metrics.base import EMPTY
from causerie.server.explorer.runs import ScoredRun, Scores
from causerie.server.explorer.tables import BLANK, SAYS_NOTHING, Tables, Values, place_of

Order: TypeAlias = Literal["given", "lowest", "highest"]
Key: TypeAlias = tuple[str, str, int]
"""Dialogue, system (empty if unnamed) and turn (-1 for the whole dialogue) of a mark."""

ANY = "any"
UNTOLD = "no reason told"
KEY = "(dialogue, coalesce(system, ''), coalesce(turn, -1))"


@dataclass(frozen=True)
class Filter:
    """Conditions on rows; None stands for no condition."""

    system: str | None = None
    """A system; empty for rows without one."""
    speaker: str | None = None
    dialogue: str | None = None
    text: str | None = None
    """Text that the reply must contain, in any case."""
    metric: str | None = None
    """Column for the limits below and for the order; None for the run's main column."""
    least: float | None = None
    most: float | None = None
    percentile_least: float | None = None
    percentile_most: float | None = None
    unscored: str | None = None
    """Reason why the column has no value; `any` for all reasons."""
    tag: str | None = None
    """A tag of the reply; `any` for all tags and comments."""
    order: Order = "given"

    def where(self, run: ScoredRun, marked: Sequence[Key] = ()) -> tuple[str, Values]:
        """Return the WHERE condition and its parameters; `marked` lists the rows with the tag."""
        scores = run.column(self.metric)
        place = place_of(run, scores)
        terms: list[str] = []
        values: Values = {}

        def ask(term: str, **given: object) -> None:
            terms.append(term)
            values.update(given)

        for name in ("system", "speaker", "dialogue"):
            wanted = getattr(self, name)
            if wanted is not None:
                ask(f"coalesce({name}, '') = ${name}", **{name: wanted})
        if self.text:
            ask("contains(lower(text), lower($said))", said=self.text)
        for column, name, sign in (
            ("m", "least", ">="),
            ("m", "most", "<="),
            ("p", "percentile_least", ">="),
            ("p", "percentile_most", "<="),
        ):
            limit = getattr(self, name)
            if limit is not None:
                ask(f"{column}{place} {sign} ${name}", **{name: limit})
        if self.unscored is not None:
            ask(f"m{place} IS NULL")
            if self.unscored != ANY:
                ask(f"{REASON} = $reason", reason=self.unscored, **reason_values(scores))
        if self.tag is not None:
            columns = [list(column) for column in zip(*marked, strict=True)] or [[], [], []]
            ask(
                f"{KEY} IN (SELECT (unnest($d::VARCHAR[]), unnest($s::VARCHAR[]), "
                "unnest($t::BIGINT[])))",
                **dict(zip("dst", columns, strict=True)),
            )
        return " AND ".join(terms) or "true", values

    def by(self, run: ScoredRun, tables: Tables) -> tuple[str, Values]:
        """Return the ORDER BY terms and their parameters; an empty reply counts as the worst."""
        if self.order == "given":
            return "row", {}
        expression, values = tables.counted(run, run.column(self.metric))
        direction = "ASC" if self.order == "lowest" else "DESC"
        return f"{expression} {direction} NULLS LAST, row", values


REASON = (
    f"CASE WHEN {SAYS_NOTHING} THEN $empty "
    "ELSE coalesce(json_extract_string(explanation, $pointer), $untold) END"
)
"""SQL for the reason why a row has no value."""


def reason_values(scores: Scores) -> Values:
    """Return the parameters of `REASON`."""
    name = scores.name.replace("~", "~0").replace("/", "~1")
    return {
        "blank": BLANK,
        "empty": EMPTY.reason,
        "untold": UNTOLD,
        "pointer": f"/{name}/unscored",
    }
