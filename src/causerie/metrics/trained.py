"""What all trained metrics share: an artifact, a percentile, a way to be trained."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from causerie.dialogue import Dialogue
from causerie.errors import CauserieError
from causerie.metrics.base import Metric, Score, Scores
from causerie.models.artifact import Artifact, ArtifactInfo, damaged, shipped
from causerie.models.registry import read_registry
from causerie.options import option
from causerie.progress import Progress, Watch, ignore
from causerie.render.tables import Table, markdown_table
from causerie.training.corpus import Corpus

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from causerie.dialogue import Exchange
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder

QUANTILES = 1001
ENCODER = ("tuning", "rank", "layers", "pooling", "window")
"""Settings that say what an artifact's encoder is."""


@dataclass(frozen=True)
class TrainingRun:
    """What a metric is trained on and how."""

    config: Any
    """The metric's own configuration."""
    data: tuple[Path, ...]
    """Dialogues."""
    valid: tuple[Path, ...]
    """Empty: some of what is trained on is held out."""
    folder: Path
    """Where checkpoints and the log go."""
    annotations: tuple[Path, ...] = ()
    """Causal annotations, for a metric that learns from them; then `valid` has such, too."""
    unseen: tuple[Path, ...] = ()
    """Annotations kept for testing: their conversations are left out of the training."""
    licence: str = "not stated"
    """Of the data; it is written on the card."""
    recipe: str = ""
    """The command that makes this artifact again."""
    init: str | None = None
    """An artifact whose weights are the start."""
    resume: bool = False
    watch: Watch = ignore

    def say(self, text: str) -> None:
        """Tell what is going on apart from steps."""
        self.watch(Progress("training", note=text))


def corpora(run: TrainingRun) -> tuple[Corpus, Corpus]:
    """What to train on, and what to validate on: no exchange is in both."""

    def read(paths: Sequence[Path]) -> Corpus:
        return Corpus.read(paths, lambda record: run.say(f"skipped {record}"))

    data = read(run.data)
    data, valid = (data, read(run.valid)) if run.valid else data.split(run.config.seed)
    apart = data.without(valid)
    if len(apart) < len(data):
        shared = len(data) - len(apart)
        run.say(f"left out {shared:,} training dialogues that share an exchange with validation")
    if not all(apart.sources):
        raise CauserieError("all dialogues of a file are in the validation data: leave it out")
    return apart, valid


