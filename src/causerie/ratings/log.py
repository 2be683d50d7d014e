"""Rated logs: dialogues with a user's rating each, read, checked and on one scale, 1 to 5."""

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
"""A rating below it is low."""
LEAST_PAIRS = 3
"""The paper's limit; `ReadOptions.least_pairs` says otherwise."""


@dataclass(frozen=True, eq=False)
class RatedDialogue:
    """A dialogue that models can be fitted on; without a rating, one they can predict."""

    dialogue: Dialogue
    pairs: tuple[TurnPair, ...]
    rating: float | None
    """The rating from 1 to 5."""
    day: date | None
    bot: str | None
    user: str | None = None
    """Who talked and rated: dialogues of one user are not independent."""


@dataclass(frozen=True)
class ReadOptions:
    """What a log means, and what of it is wanted."""

    scale: tuple[float, float] | None = None
    """Lowest and highest rating; None: what each record says in `rating_scale`, or 1 to 5."""
    system: str | None = None
    """The speaker who is the system, where neither roles nor names tell."""
    least_pairs: int = LEAST_PAIRS
    without: Fields = field(default_factory=dict)
    """Records with these values in these fields are left out, as quality_control=fail."""
    rated: bool = True
    """Whether dialogues without a rating are left out."""
    field: str = "rating"
    """Where the rating is, as in `expert_rating`; a dot goes into an object."""


@dataclass(frozen=True, eq=False)
class RatedLog:
    """The dialogues of a log, and why others were left out."""

    dialogues: tuple[RatedDialogue, ...]
    skipped: Mapping[str, int]
    """Reasons, with how many dialogues each."""


def read_log(
    paths: Sequence[str | Path],
    options: ReadOptions | None = None,
    skipped: Skipped | None = None,
) -> RatedLog:
    """Every usable dialogue of some files; `CauserieError` if there is none."""
    options = options or ReadOptions()
    skipped = Skipped() if skipped is None else skipped
    found = tuple(usable(paths, options, skipped))
    return RatedLog(found, skipped.reasons)


class Skipped:
    """Why dialogues were left out; reasons that differ in numbers or quotes alone are one."""

    _VALUE = re.compile(r"""'[^']*(?:'|$)|"[^"]*(?:"|$)|-?\d[\d.e+]*""")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._others: set[str] = set()
        self.bad_records = 0
        """How many could not even be read."""

    def add(self, reason: str) -> None:
        kind = self._VALUE.sub("…", reason)
        self._counts[kind] += 1
        if self._first.setdefault(kind, reason) != reason:
            self._others.add(kind)

    @property
    def reasons(self) -> dict[str, int]:
        """The first of each kind, with how many dialogues."""
        return {
            f"{reason} (and the like)" if kind in self._others else reason: self._counts[kind]
            for kind, reason in self._first.items()
        }


def usable(
    paths: Sequence[str | Path], options: ReadOptions, skipped: Skipped
) -> Iterator[RatedDialogue]:
    """Yield them as they are read, for logs of any length; the others are counted in `skipped`."""
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
    """The dialogue as models want it; raises `CauserieError` with the reason why it cannot be."""
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
    """A rating by the name of its field, which may be inside an object; None if there is none."""
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
    """The name of a user, which some logs write as a list of one."""
    match given:
        case [one]:
            return _user(one)
        case str() | int() if str(given).strip():
            return str(given)
    return None


def group_of(one: RatedDialogue, field: str) -> str | None:
    """What dialogues are told apart by: the bot, or another field of the record."""
    found = one.bot if field == "bot" else one.dialogue.metadata.get(field)
    return None if found is None else str(found)


def day_of(dialogue: Dialogue) -> date | None:
    """The day of a dialogue; None where its date is none, or says no day, as 2017-07."""
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
    raise CauserieError(f"rating_scale is [low, high], not {given!r:.40}")


def to_scale(rating: float, scale: tuple[float, float]) -> float:
    """A rating mapped linearly from its own scale to 1..5; refused if it is outside its scale."""
    low, high = scale
    if not -math.inf < low < high < math.inf:
        raise CauserieError(f"a scale goes from low to high, not from {low:g} to {high:g}")
    if not low <= rating <= high:
        raise CauserieError(f"rating {rating:g} is outside its scale, {low:g} to {high:g}")
    return LOWEST + (HIGHEST - LOWEST) * (rating - low) / (high - low)


def is_low(rating: float) -> bool:
    return rating < LOW


def five_class(rating: float) -> int:
    """1 to 5, rounded half up: 4.5 is in class 5, 3.4 in class 3."""
    return int(min(HIGHEST, max(LOWEST, math.floor(rating + 0.5))))
