"""Reading rated logs: dialogues with one user rating each, checked and mapped to 1 to 5."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from causerie.dialogue import Dialogue, Exchange, Fields, named_value
from causerie.errors import CauserieError
from causerie.io import Rejected, read
from causerie.ratings.pairs import TurnPair, turn_pairs

LOWEST, HIGHEST = 1.0, 5.0
LOW = 3.0
"""Ratings below this are low."""
LEAST_PAIRS = 3
"""Default minimum number of turn pairs, as in the paper."""


@dataclass(frozen=True, eq=False)
class RatedDialogue:
    """A dialogue to fit models on or, without a rating, to predict."""

    dialogue: Dialogue
    pairs: tuple[TurnPair, ...]
    rating: float | None
    """The rating from 1 to 5."""
    day: date | None
    bot: str | None
    user: str | None = None
    """The user who talked and rated; dialogues of one user are not independent."""


@dataclass(frozen=True)
class ReadOptions:
    """How to interpret a log, and which of its dialogues to use."""

    scale: tuple[float, float] | None = None
    """Lowest and highest rating; None for each record's `rating_scale`, or else 1 to 5."""
    system: str | None = None
    """Name of the speaker who is the system, if neither roles nor names tell."""
    least_pairs: int = LEAST_PAIRS
    without: Fields = field(default_factory=dict)
    """Values of fields, such as quality_control=fail; records that have them are left out."""
    rated: bool = True
    """Whether dialogues without a rating are left out."""
    field: str = "rating"
    """Field of the rating, such as `expert_rating`; dots lead into nested objects."""


@dataclass(frozen=True, eq=False)
class RatedLog:
    """The usable dialogues of a log, and why others were left out."""

    dialogues: tuple[RatedDialogue, ...]
    skipped: Mapping[str, int]
    """Number of dialogues left out, by reason."""


def read_log(
    paths: Sequence[str | Path],
    options: ReadOptions | None = None,
    skipped: Skipped | None = None,
) -> RatedLog:
    """Read every usable dialogue of some files; raise `CauserieError` if there is none."""
    options = options or ReadOptions()
    skipped = Skipped() if skipped is None else skipped
    found = tuple(usable(paths, options, skipped))
    return RatedLog(found, skipped.reasons)


class Skipped:
    """Counts why dialogues were left out; reasons that differ only in numbers or quotes are one."""

    _VALUE = re.compile(r"""'[^']*(?:'|$)|"[^"]*(?:"|$)|-?\d[\d.e+]*""")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._others: set[str] = set()
        self.bad_records = 0
        """Number of records that could not be read."""

    def add(self, reason: str) -> None:
        kind = self._VALUE.sub("…", reason)
        self._counts[kind] += 1
        if self._first.setdefault(kind, reason) != reason:
            self._others.add(kind)

    @property
    def reasons(self) -> dict[str, int]:
        """The first reason of each kind, with the number of dialogues."""
        return {
            f"{reason} (and the like)" if kind in self._others else reason: self._counts[kind]
            for kind, reason in self._first.items()
        }


def usable(
    paths: Sequence[str | Path], options: ReadOptions, skipped: Skipped
) -> Iterator[RatedDialogue]:
    """Yield usable dialogues as they are read; the others are counted in `skipped`."""
    found = False
    for path in paths:
        for record in read(path):
            if isinstance(record, Rejected):
                skipped.add(f"bad record: {record.reason}")
                skipped.bad_records += 1
                continue
            dialogue = record.dialogue if isinstance(record, Exchange) else record
            try:
                one = rated(dialogue, options)
            except CauserieError as why:
                skipped.add(str(why))
                continue
            found = True
            yield one
    if not found:
        reasons = skipped.reasons
        commonest = max(reasons, key=lambda why: reasons[why], default="the files are empty")
        raise CauserieError(f"no dialogue can be used: {commonest}")


def rated(dialogue: Dialogue, options: ReadOptions) -> RatedDialogue:
    """Return the dialogue as models need it; raise `CauserieError` if it cannot be used."""
    if value := named_value(dialogue, options.without):
        raise CauserieError(f"has {value}")
    given = rating_in(dialogue, options.field)
    if given is None and options.rated:
        raise CauserieError(f"has no {options.field}")
    rating = None if given is None else to_scale(given, _scale(dialogue, options))
    pairs = turn_pairs(dialogue, options.system)
    if not any(pair.user for pair in pairs):
        raise CauserieError("has no turn of the user")
    if not any(pair.response for pair in pairs):
        raise CauserieError("has no turn of the system")
    complete = sum(bool(pair.user and pair.response) for pair in pairs)
    if max(1, complete) < options.least_pairs:
        raise CauserieError(f"has fewer than {options.least_pairs} turn pairs")
    bot = dialogue.system or dialogue.metadata.get("bot")
    return RatedDialogue(
        dialogue,
        pairs,
        rating,
        day_of(dialogue),
        None if bot is None else str(bot),
        _user(dialogue.metadata.get("user")),
    )


def rating_in(dialogue: Dialogue, field: str) -> float | None:
    """Return the rating in a field, which may be nested; None if there is none."""
    if field == "rating":
        return dialogue.rating
    found: object = dialogue.metadata
    for name in field.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise CauserieError(f"{field} must be a number, not {type(found).__name__}")
    return float(found)


def _user(given: object) -> str | None:
    """Return the name of a user, which some logs write as a list of one."""
    match given:
        case [one]:
            return _user(one)
        case str() | int() if str(given).strip():
            return str(given)
    return None


def group_of(one: RatedDialogue, field: str) -> str | None:
    """Return the group of a dialogue: its bot, or the value of another field."""
    found = one.bot if field == "bot" else one.dialogue.metadata.get(field)
    return None if found is None else str(found)


def day_of(dialogue: Dialogue) -> date | None:
    """Return the day of a dialogue; None if its date is missing or has no day, such as 2017-07."""
    try:
        return date.fromisoformat((dialogue.date or "")[:10])
    except ValueError:
        return None


def _scale(dialogue: Dialogue, options: ReadOptions) -> tuple[float, float]:
    if options.scale:
        return options.scale
    given = dialogue.metadata.get("rating_scale") or [1, 5]
    match given:
        case [int() | float() as low, int() | float() as high]:
            return float(low), float(high)
    raise CauserieError(f"rating_scale must be [low, high], not {given!r:.40}")


def to_scale(rating: float, scale: tuple[float, float]) -> float:
    """Map a rating linearly from its own scale to 1..5; refuse one outside its scale."""
    low, high = scale
    if not -math.inf < low < high < math.inf:
        raise CauserieError(f"a scale must go from low to high, not from {low:g} to {high:g}")
    if not low <= rating <= high:
        raise CauserieError(f"rating {rating:g} is outside its scale, {low:g} to {high:g}")
    return LOWEST + (HIGHEST - LOWEST) * (rating - low) / (high - low)


def is_low(rating: float) -> bool:
    return rating < LOW


def five_class(rating: float) -> int:
    """Return the class from 1 to 5, rounded half up: 4.5 is in class 5, 3.4 in class 3."""
    return int(min(HIGHEST, max(LOWEST, math.floor(rating + 0.5))))
