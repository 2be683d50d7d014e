"""Training data: annotated exchanges, or dialogues without annotations.

In the latter, causes are found by alignment (weak labels): every response answers one of the
utterances before it, and the distance and C_uncond tell which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.questions import Item, Question, items_of, unlabelled
from causerie.training.corpus import AnnotatedCorpus, Corpus
from causerie.training.trainable import TrainingRun

if TYPE_CHECKING:
    from causerie.metrics.causalscore.measure import Answers

ROUNDS = 50
"""Iterations of expectation maximisation; the shares hardly change after the tenth."""
LIKELY = 0.1
"""Minimum probability of a weak cause; a response may have several."""
_SUREST = 1e-5


@dataclass(frozen=True)
class Data:
    """The data of a training run."""

    annotated: AnnotatedCorpus
    """Annotated exchanges; without annotations, exchanges whose causes are found in training."""
    valid: AnnotatedCorpus
    unlabelled: AnnotatedCorpus
    """Exchanges whose only known cause is the preceding utterance."""

    @classmethod
    def read(cls, run: TrainingRun) -> Data:
        """Read the data so that no conversation is in two parts or in the unseen data."""
        unseen = AnnotatedCorpus.read(run.unseen, run.say)
        return cls._annotated(run, unseen) if run.annotations else cls._dialogues(run, unseen)

    @classmethod
    def _annotated(cls, run: TrainingRun, unseen: AnnotatedCorpus) -> Data:
        annotated = AnnotatedCorpus.read(run.annotations, run.say)
        if run.valid:
            valid = AnnotatedCorpus.read(run.valid, run.say)
        else:
            annotated, valid = annotated.split(run.config.seed)
        held, valid = valid, valid.apart_from(unseen)
        apart = annotated.apart_from(unseen).apart_from(valid)
        for what, before, after in (("validation", held, valid), ("training", annotated, apart)):
            if len(after) < len(before):
                left = len(before) - len(after)
                run.say(f"left out {left:,} {what} annotations that share an exchange with others")
            if not all(after.sources):
                raise CauserieError(f"all {what} annotations of a file are in --unseen or --valid")
        dialogues = Corpus.read(run.data, lambda record: run.say(f"skipped {record}"))
        free = dialogues.without(valid.dialogues).without(unseen.dialogues)
        if len(free) < len(dialogues):
            shared = len(dialogues) - len(free)
            run.say(f"left out {shared:,} dialogues that share an exchange with held-out ones")
        return cls(apart, valid, _drawn(free, run.config))

    @classmethod
    def _dialogues(cls, run: TrainingRun, unseen: AnnotatedCorpus) -> Data:
        annotated, valid = (
            _drawn(corpus.without(unseen.dialogues), run.config) for corpus in run.corpora()
        )
        if not all((*annotated.sources, *valid.sources)):
            raise CauserieError("no response of a file has two utterances before it to learn from")
        return cls(annotated, valid, AnnotatedCorpus(()))


def _drawn(corpus: Corpus, config: CausalScoreConfig) -> AnnotatedCorpus:
    return unlabelled(corpus, config.dialogues, config.exchanges, config.seed)


@dataclass(frozen=True)
class Alignment:
    """Tells which utterance a response answers, like word alignment in IBM model 2.

    Up to a constant factor, the odds of C_uncond are how much more likely an utterance makes the
    response; the shares are how often an utterance at a given distance is answered.
    """

    shares: tuple[float, ...]
    """Shares by distance from the response, the preceding utterance first."""

    @classmethod
    def learn(cls, by: Answers, items: Sequence[Item]) -> Alignment:
        """Estimate the shares by expectation maximisation."""
        farthest = max(len(item.utterances) for item in items)
        odds = np.zeros((len(items), farthest))  # 0 where there is no utterance
        for row, found in zip(odds, _odds(by, items), strict=True):
            row[: len(found)] = found
        shares = np.full(farthest, 1 / farthest)
        for _ in range(ROUNDS):
            answered = odds * shares
            shares = (answered / answered.sum(axis=1, keepdims=True)).mean(axis=0)
        return cls(tuple(shares.tolist()))

    def chances(self, by: Answers, items: Sequence[Item]) -> list[NDArray[np.float64]]:
        """Return the probability that each utterance, oldest first, is the one answered."""
        found = []
        for odds in _odds(by, items):
            shares = np.zeros(len(odds))
            known = self.shares[: len(odds)]
            shares[: len(known)] = known
            answered = odds * shares
            found.append((answered / answered.sum())[::-1])
        return found

    def label(self, by: Answers, corpus: AnnotatedCorpus, history: int | None) -> AnnotatedCorpus:
        """Return the exchanges with their probable causes."""
        chances = iter(self.chances(by, items_of(corpus, history)))
        sources = []
        for source in corpus.sources:
            labelled = []
            for one in source:
                likely = next(chances) >= LIKELY
                first = one.exchange.turn - len(likely)
                causes = frozenset(first + int(i) for i in np.flatnonzero(likely))
                labelled.append(replace(one, causes=causes))
            sources.append(tuple(labelled))
        return AnnotatedCorpus(tuple(sources))


def _odds(by: Answers, items: Sequence[Item]) -> list[NDArray[np.float64]]:
    """Return C_uncond's odds of every utterance of each item, the nearest first."""
    questions = [Question(said, item.response) for item in items for said in item.utterances]
    p = np.clip(by.probabilities(questions).astype(np.float64), _SUREST, 1 - _SUREST)
    stops = np.cumsum([len(item.utterances) for item in items])[:-1]
    return [part[::-1] for part in np.split(p / (1 - p), stops)]
