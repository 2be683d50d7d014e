"""Torture: kills, fuzz, tampering, company and full disks, counted.

    python benchmarks/torture.py [--seed N] [--short] [--only PART] [--encoder NAME]

Every part breaks something on purpose and counts what came of it. `--short` does a little of
each, for `make test`. Exit status 1 if anything was lost, doubled, silently different or ended
in a traceback. The seed is printed, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

WORDS = (
    *("the", "garden", "train", "music", "dog", "winter", "coffee", "river", "summer", "guitar"),
    *("naïve", "café", "日本語", "שלום", "🙂", "<b>bold</b>", "=1+1", '"quoted"', "don't", "100%"),
)
DEEP = "(lists in lists)"
FORMATS = ("jsonl", "csv", "parquet")


@dataclass
class Tally:
    """What a part did, and what went wrong."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str) -> None:
        self.faults.append(what)

    def __str__(self) -> str:
        said = ", ".join(f"{count:,} {what}" for what, count in self.counts.items())
        lines = [f"{self.name}: {said}; {len(self.faults)} faults"]
        return "\n".join([*lines, *(f"  {fault}" for fault in self.faults[:10])])


@dataclass(frozen=True)
class Amounts:
    """How much of each."""

    kills: int = 240
    encoder_kills: int = 60
    records: int = 20_000
    files: int = 2_000
    tamperings: int = 1_000

    @classmethod
    def few(cls) -> Amounts:
        return cls(kills=3, encoder_kills=1, records=300, files=60, tamperings=30)


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))


def dialogues(rng: random.Random, count: int) -> list[dict[str, object]]:
    """Records of 2 to 8 turns."""
    return [
        {
            "id": f"d{number}",
            "system": rng.choice(["aria", "bramble"]),
            "turns": [
                {"speaker": "AB"[place % 2], "text": sentence(rng)}
                for place in range(rng.randint(2, 8))
            ],
        }
        for number in range(count)
    ]


def write_jsonl(path: Path, records: list[dict[str, object]]) -> Path:
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def causerie(*words: object) -> list[str]:
    return [sys.executable, "-m", "causerie", *map(str, words)]


# Kills: a run that is killed again and again ends with the bytes of one that was not.


