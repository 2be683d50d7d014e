"""The metric contract: what a metric says about itself, what it is given, what it returns.

A metric is a frozen dataclass whose fields are its options. It holds no network: whoever scores
(`causerie.scoring.Scorer`) hands the engines in. So two metrics with the same options are equal,
a metric can be written down, sent elsewhere and made again, and its signature can be told before
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
    """What one number of a metric is: all that tables, comparisons, gates and pages go by."""

    name: str = ""
    """The quality it measures; empty for a metric with a single number."""
    help: str = ""
    """One sentence for people."""
    better: Better | None = "higher"
    """Which end is good; None where neither is."""
    range: tuple[float | None, float | None] = (None, None)
    """The least and the most it can be, where there is such a bound."""
    sentinel: bool = False
    """Whether it is a trivial number that any serious metric has to beat."""
    calibrated: bool = False
    """Whether it comes with a percentile among human responses."""
    unit: str = ""
    limit: float | None = None
    """Of a probability that something is found: from where on it counts as found."""

    @property
    def sign(self) -> int:
        """Multiplies values so that higher is better; 1 where neither end is."""
        return -1 if self.better == "lower" else 1

    @property
    def worst(self) -> float | None:
        """The value of the worst possible response, where the range says it."""
        low, high = self.range
        return {"higher": low, "lower": high, None: None}[self.better]

    def empty_value(self, lowest: float | None, highest: float | None) -> float | None:
        """What an empty response counts as: the worst there can be or, without a bound, was seen.

        None where neither end of the column is good, or nothing was seen.
        """
        seen = {"higher": lowest, "lower": highest, None: None}[self.better]
        return seen if self.worst is None else self.worst


@dataclass(frozen=True, slots=True)
class Score:
    """One number of one metric, or the reason why there is none."""

    value: float | None
    """On the metric's own scale; None if unscored."""
    percentile: float | None = None
    """Share of human responses that score no better, 0 to 100; trained metrics have it."""
    explanation: Mapping[str, Any] | None = None
    """What led to the value, as plain JSON; given on request."""
    reason: str | None = None
    """Why there is no value."""

    @classmethod
    def of(cls, value: float, explanation: Mapping[str, Any] | None = None) -> Score:
        """A score, or an explicit "unscored" if the value is not a finite number."""
        if not math.isfinite(value):
            return cls.unscored(f"the value is {value}")
        return cls(float(value), explanation=explanation)

    @classmethod
    def unscored(cls, reason: str) -> Score:
        return cls(None, reason=reason)


Scores: TypeAlias = tuple[Score, ...]
"""One score per column of a metric, in the order of `Metric.columns`."""

EMPTY = Score.unscored("empty response")
"""What an empty response gets in every column; the scorer sees to it."""


