"""The contract of everything that `causerie train` can train, and the run that it is given.

A trainable (a metric or the language model) has a configuration whose fields are its options,
and turns a `TrainingRun` into an artifact with a card and the results measured on held-out data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from causerie.dialogue import Fields
from causerie.errors import CauserieError
from causerie.licences import NOT_STATED, joint_licence
from causerie.models import Kind
from causerie.models.artifact import Artifact, load_artifact, shipped
from causerie.options import make, parse_assignments
from causerie.progress import Progress, Watch, ignore
from causerie.render.tables import Table, markdown_table
from causerie.training.config import ENCODER, EncoderConfig, LoopConfig, TrainingConfig
from causerie.training.corpus import Corpus
from causerie.training.judgements import JudgedReplies

if TYPE_CHECKING:
    from torch import Tensor

    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder
    from causerie.models import Backbone
    from causerie.training.loop import LoopState, Task

Trained: TypeAlias = tuple[Artifact, Mapping[str, Any]]
"""The artifact, and the results on held-out data."""
Source: TypeAlias = Literal["dialogues", "annotations", "templates", "judgements"]


class Trainable(ABC):
    """Something that `causerie train NAME` can train; the class itself, never an instance."""

    name: ClassVar[str]
    config: ClassVar[type[TrainingConfig]]
    """Configuration, whose fields `--set` can change."""
    learns_from: ClassVar[Source] = "dialogues"
    """The data it needs; templates ship with causerie, and `data` is optional then."""
    backbone: ClassVar[Kind] = "encoder"
    """The kind of network it is built on."""

    @classmethod
    @abstractmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        """Train; a run that is killed and resumed gives the same artifact."""

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        """Return the settings that a training inherits from the artifact it starts from.

        These are all settings of an artifact of its own; of another's, those of the encoder, if
        this is trained on an encoder, too.
        """
        if start.metric == cls.name:
            return start.options
        if issubclass(cls.config, EncoderConfig):
            known = (*ENCODER, "window")
            return {key: start.options[key] for key in known if key in start.options}
        raise CauserieError(f"--init is an artifact of {start.metric}, not of {cls.name}")


@dataclass(frozen=True)
class Start:
    """An artifact whose weights and settings a training starts from (`--init`)."""

    name: str
    artifact: Artifact

    @classmethod
    def load(cls, name: str) -> Start:
        return cls(name, load_artifact(name))


@dataclass(frozen=True)
class TrainingRun:
    """The data, settings and files of one training."""

    config: Any
    """Configuration, of the trainable's type."""
    data: tuple[Path, ...]
    """Files of dialogues."""
    valid: tuple[Path, ...]
    """Files of validation data; if empty, some of the training data is held out."""
    folder: Path
    """Folder of checkpoints and the log."""
    annotations: tuple[Path, ...] = ()
    """Files of causal annotations, for a metric that learns from them; `valid` has them, too."""
    judged: tuple[JudgedReplies, ...] = ()
    """Judged sets, for a metric that learns from judgements."""
    unseen: tuple[Path, ...] = ()
    """Files of test annotations, whose conversations are left out of the training."""
    licence: str = NOT_STATED
    """Licence of the data, by source, for the card."""
    recipe: str = ""
    """The command that reproduces the artifact, for the card."""
    start: Start | None = None
    without: Fields = field(default_factory=dict)
    """Values of fields, such as quality_control=fail; dialogues that have them are left out."""
    resume: bool = False
    """Whether to continue an interrupted training."""
    finish: bool = False
    """Whether to end an interrupted training and use its best weights."""
    restart: bool = False
    """Whether to overwrite an earlier training."""
    watch: Watch = ignore

    def say(self, text: str) -> None:
        """Report a note to `watch`."""
        self.watch(Progress("training", note=text))

    @property
    def whole_licence(self) -> str:
        """Licence of all training data, including that of the artifact it starts from."""
        started = [self.start.artifact.licence] if self.start else []
        return joint_licence([*started, self.licence])

    def own_start(self, metric: str) -> Artifact | None:
        """Return the artifact it starts from if it is of this metric, so that its heads fit."""
        artifact = self.start.artifact if self.start else None
        return artifact if artifact and artifact.metric == metric else None

    def check(self, trainable: type[Trainable]) -> None:
        """Refuse data that the trainable does not learn from, and missing data that it needs."""
        name, source = trainable.name, trainable.learns_from
        if source == "annotations" and not (self.annotations or self.data):
            raise CauserieError(
                f"{name} learns from causal annotations or, by weak labels, from dialogues: give "
                "--annotations or --data"
            )
        if source != "annotations" and (self.annotations or self.unseen):
            raise CauserieError(f"{name} does not learn from annotations: give --data alone")
        if source not in ("dialogues", "judgements") and self.without:
            raise CauserieError(f"--without has no effect on the training of {name}")
        if source == "dialogues" and not self.data:
            raise CauserieError(f"{name} learns from dialogues: give --data")
        if source == "judgements" and not (self.judged and self.data):
            raise CauserieError(
                f"{name} learns from judged replies: give --judged, and --data with dialogues to "
                "compare its cosines with"
            )
        if source != "judgements" and self.judged:
            raise CauserieError(f"{name} does not learn from judgements: omit --judged")

    def fit(
        self,
        task: Task,
        loop: LoopConfig,
        identity: Mapping[str, Any],
        folder: str = "",
        later: Sequence[str] = (),
    ) -> LoopState:
        """Run the loop in the run's folder, or in the subfolder `folder`.

        `identity` holds what determines the result besides the configuration and the start;
        `later` names options that do not.
        """
        from causerie.training.loop import fit

        options = {key: value for key, value in asdict(self.config).items() if key not in later}
        init = self.start.artifact.sha256 if self.start else None
        return fit(
            task,
            loop,
            self.folder / folder,
            identity={**options, **identity, "init": init},
            resume=self.resume,
            restart=self.restart,
            finish=self.finish,
            watch=self.watch,
        )

    def artifact(
        self,
        metric: str,
        backbone: Encoder | Backbone,
        config: TrainingConfig,
        parts: Mapping[str, Mapping[str, Tensor]],
    ) -> Artifact:
        """Return the trained artifact without results, from its weights by part."""
        return Artifact(
            metric=metric,
            backbone=backbone.name,
            backbone_sha256=backbone.sha256,
            options=asdict(config),
            network={f"{part}.{key}": t for part, own in parts.items() for key, t in own.items()},
            statistics={},
            card="",
            licence=self.whole_licence,
            encoder_of=self._keeper(config),
        )

    def _keeper(self, config: TrainingConfig) -> str | None:
        """Return the shipped artifact whose encoder was not changed, so as not to save it again."""
        fixed = isinstance(config, EncoderConfig) and config.fixed
        return self.start.name if fixed and self.start and shipped(self.start.name) else None

    def corpora(self) -> tuple[Corpus, Corpus]:
        """Return training and validation dialogues, which share no exchange."""

        def read(paths: Sequence[Path]) -> Corpus:
            return Corpus.read(paths, lambda record: self.say(f"skipped {record}"), self.without)

        data = read(self.data)
        data, valid = (data, read(self.valid)) if self.valid else data.split(self.config.seed)
        apart = data.without(valid)
        if len(apart) < len(data):
            shared = len(data) - len(apart)
            self.say(
                f"left out {shared:,} training dialogues that share an exchange with validation"
            )
        if not all(apart.sources):
            raise CauserieError("all dialogues of a file are in the validation data: omit the file")
        return apart, valid

    def card(
        self,
        title: str,
        about: str,
        results: Mapping[str, Any],
        limits: Sequence[str],
        held_out: str = "one dialogue in twenty",
    ) -> str:
        """Return the card; `held_out` describes the validation data if there is no file."""
        lines = [f"# {title}", "", about, "", "## Data", ""]
        lines += [f"- annotations: `{path.name}`" for path in self.annotations]
        kind = "unlabelled dialogues:" if self.annotations else "trained on"
        lines += [f"- {kind} `{path.name}`" for path in self.data]
        lines += [f"- validated on `{path.name}`" for path in self.valid]
        if not self.valid:
            lines.append(f"- validated on {held_out} of them, which were not trained on")
        lines += [f"- without the conversations of `{path.name}`" for path in self.unseen]
        left_out = [
            f"`{name}={v}`" for name, values in self.without.items() for v in sorted(values)
        ]
        if left_out:
            lines.append(f"- without records that have {' or '.join(left_out)}")
        if self.start:
            lines.append(f"- its training went on from `{Path(self.start.name).name}`")
        lines += ["", f"Licence of the data: {self.whole_licence}", "", "## Recipe", ""]
        lines += ["```", self.recipe, "```", "", "## Facts, and results on validation data", ""]
        facts = [[key, str(value)] for key, value in results.items()]
        lines.append(markdown_table(Table(["what", "value"], facts, align="ll")))
        lines += ["", "## Limits", "", *(f"- {limit}" for limit in limits), ""]
        return "\n".join(lines)


def configure(
    trainable: type[Trainable], assignments: Sequence[str], start: Start | None = None
) -> TrainingConfig:
    """Return the configuration, with `KEY=VALUE` over defaults and the settings of the start."""
    inherited = trainable.inherited(start.artifact) if start else {}
    values = {**inherited, **parse_assignments(list(assignments))}
    return make(trainable.config, values, f"the training of {trainable.name}")
