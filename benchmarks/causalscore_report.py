"""All that docs/causalscore-results.md says, from data; what is there already is not made again.

    python benchmarks/causalscore_report.py DATA WORK

DATA has `causal`, `corpora` and `judged`. Measures the shipped artifacts on annotated causes that
they have not seen, trains the two ablations that need it, puts the paper's tables beside ours, and
compares every metric that is quick enough with the judges of the same comparisons.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from causerie.bench.run import choose_metrics
from causerie.bench.sets.catalogue import find_set
from causerie.bench.sets.judged import read_judged
from causerie.bench.sets.units import units_of
from causerie.render.tables import Table, markdown_table
from causerie.scoring import Plan, Scorer, ScoreStore
from reporting import Report

DOMAINS = {"dream": "dream.train", "esconv": "esconv.train", "msc": "msc_session2.valid"}
"""With the unlabelled dialogues of each."""
SETTINGS = (
    "interaction=towers", "fixed=true", "width=128", "dropout=0.3", "weight_decay=0.1", "batch=64",
    "learning_rate=1e-3", "epochs=8", "negatives=matched", "others=2", "curve=0", "rounds=0",
)  # fmt: skip
ABLATIONS = {
    "without-self-training": (),
    "preceding-two": ("causes=preceding two",),
}
VARIANTS = ("sum", "noisy-or")
SLOW = {"fed", "cpmi", "cpmi-sym", "perplexity", "relevance"}
"""A language model reads long conversations for every response: hours for these sets."""
DIMENSIONS = ("relevance", "specificity", "consistency", "empathy", "overall")


def main() -> None:
    report, data = Report.from_command_line("What `causalscore` is worth", __doc__)
    tests = [data / "causal" / f"{domain}.test.jsonl.gz" for domain in DOMAINS]
    report.part(
        "Annotated causes", "causes.md", "bench", "causes", "--test", "fisherz",
        *(word for test in tests for word in ("--annotations", str(test))),
    )  # fmt: skip
    for domain, test in zip(DOMAINS, tests, strict=True):
        report.part(
            f"Annotated causes, trained on {domain} alone", f"causes-{domain}.md",
            "bench", "causes", "--metric", f"causalscore-{domain}", "--annotations", str(test),
        )  # fmt: skip
    others = ",".join(a for a in choose_metrics("all").plan.metrics if a not in SLOW)
    report.part(
        "The paper's tables", "reproduced.md", "bench", "reproduce", "causalscore",
        "--data", str(data), "--metrics", others,
    )  # fmt: skip
    for score in VARIANTS:
        reproduced(report, data, score, f"causalscore.score={score}")
    for dimension in DIMENSIONS:
        report.part(
            f"All metrics on the paper's comparisons: {dimension}", f"{dimension}/results.md",
            "bench", "run", "--data", str(data), "--dimension", dimension, "--metrics", others,
            "--sets", ",".join(f"pairwise_{domain}" for domain in DOMAINS),
        )  # fmt: skip
    report.add("Distribution (figure 4)", distribution(data, report.work / "scores.sqlite"))
    report.part(
        "Judged sets", "judged/results.md", "bench", "run", "--data", str(data),
        "--sets", "default", "--metrics", "causalscore,density,cosine",
    )  # fmt: skip
    report.write()  # two trainings follow
    files = [("--init", Path("density"))]
    for domain, unlabelled in DOMAINS.items():
        for option, split in (("annotations", "train"), ("valid", "valid"), ("unseen", "test")):
            files.append((f"--{option}", data / "causal" / f"{domain}.{split}.jsonl.gz"))
        files.append(("--unlabelled", data / "corpora" / f"{unlabelled}.jsonl.gz"))
    for name, more in ABLATIONS.items():
        folder = report.train("causalscore", name, files, (*SETTINGS, *more))
        reproduced(report, data, name, f"causalscore.artifact={folder}")
    report.write()


def reproduced(report: Report, data: Path, name: str, setting: str) -> None:
    """The paper's tables again: the row CausalScore is a variant of it."""
    report.part(
        f"The paper's tables, {name}", f"reproduced-{name}.md", "bench", "reproduce",
        "causalscore", "--data", str(data), "--metrics", "causalscore", "--set", setting,
    )  # fmt: skip


def distribution(data: Path, scores: Path) -> str:
    """How many responses of each set score in each tenth from 0 to 1."""
    edges = np.linspace(0, 1, 11)
    rows = []
    plan = Plan.of("causalscore", speaker="all")
    for domain in DOMAINS:
        items = units_of(read_judged(find_set(f"pairwise_{domain}", data))).items
        with ScoreStore(scores) as store:
            values = Scorer(plan, store).score_all(items).values("causalscore")
        counts, _ = np.histogram(values, edges)
        rows.append([domain, *(f"{share:.0%}" for share in counts / len(values))])
    tenths = [f"{low:.1f}-{low + 0.1:.1f}" for low in edges[:-1]]
    return markdown_table(Table(["set", *tenths], rows))


if __name__ == "__main__":
    main()