def campaign(
    rng: random.Random, folder: Path, options: list[str], count: int, suffix: str
) -> tuple[int, str | None]:
    """Kill one run until it has ended; return how often, and what was wrong."""
    folder.mkdir()
    source = write_jsonl(folder / "in.jsonl", dialogues(rng, count))

    def command(name: str) -> list[str]:
        out, report = folder / f"{name}.{suffix}", folder / f"{name}.html"
        return causerie("score", source, *options, "--out", out, "--report", report)

    started = time.monotonic()
    whole = subprocess.run(command("whole"), capture_output=True, text=True, check=False)
    lasted = time.monotonic() - started
    if whole.returncode != 0:
        return 0, f"exit {whole.returncode}: {whole.stderr.strip()[-300:]}"
    kills = 0
    while True:
        process = subprocess.Popen(
            command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            # Late rather than early: what matters begins when there is something to lose.
            _, said = process.communicate(timeout=lasted * rng.triangular(0.1, 1.0, 0.8))
        except subprocess.TimeoutExpired:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            process.communicate()
            kills += 1
            if kills < 40:
                continue
            _, said = subprocess.Popen(
                command("killed"), stderr=subprocess.PIPE, text=True
            ).communicate()
        break
    for kind in (suffix, "html"):
        one, other = folder / f"whole.{kind}", folder / f"killed.{kind}"
        if not other.exists():
            return kills, f"no {other.name} after {kills} kills: {said.strip()[-300:]}"
        if one.read_bytes() != other.read_bytes().replace(b"killed.", b"whole."):
            return kills, f"{folder.name}: {kind} differs after {kills} kills"
    left = [file.name for file in folder.iterdir() if "partial" in file.name]
    return kills, f"left behind: {left}" if left else None


def killed(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    cheap = ["--metrics", "length,overlap,turns"]
    heavy = ["--metrics", "cosine,length", "--encoder", encoder, "--threads", "1"]
    plans = (
        ("kills", cheap, 3000, amounts.kills),
        ("kills with an encoder", heavy, 250, amounts.encoder_kills),
    )
    for name, options, size, wanted in plans:
        tally = Tally(name)
        number = 0
        with ThreadPoolExecutor(2) as pool:
            while tally.counts["kills"] < wanted:
                jobs = []
                for _ in range(2):
                    suffix = FORMATS[number % len(FORMATS)]
                    own = random.Random(rng.random())
                    place = folder / f"{name.replace(' ', '-')}-{number}"
                    jobs.append(pool.submit(campaign, own, place, options, size, suffix))
                    number += 1
                for job in jobs:
                    kills, fault = job.result()
                    tally.counts["kills"] += kills
                    tally.counts["runs"] += 1
                    if fault:
                        tally.fault(fault)
                if len(tally.faults) > 5:
                    break
        yield tally


# Fuzz: no record and no file ends in a traceback, costs a neighbour or gives a phantom row.


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed: flipped, dropped, doubled, put in, cut off."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(made) + 1)
        odd = rng.choice(
            [
                b'"',
                b"\x00",
                b"\xff\xfe",
                b"{",
                b"}",
                b"[",
                b",",
                b"\\u",
                b"\x1b[31m",
                b"\xed\xa0\x80",
                b"NaN",
                b"1e999",
                b"null",
                b"=cmd|",
                b";",
                b"\t",
            ]
        )
        kind = rng.randrange(5)
        if kind == 0 and made:
            made[place % len(made)] = rng.randrange(256)
        elif kind == 1:
            del made[place : place + rng.randint(1, 9)]
        elif kind == 2:
            made[place:place] = made[max(0, place - 20) : place]
        elif kind == 3:
            made[place:place] = odd
        else:
            del made[place:]
    return bytes(made)


def twisted(rng: random.Random, record: dict[str, object]) -> object:
    """The record with a value of another type somewhere."""
    odd = [None, 3, -0.5, True, "", " ", [], {}, ["x"], {"text": 1}, DEEP, "\ud800", "x" * 100_000]
    made = json.loads(json.dumps(record))
    where = rng.randrange(4)
    if where == 0:
        made[rng.choice(["id", "turns", "system", "rating", "date", "background"])] = rng.choice(
            odd
        )
    elif where == 1:
        made["turns"][rng.randrange(len(made["turns"]))] = rng.choice(odd)
    elif where == 2:
        turn = rng.choice(made["turns"])
        turn[rng.choice(["speaker", "text", "role", "time"])] = rng.choice(odd)
    else:
        made = rng.choice(odd)
    return made


def scored_rows(path: Path) -> tuple[list[tuple[str, int, float | None]], int]:
    """The rows of a file in process, and how many records were rejected."""
    from causerie.io import Rejected, read
    from causerie.scoring import Plan, Scorer

    records, rejected = [], 0
    for record in read(path):
        if isinstance(record, Rejected):
            rejected += 1
            str(record)
        else:
            records.append(record)
    rows = []
    for batch in Scorer(Plan.of("length,overlap", speaker="all")).batches(records):
        for item, row in batch.rows():
            rows.append((item.dialogue.id, item.turn, row["length"].value))
    return rows, rejected


def fuzzed_records(rng: random.Random, folder: Path, amounts: Amounts) -> Tally:
    tally = Tally("fuzzed records")
    done = 0
    while done < amounts.records:
        good = dialogues(rng, 101)
        lines: list[bytes] = []
        for record in good[:-1]:
            lines.append(json.dumps(record, ensure_ascii=False).encode())
            bad = dict(record, id=f"bad-{record['id']}")
            if rng.random() < 0.5:
                line = mutated(rng, json.dumps(bad, ensure_ascii=False).encode())
                line = line.replace(b"\n", b" ").replace(b"\r", b" ")
            else:
                line = json.dumps(twisted(rng, bad)).encode()
                levels = rng.choice([3, 50, 100_000])
                line = line.replace(json.dumps(DEEP).encode(), b"[" * levels + b"]" * levels)
            lines.append(line)
        lines.append(json.dumps(good[-1], ensure_ascii=False).encode())
        path = folder / "fuzz.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        done += 100
        try:
            rows, rejected = scored_rows(path)
        except Exception as error:  # whatever it is, it is what is being looked for
            tally.fault(f"{type(error).__name__}: {error}"[:200])
            continue
        found = Counter(name for name, _, _ in rows)
        for record in good:
            if found[str(record["id"])] != len(record["turns"]) - 1:  # type: ignore[arg-type]
                tally.fault(f"a neighbour has {found[str(record['id'])]} rows: {record['id']}")
        names = {name for name in found if name not in {str(r["id"]) for r in good}}
        blank = sum(not line.strip() for line in lines)
        if len(names) + rejected > 100 - blank:
            tally.fault(f"{len(names)} names and {rejected} rejected of 100 fuzzed lines")
        tally.counts["rejected"] += rejected
        tally.counts["accepted"] += len(names)
    tally.counts["records"] = done
    return tally


def fuzzed_files(rng: random.Random, folder: Path, amounts: Amounts) -> Tally:
    from causerie.errors import CauserieError

    tally = Tally("fuzzed files")
    makers = {
        "jsonl": _jsonl,
        "json": _json,
        "csv": _csv,
        "tsv": _tsv,
        "txt": _text,
        "parquet": _parquet,
    }
    for number in range(amounts.files):
        suffix = list(makers)[number % len(makers)]
        whole = makers[suffix](rng)
        path = folder / f"fuzz.{suffix}"
        path.write_bytes(mutated(rng, whole))
        tally.counts["files"] += 1
        try:
            scored_rows(path)
        except CauserieError as said:
            tally.counts["refused"] += 1
            if "\n" in str(said):
                tally.fault(f"more than one line: {said}"[:200])
        except Exception as error:
            tally.fault(f"{suffix}: {type(error).__name__}: {error}"[:200])
            (folder / f"fault-{number}.{suffix}").write_bytes(path.read_bytes())
    return tally


def _jsonl(rng: random.Random) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in dialogues(rng, 5))


def _json(rng: random.Random) -> bytes:
    return json.dumps(dialogues(rng, 5), indent=1).encode()


def _csv(rng: random.Random, comma: str = ",") -> bytes:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, delimiter=comma)
    writer.writerow(["id", "context", "response", "system"])
    for number in range(5):
        writer.writerow([number, f"{sentence(rng)}\n{sentence(rng)}", sentence(rng), "aria"])
    return out.getvalue().encode()


