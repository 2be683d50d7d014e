"""The page itself: figures drawn here, conversations drawn in the browser by `page.js`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from causerie.dialogue import Dialogue
from causerie.io import write_whole
from causerie.render.numbers import brief, counted, listed
from causerie.render.page import column_name, fill
from causerie.report.charts import histograms
from causerie.report.distribution import Distribution
from causerie.report.gather import ColumnInfo, Gathered, Rows


def write_report(
    path: Path,
    dialogues: Iterable[tuple[Dialogue, Rows]],
    columns: Sequence[ColumnInfo],
    *,
    title: str,
    signature: str,
) -> None:
    """Write the page of `build_report` to a file, which appears whole or not at all."""
    write_whole(path, build_report(dialogues, columns, title=title, signature=signature))


def build_report(
    dialogues: Iterable[tuple[Dialogue, Rows]],
    columns: Sequence[ColumnInfo],
    *,
    title: str,
    signature: str,
) -> str:
    """A self-contained HTML page about scored conversations; nothing in it needs a network.

    Every dialogue comes with the score rows of its turns: turn index to a mapping of column to
    number or None (unscored), with `column.percentile` and `explanation` beside them where there
    are any. The stream is read once and the page stays small: statistics and worst responses
    cover everything, conversations are shown in full up to a limit, and the page says so.
    """
    gathered = Gathered.of(dialogues, columns)
    return fill(
        "causerie.report",
        title=title,
        signature=escape(signature),
        sentence=escape(_sentence(gathered)),
        table=_table(gathered),
        charts="".join(_chart(gathered, index) for index in range(len(columns))),
        limits=escape(_limits(gathered)),
        data=gathered.data(),
    )


def _sentence(gathered: Gathered) -> str:
    groups = gathered.groups
    whose = ""
    if 1 < len(groups) <= 3:
        whose = f" of {listed([group.label for group in groups])}"
    elif len(groups) > 3:
        whose = f" of {len(groups)} systems"
    return (
        f"{counted(gathered.responses, 'response')} in "
        f"{counted(gathered.dialogues, 'conversation')}{whose}, "
        f"each scored by {counted(len(gathered.columns), 'metric')}."
    )


def _limits(gathered: Gathered) -> str:
    if len(gathered.shown) == gathered.dialogues:
        return ""
    return (
        f"{len(gathered.shown):,} of {gathered.dialogues:,} conversations are shown below; "
        "all figures and the worst responses cover every one of them."
    )


def _name(column: ColumnInfo) -> str:
    return column_name(
        column.name, higher_is_better=column.higher_is_better, sentinel=column.sentinel
    )


def _table(gathered: Gathered) -> str:
    heads = "".join(
        f'<th scope="col"><bdi>{escape(group.label)}</bdi></th>' for group in gathered.groups
    )
    rows = "".join(
        f'<tr data-column="{index}"><th scope="row"><details><summary title="'
        f'{escape(column.summary)}">{_name(column)}</summary><p>{escape(column.summary)}</p>'
        f"</details></th>"
        f"{''.join(_cell(group.distributions[index]) for group in gathered.groups)}</tr>"
        for index, column in enumerate(gathered.columns)
    )
    return (
        f'<table><thead><tr><th scope="col">metric</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _cell(distribution: Distribution) -> str:
    unscored = (
        f', <span class="missing">{distribution.unscored:,} unscored</span>'
        if distribution.unscored
        else ""
    )
    spread = "" if distribution.spread is None else f" <span>± {brief(distribution.spread)}</span>"
    mean = brief(distribution.mean if distribution.count else None)
    return f"<td><b>{mean}</b>{spread}<small>{distribution.count:,} scored{unscored}</small></td>"


def _chart(gathered: Gathered, index: int) -> str:
    labels = [group.label for group in gathered.groups]
    distributions = [group.distributions[index] for group in gathered.groups]
    return (
        f'<article class="chart" data-column="{index}"><h3>{_name(gathered.columns[index])}</h3>'
        f"{histograms(labels, distributions)}</article>"
    )