@dataclass(frozen=True)
class Metric:
    """Turns exchanges or dialogues into scores.

    A subclass is a frozen dataclass too. It sets `name` and `summary`, and writes `score_one`,
    or `score_exchanges` where a whole batch is quicker than one exchange after the other.
    Everything else has a default. A metric with several numbers, or with one that is not "the
    higher the better", overrides `columns`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `causerie metrics`."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Any of "encoder", "token vectors" (of the encoder), "language model", "ranker" and
    "references"."""
    drawing: ClassVar[Literal["arcs", "graph"] | None] = None
    """How a page draws its explanations: `dependents` as arcs between turns, `topics` and `edges`
    as a graph; None as nested lists."""
    reads: ClassVar[str | None] = None
    """Whose turns make the score of a dialogue where nobody asks for a speaker; None stands for
    the system where it is known who that is, and for everybody where it is not."""

    def __post_init__(self) -> None:
        check_types(self)

    def for_research(self) -> Metric:
        """Itself as trained on the data of its paper, for research only, where there is such."""
        return self

    def unseen(self, judged: Collection[str]) -> Metric:
        """Itself as it is when it has learned nothing from a judged set: a bench asks this one.

        `judged` are names of the set and of the family of sets that it belongs to.
        """
        return self

    def columns(self, level: Level) -> tuple[Column, ...]:
        """What it measures at that level: one column or several."""
        return (Column(help=self.summary),)

    def score_one(self, exchange: Exchange) -> float | Mapping[str, float] | Score:
        """Score one exchange: a number, or one per column by name; `Score.unscored` if neither."""
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
        """Return one row of scores per dialogue: what `join_turns` makes of its exchanges.

        Only exchanges of `speaker` count, or of those whom the metric `reads`.
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
        """Score a dialogue by its turns' scores: by default their means.

        `empty` more responses said nothing: they count as the worst.
        """
        return mean_scores(turns, self.columns("dialogue"), empty)

    @property
    def uses(self) -> frozenset[str]:
        """The engine settings that have an effect on its numbers."""
        by_need = {"encoder": {"encoder"}, "language model": {"lm", "turn_format"}}
        return frozenset(name for need in self.needs for name in by_need.get(need, ()))

    def signature(self, engines: Engines) -> str:
        """What decides its numbers besides the input: options, contents of files, networks.

        It is told without loading a network.
        """
        parts = [self._with_options(), *self._code()]
        if "encoder" in self.needs:
            parts.append(engines.signature("encoder"))
        if "language model" in self.needs:
            parts.append(engines.signature("language model"))
        return "|".join(parts)

    def _with_options(self) -> str:
        """Its name and options, as in `bleu(order=2)`; of files what is in them."""
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
        """Options that another part of the signature speaks for."""
        return frozenset()

    def _code(self) -> list[str]:
        """The package and the code of a metric that another package defines.

        Scores are kept by signature, so a change of its code must change it.
        """
        own = [c for c in type(self).__mro__ if issubclass(c, Metric)]
        foreign = [c for c in own if c.__module__.partition(".")[0] != "causerie"]
        return sorted({version_of(c) for c in foreign})


def as_scores(
    given: float | Mapping[str, float] | Score, columns: Sequence[Column]
) -> tuple[Score, ...]:
    """What `score_one` returned, as one score per column."""
    if isinstance(given, Score):
        return (given,) * len(columns)
    if isinstance(given, Mapping):
        if missing := [c.name for c in columns if c.name not in given]:
            raise CauserieError(f"score_one gives no {missing[0]!r}, which columns names")
        return tuple(Score.of(given[column.name]) for column in columns)
    if not isinstance(given, (int, float)) or len(columns) != 1:
        names = ", ".join(repr(column.name) for column in columns)
        raise CauserieError(
            f"score_one returned {given!r}: it returns a number where there is one column, and "
            f"where there are several a number for each of them by name ({names})"
        )
    return (Score.of(given),)


def scorable(dialogue: Dialogue, speaker: str | None) -> list[Exchange]:
    """The exchanges of a dialogue that a metric is asked about: an empty response has no score."""
    return [e for e in dialogue.exchanges(speaker) if e.response.text.strip()]


def empty_responses(dialogue: Dialogue, speaker: str | None) -> int:
    """How many of the wanted responses of a dialogue are empty."""
    return sum(not e.response.text.strip() for e in dialogue.exchanges(speaker))


def mean_scores(rows: Sequence[Scores], columns: Sequence[Column], empty: int = 0) -> Scores:
    """Column means over the rows that have a value there; empty responses count as the worst."""

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
    """The package that defines a metric, with its version and a digest of all its code."""
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
    else:  # a notebook, or a line after python -c
        try:
            code = inspect.getsource(metric)
        except (OSError, TypeError):
            code = f"{id(metric)} {_PROCESS}"  # unknown: what it scores is its own
    return f"{release}@{sha256(code.encode()).hexdigest()[:12]}"


_PROCESS = os.urandom(8).hex()
"""Tells this process from others, where nothing else tells one class from another."""


def _content(path: str | Path) -> str:
    """A digest of what is in a file or, for a folder, in all its files."""
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
