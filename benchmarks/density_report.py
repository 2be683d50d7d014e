"""All that docs/density.md says, from data; what is there already is not made again.

    python benchmarks/density_report.py DATA WORK

DATA has `corpora`, `judged` and `adversarial`; baselines, scores and tables go to WORK. Trains two
towers that are compared by their cosine alone (ten minutes), and the small network on a fixed
encoder with and without the contrastive loss, then ranks human and random responses, puts true
answers beside corrupted ones, and compares with judges, also by the paper's own protocols.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

COMMON = ("pooling=mean", "history=8", "batch=24", "warmup_steps=50", "validate_every=50")
FROZEN = ("interaction=towers", "tuning=frozen", "learning_rate=1e-3", "epochs=0.2")
TWO_TOWERS = (
    "interaction=cosine", "contrastive=0", "tuning=full", "layers=6", "learning_rate=1e-4",
    "epochs=0.3", "gaussian=2000",
)  # fmt: skip
ABLATION = {
    "contrastive": (*FROZEN, "contrastive=1", "gaussian=4000"),
    "selection-only": (*FROZEN, "contrastive=0", "gaussian=4000"),
}
DISTANCES = "density,density:distance=euclidean,density:distance=classifier"
JUDGED = "density,cosine,bertscore,bleu,rouge,embedding"


def causerie(*words: str) -> None:
    """Run one of its commands."""
    print("causerie", *words, file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "causerie", *words], check=True, stdout=sys.stderr)


def train(corpora: Path, out: Path, settings: tuple[str, ...]) -> None:
    if out.exists():
        return
    files = ("dailydialog.train", "convai2.valid", "personachat_part.train")
    words = [w for name in files for w in ("--data", str(corpora / f"{name}.jsonl.gz"))]
    words += ["--valid", str(corpora / "dailydialog.valid.jsonl.gz"), "--resume"]
    words += [word for setting in (*COMMON, *settings) for word in ("--set", setting)]
    causerie("train", "density", *words, "--out", str(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    options = parser.parse_args()
    data, work = options.data, options.work
    corpora, scores = data / "corpora", ("--scores", str(work / "scores.sqlite"))
    work.mkdir(parents=True, exist_ok=True)
    parts: list[tuple[str, Path]] = []

    def part(title: str, file: str, *words: str) -> None:
        """`bench reproduce` writes a file, the others files in a folder."""
        made = work / file
        if not made.exists():
            causerie(*words, "--out", str(made if "reproduce" in words else made.parent), *scores)
        parts.append((title, made))

    def rank(title: str, split: str, metrics: str) -> None:
        part(
            title, f"{title.lower().replace(' ', '-')}/ranking.md", "bench", "rank",
            "--data", str(corpora / f"dailydialog.{split}.jsonl.gz"),
            "--metrics", metrics, "--max-items", "2000",
        )  # fmt: skip

    train(corpora, work / "two-towers", TWO_TOWERS)
    towers = f"{work / 'two-towers'}:distance=classifier"
    rank("DailyDialog validation", "valid", f"{DISTANCES},{towers},cosine")
    rank("DailyDialog test", "test", f"{DISTANCES},cosine")
    for distance in ("mahalanobis", "classifier"):
        part(
            f"Corrupted answers, by the {distance} distance", f"{distance}/probe.md",
            "bench", "probe", "--data", str(data), "--metrics", "density",
            "--set", f"density.distance={distance}",
        )  # fmt: skip
    part(
        "The paper's tables", "reproduced.md", "bench", "reproduce", "density",
        "--data", str(data), "--metrics", JUDGED,
    )  # fmt: skip
    part(
        "Judged sets", "judged/results.md", "bench", "run", "--sets", "default",
        "--data", str(data), "--metrics", JUDGED,
    )  # fmt: skip
    for name, settings in ABLATION.items():
        train(corpora, work / name, settings)
    both = [f"{work / name}{d}" for name in ABLATION for d in ("", ":distance=classifier")]
    rank("With and without the contrastive loss", "test", ",".join(both))
    text = ["# What `density` is worth", "", *(f"- [{t}](#{_anchor(t)})" for t, _ in parts), ""]
    for title, file in parts:
        body = file.read_text(encoding="utf-8").splitlines()
        text += [f"# {title}", "", *body, ""]
    (work / "density.md").write_text("\n".join(text), encoding="utf-8")


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


if __name__ == "__main__":
    main()
