"""All that docs/ratings-results.md says, from data; what is there already is not made again.

    python benchmarks/ratings_report.py DATA WORK [--limit N] [--seeds N] [--fed N]

DATA has `rated` and `odes`. Measures the odes classifier on utterances that it was not trained on,
cross-validates the rating models on every log, estimates what signals cost, shows trends and
times the monitor. What metrics score is kept in WORK as it is made, and so are finished parts: an
interrupted run goes on. FED costs three seconds a turn pair on one core: it is measured on a sample
of `--fed` dialogues of the largest log, beside the fast features on the same sample; 0 leaves
it out.
`--limit` takes so many dialogues of each log, drawn at random, to try it out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from causerie import Engines, Settings
from causerie.metrics.odes import Odes
from causerie.ratings.log import read_log
from causerie.ratings.predictor import RatingPredictor
from odes_measured import measured
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
    "encoder stays as it is (`--set tuning=adapter` trains it too). ConvAI 2017's 50 dialogues do "
    "not say who is the bot and are left out."
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
"""Logs with dates; their trends are foretold by what was fitted on the other one."""
SAMPLE = 60
"""Dialogues on which FED is measured: half an hour on one core."""
WATCHED = 20


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
    limit = ("--limit", str(options.limit)) if options.limit else ()

    def evaluate(title: str, name: str, *words: str, file: str) -> None:
        report.part(
            title, f"{file}-{name}.md", "ratings", "evaluate", str(logs[name]), *WITHOUT[name],
            "--seeds", str(options.seeds), *words,
        )  # fmt: skip

    engines = Engines(Settings(threads=1))

    def signals() -> str:
        _, classifier = Odes().restored(engines)
        return measured(classifier, options.data / "odes")

    def watch() -> str:
        predictor = RatingPredictor.load(str(model), engines)
        some = read_log([logs[JI]]).dialogues[:WATCHED]
        return watched(predictor, [one.dialogue for one in some])

    report.add("How to read this", ABOUT)
    report.made("Signals", "signals.md", signals)
    for name in logs:
        evaluate(f"Ratings: {name}", name, "--models", MODELS, *limit, file="models")
    for name in BOTS:
        words = ("--models", MODELS, "--by", "bot", *limit)
        evaluate(f"Ratings of unseen bots: {name}", name, *words, file="bots")
    for name, log in logs.items():
        report.part(
            f"What signals cost: {name}", f"effect-{name}/effect.md", "ratings", "effect",
            str(log), *WITHOUT[name], *limit,
        )  # fmt: skip
    model = report.work / "fitted"
    if not model.exists():
        run_causerie(
            "ratings", "fit", str(logs[JI]), *WITHOUT[JI], *limit,
            "--scores", str(report.work / "scores.sqlite"), "--out", str(model),
        )  # fmt: skip
    for name in DATED:
        report.part(
            f"Trend: {name}, by a model of {JI}", f"trend-{name}/trend.md", "ratings", "trend",
            str(logs[name]), "--model", str(model),
        )  # fmt: skip
    report.made("Run time of `watch`", "watch.md", watch)
    for features in ("fast", "all") if options.fed else ():
        evaluate(
            f"With {features} features, {options.fed} dialogues: {JI}", JI,
            "--models", "mean,mlp,lstm,cf-lstm", "--limit", str(options.fed),
            "--features", features, file=f"sample-{options.fed}-{features}",
        )  # fmt: skip
    report.write()


if __name__ == "__main__":
    main()
