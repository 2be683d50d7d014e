"""Features of whole dialogues: measured once, kept by content, and z-scored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from causerie.errors import CauserieError
from causerie.ratings.features import COLUMNS, Feature, Floats, Group
from causerie.ratings.kept import Kept
from causerie.ratings.pairs import TurnPair

CHUNK = 32
"""Dialogues whose missing features are measured, and then kept, together."""


class Extractor:
    """All features of turn pairs, measured once."""

    def __init__(self, groups: Sequence[Group], kept: Kept | None = None) -> None:
        self.groups, self._kept = tuple(groups), kept
        self.features = tuple(feature for group in groups for feature in group.features)

    @property
    def signature(self) -> str:
        return "|".join(group.signature for group in self.groups)

    def __call__(self, dialogues: Sequence[Sequence[TurnPair]]) -> list[Floats]:
        """Of each dialogue a row per pair, raw."""
        parts = [self._group(group, dialogues) for group in self.groups]
        return [np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True)]

    def _group(self, group: Group, dialogues: Sequence[Sequence[TurnPair]]) -> list[Floats]:
        keys = [content_key(group.signature, pairs) for pairs in dialogues]
        known = self._kept.get(keys) if self._kept else {}
        width = len(group.features)
        values = {
            key: np.frombuffer(known[key], dtype=np.float32).reshape(-1, width)
            for key, pairs in zip(keys, dialogues, strict=True)
            # What is not of the size that was written is damaged, and measured again.
            if key in known and len(known[key]) == 4 * width * len(pairs)
        }
        new = {k: p for k, p in zip(keys, dialogues, strict=True) if k not in values}
        for chunk in _chunks(list(new.items()), CHUNK):
            measured = group.measure([pair for _, pairs in chunk for pair in pairs])
            ends = np.cumsum([len(pairs) for _, pairs in chunk])[:-1]
            made = dict(zip([key for key, _ in chunk], np.split(measured, ends), strict=True))
            values.update(made)
            if self._kept:
                self._kept.put({key: rows.tobytes() for key, rows in made.items()})
        return [values[key] for key in keys]


def content_key(signature: str, pairs: Sequence[TurnPair]) -> str:
    """Of all that decides a group's values for a dialogue."""
    digest = hashlib.sha256(signature.encode())
    talks = {id(pair.response.dialogue): pair.response.dialogue for pair in pairs if pair.response}
    for dialogue in talks.values():
        turns = [(turn.speaker, turn.role, turn.text, turn.references) for turn in dialogue.turns]
        digest.update(repr((turns, dialogue.background)).encode("utf-8", "replace"))
    for pair in pairs:
        place = pair.response.turn if pair.response else None
        one = (pair.user, pair.before, place, sorted(pair.columns.items()))
        digest.update(f"{one!r}{pair.opening}".encode("utf-8", "replace"))
    return digest.hexdigest()


def _chunks(
    items: list[tuple[str, Sequence[TurnPair]]], size: int
) -> Iterator[list[tuple[str, Sequence[TurnPair]]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


@dataclass(frozen=True, eq=False)
class Standard:
    """Z-scores with the statistics of the fitted log."""

    mean: Floats
    deviation: Floats
    fill: Floats
    """What stands for a missing value, per feature."""

    @classmethod
    def of(cls, features: Sequence[Feature], dialogues: Sequence[Floats]) -> Standard:
        """The statistics of a log's raw features."""
        rules = np.array([np.nan if f.missing is None else f.missing for f in features])
        rows = np.concatenate(dialogues).astype(np.float64)
        rows = np.where(np.isnan(rows), rules, rows)
        measured = (~np.isnan(rows)).sum(0)
        for feature, count in zip(features, measured, strict=True):
            if feature.source == COLUMNS and not count:
                raise CauserieError(
                    f"no turn has a number {feature.name!r}: leave it out of --columns, or name "
                    f"whose it is where both sides have one, as in user.{feature.name}"
                )
        total = np.maximum(measured, 1)
        mean = np.nansum(rows, 0) / total
        deviation = np.sqrt(np.nansum((rows - mean) ** 2, 0) / total)
        deviation[deviation < 1e-6] = 1.0  # a constant says nothing, and must not divide
        fill = np.where(np.isnan(rules), mean, rules)
        return cls(*(a.astype(np.float32) for a in (mean, deviation, fill)))

    def __call__(self, raw: Floats) -> Floats:
        filled = np.where(np.isnan(raw), self.fill, raw)
        z: Floats = ((filled - self.mean) / self.deviation).astype(np.float32)
        return z
