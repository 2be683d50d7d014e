"""What a training reads: annotations, those that validate, and unlabelled dialogues."""

from __future__ import annotations

from dataclasses import dataclass

from causerie.errors import CauserieError
from causerie.metrics.trained import TrainingRun
from causerie.training.annotated import AnnotatedCorpus
from causerie.training.corpus import Corpus


@dataclass(frozen=True)
class Data:
    """What a training run reads."""

    annotated: AnnotatedCorpus
    valid: AnnotatedCorpus
    unlabelled: Corpus

    @classmethod
    def read(cls, run: TrainingRun) -> Data:
        """No conversation is in two of them, nor in what is to stay unseen."""
        annotated = AnnotatedCorpus.read(run.annotations, run.say)
        if run.valid:
            valid = AnnotatedCorpus.read(run.valid, run.say)
        else:
            annotated, valid = annotated.split(run.config.seed)
        unseen = AnnotatedCorpus.read(run.unseen, run.say)
        held, valid = valid, valid.apart_from(unseen)
        apart = annotated.apart_from(unseen).apart_from(valid)
        for what, before, after in (("validation", held, valid), ("training", annotated, apart)):
            if len(after) < len(before):
                left = len(before) - len(after)
                run.say(f"left out {left:,} {what} annotations that share an exchange with others")
            if not all(after.sources):
                raise CauserieError(f"all {what} annotations of a file are in --unseen or --valid")
        unlabelled = Corpus.read(run.data, lambda record: run.say(f"skipped {record}"))
        free = unlabelled.without(valid.dialogues).without(unseen.dialogues)
        if len(free) < len(unlabelled):
            shared = len(unlabelled) - len(free)
            run.say(f"left out {shared:,} dialogues that share an exchange with held-out ones")
        return cls(apart, valid, free)
