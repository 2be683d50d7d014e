"""The language model behind follow-ups, tuned on conversations: `causerie train lm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from causerie.engines import Engines
from causerie.engines.language import LM, is_tuned
from causerie.engines.turnformat import turn_format
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Score
from causerie.metrics.followups.hypotheses import OVERALL
from causerie.metrics.followups.metrics import Cpmi, CpmiSym, Fed, FollowUpMetric
from causerie.metrics.trained import TrainingRun, card, corpora
from causerie.models.artifact import Artifact
from causerie.training.corpus import Corpus, sample
from causerie.training.language import LanguageConfig, measure, tune

if TYPE_CHECKING:
    from torch import Tensor

METRICS: tuple[type[FollowUpMetric], ...] = (Fed, Cpmi, CpmiSym)
MEASURED = 60
"""Held-out exchanges, and dialogues, of people: what their statistics are measured on."""

LIMITS = (
    "English, everyday conversation and people who try out chat bots.",
    "It repeats what such text is like, which is not always kind or true.",
)


class LanguageModel:
    """No metric: what `fed`, `cpmi`, `cpmi-sym`, `relevance` and `perplexity` ask."""

    config: ClassVar[type] = LanguageConfig
    annotated: ClassVar[bool] = False
    own_data: ClassVar[bool] = False

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        raise CauserieError("a language model is tuned from --lm: leave --init away")

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
        """Tune it on dialogues, compare it with what it was, measure what exchanges score."""
        if is_tuned(engines.settings.lm):
            raise CauserieError("--lm is tuned already: start from the model that it was made of")
        data, valid = corpora(run)
        stock = replace(engines.settings, turn_format=None)
        backbone = engines.likelihood.backbone
        own = turn_format(backbone.tokenizer).name
        config: LanguageConfig = replace(run.config, turn_format=run.config.turn_format or own)
        weights, progress = tune(
            backbone, config, data, valid, run.folder, resume=run.resume, watch=run.watch
        )
        artifact = Artifact(
            metric=LM,
            backbone=backbone.name,
            backbone_sha256=backbone.sha256,
            options=asdict(config),
            network=weights,
            statistics={},
            card="",
            licence=run.licence,
        )
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
            card=card(LM, run, about, {**facts, **results}, LIMITS),
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
        made = metric(engines)
        rows: dict[Level, Sequence[Sequence[Score]]] = {
            "turn": made.score_exchanges(turns),
            "dialogue": made.score_dialogues(dialogues),
        }
        for level, scores in rows.items():
            for place, dimension in enumerate(made.dimensions(level)):
                values = [row[place].value for row in scores]
                known = [value for value in values if value is not None]
                if dimension != OVERALL and len(set(known)) > 1:
                    key = f"{metric.name}.{level}.{dimension}"
                    found[key] = torch.tensor([fmean(known), pstdev(known)])
    return found
