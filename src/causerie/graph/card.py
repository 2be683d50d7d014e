"""The texts that go with a graph: its card, and the licences of what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from causerie.graph import wordnet
from causerie.graph.about import About, Source


def card(name: str, about: About, relations: Mapping[str, int], recipe: str) -> str:
    """What the graph is, in Markdown; `relations` counts the edges of each."""
    lines = [
        f"# {name}",
        "",
        f"A graph of {about.nodes:,} words and {about.edges:,} relations between them.",
        "",
        "## Sources",
        "",
        "| source | edges | licence | SHA-256 of its files |",
        "|---|---|---|---|",
        *(
            f"| {source.name} | {source.edges:,} | {source.licence} | "
            f"{', '.join(digest[:12] for digest in source.sha256)} |"
            for source in about.sources
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
        "| relation | edges |",
        "|---|---|",
        *(f"| {relation} | {count:,} |" for relation, count in relations.items()),
        "",
        "## Vectors",
        "",
        f"{about.vectors[:1].upper()}{about.vectors[1:] or 'None'}.",
    ]
    return "\n".join(lines) + "\n"


def licences(sources: Sequence[Source]) -> str:
    """Of every source, with the notice of WordNet where it is one."""
    text = "This graph is made of the following, and their licences apply to it.\n\n"
    text += "".join(f"- {source.name}: {source.licence}\n" for source in sources)
    if any(source.licence == wordnet.LICENCE for source in sources):
        text += f"\n{wordnet.LICENCE}\n\n{wordnet.notice()}"
    return text
