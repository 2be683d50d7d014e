"""The metric contract: what a metric declares, what it is given and what it returns.

A metric is a frozen dataclass whose fields are its options. It holds no network: the scorer
(`causerie.scoring.Scorer`) passes the engines in. Therefore two metrics with the same options are
equal, a metric can be stored, sent elsewhere and created again, and its signature is known before
any weights are opened.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.options import changed, check_types, is_file

if TYPE_CHECKING:
    from causerie.engines import Engines

Level: TypeAlias = Literal["turn", "dialogue"]
Better: TypeAlias = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Column:
    """Describes one number of a metric for tables, comparisons, gates and pages."""

    name: str = ""
    """The quality that it measures; empty for a metric with a single number."""
    help: str = ""
    """One-sentence description for users."""
    better: Better | None = "higher"
    """Which direction is better; None if neither is."""
    range: tuple[float | None, float | None] = (None, None)
    """Lower and upper bound; None where there is no bound."""
    sentinel: bool = False
    """Whether it is a trivial baseline that every serious metric has to beat."""
    calibrated: bool = False
    """Whether it comes with a percentile among human responses."""
    unit: str = ""
    limit: float | None = None
    """Decision threshold, if the number is the probability that something is found."""

    @property
    def sign(self) -> int:
        """Factor that makes higher values better; 1 if neither direction is."""
        return -1 if self.better == "lower" else 1

    @property
    def worst(self) -> float | None:
        """Value of the worst possible response; None if the range has no such bound."""
        low, high = self.range
        return {"higher": low, "lower": high, None: None}[self.better]

    def empty_value(self, lowest: float | None, highest: float | None) -> float | None:
        """Return the value of an empty response: the worst possible or, without a bound, observed.

        Return None if neither direction is better, or nothing was observed.
        """
        seen = {"higher": lowest, "lower": highest, None: None}[self.better]
        return seen if self.worst is None else self.worst


@dataclass(frozen=True, slots=True)
class Score:
    """One number of a metric, or the reason why there is none."""

    value: float | None
    """Value on the metric's own scale; None if unscored."""
    percentile: float | None = None
    """Percentage of human responses that score no better (0 to 100), for trained metrics."""
    explanation: Mapping[str, Any] | None = None
    """What led to the value, as plain JSON; only on request."""
    reason: str | None = None
    """Reason why there is no value."""

    @classmethod
    def of(cls, value: float, explanation: Mapping[str, Any] | None = None) -> Score:
        """Return a score, or an explicit "unscored" if the value is not finite."""
        if not math.isfinite(value):
            return cls.unscored(f"the value is {value}")
        return cls(float(value), explanation=explanation)

    @classmethod
    def unscored(cls, reason: str) -> Score:
        return cls(None, reason=reason)


Scores: TypeAlias = tuple[Score, ...]
"""One score per column of a metric, in the order of `Metric.columns`."""

EMPTY = Score.unscored("empty response")
"""Score of an empty response in every column, set by the scorer."""


@dataclass(frozen=True)
class Metric:
    """Turns exchanges or dialogues into scores.

    A subclass is a frozen dataclass, too. It sets `name` and `summary`, and implements
    `score_one`, or `score_exchanges` if a batch is faster than one exchange at a time. Everything
    else has a default. A metric with several numbers, or with one for which higher is not better,
    overrides `columns`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One-line description for `causerie metrics`."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Requirements: any of "encoder", "token vectors" (of the encoder), "language model", "ranker"
    and "references"."""
    drawing: ClassVar[Literal["arcs", "graph"] | None] = None
    """How a page draws its explanations: `dependents` as arcs between turns, `topics` and `edges`
    as a graph; None as nested lists."""
    reads: ClassVar[str | None] = None
    """Speaker whose turns make up the score of a dialogue unless another is requested; None for
    the system where it is known, and for all speakers otherwise."""

    def __post_init__(self) -> None:
        check_types(self)

    def for_research(self) -> Metric:
        """Return the variant trained on its paper's data, for research only, or itself."""
        return self

    def unseen(self, judged: Collection[str]) -> Metric:
        """Return the variant that has learned nothing from a judged set, for benchmarks.

        `judged` has the names of the set and of the family of sets that it belongs to.
        """
        return self

    def columns(self, level: Level) -> tuple[Column, ...]:
        """Return the columns that it measures at a level."""
        return (Column(help=self.summary),)

    def score_one(self, exchange: Exchange) -> float | Mapping[str, float] | Score:
        """Score one exchange: return a number, numbers by column name, or `Score.unscored`."""
        raise CauserieError(f"metric {self.name!r} has neither score_one nor score_exchanges")

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        """Return one row of scores per exchange, in input order.

        A score may not depend on what else is in the batch. Responses are never empty.
        """
        columns = self.columns("turn")
        return [as_scores(self.score_one(exchange), columns) for exchange in exchanges]

    def score_dialogues(
        self,
        dialogues: Sequence[Dialogue],
        engines: Engines,
        *,
        speaker: str | None = None,
        explain: bool = False,
    ) -> list[Scores]:
        """Return one row of scores per dialogue, joined by `join_turns` from its exchanges.

        Only the exchanges of `speaker` count; by default, of those whom the metric `reads`.
        """
        speaker = speaker or self.reads
        groups = [scorable(dialogue, speaker) for dialogue in dialogues]
        rows = iter(self.score_exchanges([e for group in groups for e in group], engines))
        return [
            self.join_turns(
                [next(rows) for _ in group], empty_responses(dialogue, speaker), engines
            )
            for dialogue, group in zip(dialogues, groups, strict=True)
        ]

    def join_turns(self, turns: Sequence[Scores], empty: int, engines: Engines) -> Scores:
        """Join the scores of turns into the score of a dialogue, by default the mean.

        `empty` is the number of empty responses, which count as the worst.
        """
        return mean_scores(turns, self.columns("dialogue"), empty)

    @property
    def uses(self) -> frozenset[str]:
        """Names of the engine settings that affect its numbers."""
        by_need = {"encoder": {"encoder"}, "language model": {"lm", "turn_format"}}
        return frozenset(name for need in self.needs for name in by_need.get(need, ()))

    def signature(self, engines: Engines) -> str:
        """Return all that determines its numbers besides the input: options, files, networks.

        No network is loaded for this.
        """
        parts = [self._with_options(), *self._code()]
        if "encoder" in self.needs:
            parts.append(engines.signature("encoder"))
        if "language model" in self.needs:
            parts.append(engines.signature("language model"))
        return "|".join(parts)

    def _with_options(self) -> str:
        """Return name and options, as in `bleu(order=2)`; files by their contents."""
        files = {one.name for one in fields(self) if is_file(one)}
        said = {
            key: _content(value) if key in files else value
            for key, value in changed(self).items()
            if key not in self._told_elsewhere
        }
        options = ",".join(f"{key}={value}" for key, value in sorted(said.items()))
        return f"{self.name}({options})" if options else self.name

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        """Options that another part of the signature covers."""
        return frozenset()

    def _code(self) -> list[str]:
        """Return package and code digest of a metric that another package defines.

        Scores are stored by signature, so a change of the code must change the signature.
        """
        own = [c for c in type(self).__mro__ if issubclass(c, Metric)]
        foreign = [c for c in own if c.__module__.partition(".")[0] != "causerie"]
        return sorted({version_of(c) for c in foreign})


