"""Does a spoiled reply ever get a higher quality than the one that a person gave?

    python benchmarks/quality_sense.py FILE... [--exchanges N] [--metric NAME] [--artifact NAME]

FILE has dialogues of people, none of which the metric has learned from. Each reply is scored as it
is; with gibberish after it; with the last turn said again after it; and in its place the reply that
somebody gave in another dialogue of that file. For each it is told how often that has the higher
quality, with an interval by dialogues. Exit status 1 if gibberish or the last turn raises quality
on more than 5%, or another reply on more than 12%, of all.
"""

from __future__ import annotations

import argparse
import random
import string
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from causerie.dialogue import Exchange
from causerie.engines import Engines
from causerie.metrics import load_metric
from causerie.render.tables import Table, markdown_table
from causerie.stats import ClusteredRatio
from causerie.training.corpus import Corpus, sample
from causerie.training.faulty import Replies

Spoil: TypeAlias = Callable[[Exchange, Replies, random.Random], str]


def with_gibberish(exchange: Exchange, replies: Replies, rng: random.Random) -> str:
    lengths = (rng.randint(2, 8) for _ in range(rng.randint(3, 8)))
    words = ("".join(rng.choices(string.ascii_lowercase, k=length)) for length in lengths)
    return " ".join((exchange.response.text, *words))


def with_the_last_turn(exchange: Exchange, replies: Replies, rng: random.Random) -> str:
    return f"{exchange.response.text} {exchange.context[-1].text}"


def another_reply(exchange: Exchange, replies: Replies, rng: random.Random) -> str:
    return replies.other(exchange, rng)


SPOILED: dict[str, tuple[Spoil, float]] = {
    "gibberish after it": (with_gibberish, 0.05),
    "the last turn after it": (with_the_last_turn, 0.05),
    "another reply instead": (another_reply, 0.12),
}
"""What is done to replies, and on how many it may raise the quality."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--exchanges", type=int, default=200, help="replies of each file")
    parser.add_argument("--metric", default="quality")
    parser.add_argument("--artifact")
    options = parser.parse_args()
    engines = Engines()
    metric = load_metric(
        options.metric, **({"artifact": options.artifact} if options.artifact else {})
    )

    def quality(exchanges: list[Exchange]) -> list[float]:
        return [row[0].value or 0.0 for row in metric.score_exchanges(exchanges, engines)]

    rows: list[list[str]] = []
    raised: dict[str, list[bool]] = {name: [] for name in SPOILED}
    dialogues: list[str] = []
    for path in options.files:
        rng = random.Random(0)
        (source,) = Corpus.read([path]).sources
        usable = [e for d in source for e in d.exchanges() if e.response.text.strip()]
        drawn = sample(usable, options.exchanges, seed=0)
        good, replies = quality(drawn), Replies(source)
        own = [f"{path}/{exchange.dialogue.id}" for exchange in drawn]
        dialogues += own
        row = [path.name.partition(".jsonl")[0]]
        for name, (spoil, _) in SPOILED.items():
            texts = [spoil(exchange, replies, rng) for exchange in drawn]
            spoiled = quality([e.with_response(t) for e, t in zip(drawn, texts, strict=True)])
            higher = (np.array(spoiled) > np.array(good)).tolist()
            raised[name] += higher
            row.append(ClusteredRatio.of(higher, own).estimate().text(3))
        rows.append(row)
    whole = {name: ClusteredRatio.of(found, dialogues) for name, found in raised.items()}
    rows.append(["all", *(one.estimate().text(3) for one in whole.values())])
    rows.append(["at most", *(f"{most:.3f}" for _, most in SPOILED.values())])
    print(markdown_table(Table([f"{options.metric} is raised by", *SPOILED], rows)))
    return int(any(whole[name].ratio() > most for name, (_, most) in SPOILED.items()))


if __name__ == "__main__":
    sys.exit(main())
