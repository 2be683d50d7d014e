"""What the parts share: made-up conversations, counts, and how much of everything."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

WORDS = (
    *("the", "garden", "train", "music", "dog", "winter", "coffee", "river", "summer", "guitar"),
    *("naïve", "café", "日本語", "שלום", "🙂", "<b>bold</b>", "=1+1", '"quoted"', "don't", "100%"),
)
FORMATS = ("jsonl", "csv", "tsv", "parquet", "jsonl.gz", "csv.gz", "tsv.gz")
"""All that rows are written as."""


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
    """Of artifacts, graphs and stores; then a quarter as many of journals."""
    changes: int = 8
    """Of an input, each way, at different moments."""
    formats: tuple[str, ...] = FORMATS
    company: int = 200
    """Dialogues that several threads and processes score."""

    @classmethod
    def few(cls) -> Amounts:
        return cls(
            kills=3,
            encoder_kills=1,
            records=300,
            files=60,
            tamperings=32,
            changes=1,
            formats=FORMATS[:3:2],
            company=24,
        )


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


def tiny() -> Any:
    """The module of the tests that makes networks of a few kilobytes."""
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    return import_module("tiny")


def causerie(*words: object) -> list[str]:
    return [sys.executable, "-m", "causerie", *map(str, words)]