def as_scores(
    given: float | Mapping[str, float] | Score, columns: Sequence[Column]
) -> tuple[Score, ...]:
    """Convert what `score_one` returned to one score per column."""
    if isinstance(given, Score):
        return (given,) * len(columns)
    if isinstance(given, Mapping):
        if missing := [c.name for c in columns if c.name not in given]:
            raise CauserieError(f"score_one returned no {missing[0]!r}, which columns declares")
        return tuple(Score.of(given[column.name]) for column in columns)
    if not isinstance(given, (int, float)) or len(columns) != 1:
        names = ", ".join(repr(column.name) for column in columns)
        raise CauserieError(
            f"score_one returned {given!r}: return a number if there is one column, and a number "
            f"for each by name if there are several ({names})"
        )
    return (Score.of(given),)


def scorable(dialogue: Dialogue, speaker: str | None) -> list[Exchange]:
    """Return the exchanges of a dialogue that can be scored: those with a non-empty response."""
    return [e for e in dialogue.exchanges(speaker) if e.response.text.strip()]


def empty_responses(dialogue: Dialogue, speaker: str | None) -> int:
    """Return the number of empty responses of a speaker in a dialogue."""
    return sum(not e.response.text.strip() for e in dialogue.exchanges(speaker))


def mean_scores(rows: Sequence[Scores], columns: Sequence[Column], empty: int = 0) -> Scores:
    """Return column means over the rows with a value; empty responses count as the worst."""

    def mean(place: int, column: Column) -> Score:
        values = [v for row in rows if (v := row[place].value) is not None]
        if values:
            if (worst := column.empty_value(min(values), max(values))) is not None:
                values += [worst] * empty
            return Score.of(math.fsum(values) / len(values))
        reasons = [r for row in rows if (r := row[place].reason)]
        if empty and not reasons:
            return EMPTY
        return Score.unscored(reasons[0] if reasons else "no exchange to score")

    return tuple(mean(place, column) for place, column in enumerate(columns))


def version_of(metric: type) -> str:
    """Return the package that defines a metric, its version and a digest of its code."""
    import inspect
    import sys
    from importlib.metadata import packages_distributions, version

    package = metric.__module__.partition(".")[0]
    found = packages_distributions().get(package, [])
    release = f"{found[0]} {version(found[0])}" if found else package
    whole = getattr(sys.modules.get(package), "__file__", None)
    file = getattr(sys.modules.get(metric.__module__), "__file__", None)
    if whole and Path(whole).name == "__init__.py":
        code = "".join(map(_content, sorted(Path(whole).parent.rglob("*.py"))))
    elif file:
        code = _content(file)
    else:  # defined in a notebook or by python -c
        try:
            code = inspect.getsource(metric)
        except (OSError, TypeError):
            code = f"{id(metric)} {_PROCESS}"  # code unknown: unique to this process
    return f"{release}@{sha256(code.encode()).hexdigest()[:12]}"


_PROCESS = os.urandom(8).hex()
"""Identifies this process, for classes whose code cannot be read."""


def _content(path: str | Path) -> str:
    """Return a digest of the contents of a file, or of all files in a folder."""
    place = Path(path)
    files = sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
    digest = sha256()
    for file in files:
        try:
            digest.update(f"{file.relative_to(place) if file != place else ''}".encode())
            digest.update(file.read_bytes())
        except OSError as error:
            raise CauserieError(f"{file} cannot be read: {error.strerror}") from error
    return digest.hexdigest()[:12]
