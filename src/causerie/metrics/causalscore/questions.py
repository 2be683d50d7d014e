"""Questions to the classifiers, and the examples for their training and evaluation.

An item is one exchange with a window of the utterances before its response. Classifiers see
texts. The distance of an utterance from the response is kept for baselines and sampling; it is
an input only of C_cond, and only if trained so (`distance`).
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.io import Annotation
from causerie.training.corpus import AnnotatedCorpus, Corpus, sample

REPEATED = 3
"""Maximum number of times that a non-cause occurs in an epoch, with other given utterances."""
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Question:
    """Does the response depend on the utterance, given another one or nothing?"""

    utterance: str
    response: str
    given: str | None = None
    distances: tuple[int, int] | None = None
    """Distances of the utterance and of the given one from the response, in turns."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The two or three texts, the response last."""
        given = () if self.given is None else (self.given,)
        return (self.utterance, *given, self.response)


@dataclass(frozen=True, slots=True)
class Item:
    """A response and the window of utterances before it that is searched for causes."""

    utterances: tuple[str, ...]
    """Utterances of the window, oldest first."""
    response: str
    causes: frozenset[int]
    """Indices of the utterances that are causes."""
    conversation: tuple[str, ...]
    source: int
    """Number of the file that it comes from."""

    def distance(self, utterance: int) -> int:
        """Return the distance from the response in turns; 1 for the preceding utterance."""
        return len(self.utterances) - utterance

    @property
    def non_causes(self) -> list[int]:
        return [i for i in range(len(self.utterances)) if i not in self.causes]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its answer and the distance of its utterance."""

    question: Question
    label: bool
    distance: int
    conversation: tuple[str, ...]
    weight: float = 1.0
    """Weight of its loss."""


def items_of(corpus: AnnotatedCorpus, history: int | None, first_source: int = 0) -> list[Item]:
    """Return the items of a corpus; causes outside the window are left out."""
    items = []
    for source, found in enumerate(corpus.sources, start=first_source):
        for one in found:
            window = window_of(one.exchange, history)
            first = one.exchange.turn - len(window)
            causes = frozenset(turn - first for turn in one.causes if turn >= first)
            response = one.exchange.response.text
            items.append(Item(window, response, causes, one.conversation, source))
    return items


def unlabelled(corpus: Corpus, dialogues: int | None, exchanges: int, seed: int) -> AnnotatedCorpus:
    """Draw some exchanges of some dialogues; their only known cause is the preceding utterance.

    The first response of a dialogue is left out, because it has no second utterance to be given.
    """
    sources = []
    for source, found in enumerate(corpus.sources):
        drawn = []
        for number, dialogue in enumerate(sample(found, dialogues, seed)):
            rng = random.Random(f"{seed}/{source}/{number}")
            later = dialogue.exchanges()[1:]
            for exchange in rng.sample(later, min(exchanges, len(later))):
                drawn.append(Annotation(exchange, frozenset({exchange.turn - 1})))
        sources.append(tuple(drawn))
    return AnnotatedCorpus(tuple(sources))


def window_of(exchange: Exchange, history: int | None) -> tuple[str, ...]:
    """Return the texts of the last `history` turns before a response, of all if None."""
    return tuple(turn.text for turn in exchange.last(history or exchange.turn))


class NegativeSampler:
    """Draws negatives from other conversations of the same file.

    Responses are drawn from responses only: if drawn from all utterances, they could be told from
    true ones by the speaker and the stage of the conversation.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._responses: dict[int, list[tuple[Item, str]]] = {}
        self._utterances: dict[int, list[tuple[Item, str]]] = {}
        for item in items:
            self._responses.setdefault(item.source, []).append((item, item.response))
            said = self._utterances.setdefault(item.source, [])
            said += [(item, text) for text in item.utterances]
        for source, said in self._responses.items():
            if len({item.conversation for item, _ in said}) < 2:
                raise CauserieError(
                    f"file {source + 1} has a single conversation: negatives need another one"
                )

    def response(self, item: Item, rng: random.Random) -> str:
        """Draw a response of another conversation with a different text."""
        return self._draw(self._responses[item.source], item, rng)

    def utterance(self, item: Item, rng: random.Random) -> str:
        return self._draw(self._utterances[item.source], item, rng)

    def _draw(self, said: Sequence[tuple[Item, str]], item: Item, rng: random.Random) -> str:
        for _ in range(_TRIES):
            other, text = rng.choice(said)
            if other.conversation != item.conversation and text != item.response:
                return text
        raise CauserieError("the conversations of a file are nearly identical: give others")


class TrainingSet(ABC):
    """Examples by epoch: the positives, with negatives drawn anew in each."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of examples per epoch."""

    def epoch(self, number: int) -> list[Example]:
        rng = random.Random(f"{self._seed}/{number}")
        examples = self.draw(rng)
        rng.shuffle(examples)
        return examples

    @abstractmethod
    def draw(self, rng: random.Random) -> list[Example]: ...


