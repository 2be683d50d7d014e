"""What the classifiers are asked, and the examples they learn from and are measured with.

An item is one exchange with a window of the utterances before its response. Classifiers see
texts alone: where in the window an utterance stands is kept beside an example for baselines
and for drawing, and is never an input.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io.annotations import opening
from causerie.training.corpus import AnnotatedCorpus, Corpus

_TRIES = 100


@dataclass(frozen=True, slots=True)
class Question:
    """Does the response depend on the utterance, given another one or nothing?"""

    utterance: str
    response: str
    given: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Of two texts or three, the response last."""
        given = () if self.given is None else (self.given,)
        return (self.utterance, *given, self.response)


@dataclass(frozen=True, slots=True)
class Item:
    """A response and the utterances before it, as far back as causes are sought."""

    utterances: tuple[str, ...]
    """Oldest first."""
    response: str
    causes: frozenset[int]
    """Indices of utterances."""
    conversation: tuple[str, ...]
    source: int
    """Which file it comes from."""

    def distance(self, utterance: int) -> int:
        """1 is the preceding utterance."""
        return len(self.utterances) - utterance

    @property
    def non_causes(self) -> list[int]:
        return [i for i in range(len(self.utterances)) if i not in self.causes]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its answer, and where its utterance stands."""

    question: Question
    label: bool
    distance: int
    conversation: tuple[str, ...]


def annotated_items(corpus: AnnotatedCorpus, history: int) -> list[Item]:
    """Causes outside the window are left out: they cannot be found there."""
    items = []
    for source, found in enumerate(corpus.sources):
        for one in found:
            first = max(0, one.exchange.turn - history)
            causes = frozenset(turn - first for turn in one.causes if turn >= first)
            items.append(_item(one.exchange, history, causes, one.conversation, source))
    return items


def unlabelled_items(
    corpus: Corpus, history: int, exchanges: int, seed: int, first_source: int = 0
) -> list[Item]:
    """Some exchanges of each dialogue; no cause is known but the preceding utterance."""
    items = []
    for source, dialogues in enumerate(corpus.sources, start=first_source):
        for number, dialogue in enumerate(dialogues):
            rng = random.Random(f"{seed}/{source}/{number}")
            found = dialogue.exchanges()
            for exchange in rng.sample(found, min(exchanges, len(found))):
                last = frozenset({min(history, exchange.turn) - 1})
                items.append(_item(exchange, history, last, _key(dialogue), source))
    return items


class NegativeSampler:
    """What was said in other conversations of the same file.

    Responses are drawn from responses: drawn from all utterances, they could be told from true
    ones by who speaks and how far the conversation is.
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
                    f"file {source + 1} has a single conversation: negatives take another one"
                )

    def response(self, item: Item, rng: random.Random) -> str:
        """A response that is another conversation's and not the item's in so many words."""
        return self._draw(self._responses[item.source], item, rng)

    def utterance(self, item: Item, rng: random.Random) -> str:
        return self._draw(self._utterances[item.source], item, rng)

    def _draw(self, said: Sequence[tuple[Item, str]], item: Item, rng: random.Random) -> str:
        for _ in range(_TRIES):
            other, text = rng.choice(said)
            if other.conversation != item.conversation and text != item.response:
                return text
        raise CauserieError("the conversations of a file are all but the same: give others")


