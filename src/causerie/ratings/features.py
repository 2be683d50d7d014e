"""Turn features: the numbers measured for each turn pair, from which ratings are predicted.

Some are scores of metrics, computed and cached by a `Scorer`; odes reads the user's turn, every
other metric the response. The others (`Group`) are computed here, are cheap and not cached.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from causerie import metrics
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.metrics.odes import CLASSES, Odes
from causerie.metrics.ranker import Ranker
from causerie.models.artifact import artifact_folder, shipped
from causerie.progress import Progress, Watch, ignore
from causerie.ratings.pairs import TurnPair
from causerie.scoring.plan import Plan, metrics_by_alias
from causerie.scoring.scorer import Batch, Scorer
from causerie.text import words
from causerie.text.keywords import Frequencies
from causerie.text.tagging import LexiconTagger, Token

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.log import RatedDialogue
    from causerie.scoring.store import ScoreStore

Floats: TypeAlias = "NDArray[np.float32]"
Side: TypeAlias = Literal["said", "response"]

FAST = ("odes", "valence", "specificity", "words", "density")
"""Groups of features that need no language model."""
ALL = (*FAST, "relevance", "fed")
COLUMNS = "columns"
RANKED = ("width", "depth")
"""Names for rankers such as DialogRPT, as in `width=MODEL`."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of a turn pair."""

    name: str
    source: str
    """The metric or group that it belongs to."""
    missing: float | None = None
    """Replacement where it cannot be measured; None for its mean in the fitted log."""


class Group(ABC):
    """Features that are computed together, without a network."""

    name: str
    features: tuple[Feature, ...]
    version: ClassVar[int] = 1
    """Version of the code; raise it whenever values change."""

    @property
    def signature(self) -> str:
        """All that determines the values besides the turns."""
        return f"{self.name}/{self.version}"

    @abstractmethod
    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        """Return a row per pair and a column per feature; NaN where nothing can be measured."""


class Valence(Group):
    """Sentiment of the user's words from -1 to 1, by TextBlob's lexicon."""

    name = "valence"
    features = (Feature("valence", "valence"),)

    @cached_property
    def signature(self) -> str:
        return f"{super().signature}({_hash('textblob', 'en', 'en-sentiment.xml')})"

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        from textblob.en import sentiment

        said = [sentiment(pair.user)[0] if pair.user else np.nan for pair in pairs]
        return np.array(said, dtype=np.float32).reshape(-1, 1)


class Specificity(Group):
    """Mean normalised IDF of the response's words: 0 for the most common, 1 for unseen words.

    Frequencies are those of the shipped graph, which has nouns, verbs and adjectives; all other
    words count as common.
    """

    name = "specificity"
    features = (Feature("specificity", "specificity"),)
    _FILE = ("causerie", "graphs", "everyday", "frequencies.json")

    @cached_property
    def signature(self) -> str:
        read = f"{_hash(*self._FILE)},{_hash('textblob', 'en', 'en-lexicon.txt')}"
        return f"{super().signature}({read})"

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
    """Length of either side's turn, as log(1 + words)."""

    name = "words"
    features = (Feature("words.user", "words", 0.0), Feature("words.system", "words", 0.0))

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        counts = [(len(words(pair.user or "")), len(words(pair.answer))) for pair in pairs]
        return np.log1p(np.array(counts, dtype=np.float32)).reshape(-1, 2)


class Columns(Group):
    """Numbers given with the turns, such as the confidence of speech recognition."""

    name = COLUMNS

    def __init__(self, names: Sequence[str]) -> None:
        self.features = tuple(Feature(name, COLUMNS) for name in names)

    @property
    def signature(self) -> str:
        return f"{super().signature}({','.join(feature.name for feature in self.features)})"

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        rows = [[pair.columns.get(f.name, np.nan) for f in self.features] for pair in pairs]
        return np.array(rows, dtype=np.float32).reshape(len(pairs), len(self.features))


@dataclass(frozen=True)
class Scored:
    """The scores of a metric for the response or, for odes, for the user's turn."""

    name: str
    """Name of the group as the caller wrote it."""
    alias: str
    metric: Metric

    @property
    def side(self) -> Side:
        return "said" if isinstance(self.metric, Odes) else "response"

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """One feature per column; a missing turn gives no signal."""
        missing = 0.0 if isinstance(self.metric, Odes) else None
        columns = Plan({self.alias: self.metric}).columns
        return tuple(Feature(column, self.metric.name, missing) for column in columns)


_OWN: dict[str, type[Group]] = {group.name: group for group in (Valence, Specificity, Words)}


def groups_of(names: Sequence[str], columns: Sequence[str] = ()) -> list[Group | Scored]:
    """Return the groups of these names; any metric or folder of an artifact is a group."""
    found: list[Group | Scored] = []
    for name in names:
        if name in _OWN:
            found.append(_OWN[name]())
        else:
            found += [Scored(name, alias, metric) for alias, metric in _metrics(name).items()]
    return [*found, Columns(columns)] if columns else found


def _metrics(name: str) -> dict[str, Metric]:
    alias, _, model = name.partition("=")
    if alias not in RANKED or model.partition(":")[0] in metrics.names():
        return metrics_by_alias(name, {})
    if not model:
        raise CauserieError(f"{alias} needs a DialogRPT model: write {alias}=MODEL")
    return {alias: Ranker(model)}


def parse_feature_names(text: str) -> tuple[str, ...]:
    """Parse `fast`, `all` and names of groups, separated by commas; make folders absolute."""
    known = {"fast": FAST, "all": ALL}
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(one for name in names for one in known.get(name, (_lasting(name),))))


