"""What `odes` should learn from: compared on utterances that are neither learned nor tested.

    python benchmarks/odes_choice.py DATA

DATA is a folder as `odes_data.py` takes it. Trains on the templates alone, and on the learned part
of what users said too; prints the macro F1 on the second fold of the templates (the first is for
testing) and on the validation part of either source.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from causerie import Engines, Settings
from causerie.engines.encoder import Encoder
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.train import Example, Recognition, apart, folds, labels_of, measure
from causerie.training.loop import fit
from odes_data import sources


def trained(encoder: Encoder, learned: list[Example], seed: int) -> Classifier:
    """As `causerie train odes` does it, on these."""
    config = OdesConfig(seed=seed)
    torch.manual_seed(seed)
    classifier = Classifier(encoder, config)
    task = Recognition(classifier, learned, learned[:1])
    with tempfile.TemporaryDirectory() as folder:
        fit(task, config.loop(len(task.batches)), Path(folder), identity={})
    return classifier


def macro_f1(classifier: Classifier, some: Sequence[Example]) -> float:
    """Over the classes that occur."""
    return float(np.mean(measure(classifier, some)[labels_of(some).any(0)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    encoder = Engines(Settings(threads=1)).encoder
    _, second, *others = folds(OdesConfig())
    templates = [one for part in others for one in part]
    real = sources(options.data)
    more = [one for parts in real.values() for one in parts["learned"]]
    valid: Mapping[str, Sequence[Example]] = {
        "templates": apart(second, [*templates, *more]),
        **{name: apart(parts["validation"], templates) for name, parts in real.items()},
    }
    print("| learned from | seed |", " | ".join(valid), "|")
    print("|---" * (len(valid) + 2) + "|")
    for name, learned in (("all", [*templates, *more]), ("templates", templates)):
        for seed in range(options.seeds):
            classifier = trained(encoder, learned, seed)
            scores = [macro_f1(classifier, some) for some in valid.values()]
            print(f"| {name} | {seed} |", " | ".join(f"{s:.3f}" for s in scores), "|", flush=True)


if __name__ == "__main__":
    main()