class Pairs(TrainingSet):
    """Training set of C_uncond: a cause or the preceding utterance, against `others` negatives.

    Negatives are responses of other conversations and, if `said`, the utterance itself, because
    nobody answers by repeating.
    """

    def __init__(
        self, items: Sequence[Item], seed: int, others: int = 1, *, said: bool = False
    ) -> None:
        super().__init__(seed)
        self._items, self._others, self._count = items, NegativeSampler(items), others
        self._said = said

    def __len__(self) -> int:
        each = 1 + self._count + self._said
        return sum(each * len(_dependent_by_label(item)) for item in self._items)

    def draw(self, rng: random.Random) -> list[Example]:
        examples = []
        for item in self._items:
            for index in _dependent_by_label(item):
                said = item.utterances[index]
                where = item.distance(index), item.conversation
                examples.append(Example(Question(said, item.response), True, *where))
                false = [self._others.response(item, rng) for _ in range(self._count)]
                false += [said] if self._said else []
                examples += [Example(Question(said, other), False, *where) for other in false]
        return examples


class Triples(TrainingSet):
    """Training set of C_cond: a cause given a dependent, against a non-cause in its place.

    `dependents` has the utterances of each item that C_uncond finds dependent; `pseudo` has
    examples of self-training, which are part of every epoch. Negatives are drawn from the history
    of each cause. If `matched`, every utterance occurs once with an overlap weight: the share of
    the opposite label among the utterances of its file at its distance. Causes and non-causes
    then weigh the same at every distance, so that distance does not predict the label.
    """

    def __init__(
        self,
        items: Sequence[Item],
        dependents: Sequence[Sequence[int]],
        seed: int,
        *,
        matched: bool = False,
        pseudo: Sequence[Example] = (),
    ) -> None:
        super().__init__(seed)
        self.pseudo, self._matched = tuple(pseudo), matched
        self._items = [
            (item, found)
            for item, found in zip(items, dependents, strict=True)
            if len(item.utterances) > 1 and (matched or (item.causes and item.non_causes))
        ]
        self._weights = _overlap([item for item, _ in self._items]) if matched else {}
        if not (self._weights if matched else self._items):
            raise CauserieError(
                "the annotations have no causes, or only causes, within `history` turns: "
                "the conditional classifier needs both causes and others"
            )

    def __len__(self) -> int:
        return sum(len(self._drawn(item, None)) for item, _ in self._items) + len(self.pseudo)

    def draw(self, rng: random.Random) -> list[Example]:
        examples = list(self.pseudo)
        for item, found in self._items:
            for utterance in self._drawn(item, rng):
                label = utterance in item.causes
                weight = self._weights.get((item.source, item.distance(utterance), label), 1.0)
                one = triple(item, utterance, found, label, rng)
                examples.append(replace(one, weight=weight))
        return examples

    def _drawn(self, item: Item, rng: random.Random | None) -> list[int]:
        """Return the utterances of an item that an epoch includes."""
        if self._matched:
            weighted = self._weights
            return [
                i
                for i in range(len(item.utterances))
                if (item.source, item.distance(i), i in item.causes) in weighted
            ]
        causes, non_causes = sorted(item.causes), item.non_causes
        if rng:
            rng.shuffle(non_causes)
        return causes + (REPEATED * non_causes)[: len(causes)]


def _overlap(items: Sequence[Item]) -> dict[tuple[int, int, bool], float]:
    """Return overlap weights by file, distance and label, 1 on average; none without overlap."""
    counts = Counter(
        (item.source, item.distance(i), i in item.causes)
        for item in items
        for i in range(len(item.utterances))
    )
    shares = {
        (source, distance, label): other / (count + other)
        for (source, distance, label), count in counts.items()
        if (other := counts[source, distance, not label])
    }
    total = sum(counts[key] * share for key, share in shares.items())
    drawn = sum(counts[key] for key in shares)
    return {key: share * drawn / total for key, share in shares.items()}


class PrecedingTwo(TrainingSet):
    """Training set of the ablation: the two preceding utterances against two others."""

    def __init__(self, items: Sequence[Item], seed: int) -> None:
        super().__init__(seed)
        self._items = [item for item in items if len(item.utterances) > 1]
        self._others = NegativeSampler(self._items)
        if not self._items:
            raise CauserieError("no response has two utterances before it")

    def __len__(self) -> int:
        return 4 * len(self._items)

    def draw(self, rng: random.Random) -> list[Example]:
        examples = []
        for item in self._items:
            last, other = len(item.utterances) - 1, len(item.utterances) - 2
            for cause, given in ((last, other), (other, last)):
                examples.append(triple(item, cause, [given], True, rng))
                said, beside = (self._others.utterance(item, rng) for _ in range(2))
                where = item.distance(cause), item.conversation
                examples.append(Example(Question(said, item.response, beside), False, *where))
        return examples


def triple(
    item: Item, utterance: int, dependents: Sequence[int], label: bool, rng: random.Random
) -> Example:
    """Return an example of an utterance given another dependent or else the nearest utterance."""
    others = [i for i in dependents if i != utterance]
    last = len(item.utterances) - 1
    given = rng.choice(others) if others else last - (utterance == last)
    distances = item.distance(utterance), item.distance(given)
    texts = item.utterances[utterance], item.response, item.utterances[given]
    question = Question(*texts, distances)
    return Example(question, label, item.distance(utterance), item.conversation)


def measured_triples(
    items: Sequence[Item], dependents: Sequence[Sequence[int]], seed: int
) -> list[Example]:
    """Return evaluation examples of C_cond: every utterance of every item, given a dependent."""
    rng = random.Random(seed)
    return [
        triple(item, utterance, found, utterance in item.causes, rng)
        for item, found in zip(items, dependents, strict=True)
        if len(item.utterances) > 1
        for utterance in range(len(item.utterances))
    ]


def _dependent_by_label(item: Item) -> list[int]:
    return sorted(item.causes | {len(item.utterances) - 1})
