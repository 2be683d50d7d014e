"""Fuzz: no record and no file ends in a traceback, costs a neighbour or gives a phantom row."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common import Amounts, Tally, dialogues, sentence

if TYPE_CHECKING:
    from causerie.dialogue import Dialogue, Exchange

DEEP = "(lists in lists)"
MOST_GUESSED_WRONG = 0.02
"""Of tables that do not show which of their lines end rows."""
ODD = (
    *(
        b'"',
        b"{",
        b"}",
        b"[",
        b",",
        b";",
        b"\t",
        b"\n",
        b"\\u",
        b"NaN",
        b"1e999",
        b"null",
        b"=cmd|",
    ),
    *(b"\x00", b"\xff\xfe", b"\x1b[31m", b"\xed\xa0\x80"),
)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed: flipped, dropped, doubled, put in, cut off."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(made) + 1)
        odd = rng.choice(ODD)
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


def scored(path: Path) -> tuple[list[Dialogue | Exchange], list[tuple[str, int]], int]:
    """The records of a file, the id and turn of every scored row, and how many were rejected."""
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
        rows += [(item.dialogue.id, item.turn) for item, row in batch.rows()]
    return records, rows, rejected


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
            records, rows, rejected = scored(path)
        except Exception as error:  # whatever it is, it is what is being looked for
            tally.fault(f"{type(error).__name__}: {error}"[:200])
            continue
        found = Counter(name for name, _ in rows)
        for record in good:
            if found[str(record["id"])] != len(record["turns"]) - 1:  # type: ignore[arg-type]
                tally.fault(f"a neighbour has {found[str(record['id'])]} rows: {record['id']}")
        blank = sum(not line.strip() for line in lines)
        fuzzed = len(records) - len(good)
        if fuzzed + rejected != 100 - blank:
            tally.fault(f"{fuzzed} accepted and {rejected} rejected of 100 fuzzed lines")
        tally.counts["rejected"] += rejected
        tally.counts["accepted"] += fuzzed
    tally.counts["records"] = done
    return tally


@dataclass(frozen=True)
class Made:
    """A file in pieces, one for each record, of which some are to be damaged."""

    suffix: str
    pieces: list[bytes]
    head: bytes = b""
    between: bytes = b"\n"
    tail: bytes = b""
    inside: Callable[[bytes], set[int]] = lambda piece: {0}
    """In which lines of a damaged piece a record may begin, for all that the file says."""

    def file(self, pieces: list[bytes]) -> bytes:
        return self.head + self.between.join(pieces) + self.tail

    def lines(self, pieces: list[bytes]) -> list[int]:
        """Where each piece begins."""
        starts = (self.head + self.between.join([*pieces[:n], b""]) for n in range(len(pieces)))
        return [start.count(b"\n") + 1 for start in starts]


def fuzzed_files(rng: random.Random, folder: Path, amounts: Amounts) -> Tally:
    """One or two records of a file are damaged: the others stay, and no new ones appear."""
    tally = Tally("fuzzed files")
    makers = [_jsonl, _json, _csv, _tsv, _text]
    for number in range(amounts.files):
        if number % (len(makers) + 1) == len(makers):
            _fuzz_parquet(rng, folder, tally)
            continue
        made = makers[number % (len(makers) + 1)](rng)
        if wrong := _damaged(rng, folder, made, tally):
            tally.fault(f"{made.suffix} {number}: {wrong}"[:600])
    return tally


def guessed_files(rng: random.Random, folder: Path, amounts: Amounts) -> Tally:
    """The same of tables that do not show which of their lines end rows.

    What belongs to a broken row can only be guessed there (SECURITY.md says so): what is counted
    is how often that goes wrong, and it is a fault where it is no longer rare.
    """
    tally = Tally("fuzzed tables whose rows end as lines do")
    kinds = [(ends, lines) for ends in (b"\n", b"\r\n") for lines in (ends.decode(), " ")]
    wrong: list[str] = []
    for number in range(amounts.files // 5):
        ends, lines = kinds[number % len(kinds)]
        if found := _damaged(rng, folder, _csv(rng, ends=ends, lines=lines), tally):
            wrong.append(found)
    for found in wrong:
        if not found.startswith(("lost", "phantom")):
            tally.fault(found[:200])
    tally.counts["guessed wrong"] = len(wrong)
    if len(wrong) > MOST_GUESSED_WRONG * tally.counts["files"] + 1:
        tally.fault(f"{len(wrong)} of {tally.counts['files']}, such as {wrong[0]}"[:600])
    return tally


def _damaged(rng: random.Random, folder: Path, made: Made, tally: Tally) -> str | None:
    """Read a file with one or two damaged records; what is wrong with that, if anything."""
    path = folder / f"fuzz.{made.suffix}"
    hurt = set(rng.choices(range(len(made.pieces)), k=rng.choice([1, 1, 2])))
    pieces = [mutated(rng, p) if n in hurt else p for n, p in enumerate(made.pieces)]
    tally.counts["files"] += 1
    try:
        path.write_bytes(made.file(made.pieces))
        whole = _texts(scored(path)[0])
        path.write_bytes(made.file(pieces))
        found = _texts(scored(path)[0])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if len(whole) != len(made.pieces):
        return f"{len(whole)} records of {len(made.pieces)} before anything was damaged"
    expected, allowed = {}, set()
    for n, (before, line) in enumerate(zip(sorted(whole), made.lines(pieces), strict=True)):
        if n in hurt:
            allowed |= {line + inner for inner in made.inside(pieces[n])}
        else:
            expected[line] = whole[before]
    tally.counts["damaged records"] += len(hurt)
    tally.counts["still read"] += len(found.keys() & allowed)
    for line, texts in expected.items():
        if found.get(line) != texts:
            return f"lost in line {line}: {pieces}"
    if phantoms := found.keys() - expected.keys() - allowed:
        return f"phantom in line {min(phantoms)}: {pieces}"
    return None


def _texts(records: list[Dialogue | Exchange]) -> dict[int, tuple[str, ...]]:
    """What is said in each record, by the line that a record without an id is called after."""
    from causerie.dialogue import Exchange

    dialogues = [r.dialogue if isinstance(r, Exchange) else r for r in records]
    return {int(d.id.partition(":")[2]): tuple(t.text for t in d.turns) for d in dialogues}


def _without_ids(rng: random.Random) -> list[dict[str, object]]:
    return [{k: v for k, v in one.items() if k != "id"} for one in dialogues(rng, 6)]


def _every_line(piece: bytes) -> set[int]:
    return set(range(piece.count(b"\n") + 1))


def _jsonl(rng: random.Random) -> Made:
    return Made("jsonl", [json.dumps(d).encode() for d in _without_ids(rng)], inside=_every_line)


def _json(rng: random.Random) -> Made:
    pieces = [json.dumps(one, indent=1).encode() for one in _without_ids(rng)]
    return Made("json", pieces, b"[\n", b",\n", b"\n]\n", _sound_elements)


def _sound_elements(piece: bytes) -> set[int]:
    """The lines of a piece of an array on which a whole record begins, and its first one."""
    text = piece.decode(errors="replace")
    starts = {0}
    for brace in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if "turns" in value:
            starts.add(text.count("\n", 0, brace.start()))
    return starts


def _csv(
    rng: random.Random,
    suffix: str = "csv",
    delimiter: str = ",",
    ends: bytes = b"\r\n",
    lines: str = "\n",
) -> Made:
    """Rows, as spreadsheets write them: their ends are not those of the `lines` in a cell."""
    pieces = []
    for _ in range(6):
        context = [sentence(rng) for _ in range(rng.choice([1, 2, 2, 3]))]
        context[-1] += rng.choice(["", ", and more", f",{sentence(rng)},{sentence(rng)}"])
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter).writerow([lines.join(context), sentence(rng), "aria"])
        pieces.append(out.getvalue().removesuffix("\r\n").encode())
    head = delimiter.join(["context", "response", "system"]).encode() + ends
    return Made(suffix, pieces, head, ends, ends, partial(_sound_rows, delimiter))


def _tsv(rng: random.Random) -> Made:
    return _csv(rng, "tsv", "\t")


def _sound_rows(delimiter: str, piece: bytes) -> set[int]:
    """Where rows begin in a piece of a table that as a whole keeps to the letter of RFC 4180."""
    cell = re.compile(rf'(?:"(?:[^"]|"")*"|[^"{delimiter}\r\n]*)({delimiter}|\r?\n|\Z)')
    text = piece.decode(errors="replace")
    starts, at, after = {0}, 0, "none"
    while after:
        found = cell.match(text, at)
        if found is None:
            return {0}
        at, after = found.end(), found[1]
        if after.endswith("\n"):
            starts.add(text.count("\n", 0, at))
    return starts


def _text(rng: random.Random) -> Made:
    def block() -> bytes:
        turns = [f"{'AB'[i % 2]}: {sentence(rng)}" for i in range(rng.randint(2, 6))]
        return "\n".join(turns).encode()

    return Made("txt", [block() for _ in range(6)], b"", b"\n\n", b"\n", _blocks)


def _blocks(piece: bytes) -> set[int]:
    """The lines of a piece of text that come first, or after a blank one."""
    blank = [True, *(not line.strip() for line in piece.split(b"\n"))]
    return {n for n in range(len(blank)) if blank[n]}


def _fuzz_parquet(rng: random.Random, folder: Path, tally: Tally) -> None:
    """Its bytes hang together, so all that is asked is that damage makes no rows."""
    import pyarrow
    import pyarrow.parquet

    from causerie.errors import CauserieError

    rows = {name: [sentence(rng) for _ in range(5)] for name in ("context", "response")}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(rows), sink)
    path = folder / "fuzz.parquet"
    path.write_bytes(mutated(rng, sink.getvalue().to_pybytes()))
    tally.counts["files"] += 1
    try:
        records, _, _ = scored(path)
    except CauserieError as said:
        tally.counts["refused"] += 1
        if "\n" in str(said):
            tally.fault(f"more than one line: {said}"[:200])
    except Exception as error:
        tally.fault(f"parquet: {type(error).__name__}: {error}"[:200])
    else:
        if len(records) > 5:
            tally.fault(f"parquet: {len(records)} rows of 5")


def fuzz(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    yield fuzzed_records(rng, folder, amounts)
    yield fuzzed_files(rng, folder, amounts)
    yield guessed_files(rng, folder, amounts)
