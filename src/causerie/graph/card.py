"""The texts that go with a graph: its card and the licences of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from causerie.graph import wordnet
from causerie.graph.about import About, Source
from causerie.render.tables import Cell, Table, markdown_table


def card(name: str, about: About, relations: Mapping[str, int], recipe: str) -> str:
    """Return the card of a graph in Markdown; `relations` counts the edges of each relation."""
    sources: list[list[Cell]] = [
        [one.name, one.edges, one.licence, ", ".join(digest[:12] for digest in one.sha256)]
        for one in about.sources
    ]
    lines = [
        f"# {name}",
        "",
        f"A graph of {about.nodes:,} words and {about.edges:,} relations between them.",
        "",
        "## Sources",
        "",
        markdown_table(
            Table(["source", "edges", "licence", "SHA-256 of its files"], sources, align="lrll")
        ),
        "",
        "The licences of all of them apply; `LICENSE` has the notices.",
        "",
        "## Recipe",
        "",
        "```",
        recipe,
        "```",
        "",
        "## Relations",
        "",
        markdown_table(Table(["relation", "edges"], list(relations.items()))),
        "",
        "## Vectors",
        "",
        f"{about.vectors[:1].upper()}{about.vectors[1:] or 'None'}.",
    ]
    return "\n".join(lines) + "\n"


def licences(sources: Sequence[Source]) -> str:
    """Return the licences of all sources, with WordNet's notice if it is one of them."""
    text = "This graph is made of the following, and their licences apply to it.\n\n"
    text += "".join(f"- {source.name}: {source.licence}\n" for source in sources)
    if any(source.licence == wordnet.LICENCE for source in sources):
        text += f"\n{wordnet.LICENCE}\n\n{wordnet.notice()}"
    return text
