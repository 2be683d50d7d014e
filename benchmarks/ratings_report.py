"""All that docs/ratings-results.md says, from data; features that are kept are not made again.

    python benchmarks/ratings_report.py DATA WORK [--limit N] [--seeds N]

DATA has `rated` and `odes`. Measures the odes classifier on utterances that it was not trained
on, cross-validates the rating models on every log, estimates what signals cost, shows trends and
times the monitor. `--limit` takes so many dialogues of each log, drawn at random.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from causerie import Engines, Turn, load
from causerie.metrics.odes import CLASSES, THRESHOLD, Odes, Utterance
from causerie.metrics.odes.train import f1_scores
from causerie.ratings.log import RatedDialogue, read_log
from causerie.ratings.monitor import RatingMonitor
from causerie.ratings.predictor import RatingPredictor

LOGS = {
    "ji2022_dialogue_eval": ("--without=quality_control=fail", "--without=bot=qc"),
    "convai2018_export": (),
    "convai2018_intermediate": (),
}
DATED = ("convai2018_export", "convai2018_intermediate")
DREAM = {
    "exit": "stop_request",
    "topic_switching": "topic_switch_request",
    "lets_chat_about": "topic_switch_request",
    "dont_understand": "not_understand",
    "what_are_you_talking_about": "not_understand",
    "repeat": "repeat_request",
    "stupid": "insult",
    **dict.fromkeys(
        (
            "opinion_request", "cant_do", "tell_me_more", "weather_forecast_intent", "yes",
            "tell_me_a_story", "where_are_you_from", "doing_well", "who_made_you",
            "what_is_your_name", "what_can_you_do", "what_is_your_job", "what_time",
        ),
        "other",
    ),
}  # fmt: skip
"""Which of our classes an intent of DREAM is; intents that are several are left out."""


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def dream(odes: Odes, path: Path) -> str:
    """F1 of each class that DREAM's intents have."""
    rows = [row for row in rows_of(path) if row["label"] in DREAM]
    labels = np.array([[DREAM[row["label"]] == name for name in CLASSES] for row in rows])
    said = odes.probabilities([Utterance(row["text"], None) for row in rows]) > THRESHOLD
    scores = f1_scores(said, labels)
    lines = ["| class | utterances | F1 |", "|---|---|---|"]
    for place, name in enumerate(CLASSES):
        if labels[:, place].any():
            lines.append(f"| {name} | {int(labels[:, place].sum()):,} | {scores[place]:.3f} |")
    return "\n".join(lines)


def convabuse(odes: Odes, path: Path) -> str:
    """Whether insult or obscenity fires where annotators saw abuse; ambiguous rows are left out."""
    rows = [row for row in rows_of(path) if row["label"] in ("abusive", "not-abusive")]
    said = odes.probabilities([Utterance(r["text"], (r["context"] or [None])[-1]) for r in rows])
    columns = [CLASSES.index(name) for name in ("insult", "obscenity")]
    fired = (said[:, columns] > THRESHOLD).any(1, keepdims=True)
    labels = np.array([[row["label"] == "abusive"] for row in rows])
    (f1,) = f1_scores(fired, labels)
    hits = int((fired & labels).sum())
    return (
        f"{int(labels.sum()):,} abusive of {len(rows):,} utterances: precision "
        f"{hits / max(1, fired.sum()):.3f}, recall {hits / labels.sum():.3f}, F1 {f1:.3f}."
    )


def latency(predictor: RatingPredictor, dialogues: tuple[RatedDialogue, ...]) -> str:
    """The monitor on real conversations, turn by turn."""
    total, features = [], []
    for one in dialogues:
        monitor = RatingMonitor(predictor)
        for turn in one.dialogue.turns:
            reading = monitor.update(Turn(turn.speaker, turn.text, turn.role))
            total.append(reading.seconds)
            features.append(reading.feature_seconds)
    whole, part = (1000 * float(np.quantile(times, 0.95)) for times in (total, features))
    return f"{len(total):,} turns: p95 {whole:.0f} ms, of which features {part:.0f} ms."


def causerie(*words: str) -> str:
    print("causerie", *words, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "causerie", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--features", default="fast")
    parser.add_argument("--models", default="mean,length,transformer,mlp,lstm,cf-lstm")
    options = parser.parse_args()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    kept = ("--kept", str(work / "kept.sqlite"), "--features", options.features)
    limit = ("--limit", str(options.limit)) if options.limit else ()
    logs = {name: str(options.data / "rated" / f"{name}.jsonl.gz") for name in LOGS}
    start = time.monotonic()
    engines = Engines()
    odes = load("odes", engines)
    assert isinstance(odes, Odes)
    intents = dream(odes, options.data / "odes/dream_intents.jsonl.gz")
    abuse = convabuse(odes, options.data / "odes/convabuse.jsonl.gz")
    parts = [
        "# Ratings: what was measured\n\nMade by `make ratings DATA=folder`. The paper's Alexa "
        "conversations, their ratings and its ODES annotations are private: these are other logs, "
        "and the paper's numbers (docs/reproduced.md) cannot be checked on them.\n",
        f"## odes on DREAM's intents\n\n{intents}\n",
        f"## odes on ConvAbuse\n\n{abuse}\n",
        "## Models (tables 2 and 3)\n",
    ]
    for name, without in LOGS.items():
        arguments = (logs[name], "--seeds", str(options.seeds), "--models", options.models)
        parts.append(causerie("ratings", "evaluate", *arguments, *without, *limit, *kept))
        if name.startswith("ji"):
            parts.append("With folds of bots:\n")
            arguments = (*arguments, "--by-bot")
            parts.append(causerie("ratings", "evaluate", *arguments, *without, *limit, *kept))
    parts.append("## What signals cost\n")
    for name, without in LOGS.items():
        folder = work / "effects" / name
        words = ("ratings", "effect", logs[name], "--out", str(folder))
        parts.append(f"### {name}\n\n{causerie(*words, *without, *limit, *kept)}")
    model = work / "ratings"
    fitted = (*LOGS["ji2022_dialogue_eval"], *limit, *kept, "--out", str(model))
    causerie("ratings", "fit", logs["ji2022_dialogue_eval"], logs["convai2018_export"], *fitted)
    parts.append("## Trends\n\nBy the predictor fitted on the two larger logs.\n")
    for name in DATED:
        words = ("ratings", "trend", logs[name], "--model", str(model), *kept[:2])
        parts.append(f"{name}\n\n```\n{causerie(*words)}```\n")
    some = read_log([logs["ji2022_dialogue_eval"]]).dialogues[:10]
    predictor = RatingPredictor.load(str(model), engines)
    parts.append(f"## Run time\n\n{latency(predictor, some)}\n")
    parts.append(f"Made in {(time.monotonic() - start) / 60:.0f} minutes.\n")
    (work / "ratings-results.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
