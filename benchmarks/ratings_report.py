"""All that docs/ratings-results.md says, from data; what is there already is not made again.

    python benchmarks/ratings_report.py DATA WORK [--limit N] [--seeds N] [--fed N]

DATA has `rated` and `odes`. Measures the odes classifier on utterances that it was not trained on,
cross-validates the rating models on every log, estimates what signals cost, shows trends and
times the monitor. Features and predictions are kept in WORK as they are made, so that an
interrupted run goes on. FED costs half a second a turn: it is measured on a sample of `--fed`
dialogues of the two larger logs, beside the fast features on the same sample; 0 leaves it out.
`--limit` takes so many dialogues of each log, drawn at random, to try it out.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from causerie import Engines, Settings, load
from causerie.metrics.odes import CLASSES, THRESHOLD, Odes, Utterance
from causerie.metrics.odes.train import f1_scores
from causerie.models.artifact import load_artifact
from causerie.ratings.log import read_log
from causerie.ratings.predictor import RatingPredictor
from ratings_watch import watched
from reporting import Report, run_causerie

TITLE = "What `causerie ratings` is worth"
ABOUT = (
    "Made by `make ratings DATA=folder`. The paper's Alexa conversations, their ratings, the "
    "experts' ratings and the annotated utterances are private: these are other logs, on which its "
    "numbers (table 2: 0.34 for single dialogues, 67.8% binary, 48.2% 5-class; effect -0.78) "
    "cannot be checked. Ratings are mapped to 1..5. Folds are of dialogues, and where bots are "
    "known also of bots, which are then unseen; ± is the standard deviation over seeds. `mean` "
    "and `length` are sentinels: what does not beat them has learned nothing. The transformer's "
    "encoder stays as it is (`--set tuning=adapter` trains it too)."
)
MODELS = "mean,length,transformer,mlp,lstm,cf-lstm"
JI, EXPORT, SMALL = "ji2022_dialogue_eval", "convai2018_export", "convai2018_intermediate"
WITHOUT = {
    JI: ("--without", "quality_control=fail", "--without", "bot=qc"),
    EXPORT: (),
    SMALL: (),
}
BOTS = (JI, SMALL)
"""Logs that say which bot it was."""
DATED = (EXPORT, SMALL)
SAMPLE = 100
"""Dialogues of a log on which FED is measured; about 1,050 turns, nine minutes."""
WATCHED = 20
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


@cache
def odes() -> Odes:
    metric = load("odes", Engines(Settings(threads=1)))
    assert isinstance(metric, Odes)
    return metric


def templates() -> str:
    """What the card of the shipped artifact says of templates that were kept from training."""
    rows = [row for row in load_artifact("odes").card.splitlines() if "F1" in row]
    return "\n".join(["| held-out templates | |", "|---|---|", *rows])


def dream(path: Path) -> str:
    """F1 of each class that DREAM's intents have."""
    rows = [row for row in rows_of(path) if row["label"] in DREAM]
    labels = np.array([[DREAM[row["label"]] == name for name in CLASSES] for row in rows])
    said = odes().probabilities([Utterance(row["text"], None) for row in rows]) > THRESHOLD
    scores = f1_scores(said, labels)
    there = labels.any(0)
    lines = ["| class | utterances | F1 |", "|---|---|---|"]
    lines += [
        f"| {CLASSES[place]} | {int(labels[:, place].sum()):,} | {scores[place]:.3f} |"
        for place in np.flatnonzero(there).tolist()
    ]
    return "\n".join([*lines, f"| macro | {len(rows):,} | {np.mean(scores[there]):.3f} |"])


def convabuse(path: Path) -> str:
    """Whether insult or obscenity fires where annotators saw abuse; ambiguous rows are left out."""
    rows = [row for row in rows_of(path) if row["label"] in ("abusive", "not-abusive")]
    said = odes().probabilities([Utterance(r["text"], (r["context"] or [None])[-1]) for r in rows])
    columns = [CLASSES.index(name) for name in ("insult", "obscenity")]
    fired = (said[:, columns] > THRESHOLD).any(1, keepdims=True)
    labels = np.array([[row["label"] == "abusive"] for row in rows])
    (f1,) = f1_scores(fired, labels)
    hits = int((fired & labels).sum())
    return (
        f"Insult or obscenity against the annotators' majority: {int(labels.sum()):,} abusive of "
        f"{len(rows):,} utterances; precision {hits / max(1, fired.sum()):.3f}, recall "
        f"{hits / labels.sum():.3f}, F1 {f1:.3f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fed", type=int, default=SAMPLE)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    report = Report(TITLE, options.work)
    logs = {name: options.data / "rated" / f"{name}.jsonl.gz" for name in WITHOUT}
    kept = ("--kept", str(report.work / "kept.sqlite"))
    limit = ("--limit", str(options.limit)) if options.limit else ()

    def evaluate(title: str, name: str, *words: str, file: str) -> None:
        report.part(
            title, f"{file}-{name}.md", "ratings", "evaluate", str(logs[name]), *WITHOUT[name],
            "--seeds", str(options.seeds), *kept, *words,
        )  # fmt: skip

    def watch() -> str:
        predictor = RatingPredictor.load(str(model), odes().engines)
        some = read_log([logs[JI]]).dialogues[:WATCHED]
        return watched(predictor, [one.dialogue for one in some])

    report.add("How to read this", ABOUT)
    folder = options.data / "odes"
    report.made("Signals: held-out templates", "templates.md", templates)
    report.made("Signals: DREAM", "dream.md", lambda: dream(folder / "dream_intents.jsonl.gz"))
    report.made("Signals: ConvAbuse", "abuse.md", lambda: convabuse(folder / "convabuse.jsonl.gz"))
    for name in logs:
        evaluate(f"Ratings: {name}", name, "--models", MODELS, *limit, file="models")
    for name in BOTS:
        words = ("--models", MODELS, "--by-bot", *limit)
        evaluate(f"Ratings of unseen bots: {name}", name, *words, file="bots")
    for name, log in logs.items():
        report.part(
            f"What signals cost: {name}", f"effect-{name}/effect.md", "ratings", "effect",
            str(log), *WITHOUT[name], *kept, *limit,
        )  # fmt: skip
    model = report.work / "fitted"
    if not model.exists():
        run_causerie(
            "ratings", "fit", str(logs[JI]), str(logs[EXPORT]), *WITHOUT[JI], *kept, *limit,
            "--out", str(model),
        )  # fmt: skip
    for name in DATED:
        report.part(
            f"Trend: {name}", f"trend-{name}/trend.md", "ratings", "trend", str(logs[name]),
            "--model", str(model), *kept,
        )  # fmt: skip
    report.made("Run time of `watch`", "watch.md", watch)
    for name in (JI, EXPORT) if options.fed else ():
        for features in ("fast", "all"):
            evaluate(
                f"With {features} features, {options.fed} dialogues: {name}", name,
                "--models", "mean,mlp,lstm,cf-lstm", "--limit", str(options.fed),
                "--features", features, file=f"sample-{options.fed}-{features}",
            )  # fmt: skip
    report.write()


if __name__ == "__main__":
    main()
