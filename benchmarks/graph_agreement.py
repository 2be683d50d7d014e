"""How two graphs differ on the words that both have, as a section for a card.

    python benchmarks/graph_agreement.py --graph everyday --other FOLDER [--dialogues FILE]

Neighbours: how many pairs of shared words are related in each graph and in both. Hops: the
distances of random pairs, and those of pairs that the other graph relates. With dialogues (held
out from the corpus of the graph): how much closer the keywords of a response are to those of the
turn before it than to those of a turn of another dialogue.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from causerie.dialogue import Dialogue
from causerie.graph import Graph, Hops
from causerie.io import read
from causerie.render.tables import Table, markdown_table
from causerie.stats import spearman, win_share
from causerie.text.keywords import KeywordExtractor

PAIRS = 5000
CAP = 6


def links(graph: Graph, shared: set[str]) -> set[tuple[str, str]]:
    """Pairs of shared words with an edge between them."""
    found = set()
    for word in shared:
        for one in graph.neighbours(graph.find(word) or 0):
            if one.word in shared:
                found.add((min(word, one.word), max(word, one.word)))
    return found


def hops(graph: Graph, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Distances; without a path, one more than the cap."""
    search = Hops(graph, CAP)
    found = [search.between([graph.find(a) or 0], [graph.find(b) or 0])[0, 0] for a, b in pairs]
    return np.array([CAP + 1 if steps < 0 else steps for steps in found])


def spread(steps: np.ndarray) -> str:
    shares = [f"{np.mean(steps == n):.0%}" for n in range(1, CAP + 2)]
    return " / ".join(shares)


def keyword_turns(path: Path, graph: Graph) -> Iterator[list[list[int]]]:
    """The nodes of the keywords of each turn of each dialogue."""
    extractor = KeywordExtractor(Graph.open().frequencies)
    for dialogue in read(path):
        if isinstance(dialogue, Dialogue):
            found = extractor.extract([turn.text for turn in dialogue.turns])
            nodes = [[graph.find(k.word) for k in keywords] for keywords in found]
            yield [[node for node in turn if node is not None] for turn in nodes]


def closeness(graph: Graph, path: Path, rng: random.Random) -> str:
    """How often a true response is nearer than a random one, by the mean of 1 / (hops + 1)."""
    search = Hops(graph, CAP)
    dialogues = list(keyword_turns(path, graph))
    exchanges = [pair for turns in dialogues for pair in pairwise(turns)]
    both = [(a, b) for a, b in exchanges if a and b]
    responses = [b for _, b in both]
    true, other = [], []
    for context, response in rng.sample(both, min(2000, len(both))):
        for kept, said in ((true, response), (other, rng.choice(responses))):
            steps = search.between(context, said).astype(float)
            kept.append(np.where(steps < 0, 0.05, 1 / (np.maximum(steps, 0) + 1)).mean())
    above = win_share(true, other)
    share = len(both) / len(exchanges)
    return f"{above:.3f} (in {share:.0%} of exchanges both sides have a keyword of the graph)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="everyday")
    parser.add_argument("--other", required=True)
    parser.add_argument("--dialogues", type=Path)
    options = parser.parse_args()
    ours, theirs = Graph.open(options.graph), Graph.open(options.other)
    shared = {w for w in map(ours.word, range(len(ours))) if theirs.find(w) is not None}
    our_links, their_links = links(ours, shared), links(theirs, shared)
    both = our_links & their_links
    rng = random.Random(0)
    pool = sorted(shared)
    chosen = [tuple(rng.sample(pool, 2)) for _ in range(PAIRS)]
    our_steps, their_steps = hops(ours, chosen), hops(theirs, chosen)
    rows = [
        ("words", f"{len(ours):,}", f"{len(theirs):,}"),
        ("shared words", f"{len(shared):,}", ""),
        ("related pairs of shared words", f"{len(our_links):,}", f"{len(their_links):,}"),
        (
            "of these, also in the other",
            f"{len(both) / len(our_links):.1%}",
            f"{len(both) / len(their_links):.1%}",
        ),
        (f"hops of random pairs: 1 / ... / {CAP} / more", spread(our_steps), spread(their_steps)),
    ]
    for name, related in (("this graph", our_links), ("the other", their_links)):
        pairs = rng.sample(sorted(related), min(PAIRS, len(related)))
        steps = spread(hops(ours, pairs)), spread(hops(theirs, pairs))
        rows.append((f"hops of pairs that {name} relates", *steps))
    if options.dialogues:
        rows.append(
            (
                "true response nearer than a random one",
                closeness(ours, options.dialogues, random.Random(1)),
                closeness(theirs, options.dialogues, random.Random(1)),
            )
        )
    print(markdown_table(Table(["", "this graph", "the other"], rows)))
    correlation = spearman(our_steps, their_steps)[0].text(2)
    print(f"\nSpearman correlation of the hops of {PAIRS:,} random pairs: {correlation}.")


if __name__ == "__main__":
    main()
