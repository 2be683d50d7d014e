"""What each part of `grade` is worth, from data; what is there already is not made again.

    python benchmarks/grade_report.py DATA WORK

DATA has `corpora`. One sample of exchanges is trained on again and again with a fixed encoder: the
full model, the ablations of table 3, random negatives and other graphs, five seeds each. How often
a true response ranks above a false one is measured on dialogues that were not trained on: of the
validation split, by which settings are chosen, and of the test split. False responses are
lexical, by embedding, and random. `results.md` in WORK tells it all. Exit status 1 if the published
negatives do not teach more about the published kinds than random ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from causerie.engines import Engines, Settings
from causerie.metrics.grade import Grade
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.grade.learning import Example, draw_tuples, examples_of, scores_of
from causerie.metrics.grade.scorer import open_topics
from causerie.metrics.grade.train import Materials, draw_once, learn, prepare
from causerie.progress import print_note
from causerie.render.tables import Table, markdown_table
from causerie.stats import ClusteredRatio, wins
from causerie.training.corpus import Corpus
from causerie.training.trainable import Start, TrainingRun, configure

SETTINGS = (
    "interaction=towers", "dropout=0.2", "batch=64", "epochs=3", "learning_rate=1e-3",
    "warmup_steps=100", "weight_decay=0.01",
)  # fmt: skip
FULL, RANDOM = "full model", "random negatives"
KINDS = ("lexical", "embedding", "random")
VARIANTS: dict[str, dict[str, Any]] = {
    FULL: {},
    RANDOM: {"negatives": "random"},
    "no graph branch": {"graph_branch": False},
    "no k-hop neighbours": {"hops": 0},
    "no hop weights": {"hop_weights": False},
    "1-hop neighbours (N1 = 10)": {"hops": 1},
    "1-hop neighbours (N1 = 20)": {"hops": 1, "nearest": 20},
    "2-hop neighbours (N1 = N2 = 20)": {"nearest": 20},
    "length-matched negatives": {"length_matched": True},
    "lexical ones alone": {},
    "embedding ones alone": {},
    "random ones alone": {"negatives": "random"},
}
ALONE = {f"{kind} ones alone": kind for kind in KINDS}
"""The same exchanges with one false response each, half as many tuples: what a kind teaches."""
AGAINST = (KINDS[:2], *((kind,) for kind in KINDS[:2]))
"""Kinds of false responses, as published, by which variants are compared with the full model."""
SPLITS = ("valid", "test")


@dataclass(frozen=True)
class Report:
    data: Path
    work: Path
    options: argparse.Namespace
    engines: Engines

    def corpora(self, split: str) -> tuple[Path, ...]:
        names = self.options.corpora.split(",")
        return tuple(self.data / "corpora" / f"{name}.{split}.jsonl.gz" for name in names)

    @cached_property
    def variants(self) -> dict[str, dict[str, Any]]:
        graphs = (name.partition("=")[::2] for name in self.options.graph)
        everything = VARIANTS | {name: {"graph": folder} for name, folder in graphs}
        only = self.options.only.split(",") if self.options.only else everything
        return {name: own for name, own in everything.items() if name in {FULL, RANDOM, *only}}

    @cached_property
    def run(self) -> TrainingRun:
        start = Start.load(self.options.init) if self.options.init else None
        fixed = "fixed=true" if start else "tuning=frozen"
        pooling = () if start else ("pooling=mean",)
        words = [*SETTINGS, *pooling, fixed, f"tuples={self.options.tuples}"]
        return TrainingRun(
            config=configure(Grade, words, start),
            data=self.corpora("train"),
            valid=self.corpora("valid"),
            folder=self.work / "drawn",
            start=start,
            watch=print_note,
        )

    @cached_property
    def materials(self) -> Materials:
        return prepare(self.engines, self.run)

    @cached_property
    def tests(self) -> dict[str, list[Example]]:
        """Tuples of the validation and test dialogues, negatives as published and random."""
        found = {}
        for split in SPLITS:
            corpus = Corpus.read(self.corpora(split))
            config = replace(self.run.config, length_matched=False)
            drawn = draw_tuples(
                corpus, "both", self.options.measured, self.engines.encoder, config
            ) + draw_tuples(corpus, "random", self.options.measured, self.engines.encoder, config)
            found[split] = examples_of(self.materials.topics, drawn)
        return found

    def result(self, name: str, seed: int) -> dict[str, Any]:
        """Which tuples a training ranks right, by split; made where it is not there yet."""
        file = self.work / "runs" / f"{name.replace(' ', '-')}-{seed}.json"
        if not file.exists():
            print(f"training: {name}, seed {seed}", file=sys.stderr, flush=True)
            config = replace(self.run.config, seed=seed, **self.variants[name])
            found = self._train(config, file, ALONE.get(name))
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".part")
            partial.write_text(json.dumps(found), encoding="utf-8")
            partial.replace(file)
        found = json.loads(file.read_text(encoding="utf-8"))
        assert isinstance(found, dict)
        return found

    def _train(self, config: GradeConfig, file: Path, alone: str | None) -> dict[str, Any]:
        materials, tests = self.materials, self.tests
        own = self.run.config
        if (config.negatives, config.length_matched) != (own.negatives, own.length_matched):
            drawing = replace(own, negatives=config.negatives, length_matched=config.length_matched)
            drawn = draw_once(
                self.engines,
                replace(self.run, config=drawing),
                f"tuples-{config.negatives}-{config.length_matched}.jsonl",
                materials.data,
                config.negatives,
                config.tuples,
            )
            materials = replace(materials, train=examples_of(materials.topics, drawn))
        if config.graph != own.graph:
            topics = open_topics(config)
            tests = {split: _elsewhere(topics, part) for split, part in tests.items()}
            materials = replace(
                materials,
                topics=topics,
                train=_elsewhere(topics, materials.train),
                measured=_elsewhere(topics, materials.measured),
            )
        if alone:
            materials = replace(materials, train=one_each(materials.train, alone))
        folder = file.with_suffix(".training")
        scorer, _ = learn(materials, replace(self.run, config=config, folder=folder, restart=True))
        return {
            split: {
                "won": wins(*scores_of(scorer, part)).tolist(),
                "kinds": [example.kind for example in part],
                "dialogues": [example.dialogue for example in part],
            }
            for split, part in tests.items()
        }

    def all_results(self) -> dict[str, list[dict[str, Any]]]:
        """Of every variant, seed by seed: an interrupted report has all of them for some."""
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in self.variants}
        for seed in range(self.options.seeds):
            for name in self.variants:
                found[name].append(self.result(name, seed))
        return found


def one_each(examples: Sequence[Example], kind: str) -> list[Example]:
    """Of every exchange one tuple with a false response of this kind."""
    return list({id(one.true): one for one in examples if one.kind == kind}.values())


def _elsewhere(topics: Any, examples: list[Example]) -> list[Example]:
    """The same exchanges with the topics of another graph."""
    from causerie.metrics.grade.scorer import Pair

    def moved(pair: Pair) -> Pair:
        (graph,) = topics.graphs([pair.exchange], len(pair.exchange.context))
        return Pair(pair.exchange, graph)

    return [replace(one, true=moved(one.true), false=moved(one.false)) for one in examples]


def share(runs: list[dict[str, Any]], split: str, kinds: tuple[str, ...]) -> ClusteredRatio:
    """Of the tuples of some kinds that are ranked right, the seeds averaged."""
    first = runs[0][split]
    here = np.isin(first["kinds"], kinds)
    won = np.mean([run[split]["won"] for run in runs], axis=0)
    return ClusteredRatio.of(won[here], np.array(first["dialogues"])[here].tolist())


def table(runs: dict[str, list[dict[str, Any]]], split: str) -> list[str]:
    """Every variant: mean and deviation over seeds by kind, and differences to the full one."""
    rows = []
    for name, found in runs.items():
        cells = []
        for kind in KINDS:
            each = [share([run], split, (kind,)).ratio() for run in found]
            cells.append(f"{np.mean(each):.3f} ± {np.std(each, ddof=1):.3f}")
        full = {kinds: share(runs[FULL], split, kinds) for kinds in AGAINST}
        texts = [
            "" if name == FULL else share(found, split, kinds).text(own)
            for kinds, own in full.items()
        ]
        rows.append([name, *cells, *texts])
    heads = ["variant", *KINDS, *(f"{' and '.join(k)}, against the full model" for k in AGAINST)]
    return markdown_table(Table(heads, rows)).splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--init", default="", help="an artifact with an encoder [the default one]")
    parser.add_argument("--corpora", default="chitchat,selfdialogue")
    parser.add_argument("--graph", action="append", default=[], help="NAME=FOLDER of another graph")
    parser.add_argument("--only", default="", help="these variants, the full one and random ones")
    parser.add_argument("--tuples", type=int, default=8000)
    parser.add_argument("--measured", type=int, default=3000, help="tuples of a split, twice")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    report = Report(options.data, options.work.resolve(), options, Engines(Settings(threads=1)))
    runs = report.all_results()
    lines = [
        "Share of tuples in which the true response scores higher (ties half), mean ± standard "
        f"deviation over {options.seeds} seeds; each training saw the same {options.tuples:,} "
        f"tuples of {options.corpora} ({', '.join(SETTINGS)}). The last columns are differences "
        "of the variant to the full model, with 95% intervals (bootstrap over dialogues).",
    ]
    for split in SPLITS:
        lines += ["", f"**{split}**", "", *table(runs, split)]
    (options.work / "results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    full, other = (share(runs[name], "test", KINDS[:2]).ratio() for name in (FULL, RANDOM))
    return int(not full > other)


if __name__ == "__main__":
    sys.exit(main())
