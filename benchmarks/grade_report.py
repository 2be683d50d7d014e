"""All that is said about `grade`, from data; what is there already is not made again.

    python benchmarks/grade_report.py DATA WORK

DATA has `corpora` and `judged`. Into WORK go: the artifact, trained on DailyDialog; how often it
ranks true responses of held-out dialogues above false ones, beside an untrained cosine and the
length; trainings on one fixed subset of the tuples, with and without the graph branch (five seeds)
and with the ablations of table 3 (three); the paper's tables; and `results.md`, which tells it all.
The comparison of the branches is added to the artifact's card. Exit status 1 if the artifact ranks
fewer than 70% right, or no more than the cosine or the length.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from causerie.bench.papers.run import reproduce
from causerie.dialogue import Exchange
from causerie.engines import Engines, Settings
from causerie.graph import Graph
from causerie.metrics import load_metric
from causerie.metrics.base import Metric
from causerie.metrics.grade import Grade
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.grade.learning import draw_tuples, examples_of, scores_of
from causerie.metrics.grade.scorer import Scorer
from causerie.metrics.grade.train import (
    Materials,
    draw_once,
    learn,
    prepare,
    uncalibrated,
)
from causerie.models.artifact import load_artifact
from causerie.progress import print_note
from causerie.render.tables import Marked, Table, markdown_table
from causerie.stats import ClusteredRatio, wins
from causerie.training.corpus import Corpus, sample
from causerie.training.trainable import Start, TrainingRun, configure

SETTINGS = (
    "interaction=towers", "fixed=true", "dropout=0.2", "batch=64", "epochs=6",
    "learning_rate=1e-3", "warmup_steps=100", "weight_decay=0.01",
)  # fmt: skip
SUBSET = ("epochs=3",)
"""What is different in the trainings on a subset of the tuples."""
VARIANTS: dict[str, dict[str, Any]] = {
    "full model": {},
    "no graph branch": {"graph_branch": False},
    "random negatives": {"negatives": "random"},
    "no k-hop neighbours": {"hops": 0},
    "no hop weights": {"hop_weights": False},
    "1-hop neighbours": {"hops": 1},
}
COMPARED = ("full model", "no graph branch")
BAR = 0.70
BASELINES = ("cosine", "length")
JUDGED = "grade,density,cosine,bertscore,bleu,rouge,length"
LICENCE = (
    "DailyDialog: CC BY-NC-SA 4.0; the encoder, that of density, also saw parts of ConvAI2 and "
    "PersonaChat: no licence stated. For research, not for commercial use; share alike."
)
HEADING = "## The graph branch"


@dataclass(frozen=True)
class Report:
    """Where things are, and the options of the command."""

    data: Path
    work: Path
    options: argparse.Namespace
    engines: Engines

    def corpus(self, split: str) -> Path:
        return self.data / "corpora" / f"dailydialog.{split}.jsonl.gz"

    @property
    def artifact(self) -> Path:
        return self.work / "grade"

    def causerie(self, *words: str) -> None:
        """Run one of its commands, with the same encoder."""
        print("causerie", *words, file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "causerie", *words]
        command += ["--encoder", self.options.encoder]
        subprocess.run(command, check=True, stdout=sys.stderr)

    def train(self) -> None:
        """The artifact, on all tuples of DailyDialog."""
        if self.artifact.exists():
            return
        words = ["train", "grade", "--data", str(self.corpus("train"))]
        words += ["--valid", str(self.corpus("valid")), "--licence", LICENCE, "--resume"]
        words += ["--init", self.options.init] if self.options.init else []
        words += [w for setting in self.options.settings for w in ("--set", setting)]
        self.causerie(*words, "--out", str(self.artifact))

    def held_out(self) -> list[str]:
        """Lines of a table: ranking accuracy on the test dialogues, both kinds of negatives."""
        file = self.work / "held-out.json"
        if not file.exists():
            file.write_text(json.dumps(self._held_out()), encoding="utf-8")
        found = json.loads(file.read_text(encoding="utf-8"))
        heads = [f"{kind} negatives (n={n:,})" for kind, n in found["counts"].items()]
        rows = [[Marked(name, "code"), *texts] for name, texts in found["rows"].items()]
        return markdown_table(Table(["metric", *heads], rows)).splitlines()

    def _held_out(self) -> dict[str, Any]:
        config = GradeConfig(**self.metric().info.options)
        corpus = Corpus.read([self.corpus("test")])
        tuples = draw_tuples(corpus, "both", self.options.measured, self.engines.encoder, config)
        kinds = np.array([one.kind for one in tuples])
        dialogues = np.array([one.dialogue for one in tuples])
        true = [one.exchange(one.true) for one in tuples]
        false = [one.exchange(one.false) for one in tuples]
        rows = {}
        for name in ("grade", *BASELINES):
            chosen = self.metric() if name == "grade" else load_metric(name)
            found = (_values(chosen, side, self.engines) for side in (true, false))
            won = wins(*found)
            rows[name] = [
                ClusteredRatio.of(won[kinds == kind], dialogues[kinds == kind].tolist()).text()
                for kind in ("lexical", "embedding")
            ]
        counts = {kind: int((kinds == kind).sum()) for kind in ("lexical", "embedding")}
        return {"rows": rows, "counts": counts}

    def passes(self) -> bool:
        """Both kinds of negatives: above the bar and above what nobody trained."""
        rows = json.loads((self.work / "held-out.json").read_text(encoding="utf-8"))["rows"]
        shares = {name: [float(text.split()[0]) for text in texts] for name, texts in rows.items()}
        least = [max(BAR, *others) for others in zip(*map(shares.get, BASELINES), strict=True)]
        return all(own > bar for own, bar in zip(shares["grade"], least, strict=True))

    def metric(self) -> Grade:
        return Grade(artifact=str(self.artifact))

    def runs(self) -> dict[str, list[dict[str, Any]]]:
        """What every training on the subset came to, by variant."""
        files = {
            (name, seed): self.work / "runs" / f"{name.replace(' ', '-')}-{seed}.json"
            for name in VARIANTS
            for seed in range(self.options.seeds if name in COMPARED else self.options.ablations)
        }
        if not all(file.exists() for file in files.values()):
            self._run(files)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in VARIANTS}
        for (name, _), file in files.items():
            found[name].append(json.loads(file.read_text(encoding="utf-8")))
        return found

    def _run(self, files: dict[tuple[str, int], Path]) -> None:
        start = Start.load(self.options.init) if self.options.init else None
        config = configure(Grade, [*self.options.settings, *SUBSET], start)
        assert isinstance(config, GradeConfig)
        run = TrainingRun(
            config=config,
            data=(self.corpus("train"),),
            valid=(self.corpus("valid"),),
            folder=self.work / "grade.training",  # where the artifact's tuples are
            licence=LICENCE,
            start=start,
            watch=print_note,
        )
        shared = prepare(self.engines, run)
        shared = replace(shared, train=sample(shared.train, self.options.tuples, config.seed))
        for (name, seed), file in files.items():
            if file.exists():
                continue
            print(f"training: {name}, seed {seed}", file=sys.stderr, flush=True)
            changed = replace(config, seed=seed, **VARIANTS[name])
            materials = self._materials(run, shared, changed)
            folder = file.with_suffix(".training")
            own = replace(run, config=changed, folder=folder, resume=True)
            scorer, _ = learn(materials, own)
            won = wins(*scores_of(scorer, materials.measured))
            file.parent.mkdir(parents=True, exist_ok=True)
            content = {
                "won": won.tolist(),
                "dialogues": [example.dialogue for example in materials.measured],
                "kinds": [example.kind for example in materials.measured],
                "judged": self._judged(scorer, own, file.with_suffix(".artifact")),
            }
            partial = file.with_suffix(".part")
            partial.write_text(json.dumps(content), encoding="utf-8")
            partial.replace(file)

    def _materials(self, run: TrainingRun, shared: Materials, config: GradeConfig) -> Materials:
        """The same for all variants; the tuples of one are others."""
        if config.negatives != "random":
            return shared
        name, count = "random-tuples.jsonl", self.options.tuples
        tuples = draw_once(self.engines, run, name, shared.data, "random", count)
        return replace(shared, train=examples_of(shared.topics, tuples))

    def _judged(self, scorer: Scorer, run: TrainingRun, folder: Path) -> list[float | None]:
        """The row of table 3 that a scorer would have; None where the data is not there."""
        if not (self.data / "judged").is_dir():
            return []
        uncalibrated(scorer, run).save(folder)
        options = {"grade": {"artifact": str(folder)}}
        tables = reproduce(
            "grade", self.data, metrics="grade", options=options, engines=self.engines
        ).tables
        (table,) = (table for table in tables if table.printed.number == "3")
        cells = table.ours[0][0]
        return [cell.estimate.value if cell.estimate else None for cell in cells]

    def commands(self) -> list[tuple[str, Path]]:
        """The paper's tables and the judged sets, by the commands that users have."""
        if not (self.data / "judged").is_dir():
            return []
        ours = ("--set", f"grade.artifact={self.artifact}")
        scores = ("--scores", str(self.work / "scores.sqlite"))
        tables, judged = self.work / "reproduced.md", self.work / "judged" / "results.md"
        if not tables.exists():
            self.causerie(
                "bench", "reproduce", "grade", "--data", str(self.data), "--metrics", JUDGED,
                *ours, *scores, "--out", str(tables),
            )  # fmt: skip
        if not judged.exists():
            self.causerie(
                "bench", "run", "--sets", "default", "--data", str(self.data),
                "--metrics", JUDGED, *ours, *scores, "--out", str(judged.parent),
            )  # fmt: skip
        return [("The paper's tables", tables), ("Judged sets", judged)]


