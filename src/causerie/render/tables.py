"""Tables of results as Markdown, LaTeX, CSV or JSON.

A cell is text, a number, a measured value (an estimate with its interval), marked text, or None.
Text may be hostile: it is escaped for each format, and in CSV no cell can be taken for a formula
by a spreadsheet. Markdown and LaTeX show rounded numbers, CSV and JSON have them in full.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from causerie.errors import CauserieError
from causerie.io import write_whole
from causerie.render.numbers import NONE
from causerie.render.page import outside


class Measured(Protocol):
    """A number with its interval, such as an `Estimate`."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    def text(self, digits: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Marked:
    """Emphasised text."""

    text: str
    style: Literal["strong", "emphasis", "code"]


Cell: TypeAlias = str | int | float | Measured | Marked | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headings."""

    headings: Sequence[str | Marked]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    align: str = ""
    """One letter per column, `l` or `r`; by default the first is `l` and the others are `r`."""
    digits: int = 3
    """Number of decimals where numbers are rounded."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.headings) for row in self.rows):
            raise ValueError(f"every row of a table needs {len(self.headings)} cells")

    @property
    def alignment(self) -> str:
        return self.align or "l" + "r" * (len(self.headings) - 1)


def write_tables(path: Path, *tables: Table, text: str | None = None) -> None:
    """Write tables to a .md, .tex, .csv or .json file, by the suffix of `path`, or write nothing.

    `text` is the Markdown of a whole document that contains the tables; without it, a Markdown
    file has nothing but the tables.
    """
    write = _FORMATS[_suffix(path)]
    write_whole(path, text if text is not None and write is _markdown else write(tables))


def check_suffix(path: Path) -> None:
    """Raise the error that `write_tables` would raise for `path`, before a long run."""
    _suffix(path)


def markdown_table(table: Table) -> str:
    """Return the lines of a table in Markdown, without its title or a final line break."""
    rule = ["---" if letter == "l" else "--:" for letter in table.alignment]
    rows = [[_shown(cell, table.digits, _MARKDOWN) for cell in row] for row in table.rows]
    headings = [_shown(heading, 0, _MARKDOWN) for heading in table.headings]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def html_table(table: Table) -> str:
    """Return a table as HTML, in a box that can be scrolled."""
    kinds = ["" if letter == "l" else ' class="number"' for letter in table.alignment]

    def row(cells: Sequence[Cell], tag: str) -> str:
        shown = (_shown(cell, table.digits, _HTML) for cell in cells)
        return "<tr>" + "".join(
            f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, shown, strict=True)
        )

    body = "\n".join(row(cells, "td") for cells in table.rows)
    return (
        f'<div class="scroll" tabindex="0"><table><thead>{row(table.headings, "th")}</thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def markdown_text(text: str) -> str:
    """Return foreign text as one line of Markdown in which nothing is markup."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _MARKUP.sub(r"\\\g<0>", plain)


def markdown_code(text: str) -> str:
    """Return text between backticks; characters that would end it are dropped, as none escapes."""
    return f"`{''.join(c for c in text if c.isprintable() and c not in '`|')}`"


def latex_text(text: str) -> str:
    """Return foreign text as LaTeX in which nothing is a command."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return "".join(_LATEX_SIGNS.get(c, c) for c in plain)


_MARKUP = re.compile(r"[\\|*`<>]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])")
"""Characters to escape in Markdown: brackets only where they would close a link, underscores only
at the edge of a word."""
_LATEX_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
    "*": r"{*}",  # after the end of a row a bare star would be part of its command
    "[": "{[}",  # and so would a bracket
}


@dataclass(frozen=True, slots=True)
class _Markup:
    """How a format escapes text and emphasises it."""

    escape: Callable[[str], str]
    styles: Mapping[str, str]


_MARKDOWN = _Markup(markdown_text, {"strong": "**{}**", "emphasis": "*{}*"})
_LATEX = _Markup(
    latex_text, {"strong": r"\textbf{{{}}}", "emphasis": r"\emph{{{}}}", "code": r"\texttt{{{}}}"}
)

_HTML = _Markup(
    outside, {"strong": "<b>{}</b>", "emphasis": "<em>{}</em>", "code": "<code>{}</code>"}
)


def _shown(cell: Cell, digits: int, markup: _Markup) -> str:
    if cell is None:
        return "--" if markup is _LATEX else NONE
    if isinstance(cell, str):
        return markup.escape(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    if isinstance(cell, Marked):
        if cell.style == "code" and markup is _MARKDOWN:
            return markdown_code(cell.text)
        return markup.styles[cell.style].format(markup.escape(cell.text))
    text = cell.text(digits)
    return text if markup is _MARKDOWN else markup.escape(text)


def _markdown(tables: Sequence[Table]) -> str:
    parts = [
        "\n\n".join([*([f"## {markdown_text(t.title)}"] if t.title else []), markdown_table(t)])
        for t in tables
    ]
    return "\n\n".join(parts) + "\n"


def _latex(tables: Sequence[Table]) -> str:
    """Return one `table` environment per table; no LaTeX package is needed."""
    lines = []
    for table in tables:
        rows = [table.headings, *table.rows]
        shown = [
            " & ".join(_shown(cell, table.digits, _LATEX) for cell in row) + r" \\" for row in rows
        ]
        caption = [rf"\caption{{{latex_text(table.title)}}}"] if table.title else []
        lines += [r"\begin{table}", r"\centering", *caption]
        lines += [rf"\begin{{tabular}}{{{table.alignment}}}", r"\hline", shown[0], r"\hline"]
        lines += [*shown[1:], r"\hline", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join(lines)


def _csv(tables: Sequence[Table]) -> str:
    """Return the tables one below the other; ends of intervals have columns of their own."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    for place, table in enumerate(tables):
        if len(tables) > 1:
            writer.writerows([*([[]] if place else []), [_disarmed(table.title)]])
        wide = [
            any(getattr(row[i], "low", None) is not None for row in table.rows)
            for i in range(len(table.headings))
        ]
        head = []
        for heading, ends in zip(table.headings, wide, strict=True):
            name = heading.text if isinstance(heading, Marked) else heading
            head += [name, *([f"{name} low", f"{name} high"] if ends else [])]
        writer.writerow(map(_disarmed, head))
        for row in table.rows:
            cells: list[object] = []
            for cell, ends in zip(row, wide, strict=True):
                value = _value(cell)
                found = value if isinstance(value, dict) else {"value": value}
                cells += [found.get(key) for key in ("value", "low", "high")[: 3 if ends else 1]]
            writer.writerow([_disarmed(c) if isinstance(c, str) else c for c in cells])
    return file.getvalue()


def _json(tables: Sequence[Table]) -> str:
    content = [
        {
            "title": table.title,
            "columns": [_value(heading) for heading in table.headings],
            "rows": [[_value(cell) for cell in row] for row in table.rows],
        }
        for table in tables
    ]
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _value(cell: Cell) -> object:
    """Return a cell as a JSON value."""
    if isinstance(cell, Marked):
        return cell.text
    if cell is None or isinstance(cell, str | int | float):
        return None if isinstance(cell, float) and cell - cell != 0 else cell
    return {"value": cell.value, "low": cell.low, "high": cell.high}


def _disarmed(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if re.match(r"'*[=+\-@\t\r]", text) else text


_FORMATS: Mapping[str, Callable[[Sequence[Table]], str]] = {
    ".md": _markdown,
    ".tex": _latex,
    ".csv": _csv,
    ".json": _json,
}


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise CauserieError(f"{path} has no known suffix: use one of {', '.join(_FORMATS)}")
    return suffix
