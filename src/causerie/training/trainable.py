"""The training contract: what can be trained says from what and how, and becomes an artifact.

Whatever is trainable, a metric or the language model, has a configuration whose fields are
options, and turns a `TrainingRun` into an artifact (which can be saved and loaded, and has a
card) and the results that were measured on held-out data. `causerie train` knows no more.
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
"""The artifact, and what was measured on held-out data."""
Source: TypeAlias = Literal["dialogues", "annotations", "templates", "judgements"]


class Trainable(ABC):
    """What `causerie train NAME` can make; a class, not an object, is what is trained."""

    name: ClassVar[str]
    config: ClassVar[type[TrainingConfig]]
    """Its options are what `--set` can change."""
    learns_from: ClassVar[Source] = "dialogues"
    """What it cannot be trained without: templates come with it, and data is an addition."""
    backbone: ClassVar[Kind] = "encoder"
    """What kind of network it stands on."""

    @classmethod
    @abstractmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        """Train; killed and resumed, it ends with the same artifact."""

    @classmethod
    def inherited(cls, start: Artifact) -> Mapping[str, Any]:
        """The settings that a training which starts from an artifact has from it.

        Of its own artifacts all; of others what says how their encoder is tuned, where it is
        trained on an encoder, too.
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
    """What something is trained on and how."""

    config: Any
    """Of the type that the trainable names."""
    data: tuple[Path, ...]
    """Dialogues."""
    valid: tuple[Path, ...]
    """Empty: some of what is trained on is held out."""
    folder: Path
    """Where checkpoints and the log go."""
    annotations: tuple[Path, ...] = ()
    """Causal annotations, for a metric that learns from them; then `valid` has such, too."""
    judged: tuple[JudgedReplies, ...] = ()
    """Judged sets, for what learns from judgements."""
    unseen: tuple[Path, ...] = ()
    """Annotations kept for testing: their conversations are left out of the training."""
    licence: str = NOT_STATED
    """Of the data, by source; it is written on the card."""
    recipe: str = ""
    """The command that makes this artifact again."""
    start: Start | None = None
    without: Fields = field(default_factory=dict)
    """Dialogues with these values in these fields are left out, as quality_control=fail."""
    resume: bool = False
    """Go on with an interrupted training."""
    finish: bool = False
    """Take the best weights of an interrupted training and go on from there without it."""
    restart: bool = False
    """Begin anew where there was one, and write over it."""
    watch: Watch = ignore

    def say(self, text: str) -> None:
        """Tell what is going on apart from steps."""
        self.watch(Progress("training", note=text))

    @property
    def whole_licence(self) -> str:
        """Of all that went into the weights, also of what the start had learned from."""
        started = [self.start.artifact.licence] if self.start else []
        return joint_licence([*started, self.licence])

    def own_start(self, metric: str) -> Artifact | None:
        """The artifact that it starts from, if that is of the same metric: heads fit, too."""
        artifact = self.start.artifact if self.start else None
        return artifact if artifact and artifact.metric == metric else None

    def check(self, trainable: type[Trainable]) -> None:
        """Refuse data that it does not learn from, or the want of what it does."""
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
                f"{name} learns from judged replies: give --judged, and --data with dialogues that "
                "its cosines are compared with"
            )
        if source != "judgements" and self.judged:
            raise CauserieError(f"{name} does not learn from judgements: leave --judged out")

    def fit(
        self,
        task: Task,
        loop: LoopConfig,
        identity: Mapping[str, Any],
        folder: str = "",
        later: Sequence[str] = (),
    ) -> LoopState:
        """Run the loop in (a part of) the run's folder.

        `identity` says what decides the result besides the configuration and the start; `later`
        names options that do not.
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
        """What was trained on a backbone, before anything is measured; weights by part."""
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
        """The shipped artifact whose encoder a training leaves as it is: it is not saved again."""
        fixed = isinstance(config, EncoderConfig) and config.fixed
        return self.start.name if fixed and self.start and shipped(self.start.name) else None

    def corpora(self) -> tuple[Corpus, Corpus]:
        """What to train on, and what to validate on: no exchange is in both."""

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
            raise CauserieError("all dialogues of a file are in the validation data: leave it out")
        return apart, valid

    def card(
        self,
        title: str,
        about: str,
        results: Mapping[str, Any],
        limits: Sequence[str],
        held_out: str = "one dialogue in twenty",
    ) -> str:
        """The text that goes with an artifact; `held_out` is what validated it without a file."""
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
    """Its configuration, with `KEY=VALUE` in place of some defaults or of the start's settings."""
    inherited = trainable.inherited(start.artifact) if start else {}
    values = {**inherited, **parse_assignments(list(assignments))}
    return make(trainable.config, values, f"the training of {trainable.name}")
