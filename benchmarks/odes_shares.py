"""How often signals fire in the rated logs, beside the counts that the paper prints (table 1).

    python benchmarks/odes_shares.py RATED [--turns 2000]

RATED has the rated logs. So many users' turns are drawn at random from each, records that failed
the quality control of their collection left out. An utterance may give several signals here; the
paper's are of spoken conversations with Alexa, one class each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path

import numpy as np

from causerie import Engines, Settings
from causerie.bench.papers.printed import printed_tables
from causerie.metrics.odes import CLASSES, THRESHOLD, Odes, Utterance
from causerie.render.tables import Table, markdown_table

LOGS = ("ji2022_dialogue_eval", "convai2018_export", "convai2018_intermediate")
FAILED = {("quality_control", "fail"), ("bot", "qc")}


def utterances(path: Path) -> list[Utterance]:
    """What users said, each after the system's turn where there is one."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if any(record.get(field) == value for field, value in FAILED):
                continue
            turns = record["turns"]
            for before, turn in zip((None, *turns), turns, strict=False):
                if turn["speaker"] == "user" and turn["text"]:
                    follows = before is not None and before["speaker"] != "user"
                    found.append(Utterance(turn["text"], before["text"] if follows else None))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rated", type=Path)
    parser.add_argument("--turns", type=int, default=2000)
    options = parser.parse_args()
    (block,) = printed_tables("cf-lstm").table("1").blocks
    counts = np.array([row.cells[0].value for row in block.rows], dtype=float)
    columns = [counts / counts.sum()]
    _, classifier = Odes().restored(Engines(Settings(threads=1)))
    heads = ["signal", f"the paper's {counts.sum():,.0f}"]
    for log in LOGS:
        said = utterances(options.rated / f"{log}.jsonl.gz")
        drawn = random.Random(0).sample(said, min(options.turns, len(said)))
        columns.append((classifier.probabilities(drawn) > THRESHOLD).mean(0))
        heads.append(f"{log}, {len(drawn):,} of {len(said):,}")
    rows = [
        [name, *(f"{share:.2%}" for share in shares)]
        for name, shares in zip(CLASSES, np.array(columns).T, strict=True)
    ]
    print(markdown_table(Table(heads, rows)))


if __name__ == "__main__":
    main()
