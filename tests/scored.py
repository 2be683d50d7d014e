"""Tables of made-up scores, written as `causerie score` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from causerie.io import write_table
from causerie.metrics.base import Column
from causerie.scoring.table import OBJECTS

COLUMNS = {
    "density": Column(help="how human a reply is", calibrated=True),
    "length": Column(help="words", better="lower", sentinel=True),
    "causalscore": Column(help="how caused", range=(0.0, 1.0)),
    "grade": Column(help="how on topic", range=(0.0, 1.0)),
    "faults.off_topic": Column("off_topic", "not on topic", better="lower", range=(0.0, 1.0)),
}
DRAWINGS = {"causalscore": "arcs", "grade": "graph"}
KEYS = ("dialogue_id", "turn", "speaker", "file", "system", "message", "text")


def about(columns: Mapping[str, Column]) -> dict[str, Any]:
    return {
        "signature": "causerie|test",
        "columns": {n: {**asdict(c), "drawing": DRAWINGS.get(n)} for n, c in columns.items()},
        "inputs": ["chats.jsonl"],
        "records": 10,
        "rejected": 1,
        "cuts": {"encoder": [2, 50]},
    }


def row(
    dialogue: str, turn: int, text: str | None, system: str | None = "aria", **more: Any
) -> Any:
    return {
        "dialogue_id": dialogue,
        "turn": turn,
        "speaker": "bot",
        "file": "chats.jsonl",
        "system": system,
        "message": turn,
        "text": text,
        **more,
    }


def write_scores(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, Column] = COLUMNS,
    *,
    percentiles: bool = True,
    whole: bool = True,
) -> Path:
    """Write rows as a table of scores; `whole`, with explanations and conversations."""
    names = [*KEYS]
    for name, column in columns.items():
        names += [name, *([f"{name}.percentile"] if percentiles and column.calibrated else [])]
    names += OBJECTS if whole else []
    write_table(rows, names, path, OBJECTS, about(columns))
    return path


def chats(systems: Iterable[str] = ("aria", "bramble"), count: int = 6, shift: float = 0.0) -> Any:
    """Conversations of six turns, three of them scored; the later systems are the better ones."""
    for place, system in enumerate(systems):
        for talk in range(count):
            for turn in (1, 3, 5):
                value = round(place + shift + talk * 0.1 - turn * 0.05, 3)
                yield row(
                    f"{system}-{talk}",
                    turn,
                    f"answer {turn} of {system} about subject {talk}",
                    system,
                    **{
                        "density": value,
                        "density.percentile": min(100.0, 20 + 10 * value),
                        "length": 6.0,
                        "causalscore": 0.8,
                        "grade": 0.5,
                        "faults.off_topic": 0.9 if turn == 5 and place == 0 else 0.1,
                        "explanation": {
                            "causalscore": {
                                "dependents": [{"turn": turn - 1, "p": 0.9, "direct": True}]
                            },
                            "grade": {
                                "topics": {"context": ["subject"], "response": ["answer"]},
                                "edges": [
                                    {
                                        "context": 0,
                                        "response": 0,
                                        "hops": 1,
                                        "path": ["subject", "answer"],
                                        "weight": 0.5,
                                        "attention": 0.4,
                                    }
                                ],
                            },
                        },
                        "conversation": {
                            "side": "system",
                            "before": [
                                {"speaker": "ann", "side": "user", "text": f"question {turn}?"}
                            ],
                        },
                    },
                )
