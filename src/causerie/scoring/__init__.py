"""From records to tables of scores: in memory (`evaluate`) or file to file (`Run`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from causerie import metrics as registry
from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Engines
from causerie.io import Record, Rejected, arrow_table
from causerie.metrics.base import Level, Metric
from causerie.scoring.run import Inputs, Run, Watcher
from causerie.scoring.summary import Summary
from causerie.scoring.table import Layout, Row, chunks, score_chunk

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Inputs", "Layout", "Row", "Run", "Summary", "Watcher", "evaluate"]


def evaluate(
    records: Iterable[Record],
    metrics: Sequence[str | Metric],
    *,
    level: Level = "turn",
    speaker: str | None = None,
    percentiles: bool = False,
    explain: bool = False,
    engines: Engines | None = None,
) -> pyarrow.Table:
    """Score dialogues (or single exchanges) with several metrics at once.

    Returns an Arrow table with the rows and columns that `causerie score` writes;
    `.to_pandas()` and `.to_pylist()` lead on from there. Records that `causerie.read`
    rejected are left out with a warning.
    """
    engines = engines or Engines()
    chosen = tuple(m if isinstance(m, Metric) else registry.load(m, engines) for m in metrics)
    layout = Layout(chosen, level, speaker, percentiles, explain)
    rows = [
        layout.row(item, scores)
        for chunk in chunks(_good(records))
        for item, scores in score_chunk(chunk, layout)
    ]
    return arrow_table(rows, layout.types)


def _good(records: Iterable[Record]) -> Iterator[Dialogue | Exchange]:
    for record in records:
        if isinstance(record, Rejected):
            warnings.warn(f"left out: {record}", stacklevel=3)
        else:
            yield record
