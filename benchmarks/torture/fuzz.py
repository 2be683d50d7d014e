"""Fuzz: no record and no file ends in a traceback, costs a neighbour or gives a phantom row."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from common import Amounts, Tally, dialogues, sentence

DEEP = "(lists in lists)"


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


def scored_rows(path: Path) -> tuple[list[tuple[str, int, float | None]], int, int]:
    """The rows of a file, and how many of its records were accepted and rejected."""
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
    return rows, len(records), rejected


def fuzzed_records(rng: random.Random, folder: Path, amounts: Amounts) -> Tally:
    tally = Tally("fuzzed records")
    done = 0
    while done < amounts.records:
        good = dialogues(rng, 101)
        lines: list[bytes] = []
        for record in good[:-1]:
            lines.append(json.dumps(record, ensure_ascii=False).encode())
            bad = dict(record, id="fuzzed")
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
            rows, accepted, rejected = scored_rows(path)
        except Exception as error:  # whatever it is, it is what is being looked for
            tally.fault(f"{type(error).__name__}: {error}"[:200])
            continue
        found = Counter(name for name, _, _ in rows)
        for record in good:
            if found[str(record["id"])] != len(record["turns"]) - 1:  # type: ignore[arg-type]
                tally.fault(f"a neighbour has {found[str(record['id'])]} rows: {record['id']}")
        blank = sum(not line.strip() for line in lines)
        fuzzed = accepted - len(good)
        if fuzzed + rejected != 100 - blank:
            tally.fault(f"{fuzzed} accepted and {rejected} rejected of 100 fuzzed lines")
        tally.counts["rejected"] += rejected
        tally.counts["accepted"] += fuzzed
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


def fuzz(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    yield fuzzed_records(rng, folder, amounts)
    yield fuzzed_files(rng, folder, amounts)
