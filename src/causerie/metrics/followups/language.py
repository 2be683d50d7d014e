"""The language model behind follow-ups, tuned on conversations: `causerie train lm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from causerie.engines import Engines
from causerie.engines.language import LM, tuned_language_model
from causerie.engines.turnformat import turn_format
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Scores
from causerie.metrics.followups.hypotheses import OVERALL
from causerie.metrics.followups.metrics import Cpmi, CpmiSym, Fed, FollowUpMetric
from causerie.models import Kind
from causerie.models.artifact import Artifact
from causerie.training.config import TrainingConfig
from causerie.training.corpus import Corpus, sample
from causerie.training.language import LanguageConfig, LanguageModelling, measure
from causerie.training.trainable import Trainable, Trained, TrainingRun

if TYPE_CHECKING:
    from torch import Tensor

METRICS: tuple[type[FollowUpMetric], ...] = (Fed, Cpmi, CpmiSym)
STOCK = "default-lm"
"""What is tuned unless `--lm` names another: the default language model before any tuning."""
MEASURED = 60
"""Held-out exchanges, and dialogues, of people: what their statistics are measured on."""

LIMITS = (
    "English, everyday conversation and people who try out chat bots.",
    "It repeats what such text is like, which is not always kind or true.",
)


class LanguageModel(Trainable):
    """No metric: what `fed`, `cpmi`, `cpmi-sym`, `relevance` and `perplexity` ask."""

    name: ClassVar[str] = LM
    config: ClassVar[type[TrainingConfig]] = LanguageConfig
    backbone: ClassVar[Kind] = "language model"

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        raise CauserieError("`train lm` takes --lm, not --init")

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        """Tune it on dialogues, compare it with what it was, measure what exchanges score."""
        if engines.settings.lm == "default":
            engines = Engines(replace(engines.settings, lm=STOCK))
        if tuned_language_model(engines.settings.lm):
            raise CauserieError("--lm is tuned already: start from the model that it was made of")
        data, valid = run.corpora()
        stock = replace(engines.settings, turn_format=None)
        backbone = engines.likelihood.backbone
        own = turn_format(backbone.tokenizer).name
        config: LanguageConfig = replace(run.config, turn_format=run.config.turn_format or own)
        torch.manual_seed(config.seed)
        task = LanguageModelling(backbone, config, data, valid)
        progress = replace(run, config=config).fit(
            task,
            config.loop(len(task.batches)),
            {"data": data.sha256, "valid": valid.sha256, "backbone": backbone.sha256},
        )
        artifact = run.artifact(LM, backbone, config, {LM: config.tuning.weights(task.module)})
        artifact.save(run.folder / "tuned")  # engines take language models from folders
        tuned = Engines(replace(stock, lm=str(run.folder / "tuned")))
        run.say("measuring on held-out dialogues")
        before = Engines(stock)
        compared = {"tuned": lambda: tuned.likelihood, f"stock ({own})": lambda: before.likelihood}
        if own != config.turn_format:
            same_format = Engines(replace(stock, turn_format=config.turn_format))
            compared[f"stock ({config.turn_format})"] = lambda: same_format.likelihood
        results = measure(compared, valid, config.seed)
        run.say("measuring what held-out exchanges score on each dimension")
        facts = {
            "dialogues to train on": f"{len(data):,}",
            "steps": f"{progress.best_step:,}",
            "dialogues in a step": config.batch,
            "seed": config.seed,
            "backbone (SHA-256)": backbone.sha256[:12],
            "training data (SHA-256)": data.sha256[:12],
            "validation data (SHA-256)": valid.sha256[:12],
        }
        about = (
            f"A low-rank adapter (rank {config.rank}) for {backbone.name}, tuned in the format "
            f"`{config.turn_format}`; with it go mean and deviation of every dimension of the "
            f"follow-up metrics, measured on at most {MEASURED} held-out exchanges and "
            f"{MEASURED} held-out dialogues, of people with each other where there are such."
        )
        return replace(
            artifact,
            statistics=statistics(tuned, valid, config.seed),
            card=run.card(LM, about, {**facts, **results}, LIMITS),
        ), results


def statistics(engines: Engines, held_out: Corpus, seed: int) -> dict[str, Tensor]:
    """Mean and deviation of every dimension on dialogues of people that no training saw.

    People talk to people where nobody is the system; where that is nowhere so, all count.
    """
    among_people = [
        dialogue
        for dialogue in held_out.dialogues
        if all(turn.role != "system" for turn in dialogue.turns)
    ]
    dialogues = sample(among_people or held_out.dialogues, MEASURED, seed)
    exchanges = [e for d in among_people or held_out.dialogues for e in d.exchanges()]
    turns = sample(exchanges, MEASURED, seed)
    found: dict[str, Tensor] = {}
    for metric in METRICS:
        made = metric()
        rows: dict[Level, Sequence[Scores]] = {
            "turn": made.score_exchanges(turns, engines),
            "dialogue": made.score_dialogues(dialogues, engines),
        }
        for level, scores in rows.items():
            for place, column in enumerate(made.columns(level)):
                values = [row[place].value for row in scores]
                known = [value for value in values if value is not None]
                if column.name != OVERALL and len(set(known)) > 1:
                    key = f"{metric.name}.{level}.{column.name}"
                    found[key] = torch.tensor([fmean(known), pstdev(known)])
    return found
