"""F1 of `odes` on what it was not trained on: templates, DREAM's phrases, ConvAbuse's users.

    python benchmarks/odes_measured.py DATA [--artifact FOLDER]

DATA is a folder as `odes_data.py` takes it; with --rated FOLDER, which has the rated logs,
precision and recall on the held-out turns of `odes_labels.csv` are added. `measured` gives a
report the same tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import odes_turns
from causerie import Engines, Settings
from causerie.metrics.odes import CLASSES, THRESHOLD, Odes
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.odes.train import Example, examples, f1_scores, labels_of, measure
from causerie.render.tables import Table, markdown_table
from odes_data import ABUSE, sources

ABOUT = (
    "F1 at a threshold of 0.5, on templates that were held out (though the network's shape was "
    "chosen by them) and on a third of DREAM's phrases and of ConvAbuse's utterances, in whole "
    "groups of near copies, which were neither trained on nor used to choose the data or the "
    "network. DREAM's intents are read as our classes; in ConvAbuse sexual harassment counts as "
    "obscenity, other abuse as insult, ambiguous rows are left out. A class that a row may have "
    "without its label saying so is not counted in that row. DREAM's phrases are expanded "
    "templates too, and kept-out ones are like the learned: real users say other things."
)


def measured(odes: Classifier, folder: Path) -> str:
    """A table per source, and abuse of either kind."""
    kept_out = {name: parts["kept out"] for name, parts in sources(folder).items()}
    tables = [table(odes, "held-out templates", examples(odes.config)[1])]
    tables += [table(odes, f"{name}, kept out", some) for name, some in kept_out.items()]
    return "\n\n".join([ABOUT, *tables, abuse(odes, kept_out["convabuse"])])


def table(odes: Classifier, title: str, some: Sequence[Example]) -> str:
    """F1 of the classes that occur."""
    scores, counts = measure(odes, some), labels_of(some).sum(0)
    there = np.flatnonzero(counts).tolist()
    rows = [[CLASSES[place], int(counts[place]), float(scores[place])] for place in there]
    rows.append(["macro", len(some), float(np.mean(scores[there]))])
    return markdown_table(Table([title, "utterances", "F1"], rows))


def abuse(odes: Classifier, some: Sequence[Example]) -> str:
    """Whether insult or obscenity fires where annotators saw abuse of any kind."""
    columns = [CLASSES.index(name) for name in sorted(ABUSE)]
    said = odes.probabilities([one.utterance for one in some])[:, columns] > THRESHOLD
    fired = said.any(1, keepdims=True)
    abusive = labels_of(some)[:, columns].any(1, keepdims=True)
    hits = int((fired & abusive).sum())
    (f1,) = f1_scores(fired, abusive)
    return (
        f"Insult or obscenity in convabuse, kept out: {int(abusive.sum()):,} abusive of "
        f"{len(some):,} utterances; precision {hits / max(1, fired.sum()):.3f}, recall "
        f"{hits / max(1, abusive.sum()):.3f}, F1 {f1:.3f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--artifact", default="odes")
    parser.add_argument("--rated", type=Path)
    options = parser.parse_args()
    _, classifier = Odes(options.artifact).restored(Engines(Settings(threads=1)))
    print(measured(classifier, options.data))
    if options.rated:
        print(f"\n{odes_turns.measured(classifier, odes_turns.read(options.rated))}")


if __name__ == "__main__":
    main()
