"""Turn features: what is measured about each turn pair, each declared once.

A group measures some features of turn pairs together; nan says that there is nothing to
measure. Values are kept on disk by content, and z-scored with statistics of the fitted log.
"""

from __future__ import annotations

import hashlib
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causerie import metrics
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.metrics.odes import CLASSES, Odes, Utterance
from causerie.models.artifact import artifact_folder, shipped
from causerie.ratings.pairs import TurnPair
from causerie.text import words
from causerie.text.keywords import Frequencies
from causerie.text.tagging import LexiconTagger, Token

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.engines.ranker import Ranker

Floats: TypeAlias = "NDArray[np.float32]"

FAST = ("odes", "valence", "specificity", "words", "density")
"""Groups that need no language model."""
ALL = (*FAST, "relevance", "fed")
COLUMNS = "columns"
RANKED = ("width", "depth")
"""Groups that need a ranker such as DialogRPT, given as `width=MODEL`."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One number about a turn pair."""

    name: str
    source: str
    """Its group."""
    missing: float | None = None
    """What stands for it where it cannot be measured; None: its mean in the fitted log."""


class Group(ABC):
    """Features that are measured together."""

    name: str
    features: tuple[Feature, ...]

    @property
    def signature(self) -> str:
        """What decides the values besides the turns."""
        return self.name

    @abstractmethod
    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        """One row per pair, one column per feature; nan where there is nothing to measure."""


class Signals(Group):
    """ODES of the user's utterance; who says nothing gives no signal."""

    name = "odes"
    features = tuple(Feature(f"odes.{name}", "odes", missing=0.0) for name in CLASSES)

    def __init__(self, odes: Odes) -> None:
        self._odes = odes

    @property
    def signature(self) -> str:
        return self._odes.signature

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        values = np.full((len(pairs), len(CLASSES)), np.nan, dtype=np.float32)
        spoken = [index for index, pair in enumerate(pairs) if pair.user]
        utterances = [Utterance(pairs[i].user or "", pairs[i].before) for i in spoken]
        values[spoken] = self._odes.probabilities(utterances)
        return values


class Valence(Group):
    """How pleased the user's words are, -1 to 1, by the lexicon of TextBlob."""

    name = "valence"
    features = (Feature("valence", "valence"),)

    @cached_property
    def signature(self) -> str:
        return f"{self.name}({_hash('textblob', 'en', 'en-sentiment.xml')})"

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        from textblob.en import sentiment

        said = [sentiment(pair.user)[0] if pair.user else np.nan for pair in pairs]
        return np.array(said, dtype=np.float32).reshape(-1, 1)


class Specificity(Group):
    """Mean normalised IDF of the response's words: 0 for the commonest, 1 for unheard ones.

    Words are counted in the frequencies of the shipped graph, which knows nouns, verbs and
    adjectives; all other words are common.
    """

    name = "specificity"
    features = (Feature("specificity", "specificity"),)
    _FILE = ("causerie", "graphs", "everyday", "frequencies.json")

    @cached_property
    def signature(self) -> str:
        return f"{self.name}({_hash(*self._FILE)},{_hash('textblob', 'en', 'en-lexicon.txt')})"

    @cached_property
    def _frequencies(self) -> Frequencies:
        package, *path = self._FILE
        return Frequencies.read(Path(str(files(package).joinpath(*path))))

    @cached_property
    def _range(self) -> tuple[float, float]:
        commonest = max(self._frequencies.counts.values(), default=0)
        unheard = self._frequencies.idf("")
        common = Frequencies(self._frequencies.utterances, {"": commonest}).idf("")
        return common, unheard

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        texts = [pair.response.response.text if pair.response else "" for pair in pairs]
        means = [
            np.mean([self._nidf(token) for token in tokens]) if tokens else np.nan
            for tokens in LexiconTagger().tag(texts)
        ]
        return np.array(means, dtype=np.float32).reshape(-1, 1)

    def _nidf(self, token: Token) -> float:
        if token.kind is None:
            return 0.0
        common, unheard = self._range
        return (self._frequencies.idf(token.lemma) - common) / (unheard - common)


class Words(Group):
    """How much either side says, as log(1 + words)."""

    name = "words"
    features = (Feature("words.user", "words", 0.0), Feature("words.system", "words", 0.0))

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        counts = [
            (
                len(words(pair.user or "")),
                len(words(pair.response.response.text)) if pair.response else 0,
            )
            for pair in pairs
        ]
        return np.log1p(np.array(counts, dtype=np.float32)).reshape(-1, 2)