def _lasting(name: str) -> str:
    """Return a name that is valid wherever a predictor is loaded."""
    alias, equals, named = name.rpartition("=") if ":" not in name else ("", "", name)
    if equals and alias in RANKED and Path(named).is_dir():
        return f"{alias}={Path(named).resolve()}"
    if named in _OWN or named in metrics.names() or shipped(named) or not artifact_folder(named):
        return name
    return f"{alias}{equals}{Path(named).resolve()}"


class Extractor:
    """Computes all features of turn pairs; scores come from a store if it has them."""

    def __init__(
        self,
        groups: Sequence[Group | Scored],
        engines: Engines | None = None,
        store: ScoreStore | None = None,
        *,
        refresh: bool = False,
    ) -> None:
        self.groups, self.engines = tuple(groups), engines or Engines()
        self.features = tuple(feature for group in groups for feature in group.features)
        names = [feature.name for feature in self.features]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise CauserieError(
                f"two groups have a feature {twice[0]}: rename one with ALIAS=METRIC"
            )
        if not {f"odes.{name}" for name in CLASSES} <= set(names):
            written = ", ".join(group.name for group in groups)
            raise CauserieError(f"features {written} lack odes, which treatments need: add it")
        self._odes = [names.index(f"odes.{name}") for name in CLASSES]
        scored = [one for one in groups if isinstance(one, Scored)]
        sides = dict.fromkeys(one.side for one in scored)
        self.scorers = {
            side: Scorer(
                Plan(
                    {one.alias: one.metric for one in scored if one.side == side},
                    self.engines.settings,
                    speaker="all",
                ),
                store,
                engines=self.engines,
                refresh=refresh,
            )
            for side in sides
        }
        plans = [scorer.plan for scorer in self.scorers.values()]
        self.metrics = {alias: one for plan in plans for alias, one in plan.metrics.items()}

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        engines: Engines | None = None,
        store: ScoreStore | None = None,
        *,
        columns: Sequence[str] = (),
        refresh: bool = False,
    ) -> Extractor:
        """Return the extractor of groups by their names, and of the caller's columns."""
        return cls(groups_of(names, columns), engines, store, refresh=refresh)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups as they were named, without the caller's columns."""
        return tuple(dict.fromkeys(g.name for g in self.groups if not isinstance(g, Columns)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The caller's columns."""
        return tuple(feature.name for feature in self.features if feature.source == COLUMNS)

    @cached_property
    def signature(self) -> str:
        """All that determines the values besides the turns and the precision of networks."""
        usual = Settings()
        settings = replace(self.engines.settings, dtype=usual.dtype, backend=usual.backend)
        engines = self.engines if settings == self.engines.settings else Engines(settings)
        return "|".join(
            self.metrics[one.alias].signature(engines) if isinstance(one, Scored) else one.signature
            for one in self.groups
        )

    @property
    def covariates(self) -> list[int]:
        """Indices of the features that are not signals."""
        return [i for i, f in enumerate(self.features) if f.source != Odes.name]

    def signals(self, raw: Floats) -> Floats:
        """Return the columns of odes."""
        return raw[:, self._odes]

    def __call__(
        self, dialogues: Sequence[Sequence[TurnPair]], watch: Watch = ignore
    ) -> list[Floats]:
        """Return the raw features of each dialogue, a row per pair."""
        pairs = [pair for dialogue in dialogues for pair in dialogue]
        scores = {
            column: values
            for side in self.scorers
            for column, values in self._scores(side, pairs, watch).items()
        }
        parts = [
            np.stack([scores[feature.name] for feature in group.features], axis=1)
            if isinstance(group, Scored)
            else group.measure(pairs)
            for group in self.groups
        ]
        whole = np.concatenate(parts, axis=1)
        ends = np.cumsum([len(dialogue) for dialogue in dialogues])
        return np.split(whole, ends)[:-1]

    def _scores(self, side: Side, pairs: Sequence[TurnPair], watch: Watch) -> dict[str, Floats]:
        """Return one value per pair for each column, NaN where that side says nothing."""
        scorer = self.scorers[side]
        present = [(i, one) for i, pair in enumerate(pairs) if (one := getattr(pair, side))]
        batches, done = [], 0
        for batch in scorer.batches(one for _, one in present):
            batches.append(batch)
            done += len(batch)
            task = f"measuring {', '.join(scorer.plan.metrics)}"
            watch(Progress(task, done, len(present), "turns"))
        joined = Batch.joined(scorer.plan, batches)
        found = {}
        for column in scorer.plan.columns:
            found[column] = np.full(len(pairs), np.nan, dtype=np.float32)
            found[column][[i for i, _ in present]] = joined.values(column)
        return found

    def measured(self, dialogues: Sequence[RatedDialogue], watch: Watch = ignore) -> MeasuredLog:
        """Return rated dialogues with their features, computed once for all uses."""
        return MeasuredLog(
            tuple(dialogues), tuple(self([one.pairs for one in dialogues], watch)), self
        )


@dataclass(frozen=True, eq=False)
class MeasuredLog:
    """Rated dialogues with the raw features of each, a row per pair."""

    dialogues: tuple[RatedDialogue, ...]
    raw: tuple[Floats, ...]
    extractor: Extractor

    @property
    def ratings(self) -> NDArray[np.float64]:
        """The users' ratings, NaN where a dialogue has none."""
        given = [np.nan if one.rating is None else one.rating for one in self.dialogues]
        return np.array(given, dtype=np.float64)


def _hash(package: str, *path: str) -> str:
    """Return the digest of a package's data file that determines values."""
    return hashlib.sha256(files(package).joinpath(*path).read_bytes()).hexdigest()
