"""Turns of users in the rated logs that were labelled by hand: `odes_labels.csv`.

The file has digests, not texts; the texts come from the logs. docs/odes-guideline.md says how the
turns were drawn and labelled.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from causerie.metrics.odes import CLASSES, SIGNALS, THRESHOLD, Utterance
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.odes.train import Example, labels_of
from causerie.render.tables import Table, markdown_table

LABELS = Path(__file__).with_name("odes_labels.csv")
LEARNABLE = "ji2022_dialogue_eval"
"""The log whose licence (MIT) lets the shipped artifact learn from it."""
Part = Literal["learned", "held out"]
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Labelled:
    """A turn with its labels."""

    log: str
    dialogue: str
    part: Part
    weight: float
    """How many turns of the logs it stands for."""
    example: Example


def read(rated: Path, labels: Path = LABELS) -> list[Labelled]:
    """The labelled turns with their texts, from a folder with the rated logs."""
    with labels.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    dialogues = {
        (name, dialogue["id"]): dialogue["turns"]
        for name in sorted({row["log"] for row in rows})
        for dialogue in _dialogues(rated / f"{name}.jsonl.gz")
    }
    return [_labelled(row, dialogues[row["log"], row["dialogue"]]) for row in rows]


def _dialogues(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _labelled(row: dict[str, str], turns: Sequence[dict[str, Any]]) -> Labelled:
    place = int(row["turn"])
    text = turns[place]["text"]
    if hashlib.sha256(text.encode()).hexdigest() != row["sha256"]:
        raise ValueError(f"{row['dialogue']}, turn {place}: not the text that was labelled")
    follows = place > 0 and turns[place - 1]["speaker"] != turns[place]["speaker"]
    said = Utterance(text, turns[place - 1]["text"] if follows else None)
    part: Part = "learned" if row["part"] == "learned" else "held out"
    example = Example(said, frozenset(row["labels"].split("; ")))
    return Labelled(row["log"], row["dialogue"], part, float(row["weight"]), example)


def measured(odes: Classifier, turns: Sequence[Labelled], part: Part = "held out") -> str:
    """Precision and recall of every signal, for the logs as a whole."""
    some = [turn for turn in turns if turn.part == part]
    said = odes.probabilities([turn.example.utterance for turn in some]) > THRESHOLD
    true = labels_of([turn.example for turn in some])
    weights = np.array([turn.weight for turn in some])
    _, dialogue = np.unique([turn.dialogue for turn in some], return_inverse=True)
    rows: list[list[object]] = []
    for name in SIGNALS:
        place = CLASSES.index(name)
        fires, has = said[:, place], true[:, place]
        both = fires & has
        rows.append([
            name,
            int(fires.sum()),
            int(both.sum()),
            share(both, fires, weights, dialogue),
            int(has.sum()),
            share(both, has, weights, dialogue),
        ])  # fmt: skip
    headers = ["signal", "fires", "rightly", "precision", "is there", "recall"]
    return markdown_table(Table(headers, rows))


def share(some: Any, of: Any, weights: Any, dialogue: Any) -> str:
    """The weighted share with its 95% interval, by resampling whole dialogues."""
    if not of.any():
        return "none"
    size = dialogue.max() + 1
    above = np.bincount(dialogue, weights * some, size)
    below = np.bincount(dialogue, weights * of, size)
    drawn = np.random.default_rng(0).integers(0, size, (RESAMPLES, size))
    tops, bottoms = above[drawn].sum(1), below[drawn].sum(1)
    low, high = np.quantile(tops[bottoms > 0] / bottoms[bottoms > 0], (0.025, 0.975))
    return f"{above.sum() / below.sum():.2f} ({low:.2f} to {high:.2f})"
