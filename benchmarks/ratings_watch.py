"""How long `causerie ratings watch` takes for a turn, and which part takes it.

    python benchmarks/ratings_watch.py LOG [--model FOLDER] [--dialogues N]

Plays real conversations to the monitor turn by turn, on one thread. What counts is p95, features
included: nineteen turns in twenty are quicker. It should be below 150 ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from causerie import Engines, Settings
from causerie.dialogue import Dialogue
from causerie.ratings.features import Floats, Group
from causerie.ratings.log import read_log
from causerie.ratings.monitor import RatingMonitor
from causerie.ratings.pairs import TurnPair
from causerie.ratings.predictor import RatingPredictor
from causerie.render.tables import Table, markdown_table
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.store import Item

WARM = 4
"""Turns that do not count: the first loads what is loaded once."""


def time_group(group: Group, seconds: list[float]) -> None:
    """Note how long the group measures, every time that it does."""
    measure = group.measure

    def measured(pairs: Sequence[TurnPair]) -> Floats:
        start = perf_counter()
        found = measure(pairs)
        seconds.append(perf_counter() - start)
        return found

    group.measure = measured  # type: ignore[method-assign]


def time_scorer(scorer: Scorer, times: dict[str, list[float]]) -> None:
    """Note how long each metric scores, every time that it does."""
    score = scorer.score_items

    def scored(items: Sequence[Item], **named: Any) -> Batch:
        batch = score(items, **named)
        for alias, seconds in batch.seconds.items():
            times.setdefault(f"- {alias}", []).append(seconds)
        return batch

    scorer.score_items = scored  # type: ignore[method-assign]


def watched(predictor: RatingPredictor, dialogues: Sequence[Dialogue]) -> str:
    """Return a table of the times of a turn."""
    times: dict[str, list[float]] = {"in all": [], "prediction": [], "features": []}
    extractor = predictor.preparation.extractor
    for scorer in extractor.scorers.values():
        time_scorer(scorer, times)
    for group in extractor.groups:
        if isinstance(group, Group):
            time_group(group, times.setdefault(f"- {group.name}", []))
    for dialogue in dialogues:
        monitor = RatingMonitor(predictor)
        for turn in dialogue.turns:
            reading = monitor.update(turn)
            times["in all"].append(reading.seconds)
            times["features"].append(reading.feature_seconds)
            times["prediction"].append(reading.seconds - reading.feature_seconds)
    counted = {name: values[WARM:] for name, values in times.items()}
    rows = [
        [name, *(1000 * np.quantile(values, [0.5, 0.95])).tolist()]
        for name, values in counted.items()
    ]
    table = Table(["milliseconds for a turn", "median", "p95"], rows, digits=0)
    turns = f"{len(counted['in all']):,} turns of {len(dialogues)} conversations, one thread."
    return f"{turns}\n\n{markdown_table(table)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--model", default="ratings")
    parser.add_argument("--dialogues", type=int, default=20)
    options = parser.parse_args()
    predictor = RatingPredictor.load(options.model, Engines(Settings(threads=1)))
    some = read_log([options.log]).dialogues[: options.dialogues]
    print(watched(predictor, [one.dialogue for one in some]))


if __name__ == "__main__":
    main()
