"""Scores in Spark: `frame.mapInArrow(score_udf(plan), schema_of(plan))`.

Every partition is scored by itself, in the process of its Spark worker; nothing of causerie's runs
elsewhere, and what fails is tried again by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from causerie.errors import CauserieError
from causerie.io import Rejected, arrow_table, records_of
from causerie.scoring import Layout, Plan, Scorer
from causerie.scoring.scorer import LARGEST_BATCH

if TYPE_CHECKING:
    import pyarrow

_TYPES = {str: "string", dict: "string", int: "bigint", float: "double"}
SKIPPED = "skipped"
"""The column that says why a row could not be read; its other columns are empty."""


def score_udf(
    plan: Plan, *, percentiles: bool = False, explain: bool = False, text: bool = True
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """A function for `DataFrame.mapInArrow`, which needs `schema_of` the same, too.

    The rows of the frame are records, as in a Parquet file: with context and response, or with
    turns, messages or conversations. It gives the rows that `causerie score` writes, and one with
    the reason in `skipped` for each bad record. Give records an `id`: Spark does not say which row
    of a file one was. A worker computes with one thread unless the plan's settings say otherwise.

    >>> frame.mapInArrow(score_udf(plan), schema_of(plan))  # doctest: +SKIP
    """
    settings = replace(plan.settings, threads=plan.settings.threads or 1)
    layout = Layout(replace(plan, settings=settings), percentiles, explain, text)

    def score(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        scorer = Scorer(layout.plan)
        types = {**layout.types, SKIPPED: str}
        for batch in batches:
            records = list(records_of(pa.Table.from_batches([batch])))
            bad = [one for one in records if isinstance(one, Rejected)]
            good = (one for one in records if not isinstance(one, Rejected))
            scored = scorer.batches(good, explain=layout.explain, first=LARGEST_BATCH)
            rows = [row for part in scored for row in layout.rows(part)]
            yield from arrow_table([*rows, *({SKIPPED: b.reason} for b in bad)], types).to_batches()

    return score


def schema_of(
    plan: Plan, *, percentiles: bool = False, explain: bool = False, text: bool = True
) -> str:
    """The columns of `score_udf`, as Spark wants to be told."""
    types = {**Layout(plan, percentiles, explain, text).types, SKIPPED: str}
    if wrong := [name for name in types if "`" in name]:
        raise CauserieError(f"the column {wrong[0]} has a ` in its name: call the metric otherwise")
    return ", ".join(f"`{name}` {_TYPES[kind]}" for name, kind in types.items())