def _tsv(rng: random.Random) -> bytes:
    return _csv(rng, "\t")


def _text(rng: random.Random) -> bytes:
    turns = (f"{'AB'[i % 2]}: {sentence(rng)}\n" for i in range(8))
    return "".join(turns).encode()


def _parquet(rng: random.Random) -> bytes:
    import pyarrow
    import pyarrow.parquet

    rows = {name: [sentence(rng) for _ in range(5)] for name in ("context", "response")}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(rows), sink)
    return sink.getvalue().to_pybytes()


# Tampering: what was changed is refused, or the scores are the same.


def tampered(rng: random.Random, files: list[Path]) -> tuple[Path, bytes, str]:
    """One file of several changed; returns it with what it was and what was done."""
    path = rng.choice(files)
    before = path.read_bytes()
    made = bytearray(before)
    kind = rng.choice(["flip", "flip", "truncate", "append", "zero", "swap", "value"])
    place = rng.randrange(len(made))
    if kind == "flip":
        made[place] ^= 1 << rng.randrange(8)
    elif kind == "truncate":
        del made[place:]
    elif kind == "append":
        made += rng.randbytes(rng.randint(1, 40))
    elif kind == "zero":
        made[place : place + 64] = bytes(len(made[place : place + 64]))
    elif kind == "swap":
        half = len(made) // 2
        made = made[half:] + made[:half]
    elif path.suffix == ".json":
        content = json.loads(before)
        if isinstance(content, dict) and content:
            odd = [None, [], {}, "x", -1, 10**30, "../../etc/passwd", [[[]]], True]
            content[rng.choice(sorted(content))] = rng.choice(odd)
            made = bytearray(json.dumps(content).encode())
    path.write_bytes(bytes(made))
    return path, before, kind