def _values(metric: Metric, exchanges: list[Exchange], engines: Engines) -> list[float]:
    return [row[0].value or 0.0 for row in metric.score_exchanges(exchanges, engines)]


def graph_branch(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """With and without the branch: each seed, and the paired difference with its intervals."""
    full, without = (
        np.array([run["won"] for run in runs[name]], dtype=np.float64) for name in COMPARED
    )
    rows = [
        [seed, f"{one:.4f}", f"{other:.4f}", f"{one - other:+.4f}"]
        for seed, (one, other) in enumerate(zip(full.mean(1), without.mean(1), strict=True))
    ]
    heads = ["seed", "full model", "no graph branch", "difference"]
    differences = full.mean(1) - without.mean(1)
    mean, text, verdict = differences.mean(), f"{differences.mean():+.4f}", ""
    if len(differences) > 1:
        half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
        text += f" [{mean - half:+.4f}, {mean + half:+.4f}]"
        effect = "helps" if mean > half else "harms" if -mean > half else "adds nothing measurable"
        verdict = f" Beside this encoder the graph branch {effect}."
    dialogues = runs[COMPARED[0]][0]["dialogues"]
    with_graph = _share(full, dialogues).text(_share(without, dialogues))
    return [
        *markdown_table(Table(heads, rows)).splitlines(),
        "",
        f"The paired difference over {len(differences)} seeds is {text} (95%, t interval over "
        f"seeds); over validation dialogues, the seeds averaged, {with_graph} (95%, bootstrap)."
        f"{verdict}",
    ]


def _share(won: np.ndarray, dialogues: list[int]) -> ClusteredRatio:
    return ClusteredRatio.of(won.mean(0), dialogues)


def ablations(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Every variant: ranking accuracy, and table 3's columns; mean ± deviation over seeds."""
    heads = ["variant", "seeds", "ranking accuracy", "lexical", "embedding"]
    heads += ["Ranker Pearson", "Ranker Spearman", "Generator Pearson", "Generator Spearman"]
    heads += ["average"]
    rows = []
    for name, found in runs.items():
        cells = [_spread([float(np.mean(run["won"])) for run in found])]
        for kind in ("lexical", "embedding"):
            values = []
            for run in found:
                here = np.array(run["kinds"]) == kind
                values.append(float(np.mean(np.array(run["won"])[here])))
            cells.append(_spread(values))
        judged = [run["judged"] or [None] * 5 for run in found]
        cells += [_spread([row[column] for row in judged]) for column in range(5)]
        rows.append([name, len(found), *cells])
    return markdown_table(Table(heads, rows)).splitlines()


def _spread(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return "–"
    spread = f" ± {np.std(known, ddof=1):.3f}" if len(known) > 1 else ""
    return f"{np.mean(known):.3f}{spread}"


def tell_card(report: Report, lines: list[str]) -> None:
    """The artifact's card, with what its graph branch is worth."""
    artifact = load_artifact(str(report.artifact))
    before = artifact.card.split(HEADING)[0].rstrip()
    about = (
        f"Trained with and without it ({', '.join(SUBSET)}) on the same "
        f"{report.options.tuples:,} tuples, ranking accuracy on validation data:"
    )
    text = "\n".join([before, "", HEADING, "", about, "", *lines, ""])
    if text != artifact.card:
        replace(artifact, card=text).save(report.artifact)


def check_same(report: Report) -> None:
    """Results in the folder are of the same settings and the same graph, or it is an error."""
    graph = Graph.open(GradeConfig().graph)
    names = ("init", "encoder", "settings", "tuples", "measured")
    now = {name: getattr(report.options, name) for name in names}
    now["graph"] = graph.sha256
    file = report.work / "settings.json"
    if file.exists() and json.loads(file.read_text(encoding="utf-8")) != now:
        sys.exit(
            f"{report.work} has results of other settings or another graph: name another folder"
        )
    file.write_text(json.dumps(now, indent=2), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--init", default="density", help="empty: none")
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--set", dest="settings", action="append", default=None)
    parser.add_argument("--tuples", type=int, default=15_000, help="of the fixed subset")
    parser.add_argument("--measured", type=int, default=6000, help="held-out tuples")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ablations", type=int, default=3, help="seeds of the other variants")
    options = parser.parse_args()
    options.settings = options.settings or list(SETTINGS)
    options.work.mkdir(parents=True, exist_ok=True)
    engines = Engines(Settings(encoder=options.encoder))
    report = Report(options.data, options.work.resolve(), options, engines)

    check_same(report)
    report.train()
    held_out = report.held_out()
    runs = report.runs()
    branch = graph_branch(runs)
    tell_card(report, branch)
    text = [
        "# What `grade` is worth", "",
        "Made by `benchmarks/grade_report.py`.", "",
        "## True above false responses", "",
        "The commonsense graph has edges of DailyDialog, EmpatheticDialogues, DREAM and parts of "
        "ESConv and PersonaChat; the encoder, that of `density`, saw DailyDialog and parts of "
        "ConvAI2 and PersonaChat (training dialogues, without those that are judged): none of the "
        "three judged corpora is quite new to it.", "",
        "Share of tuples of the DailyDialog test dialogues in which the true response scores "
        "higher, ties half; intervals (95%) by bootstrap over dialogues.", "",
        *held_out, "",
        HEADING, "",
        f"Both trained on the same {options.tuples:,} tuples ({', '.join(SUBSET)}); ranking "
        "accuracy on validation dialogues, both kinds of negatives together.", "",
        *branch, "",
        "## Ablations of table 3", "",
        f"Trained on those {options.tuples:,} tuples; mean ± standard deviation over seeds. "
        "Correlations are with the judges of DailyDialog, as the paper cuts them.", "",
        *ablations(runs), "",
    ]  # fmt: skip
    for title, file in report.commands():
        text += [f"## {title}", "", *file.read_text(encoding="utf-8").splitlines(), ""]
    (options.work / "results.md").write_text("\n".join(text), encoding="utf-8")
    print("\n".join(branch))
    return int(not report.passes())


if __name__ == "__main__":
    sys.exit(main())
