"""All that docs/density-results.md says, from data; what is there already is not made again.

    python benchmarks/density_report.py DATA WORK

DATA has `corpora`, `judged` and `adversarial`; baselines, scores and tables go to WORK. Trains two
towers that are compared by their cosine alone (ten minutes), the small network on a fixed encoder
with and without the contrastive loss, and the paper's cross-encoder, then ranks human and random
responses, puts true answers beside corrupted ones, and compares with judges, also by the paper's
own protocols.
"""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

from reporting import Report, anchor

COMMON = ("pooling=mean", "history=8", "warmup_steps=50", "validate_every=50")
FROZEN = ("interaction=towers", "tuning=frozen", "batch=24", "learning_rate=1e-3", "epochs=0.2")
TWO_TOWERS = (
    "interaction=cosine", "contrastive=0", "tuning=full", "layers=6", "batch=24",
    "learning_rate=1e-4", "epochs=0.3", "gaussian=2000",
)  # fmt: skip
CROSS = (
    "interaction=cross", "tuning=full", "layers=6", "learning_rate=1e-4", "contrastive=0.1",
    "negatives=4", "batch=8", "epochs=0.13", "gaussian=1000",
)  # fmt: skip
ABLATION = {
    "contrastive": (*FROZEN, "contrastive=1", "gaussian=4000"),
    "selection-only": (*FROZEN, "contrastive=0", "gaussian=4000"),
}
VARIANTS = ("", ":distance=euclidean", ":distance=classifier")
DISTANCES = ",".join(f"density{variant}" for variant in VARIANTS)
JUDGED = "density,cosine,bertscore,bleu,rouge,embedding"


def main() -> None:
    report, data = Report.from_command_line("What `density` is worth", __doc__)
    corpora = data / "corpora"
    valid, test = (corpora / f"dailydialog.{split}.jsonl.gz" for split in ("valid", "test"))

    def train(name: str, settings: tuple[str, ...], valid: Path = valid) -> Path:
        names = ("dailydialog.train", "convai2.valid", "personachat_part.train")
        files = [("--data", corpora / f"{n}.jsonl.gz") for n in names]
        files.append(("--valid", valid))
        return report.train("density", name, files, (*COMMON, *settings))

    def rank(title: str, dialogues: Path, *metrics: str) -> None:
        report.part(
            title, f"{anchor(title)}/ranking.md", "bench", "rank", "--data", str(dialogues),
            "--metrics", ",".join(metrics), "--max-items", "2000",
        )  # fmt: skip

    towers = train("two-towers", TWO_TOWERS)
    rank("DailyDialog validation", valid, DISTANCES, f"{towers}:distance=classifier", "cosine")
    rank("DailyDialog test", test, DISTANCES, "cosine")
    for distance in ("mahalanobis", "classifier"):
        report.part(
            f"Corrupted answers, by the {distance} distance", f"{distance}/probe.md",
            "bench", "probe", "--data", str(data), "--metrics", "density",
            "--set", f"density.distance={distance}",
        )  # fmt: skip
    report.part(
        "The paper's tables", "reproduced.md", "bench", "reproduce", "density",
        "--data", str(data), "--metrics", JUDGED,
    )  # fmt: skip
    report.part(
        "Judged sets", "judged/results.md", "bench", "run", "--sets", "default",
        "--data", str(data), "--metrics", JUDGED,
    )  # fmt: skip
    trained = {name: train(name, settings) for name, settings in ABLATION.items()}
    both = [f"{folder}{variant}" for folder in trained.values() for variant in VARIANTS]
    rank("With and without the contrastive loss", test, *both)
    for name, folder in trained.items():
        report.part(
            f"The paper's tables, fixed encoder, {name}", f"reproduced-{name}.md",
            "bench", "reproduce", "density", "--data", str(data), "--metrics", "density",
            "--set", f"density.artifact={folder}",
        )  # fmt: skip
    report.write()  # what follows takes as long as all before
    few = report.work / "few.jsonl"  # every candidate is read with its context: 16 times the work
    with gzip.open(valid, "rt", encoding="utf-8") as lines:
        few.write_text("".join(islice(lines, 60)), encoding="utf-8")
    cross = train("cross", CROSS, few)
    rank("Context and response read together", few, f"{cross}:distance=classifier", DISTANCES)
    report.write()


if __name__ == "__main__":
    main()