def tampered_artifacts(rng: random.Random, folder: Path, count: int, encoder: str) -> Tally:
    import shutil

    from causerie.dialogue import Dialogue
    from causerie.engines import Engines, Settings
    from causerie.errors import CauserieError
    from causerie.models.artifact import ArtifactInfo
    from causerie.scoring import Plan, Scorer

    tally = Tally("tampered artifacts")
    dialogue = Dialogue.from_texts(["Do you like music?", "I play the guitar.", "Stop it, please."])
    shared = Engines(Settings())
    networks = {"encoder": shared.encoder}

    def scores(metric: str, place: Path) -> list[dict[str, float | None]]:
        engines = Engines(Settings())
        engines.shared("encoder", lambda: networks["encoder"])
        plan = Plan.of(f"{metric}:artifact={place}", speaker="all")
        rows = Scorer(plan, engines=engines).score(dialogue)
        return [{name: score.value for name, score in row.items()} for row in rows]

    for metric in ("causalscore", "odes"):
        place = folder / metric
        shutil.copytree(ArtifactInfo.find(metric, metric).folder, place)
        expected = scores(metric, place)
        files = [p for p in place.iterdir() if p.suffix in (".json", ".safetensors")]
        for _ in range(count // 2):
            path, before, kind = tampered(rng, files)
            tally.counts[kind] += 1
            try:
                same = scores(metric, place) == expected
                tally.counts["same scores"] += same
                if not same:
                    tally.fault(f"{metric}/{path.name} ({kind}): other scores")
            except CauserieError:
                tally.counts["refused"] += 1
            except Exception as error:
                tally.fault(f"{metric}/{path.name} ({kind}): {type(error).__name__}: {error}"[:200])
            path.write_bytes(before)
    return tally


def tampered_graphs(rng: random.Random, folder: Path, count: int) -> Tally:
    import shutil

    from causerie.errors import CauserieError
    from causerie.graph import Graph

    tally = Tally("tampered graphs")
    place = folder / "graph"
    shutil.copytree(Graph.open("everyday").folder, place)

    def seen() -> object:
        graph = Graph.open(place)
        nodes = [graph.find(word) for word in ("music", "guitar", "dog")]
        known = [node for node in nodes if node is not None]
        return nodes, graph.vectors(known).tolist(), graph.frequencies.of("music")

    expected = seen()
    files = [path for path in place.iterdir() if path.is_file()]
    for _ in range(count):
        path, before, kind = tampered(rng, files)
        tally.counts[kind] += 1
        try:
            if seen() != expected:
                tally.fault(f"{path.name} ({kind}): another graph")
            tally.counts["same"] += 1
        except CauserieError:
            tally.counts["refused"] += 1
        except Exception as error:
            tally.fault(f"{path.name} ({kind}): {type(error).__name__}: {error}"[:200])
        path.write_bytes(before)
    return tally


def tampered_stores(rng: random.Random, folder: Path, count: int) -> Tally:
    import warnings

    from causerie.dialogue import Dialogue
    from causerie.errors import CauserieError, CauserieWarning
    from causerie.metrics.base import Score
    from causerie.scoring.store import Kept, ScoreStore, digest_of

    tally = Tally("tampered stores")
    items = [Dialogue.from_texts([sentence(rng), sentence(rng)]) for _ in range(200)]
    digests = [digest_of(item) for item in items]
    rows = {d: Kept((Score.of(rng.random()),), 10, 0.1, None) for d in digests}
    path = folder / "scores.sqlite"
    with ScoreStore(path) as store:
        store.put("metric", rows, explain=False)
    whole = path.read_bytes()
    for _ in range(count):
        path.write_bytes(whole)
        _, _, kind = tampered(rng, [path])
        tally.counts[kind] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CauserieWarning)
                with ScoreStore(path) as store:
                    found = store.find("metric", digests, explain=False)
            if any(found[d].scores != rows[d].scores for d in found):
                tally.fault(f"{kind}: other scores")
            tally.counts["scores kept"] += len(found) == len(rows)
        except CauserieError:
            tally.counts["refused"] += 1
        except Exception as error:
            tally.fault(f"{kind}: {type(error).__name__}: {error}"[:200])
        for file in folder.glob("scores.sqlite*"):
            file.unlink()
    return tally


def tampering(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    third = amounts.tamperings // 3
    yield tampered_artifacts(rng, folder, amounts.tamperings - 2 * third, encoder)
    yield tampered_graphs(rng, folder, third)
    yield tampered_stores(rng, folder, third)


# Inputs that change while they are read, and disks that are full.


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


def fuzz(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    yield fuzzed_records(rng, folder, amounts)
    yield fuzzed_files(rng, folder, amounts)


PARTS: dict[str, Callable[[random.Random, Path, Amounts, str], Iterator[Tally]]] = {
    "kills": killed,
    "fuzz": fuzz,
    "tampering": tampering,
    "changing": changing,
    "disks": full_disks,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--encoder", default="default")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    amounts, faults, started = Amounts.few() if given.short else Amounts(), 0, time.monotonic()
    for part in given.only or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            rng = random.Random(f"{seed} {part}")
            for tally in PARTS[part](rng, Path(folder), amounts, given.encoder):
                print(tally, flush=True)
                faults += len(tally.faults)
    print(f"{faults} faults in {time.monotonic() - started:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
