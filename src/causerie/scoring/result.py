"""Scores in memory: what `causerie.evaluate` takes and what it gives back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import Rejected, arrow_table, parse_columns, records_of
from causerie.metrics.base import EMPTY, Level
from causerie.render.page import shown
from causerie.report import Figures, Shown
from causerie.scoring.plan import DEFAULT_METRICS, Metrics, Plan
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.summary import Summary, check_page
from causerie.scoring.table import Layout, Row, by_dialogue

if TYPE_CHECKING:
    import pyarrow

    from causerie.engines import Engines, Settings
    from causerie.scoring.store import ScoreStore

SHOWN_ROWS = 10
SHOWN_TEXT = 80


class Result:
    """Scored responses (or dialogues): a table, a summary, a page."""

    def __init__(self, batch: Batch, layout: Layout, summary: Summary) -> None:
        self.batch, self.layout, self._summary = batch, layout, summary

    @cached_property
    def table(self) -> pyarrow.Table:
        """An Arrow table with the rows and columns that `causerie score` writes."""
        return arrow_table(self.layout.rows(self.batch), self.layout.types)

    @property
    def signature(self) -> str:
        """Everything that decides the numbers besides the input."""
        return self.layout.plan.signature

    def to_pandas(self) -> Any:
        """The table as a data frame."""
        if find_spec("pandas") is None:
            raise CauserieError(
                "pandas is not installed: install it with `pip install pandas`, or use .table "
                "(Arrow) or .to_pylist()"
            )
        return self.table.to_pandas()

    def to_pylist(self) -> list[Row]:
        """The rows as dictionaries."""
        rows: list[Row] = self.table.to_pylist()
        return rows

    def summary(self) -> Summary:
        """Mean, spread, worst items and what was left out; printed, it is a table."""
        return self._summary

    def worst(self, n: int = 5, column: str | None = None) -> list[Row]:
        """The rows of the worst items, the worst first; empty responses lead.

        Without a column, the first one of which one end is better decides.
        """
        if not isinstance(n, int):
            raise CauserieError(f"n is how many rows you want, not {n!r}")
        name = self._ranked_by(column)
        figures, scores = Figures(self.layout.plan.columns[name]), self.batch.scores[name]
        known = [i for i, s in enumerate(scores) if s.value is not None or s.reason == EMPTY.reason]
        known.sort(key=lambda row: figures.badness(scores[row].value))
        return [self.table.slice(row, 1).to_pylist()[0] for row in known[: max(n, 0)]]

    def report(self, path: str | Path) -> Path:
        """Write a page (HTML) with charts and coloured conversations; an older file goes."""
        if self.layout.plan.level != "turn":
            raise CauserieError('a report shows scored turns: evaluate with level="turn"')
        if not self.layout.text:
            raise CauserieError("a report shows conversations: evaluate with text=True")
        check_page(Path(path))
        shown = Shown(self.layout.explain)
        scored = enumerate(by_dialogue(self.batch))
        found = (shown.add(number, dialogue, scores) for number, (dialogue, scores) in scored)
        talks = [talk for talk in found if talk]
        title = f"{len(self):,} responses"
        self._summary.write_page(Path(path), self.layout.plan, talks, title)
        return Path(path)

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, column: str) -> pyarrow.ChunkedArray:
        """One column of the table."""
        if column not in self.layout.types:
            raise self._unknown(column, self.layout.types)
        return self.table.column(column)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.to_pylist())

    def __repr__(self) -> str:
        return f"{len(self)} rows\n{self._summary}"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        names = [name for name in self.layout.types if name != "explanation"]
        head = "".join(f"<th>{escape(shown(name))}</th>" for name in names)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(shown(_brief(row[name])))}</td>' for name in names)}</tr>"
            for row in self.table.slice(0, SHOWN_ROWS).to_pylist()
        )
        more = f"<p>{SHOWN_ROWS} of {len(self):,} rows</p>" if len(self) > SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"

    def _ranked_by(self, column: str | None) -> str:
        columns = self.layout.plan.columns
        if column is None:
            return next((n for n, c in columns.items() if c.better), next(iter(columns)))
        if column not in columns:
            raise self._unknown(column, columns)
        return column

    @staticmethod
    def _unknown(column: object, columns: Mapping[str, object]) -> CauserieError:
        return CauserieError(f"there is no column {column!r}: use one of {', '.join(columns)}")


def evaluate(
    data: object,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    level: Level = "turn",
    speaker: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    percentiles: bool = False,
    explain: bool = False,
    text: bool = True,
    columns: Mapping[str, str] | str | None = None,
    settings: Settings | None = None,
    store: ScoreStore | None = None,
    engines: Engines | None = None,
    runner: str | None = None,
    out: str | Path | None = None,
    address: str | None = None,
    num_workers: int | None = None,
) -> Result:
    """Score conversations with several metrics at once.

    `data` is dialogues or exchanges, a list of OpenAI messages or of such lists, a list of strings
    or of such lists, dictionaries as in the files, a pandas or Arrow table with context and
    response, or a path. `columns` says what it calls the fields that it names otherwise, by field
    or as on the command line ("context=history,response=reply"). Bad records are left out with a
    warning.

    `metrics` are named as on the command line ("density,b2=bleu:order=2"), or given as objects, in
    a list or by alias; `options` are by alias. `speaker` is a name, a role or "all"; None is the
    system where it is known who that is, and otherwise everybody. Networks are chosen by
    `settings`, or shared with other calls through `engines`.

    With `runner="ray"` many workers score (docs/scale.md): on this machine, or on the Ray cluster
    at `address`; `data` may then be patterns and addresses, too, as in "s3://bucket/*.parquet".
    Rows go to the folder `out`, or to a temporary one.

    >>> result = evaluate(["Any plans?", "We hike on Sunday."], metrics="length")
    >>> result["length"].to_pylist()
    [4.0]
    """
    plan = plan_of(metrics, options, settings, engines, level=level, speaker=speaker)
    layout = Layout(plan, percentiles, explain, text)
    if runner is not None:
        if store is not None or engines is not None:
            raise CauserieError("store and engines have no effect with a runner: leave them out")
        from causerie.scoring.cluster import Cluster
        from causerie.scoring.distributed import Runner

        where = Runner(runner, out, Cluster(address, num_workers))
        return where.evaluate(data, layout, columns_of(columns))
    if [out, address, num_workers] != [None] * 3:
        raise CauserieError('out, address and num_workers need runner="ray"')
    summary = Summary.of(plan)
    batches = []
    scorer = Scorer(plan, store, engines=engines)
    bad: list[Rejected] = []
    for batch in scorer.batches(_good(data, columns_of(columns), summary, bad), explain=explain):
        summary.add(batch, text=text)
        batches.append(batch)
    if summary.records and not summary.items:
        first = f"; the first bad one is {bad[0]}" if bad else ""
        raise CauserieError(summary.nothing_scored(speaker) + first)
    return Result(Batch.joined(plan, batches), layout, summary)


def plan_of(
    metrics: Metrics,
    options: Mapping[str, Mapping[str, Any]] | None,
    settings: Settings | None,
    engines: Engines | None,
    *,
    level: Level = "turn",
    speaker: str | None = None,
) -> Plan:
    """The plan of a call, which may come with engines and so with their settings."""
    from causerie.engines import Settings

    if speaker is not None and not isinstance(speaker, str):
        raise CauserieError(f'speaker is a name, a role or "all", not {speaker!r}')
    if engines is not None and settings is None:
        settings = engines.settings
    if settings is not None and not isinstance(settings, Settings):
        raise CauserieError(
            f"settings are causerie.Settings(...), not {type(settings).__name__}: "
            'write for example Settings(encoder="FOLDER")'
        )
    plan = Plan.of(metrics, options=options, settings=settings, level=level, speaker=speaker)
    if engines is None:  # engines that serve other plans, too, may know more than this one uses
        plan.check_settings()
    return plan


def columns_of(columns: Mapping[str, str] | str | None) -> Mapping[str, str]:
    """What the data calls its fields, which may be given as on the command line."""
    if isinstance(columns, str):
        return parse_columns(columns)
    if columns is not None and not isinstance(columns, Mapping):
        raise CauserieError(
            f"columns are given by field, as in {{'response': 'reply'}}, not as {columns!r}"
        )
    return columns or {}


def _good(
    data: object, columns: Mapping[str, str], summary: Summary, bad: list[Rejected]
) -> Iterator[Dialogue | Exchange]:
    for record in records_of(data, columns):
        if isinstance(record, Rejected):
            summary.reject()
            if not bad:
                bad.append(record)
            warnings.warn(f"left out: {record}", stacklevel=4)
        else:
            summary.see(record)
            yield record


def _brief(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    said = str(value)
    return said if len(said) <= SHOWN_TEXT else f"{said[: SHOWN_TEXT - 1]}…"