class TrainingSet(ABC):
    """Examples by epoch: the positives, each with negatives drawn anew."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @abstractmethod
    def __len__(self) -> int:
        """Examples in an epoch."""

    def epoch(self, number: int) -> list[Example]:
        rng = random.Random(f"{self._seed}/{number}")
        examples = self.draw(rng)
        rng.shuffle(examples)
        return examples

    @abstractmethod
    def draw(self, rng: random.Random) -> list[Example]: ...


class Pairs(TrainingSet):
    """For C_uncond: a cause or the preceding utterance, against `others` responses of others."""

    def __init__(self, items: Sequence[Item], seed: int, others: int = 1) -> None:
        super().__init__(seed)
        self._items, self._others, self._count = items, NegativeSampler(items), others

    def __len__(self) -> int:
        return sum((1 + self._count) * len(_dependent_by_label(item)) for item in self._items)

    def draw(self, rng: random.Random) -> list[Example]:
        examples = []
        for item in self._items:
            for index in _dependent_by_label(item):
                said = item.utterances[index]
                where = item.distance(index), item.conversation
                examples.append(Example(Question(said, item.response), True, *where))
                for _ in range(self._count):
                    other = self._others.response(item, rng)
                    examples.append(Example(Question(said, other), False, *where))
        return examples


class Triples(TrainingSet):
    """For C_cond: a cause given a dependent, against a non-cause in its place.

    `dependents` are, for each item, the utterances that C_uncond finds dependent; `pseudo` are
    examples of self-training, which come in every epoch.
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
        usable = [
            (item, found)
            for item, found in zip(items, dependents, strict=True)
            if len(item.utterances) > 1 and (matched or item.non_causes)
        ]
        self._positives = [(item, i, found) for item, found in usable for i in sorted(item.causes)]
        self._non_causes: dict[int, dict[int, list[tuple[Item, int, Sequence[int]]]]] = {}
        """By source and distance."""
        for item, found in usable:
            near = self._non_causes.setdefault(item.source, {})
            for i in item.non_causes:
                near.setdefault(item.distance(i), []).append((item, i, found))
        if not (self._positives and any(self._non_causes.values())):
            raise CauserieError(
                "the annotations have no cause or nothing but causes within `history` turns: "
                "the conditional classifier needs both"
            )

    def __len__(self) -> int:
        return 2 * len(self._positives) + len(self.pseudo)

    def draw(self, rng: random.Random) -> list[Example]:
        examples = list(self.pseudo)
        for item, cause, found in self._positives:
            examples.append(triple(item, cause, found, True, rng))
            if self._matched:
                other, non_cause, others = rng.choice(self._near(item, item.distance(cause)))
                examples.append(triple(other, non_cause, others, False, rng))
            else:
                examples.append(triple(item, rng.choice(item.non_causes), found, False, rng))
        return examples

    def _near(self, item: Item, distance: int) -> list[tuple[Item, int, Sequence[int]]]:
        """Non-causes of the same file at that distance, or at the nearest where there are any."""
        found = self._non_causes[item.source]
        return found[min(found, key=lambda d: (abs(d - distance), d))]


class PrecedingTwo(TrainingSet):
    """The ablation: the two preceding utterances, against two of another conversation."""

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
    """An utterance given a dependent drawn from the others; without any, the nearest utterance."""
    others = [i for i in dependents if i != utterance]
    last = len(item.utterances) - 1
    given = rng.choice(others) if others else last - (utterance == last)
    question = Question(item.utterances[utterance], item.response, item.utterances[given])
    return Example(question, label, item.distance(utterance), item.conversation)


def measured_triples(
    items: Sequence[Item], dependents: Sequence[Sequence[int]], seed: int
) -> list[Example]:
    """For C_cond: every utterance of every item, given one dependent."""
    rng = random.Random(seed)
    return [
        triple(item, utterance, found, utterance in item.causes, rng)
        for item, found in zip(items, dependents, strict=True)
        if len(item.utterances) > 1
        for utterance in range(len(item.utterances))
    ]


def _dependent_by_label(item: Item) -> list[int]:
    return sorted(item.causes | {len(item.utterances) - 1})


def _item(
    exchange: Exchange,
    history: int,
    causes: frozenset[int],
    conversation: tuple[str, ...],
    source: int,
) -> Item:
    utterances = tuple(turn.text for turn in exchange.last(history))
    return Item(utterances, exchange.response.text, causes, conversation, source)


def _key(dialogue: Dialogue) -> tuple[str, ...]:
    """As of an annotation."""
    return opening(dialogue.turns)
