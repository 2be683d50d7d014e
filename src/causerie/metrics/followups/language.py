"""The language model behind the follow-up metrics, tuned on dialogues by `causerie train lm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import torch

from causerie.engines import Engines
from causerie.engines.language import LM, tuned_language_model
from causerie.engines.turnformat import turn_format
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Scores
from causerie.metrics.followups.hypotheses import OVERALL
from causerie.metrics.followups.metrics import Cpmi, CpmiSym, Fed, FollowUpMetric
from causerie.metrics.followups.sequences import Average
from causerie.models import Kind
from causerie.models.artifact import Artifact
from causerie.training.config import TrainingConfig
from causerie.training.corpus import Corpus, sample_evenly
from causerie.training.language import (
    LanguageConfig,
    LanguageModelling,
    learning_curve,
    measure,
    told,
)
from causerie.training.trainable import Trainable, Trained, TrainingRun

if TYPE_CHECKING:
    from torch import Tensor

METRICS: tuple[type[FollowUpMetric], ...] = (CpmiSym, Cpmi, Fed)
"""The follow-up metrics; the sequences of the first include those of the others."""
STOCK = "default-lm"
"""The model that is tuned by default: the default language model before any tuning."""
PEOPLE: dict[Level, int] = {"turn": 120, "dialogue": 80}
"""Number of held-out human exchanges and dialogues on which statistics are measured."""
AT_ONCE = 10
"""Number of items that all metrics score before the next, so that they share cached results."""

LIMITS = (
    "English, everyday conversation and people who try out chat bots.",
    "It repeats what such text is like, which is not always kind or true.",
)


class LanguageModel(Trainable):
    """The language model of `fed`, `cpmi`, `cpmi-sym`, `relevance` and `perplexity`."""

    name: ClassVar[str] = LM
    config: ClassVar[type[TrainingConfig]] = LanguageConfig
    backbone: ClassVar[Kind] = "language model"

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        raise CauserieError("`train lm` takes --lm, not --init")

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        """Tune on dialogues, compare with the untuned model, and measure the statistics."""
        if engines.settings.lm == "default":
            engines = Engines(replace(engines.settings, lm=STOCK))
        if tuned_language_model(engines.settings):
            raise CauserieError("--lm is tuned already: give the model that it was tuned from")
        data, valid = run.corpora()
        choosing, measuring = valid.halves(run.config.seed)
        stock = replace(engines.settings, turn_format=None)
        backbone = engines.likelihood.backbone
        own = turn_format(backbone.tokenizer).name
        config: LanguageConfig = replace(run.config, turn_format=run.config.turn_format or own)
        torch.manual_seed(config.seed)
        task = LanguageModelling(backbone, config, data, choosing)
        progress = replace(run, config=config).fit(
            task,
            config.loop(len(task.batches)),
            {"data": data.sha256, "valid": valid.sha256, "backbone": backbone.sha256},
        )
        curve = learning_curve(task, run.folder)
        tokens = {point.step: point.tokens for point in curve}
        artifact = run.artifact(LM, backbone, config, {LM: config.tuning.weights(task.module)})
        artifact.save(run.folder / "tuned")  # engines take language models from folders
        tuned = Engines(replace(stock, lm=str(run.folder / "tuned")))
        run.say("measuring on held-out dialogues")
        before = Engines(stock)
        compared = {"tuned": lambda: tuned.likelihood, f"stock ({own})": lambda: before.likelihood}
        if own != config.turn_format:
            same_format = Engines(replace(stock, turn_format=config.turn_format))
            compared[f"stock ({config.turn_format})"] = lambda: same_format.likelihood
        results = measure(compared, measuring, config.seed)
        run.say("measuring the statistics of each dimension on held-out exchanges")
        facts = {
            "dialogues to train on": f"{len(data):,}",
            "dialogues to choose a checkpoint on": f"{len(choosing):,}",
            "other dialogues to measure on": f"{len(measuring):,}",
            "steps": f"{progress.best_step:,}",
            "tokens that the steps saw": f"{tokens[progress.best_step]:,}",
            "dialogues in a step": config.batch,
            "seed": config.seed,
            "backbone (SHA-256)": backbone.sha256[:12],
            "training data (SHA-256)": data.sha256[:12],
            "validation data (SHA-256)": valid.sha256[:12],
        }
        about = (
            f"A low-rank adapter (rank {config.rank}) for {backbone.name}, tuned in the format "
            f"`{config.turn_format}`; with it go mean and deviation of every dimension of the "
            f"follow-up metrics, measured on at most {PEOPLE['turn']} held-out exchanges and "
            f"{PEOPLE['dialogue']} held-out dialogues, of people with each other where there are "
            "such, as many of each file."
        )
        return replace(
            artifact,
            statistics=statistics(tuned, measuring, config.seed),
            card=run.card(LM, about, {**facts, **results, **told(curve)}, LIMITS),
        ), results


def statistics(engines: Engines, held_out: Corpus, seed: int) -> dict[str, Tensor]:
    """Return mean and standard deviation of every dimension on held-out human dialogues.

    Dialogues without a system count as human; if there are none, all dialogues count.
    """
    among_people = [
        [dialogue for dialogue in source if all(turn.role != "system" for turn in dialogue.turns)]
        for source in held_out.sources
    ]
    sources = [source for source in among_people if source] or held_out.sources
    dialogues = sample_evenly(sources, PEOPLE["dialogue"], seed)
    exchanges = [[e for dialogue in source for e in dialogue.exchanges()] for source in sources]
    turns = sample_evenly(exchanges, PEOPLE["turn"], seed)
    values: dict[str, list[float]] = {}

    def take(metric: FollowUpMetric, level: Level, rows: Sequence[Scores]) -> None:
        for place, column in enumerate(metric.columns(level)):
            if column.name != OVERALL:
                known = [row[place].value for row in rows]
                key = metric.measured_as(level, column.name)
                values.setdefault(key, []).extend(v for v in known if v is not None)

    metrics = [metric(average=average) for metric in METRICS for average in get_args(Average)]
    for start in range(0, len(turns), AT_ONCE):
        for metric in metrics:
            part = turns[start : start + AT_ONCE]
            take(metric, "turn", metric.score_exchanges(part, engines))
    for start in range(0, len(dialogues), AT_ONCE):
        for metric in metrics:
            some = dialogues[start : start + AT_ONCE]
            take(metric, "dialogue", metric.score_dialogues(some, engines))
    return {
        key: torch.tensor([fmean(known), pstdev(known)])
        for key, known in values.items()
        if len(set(known)) > 1
    }