class Scored(Group):
    """Any metric of causerie on the response, such as density, relevance or fed."""

    def __init__(self, metric: Metric) -> None:
        self.name, self._metric = metric.name, metric
        self.features = tuple(Feature(name, metric.name) for name in metric.columns("turn"))

    @property
    def signature(self) -> str:
        return self._metric.signature

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        values = np.full((len(pairs), len(self.features)), np.nan, dtype=np.float32)
        answered = [(i, pair.response) for i, pair in enumerate(pairs) if pair.response]
        scores = self._metric.score_exchanges([exchange for _, exchange in answered])
        for (index, _), row in zip(answered, scores, strict=True):
            values[index] = [np.nan if score.value is None else score.value for score in row]
        return values


class Ranked(Group):
    """How many replies a response would get (width), or how long the talk would go on (depth)."""

    def __init__(self, name: str, ranker: Ranker) -> None:
        self.name, self._ranker = name, ranker
        self.features = (Feature(name, name),)

    @property
    def signature(self) -> str:
        return f"{self.name}({self._ranker.signature})"

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        values = np.full((len(pairs), 1), np.nan, dtype=np.float32)
        answered = [(i, pair.response) for i, pair in enumerate(pairs) if pair.response]
        values[[i for i, _ in answered], 0] = self._ranker.score([e for _, e in answered])
        return values


class Columns(Group):
    """Numbers that the caller gave for turns, such as the confidence of speech recognition."""

    name = COLUMNS

    def __init__(self, names: Sequence[str]) -> None:
        self.features = tuple(Feature(name, COLUMNS) for name in names)

    @property
    def signature(self) -> str:
        return f"{COLUMNS}({','.join(feature.name for feature in self.features)})"

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        rows = [[pair.columns.get(f.name, np.nan) for f in self.features] for pair in pairs]
        return np.array(rows, dtype=np.float32).reshape(len(pairs), len(self.features))


_OWN: dict[str, type[Group]] = {group.name: group for group in (Valence, Specificity, Words)}


def groups_of(
    names: Sequence[str], engines: Engines, columns: Sequence[str] = ()
) -> tuple[Group, ...]:
    """The groups of these names; any metric of causerie, or folder of an artifact, is one."""

    def group(name: str) -> Group:
        if name in _OWN:
            return _OWN[name]()
        ranked, _, model = name.partition("=")
        if ranked in RANKED:
            if not model:
                raise CauserieError(f"{ranked} needs a DialogRPT model: write {ranked}=MODEL")
            return Ranked(ranked, engines.ranker(model))
        metric = metrics.load(name, engines)
        return Signals(metric) if isinstance(metric, Odes) else Scored(metric)

    found = [group(name) for name in names]
    if not any(isinstance(one, Signals) for one in found):
        raise CauserieError(f"features {', '.join(names)}: add odes, which treatments need")
    return (*found, Columns(columns)) if columns else tuple(found)


def chosen(text: str) -> tuple[str, ...]:
    """`fast`, `all` and names of groups, separated by commas; folders by their full path."""
    known = {"fast": FAST, "all": ALL}
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(one for name in names for one in known.get(name, (_lasting(name),))))


def _lasting(name: str) -> str:
    """A name that means the same wherever a predictor is loaded."""
    ranked, equals, model = name.partition("=")
    if equals and Path(model).is_dir():
        return f"{ranked}={Path(model).resolve()}"
    if name in _OWN or name in metrics.names() or shipped(name) or not artifact_folder(name):
        return name
    return str(Path(name).resolve())


class Kept:
    """Values on disk, by what decides them: a group and the turns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        with self._open() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB)")

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that have one."""
        found = {}
        with self._open() as connection:
            for key in keys:
                row = connection.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = bytes(row[0])
        return found

    def put(self, values: dict[str, bytes]) -> None:
        with self._open() as connection:
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", values.items())

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=60)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> CauserieError:
        return CauserieError(
            f"{self._path} cannot keep what is measured ({error}): remove it, or choose another "
            "file with --kept"
        )


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
        digest.update(repr(one).encode("utf-8", "replace"))
    return digest.hexdigest()


def _hash(package: str, *path: str) -> str:
    """Of a file that comes with a package and decides values."""
    return hashlib.sha256(files(package).joinpath(*path).read_bytes()).hexdigest()


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
