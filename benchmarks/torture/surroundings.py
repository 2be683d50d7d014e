"""A world that does not hold still: changing inputs, full disks, company, pages of hostile text."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from common import Amounts, Tally, causerie, dialogues, tiny, write_jsonl


def changing(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    """The report's turns are the scored ones while the input grows, shrinks or is replaced."""
    tally = Tally("changing inputs")
    others = [dict(one, id=f"other {one['id']}") for one in dialogues(rng, 1500)]

    def grow(path: Path) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(one)}\n" for one in others[:50])

    def shrink(path: Path) -> None:
        os.truncate(path, int(path.stat().st_size * rng.uniform(0, 0.9)))

    def rewrite(path: Path) -> None:
        write_jsonl(path, others)

    def replace(path: Path) -> None:
        write_jsonl(path.with_suffix(".new"), others).replace(path)

    ways = (("grows", grow), ("shrinks", shrink), ("is rewritten", rewrite))
    for way, change in (*ways, ("is replaced", replace)):
        for number in range(amounts.changes):
            place = folder / f"{way.split()[-1]}-{number}"
            place.mkdir()
            source = write_jsonl(place / "in.jsonl", dialogues(rng, 1500))
            # From before the first record is read to when the last ones are written.
            wait = number / amounts.changes
            if fault := _changed(source, change, wait, tally):
                tally.fault(f"{way}, after {wait:.2f} s: {fault}")
    if not (tally.counts["turns shown"] and tally.counts["changed in time"]):
        tally.fault("nothing was tried")
    yield tally


def _changed(
    source: Path, change: Callable[[Path], object], wait: float, tally: Tally
) -> str | None:
    """Change the input of a run; what is wrong with the page that it writes, if anything."""
    out, report = source.with_name("out.jsonl"), source.with_name("out.html")
    words = ["--metrics", "length", "--speaker", "all", "--out", out, "--report", report]
    process = subprocess.Popen(
        causerie("score", source, *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if out.with_name("out.jsonl.partial").exists():
            break
        time.sleep(0.002)
    time.sleep(wait)
    tally.counts["changed in time"] += process.poll() is None
    change(source)
    _, said = process.communicate()
    tally.counts["runs"] += 1
    if process.returncode not in (0, 1):
        return f"exit {process.returncode}: {said.decode()[-200:]}"
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    scored = {(row["dialogue_id"], row["turn"]): row["text"] for row in rows}
    tally.counts["rows"] += len(rows)
    if len(scored) < len(rows):
        return f"{len(rows) - len(scored)} rows are there twice"
    for key, text in turns_shown(report.read_text("utf-8")).items():
        tally.counts["turns shown"] += 1
        if key[1] and scored.get(key) != text:  # what comes first is no reply
            return f"{key} was scored as {scored.get(key)!r}, shown as {text!r}"
    return None


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
    """A file may not grow beyond a limit: one sentence, status 4, and nothing half-written.

    With room again, the same command ends with what it should have written.
    """
    tally = Tally("full disks")
    source = write_jsonl(folder / "full.jsonl", dialogues(rng, 2000))
    for suffix in amounts.formats:
        whole = folder / f"whole.{suffix}"
        subprocess.run(_scoring(source, whole), capture_output=True, check=True)
        limits = (0, 4096, 65536)
        with ThreadPoolExecutor(2) as pool:
            faults = pool.map(partial(_full, source, whole), limits)
            for limit, fault in zip(limits, faults, strict=True):
                tally.counts["runs"] += 1
                if fault:
                    tally.fault(f"{suffix}, {limit}: {fault}")
    left = [file.name for file in folder.iterdir() if "partial" in file.name or ".tmp" in file.name]
    if left:
        tally.fault(f"left behind: {left}")
    yield tally


def _full(source: Path, whole: Path, limit: int) -> str | None:
    """Score with so much room, and then with enough; what is wrong with that, if anything."""
    out = whole.with_name(whole.name.replace("whole", f"full-{limit}"))
    for room in (limit, resource.RLIM_INFINITY):
        done = subprocess.run(
            _scoring(source, out), capture_output=True, text=True, check=False,
            preexec_fn=lambda room=room: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        )  # fmt: skip
        if room == limit and (done.returncode != 4 or out.exists() or "Traceback" in done.stderr):
            return f"exit {done.returncode}: {done.stderr[-200:]}"
    if done.returncode or out.read_bytes() != whole.read_bytes():
        return f"with room again exit {done.returncode}: {done.stderr[-200:]}"
    return None


def _scoring(source: Path, out: Path) -> list[str]:
    return causerie("score", source, "--metrics", "length", "--out", out)


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
    lm = tiny().make_llama(folder / "lm")
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
    """Pages of hostile text, opened in a browser where there is one, run none of it."""
    tally = Tally("hostile pages")
    for write in (_report, _bench_page, _trend_page):
        page, said = write(folder)
        if not page.exists():
            tally.fault(f"no {page.name}: {said[-300:]}")
        elif b"\x1b" in page.read_bytes() or "\x1b" in said:
            tally.fault(f"{page.name}: a raw control character")
        else:
            tally.counts["pages"] += 1
            _open(page, tally)
    tally.counts["payloads"] = len(PAYLOADS)
    yield tally


def _run(*words: object) -> str:
    done = subprocess.run(causerie(*words), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _report(folder: Path) -> tuple[Path, str]:
    """Hostile ids, systems, speakers and texts."""
    records = [
        {
            "id": payload,
            "system": payload,
            "turns": [{"speaker": payload, "text": "hi"}, {"speaker": "b", "text": payload}],
        }
        for payload in PAYLOADS
    ]
    source, page = write_jsonl(folder / "hostile.jsonl", records), folder / "report.html"
    words = ["--metrics", "length", "--speaker", "all", "--report", page]
    return page, _run("score", source, *words)


def _bench_page(folder: Path) -> tuple[Path, str]:
    """The same in a judged set, and hostile names of dimensions."""
    records: list[dict[str, object]] = [
        {
            "id": f"{payload} {number}",
            "context": [{"speaker": payload, "text": f"{payload} {number}"}],
            "response": {"speaker": payload, "text": f"{payload} " * (1 + number)},
            "system": payload,
            "ratings": {one: [number % 5, (number + 1) % 5] for one in ("overall", *PAYLOADS)},
        }
        for number in range(5)
        for payload in PAYLOADS
    ]
    (folder / "judged").mkdir()
    name = "<img src=x onerror=\"document.title='hit'\">"
    write_jsonl(folder / "judged" / f"{name}.jsonl", records)
    out = folder / "bench"
    words = ["--metrics", "length,overlap", "--resamples", 50, "--permutations", 50, "--out", out]
    return out / "results.html", _run(
        *("bench", "run", "--data", folder / "judged", "--sets", name, *words),
        *("--scores", folder / "scores.sqlite"),
    )


def _trend_page(folder: Path) -> tuple[Path, str]:
    """Hostile names of groups, in tables and in pictures."""
    from datetime import date, timedelta

    from causerie.cli.ratingslog import write_folder
    from causerie.ratings.trend import chart, trend, trend_table

    days = [date(2024, 1, 1) + timedelta(day) for day in range(10)]
    found = {p: trend(days, [3.0] * len(days), [2.5] * len(days)) for p in PAYLOADS}
    tables = [trend_table(name, one) for name, one in found.items()]
    (folder / "trend").mkdir()
    write_folder(folder / "trend", "trend", PAYLOADS[0], "", tables, {"trend": chart(found)})
    return folder / "trend" / "trend.html", ""


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
