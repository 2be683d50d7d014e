"""Turn features: what is measured about each turn pair, each declared once.

A group measures some features of turn pairs together; nan says that there is nothing to
measure. Values are kept on disk by content, and z-scored with statistics of the fitted log.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
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
        texts = [pair.answer for pair in pairs]
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
                len(words(pair.answer)),
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


def _hash(package: str, *path: str) -> str:
    """Of a file that comes with a package and decides values."""
    return hashlib.sha256(files(package).joinpath(*path).read_bytes()).hexdigest()