@dataclass(frozen=True)
class TrainedMetric(Metric):
    """A metric with trained weights: shipped, or made by `causerie train`."""

    artifact: str | None = option(
        None, "name of a shipped artifact, or the folder of one that you trained", file=True
    )

    config: ClassVar[type]
    """The dataclass whose fields `causerie train --set` can change."""
    annotated: ClassVar[bool] = False
    """Whether it is trained on causal annotations, and dialogues are an addition."""
    own_data: ClassVar[bool] = False
    """Whether what it is trained on comes with it, and more is an addition."""

    @property
    def info(self) -> ArtifactInfo:
        """Which artifact it uses, known without reading its weights."""
        return ArtifactInfo.find(self.artifact or self.name, self.name)

    def restored(self, engines: Engines) -> tuple[Artifact, Any]:
        """The artifact and what `restore` makes of it, once for all metrics that share it."""
        info = self.info

        def restore() -> tuple[Artifact, Any]:
            artifact = engines.artifact(info)
            try:
                return artifact, self.restore(engines, artifact)
            except (KeyError, TypeError, RuntimeError, ValueError) as error:
                raise damaged(f"of {self.name}", error) from error

        return engines.shared((type(self), info.sha256, *self._restored_by), restore)

    @property
    def _restored_by(self) -> tuple[Any, ...]:
        """The options that decide what `restore` makes."""
        return ()

    @abstractmethod
    def restore(self, engines: Engines, artifact: Artifact) -> Any:
        """The networks as the artifact's training left them."""

    @classmethod
    @abstractmethod
    def train(cls, engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
        """Train; the artifact, and what was measured on validation data."""

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        """The settings that a training which starts from an artifact has from it."""
        if start.metric != cls.name:
            raise CauserieError(f"--init is an artifact of {start.metric}, not of {cls.name}")
        return start.options

    @property
    def uses(self) -> frozenset[str]:
        """An artifact names its own encoder; `--encoder` can only say where a folder is now."""
        known = {entry.name for entry in read_registry()}
        return frozenset() if self.info.backbone in known else frozenset({"encoder"})

    def signature(self, engines: Engines) -> str:
        return f"{self._with_options()}@{self.info.sha256[:12]}|{engines.settings.dtype}"

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        return frozenset({"artifact"})


@dataclass(frozen=True)
class EncoderMetric(TrainedMetric):
    """A trained metric on an encoder that may be another artifact's; a dialogue has the mean."""

    @property
    def dialogue_table(self) -> str:
        """Which of the artifact's tables has the scores of human dialogues."""
        return "dialogue"

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        """All settings of its own artifacts; of others what says how their encoder is tuned."""
        return start.options if start.metric == cls.name else encoder_settings(start)

    def score_dialogues(
        self,
        dialogues: Sequence[Dialogue],
        engines: Engines,
        *,
        speaker: str | None = None,
        explain: bool = False,
    ) -> list[Scores]:
        means = super().score_dialogues(dialogues, engines, speaker=speaker, explain=explain)
        artifact, _ = self.restored(engines)
        return [
            (calibrated_score(artifact, score.value, self.dialogue_table),)
            if score.value is not None
            else (score,)
            for (score,) in means
        ]


def calibrated_score(
    artifact: Artifact, value: float, table: str, explanation: Mapping[str, Any] | None = None
) -> Score:
    """A score with its percentile in one of the artifact's tables of human scores."""
    quantiles = artifact.statistics.get(f"calibration.{table}")
    if quantiles is None or not math.isfinite(value):
        return Score.of(value, explanation)
    percentile = percentile_of(value, quantiles.numpy())
    return Score(value, percentile, {"percentile": percentile, **(explanation or {})})


def with_context(
    exchanges: Sequence[Exchange], score: Callable[[list[Exchange]], Sequence[Score]]
) -> list[Scores]:
    """Score the exchanges that have a context; a first turn responds to nothing."""
    scored = [exchange for exchange in exchanges if exchange.turn > 0]
    found = iter(score(scored) if scored else ())
    return [
        (next(found) if exchange.turn > 0 else Score.unscored("no context"),)
        for exchange in exchanges
    ]


def quantiles_of(scores: NDArray[Any]) -> NDArray[np.float32]:
    """What an artifact keeps of the scores of human responses."""
    levels = np.linspace(0, 1, QUANTILES)
    quantiles: NDArray[np.float32] = np.quantile(scores, levels).astype(np.float32)
    return quantiles


def calibration(
    scores: NDArray[Any], groups: Sequence[Sequence[Exchange]], name: str = ""
) -> dict[str, Tensor]:
    """The tables that an artifact keeps: scores of human responses, and of whole dialogues.

    `groups` are the exchanges of each dialogue, whose scores follow each other.
    """
    import torch

    starts = np.cumsum([0, *map(len, groups)])[:-1]
    means = np.add.reduceat(scores, starts) / [len(group) for group in groups]
    return {
        f"calibration.{level}{name}": torch.from_numpy(quantiles_of(values))
        for level, values in (("turn", scores), ("dialogue", means))
    }


def percentile_of(value: float, quantiles: NDArray[Any]) -> float:
    """Share of human responses that score no better, 0 to 100."""
    below = np.searchsorted(quantiles, np.float32(value), side="right")
    return round(100 * float(below) / len(quantiles), 1)


def check_start(start: Artifact, config: Any, encoder: Encoder, settings: Sequence[str]) -> None:
    """All that gives the weights of an earlier training their meaning must agree."""
    differs = [key for key in settings if start.options.get(key) != getattr(config, key)]
    if differs:
        theirs = ", ".join(f"{key}={start.options.get(key)}" for key in differs)
        raise CauserieError(f"--init was trained with {theirs}: leave these as they are")
    if start.backbone_sha256 != encoder.sha256:
        raise CauserieError(f"--init was trained on {start.backbone}: give the same --encoder")


def encoder_settings(start: Artifact) -> dict[str, Any]:
    """What an artifact of any metric says about its encoder."""
    return {key: start.options[key] for key in ENCODER if key in start.options}


def shared_encoder(run: TrainingRun) -> str | None:
    """The shipped artifact whose encoder a training leaves as it is: it is not saved again."""
    return run.init if run.config.fixed and run.init and shipped(run.init) else None


def starting_encoder(
    engines: Engines,
    config: Any,
    start: Artifact | None,
    settings: Sequence[str] = ENCODER,
    part: str = "encoder",
) -> Encoder:
    """An encoder to be trained as configured, with the weights of --init where there is one.

    `settings` are those that must agree with --init; `part` names its encoder.
    """
    if config.fixed and config.tuning != "frozen" and not start:
        raise CauserieError("fixed=true takes the encoder of --init, or tuning=frozen")
    encoder = engines.new_encoder()
    encoder.input.window = min(encoder.input.window, config.window)
    encoder.model = config.encoder_tuning.prepare(encoder.model)
    if start:
        check_start(start, config, encoder, settings)
        config.encoder_tuning.load(encoder.model, start.part(part))
    if not config.learns_encoder:
        encoder.model.eval()
    return encoder


def card(
    title: str,
    run: TrainingRun,
    about: str,
    results: Mapping[str, Any],
    limits: Sequence[str],
    held_out: str = "one dialogue in twenty",
) -> str:
    """The text that goes with an artifact; `held_out` is what validated it without a file."""
    lines = [f"# {title}", "", about, "", "## Data", ""]
    lines += [f"- annotations: `{path.name}`" for path in run.annotations]
    kind = "unlabelled dialogues:" if run.annotations else "trained on"
    lines += [f"- {kind} `{path.name}`" for path in run.data]
    lines += [f"- validated on `{path.name}`" for path in run.valid]
    if not run.valid:
        lines.append(f"- validated on {held_out} of them, which were not trained on")
    lines += [f"- without the conversations of `{path.name}`" for path in run.unseen]
    if run.init:
        lines.append(f"- its training went on from `{Path(run.init).name}`")
    lines += ["", f"Licence of the data: {run.licence}", "", "## Recipe", ""]
    lines += ["```", run.recipe, "```", "", "## Facts, and results on validation data", ""]
    facts = [[key, str(value)] for key, value in results.items()]
    lines.append(markdown_table(Table(["what", "value"], facts, align="ll")))
    lines += ["", "## Limits", "", *(f"- {limit}" for limit in limits), ""]
    return "\n".join(lines)
