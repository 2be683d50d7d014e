"""Judged sets as training data of `quality`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from causerie.bench.sets.catalogue import entry_for
from causerie.bench.sets.judged import JudgedSet, read_judged
from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.training.judgements import JudgedReplies


def read_replies_of(
    paths: Sequence[Path], say: Callable[[str], None] = lambda text: None
) -> tuple[JudgedReplies, ...]:
    """Return the turn-level judged sets in these files and folders."""
    found = []
    for path in _files(paths):
        judged = read_judged(path)
        for problem in judged.problems:
            say(f"{judged.name}: {problem}")
        if judged.level != "turn":
            say(f"skipped {judged.name}: its judgements are not of single replies")
        elif replies := replies_of(judged):
            found.append(replies)
        else:
            say(f"skipped {judged.name}: it has no overall rating of replies")
    if not found:
        names = ", ".join(map(str, paths))
        raise CauserieError(
            f"{names} has no judged replies: see docs/judged-sets.md for the format"
        )
    return tuple(found)


def replies_of(judged: JudgedSet) -> JudgedReplies | None:
    """Return the replies of a set, or None if no dimension says how good they are."""
    entry = entry_for(judged.name)
    main = entry.main or ("overall" if "overall" in judged.dimensions else None)
    if main is None and len(judged.dimensions) == 1:
        (main,) = judged.dimensions
    if main is None or main not in judged.dimensions:
        return None
    items = [one for one in judged.items if isinstance(one.item, Exchange)]
    ratings = {
        name: np.array([np.nan if (m := one.mean(name)) is None else m for one in items])
        for name in judged.dimensions
    }
    return JudgedReplies(
        judged.name,
        entry.family or judged.name,
        entry.licence,
        entry.learn if entry.family else "default",  # everybody may learn from their own data
        tuple(one.item for one in items if isinstance(one.item, Exchange)),
        ratings,
        {name: entry.dimensions.get(name) or _ends(values) for name, values in ratings.items()},
        main,
        tuple(one.cluster for one in items),
        tuple(one.human for one in items),
    )


def _ends(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return low, max(high, low + 1e-9)


def _files(paths: Sequence[Path]) -> list[Path]:
    files = []
    for path in paths:
        inside = sorted(p for p in path.glob("*.jsonl*")) if path.is_dir() else [path]
        files += inside
    return files
