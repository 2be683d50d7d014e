"""How `odes` should learn: compared by four folds of what may be learned, nothing held out.

    python benchmarks/odes_choice.py DATA --rated RATED [--set members=4] [--copies convabuse=2]

DATA is a folder as `odes_data.py` takes it, RATED has the rated logs. Of templates (but the fold
for testing), DREAM's phrases, ConvAbuse's utterances and the labelled turns, each fold is asked of
a network that learned the other three: whole templates, near copies and dialogues stay together.
Prints the macro F1 by source, and precision and recall of the signals in the labelled turns. With
--only templates, those alone are learned.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import odes_turns
from causerie import Engines, Settings
from causerie.engines.encoder import Encoder
from causerie.metrics.odes import SIGNALS, THRESHOLD, Odes
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.train import (
    Example,
    Recognition,
    f1_scores,
    folds,
    judged_of,
    labels_of,
)
from causerie.text import words
from causerie.training.loop import fit
from causerie.training.trainable import configure
from odes_data import LEARNED, TIMES, near_copies, sources

FOLDS = 4
TURNS = "labelled turns"


@dataclass(frozen=True)
class Material:
    """What may be learned, with the fold that asks for it."""

    source: str
    fold: int
    example: Example


def materials(data: Path, rated: Path) -> list[Material]:
    """Everything but what is held out."""
    found = []
    for fold, part in enumerate(folds(OdesConfig())[1:]):  # the first is for testing
        found += [Material("templates", fold, one) for one in part]
    for name, parts in sources(data).items():
        some = [one for part in LEARNED for one in parts[part]]
        keys = [" ".join(words(one.utterance.text)) for one in some]
        group = near_copies(set(keys))
        found += [
            Material(name, _fold(name, group[key]), one)
            for key, one in zip(keys, some, strict=True)
        ]
    turns = [turn for turn in odes_turns.read(rated) if turn.part == "learned"]
    return found + [Material(TURNS, _fold("ji", turn.dialogue), turn.example) for turn in turns]


def _fold(source: str, group: str) -> int:
    return int(hashlib.sha256(f"cv {source} {group}".encode()).hexdigest(), 16) % FOLDS


def trained(encoder: Encoder, learned: list[Example], config: OdesConfig) -> Classifier:
    """As `causerie train odes` does it, on these."""
    torch.manual_seed(config.seed)
    classifier = Classifier(encoder, config)
    some = [one for one in learned if one.labels][:1]  # nobody looks at what it validates
    task = Recognition(classifier, learned, some)
    with tempfile.TemporaryDirectory() as folder:
        fit(task, config.loop(len(task.batches)), Path(folder), identity={})
    return classifier


def said_of(
    encoder: Encoder, some: Sequence[Material], config: OdesConfig, copies: Mapping[str, int]
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which classes fire in each, by the network that learned the other folds."""
    said = np.zeros(labels_of([one.example for one in some]).shape, dtype=bool)
    for fold in range(FOLDS):
        learned = [
            one.example
            for one in some
            if one.fold != fold
            for _ in range(copies.get(one.source, 1))
        ]
        classifier = trained(encoder, learned, config)
        asked = [place for place, one in enumerate(some) if one.fold == fold]
        said[asked] = (
            classifier.probabilities([some[place].example.utterance for place in asked]) > THRESHOLD
        )
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--rated", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of the training")
    parser.add_argument("--copies", action="append", default=[], help="SOURCE=TIMES")
    parser.add_argument("--only", default="", help="learn from this source alone")
    options = parser.parse_args()
    some = materials(options.data, options.rated)
    names = list(dict.fromkeys(one.source for one in some))
    copies = {TURNS: TIMES, **{n: int(t) for n, t in (one.split("=") for one in options.copies)}}
    if options.only:
        copies = {name: copies.get(name, 1) * (name == options.only) for name in names}
    config = configure(Odes, ["epochs=20", *options.set])
    assert isinstance(config, OdesConfig)
    said = said_of(Engines(Settings(threads=1)).encoder, some, config, copies)
    examples = [one.example for one in some]
    true, judged = labels_of(examples), judged_of(examples)
    for name in names:
        here = np.array([one.source == name for one in some])
        fires, has = said[here] & judged[here], true[here]
        if name == TURNS:
            signals = slice(len(SIGNALS))  # `other` comes last
            both = int((fires & has)[:, signals].sum())
            precision = both / max(1, int(fires[:, signals].sum()))
            recall = both / int(has[:, signals].sum())
            print(f"{name}: precision {precision:.3f}, recall {recall:.3f}")
        else:
            print(f"{name}: macro F1 {np.mean(f1_scores(fires, has)[has.any(0)]):.3f}")


if __name__ == "__main__":
    main()
