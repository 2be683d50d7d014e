"""A world that does not hold still: changing inputs, full disks, company, pages of hostile text."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from common import FORMATS, Amounts, Tally, causerie, dialogues, write_jsonl


def changing(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    """The report's turns are the scored ones while the input grows, shrinks or is replaced."""
    tally = Tally("changing inputs")
    ways: dict[str, Callable[[Path], object]] = {
        "grows": lambda path: path.open("a").write(
            '{"turns": [{"speaker": "A", "text": "new"}]}\n'
        ),
        "shrinks": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "is replaced": lambda path: write_jsonl(path, dialogues(rng, 500)),
    }
    for way, change in ways.items():
        source = write_jsonl(folder / f"{way.split()[-1]}.jsonl", dialogues(rng, 1500))
        out, report = source.with_suffix(".out.jsonl"), source.with_suffix(".html")
        words = ["--metrics", "length", "--speaker", "all", "--out", out, "--report", report]
        process = subprocess.Popen(
            causerie("score", source, *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if list(folder.glob(f"{out.name}*partial*")) or list(folder.glob(".*partial*")):
                break
            time.sleep(0.01)
        change(source)
        _, said = process.communicate()
        tally.counts["runs"] += 1
        if process.returncode not in (0, 1):
            tally.fault(f"{way}: exit {process.returncode}: {said.decode()[-200:]}")
            continue
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        scored = {(row["dialogue_id"], row["turn"]): row["text"] for row in rows}
        shown = turns_shown(report.read_text("utf-8"))
        tally.counts["turns shown"] += len(shown)
        for key, text in shown.items():
            if key in scored and scored[key] != text:
                tally.fault(f"{way}: {key} was scored as {scored[key]!r}, shown as {text!r}")
                break
    yield tally


def turns_shown(page: str) -> dict[tuple[str, int], str]:
    """By dialogue and turn, the texts in a report's data."""
    from html import unescape

    start = page.index('type="application/json"')
    start = page.index(">", start) + 1
    data = json.loads(unescape(page[start : page.index("</script>", start)]))
    return {
        (talk["id"], place): turn["text"]
        for talk in data["dialogues"]
        for place, turn in enumerate(talk["turns"])
    }


def full_disks(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    """A file may not grow beyond a limit: one sentence, status 4, and nothing half-written."""
    import resource

    tally = Tally("full disks")
    source = write_jsonl(folder / "full.jsonl", dialogues(rng, 2000))
    for suffix in FORMATS:
        for limit in (0, 4096, 65536):
            out = folder / f"full-{limit}.{suffix}"

            def limited(limit: int = limit) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

            done = subprocess.run(
                causerie("score", source, "--metrics", "length", "--out", out),
                capture_output=True, text=True, check=False, preexec_fn=limited,
            )  # fmt: skip
            tally.counts["runs"] += 1
            if done.returncode != 4 or out.exists() or "Traceback" in done.stderr:
                tally.fault(f"{suffix}, {limit}: exit {done.returncode}: {done.stderr[-200:]}")
    yield tally


COMPANY = """
import multiprocessing, sys
from concurrent.futures import ThreadPoolExecutor
from causerie.engines import Settings
from causerie.io import read
from causerie.scoring import Batch, Plan, Scorer

path, encoder, lm, metrics, method = sys.argv[1:]
plan = Plan.of(metrics, settings=Settings(encoder=encoder, lm=lm, threads=2), speaker="all")
scorer = Scorer(plan)
dialogues = list(read(path))

def score(part):
    batch = Batch.joined(plan, scorer.batches(dialogues[part::8]))
    return [[score.value for score in row.values()] for _, row in batch.rows()]

def check(found, what):
    if found != expected:
        wrong = sum(a != b for x, y in zip(found, expected) for a, b in zip(x, y))
        sys.exit(f"{wrong} rows differ in {what}")

if __name__ == "__main__":
    expected = [score(part) for part in range(8)]
    scorer = Scorer(plan)
    with ThreadPoolExecutor(8) as pool:
        check(list(pool.map(score, range(8))), "threads")
    with multiprocessing.get_context(method).Pool(4) as pool:
        check(pool.map(score, range(8)), method)
    print(sum(map(len, expected)))
"""


def company(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    """Eight threads and four processes, forked and spawned, get the numbers of one."""
    tally = Tally("company")
    source = write_jsonl(folder / "company.jsonl", dialogues(rng, amounts.company))
    script = folder / "company.py"
    script.write_text(COMPANY, "utf-8")
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    import tiny

    lm = tiny.make_llama(folder / "lm")
    metrics = "density,causalscore,cosine" if encoder == "default" else "cosine"
    for method in ("fork", "spawn"):
        words = [sys.executable, script, source, encoder, lm, f"{metrics},perplexity", method]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=600,
                env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},  # as the command line does it
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            tally.fault(f"{method}: it takes longer than ten minutes")
            continue
        if done.returncode:
            tally.fault(f"{method}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        else:
            tally.counts[f"replies ({method})"] = int(done.stdout)
    yield tally


PAYLOADS = (
    "<script>document.title='hit'</script>",
    "<img src=x onerror=\"document.title='hit'\">",
    "</script><script>document.title='hit'</script>",
    "<svg/onload=document.title='hit'>",
    "javascript:document.title='hit'",
    "{{constructor.constructor('document.title=1')()}}",
    "\u202eevil\u202c \x1b[31mred",
    "<!--<script>",
)


def pages(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    """A report of hostile text, opened in a browser where there is one, runs none of it."""
    tally = Tally("hostile pages")
    records = [
        {
            "id": payload,
            "system": payload,
            "turns": [{"speaker": payload, "text": "hi"}, {"speaker": "b", "text": payload}],
        }
        for payload in PAYLOADS
    ]
    source, report = write_jsonl(folder / "hostile.jsonl", records), folder / "hostile.html"
    words = ["--metrics", "length", "--speaker", "all", "--report", report]
    done = subprocess.run(causerie("score", source, *words), capture_output=True, check=False)
    tally.counts["payloads"] = 4 * len(PAYLOADS)
    if done.returncode not in (0, 1) or not report.exists():
        tally.fault(f"exit {done.returncode}: {done.stderr.decode()[-300:]}")
    elif b"\x1b" in report.read_bytes() or b"\x1b" in done.stdout + done.stderr:
        tally.fault("a raw control character")
    else:
        _open(report, tally)
    yield tally


def _open(report: Path, tally: Tally) -> None:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in found:
        tally.counts["pages opened (no browser here)"] = 0
        return
    options = webdriver.ChromeOptions()
    options.binary_location = str(found[0])
    for word in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{word}")
    os.environ["NO_PROXY"] = "localhost,127.0.0.1"  # the driver must be reached directly
    driver = webdriver.Chrome(options=options, service=Service(found[1]))
    try:
        driver.get(report.as_uri())
        driver.execute_script(
            "for (const one of [...document.querySelectorAll('button, summary')]) one.click()"
        )
        if driver.title in ("hit", "1"):
            tally.fault("a text of the page was run")
        tally.counts["pages opened"] += 1
    finally:
        driver.quit()
