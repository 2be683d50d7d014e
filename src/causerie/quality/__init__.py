"""How good is a reply? One number, learned from human judgement over what the metrics find.

A small learner sees the papers' metrics, their parts and what can be counted, and predicts where
a reply stands among judged ones. It is calibrated on judged sets that it had not seen, and every
artifact also holds the learners that left one corpus out, so that a benchmark can ask the one
which knows nothing of its sets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from causerie.dialogue import Exchange
from causerie.engines.language import STOCK
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.metrics.trained import TrainedMetric
from causerie.models.artifact import Artifact, ArtifactInfo
from causerie.options import option
from causerie.quality.config import LIMITS_OF_FAULTS, QualityConfig, Tier
from causerie.quality.dimensions import DIMENSIONS
from causerie.training.config import TrainingConfig
from causerie.training.faulty import FAULTS, MEANINGS
from causerie.training.trainable import Source, Trained, TrainingRun

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.quality.judging import Judge

__all__ = ["DIMENSIONS", "FAULTS", "Faults", "Quality", "QualityStandard"]


@dataclass(frozen=True)
class Quality(TrainedMetric):
    without: str | None = option(
        None, "use the learner that has seen no judgements of this corpus (see the card)"
    )

    name: ClassVar[str] = "quality"
    tier: ClassVar[Tier] = "fast"
    research: ClassVar[str] = "quality-research"
    summary: ClassVar[str] = "how good the reply is, learned from human judgement: 0 to 100"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type[TrainingConfig]] = QualityConfig
    learns_from: ClassVar[Source] = "judgements"

    def columns(self, level: Level) -> tuple[Column, ...]:
        percent = (0.0, 100.0)
        return (
            Column("", "share of judged replies that people liked less", range=percent, unit="%"),
            Column("rating", "the rating to be expected of people", range=(1.0, 5.0)),
            Column("uncertainty", "standard deviation of that rating", None, (0.0, None)),
            *(
                Column(name, f"{text}, likewise", range=percent)
                for name, text in DIMENSIONS.items()
            ),
        )

    @property
    def info(self) -> ArtifactInfo:
        return ArtifactInfo.find(self.artifact or self.name, Quality.name)

    def restore(self, engines: Engines, artifact: Artifact) -> Judge:
        from causerie.quality.judging import Judge

        return Judge.restore(engines, artifact)

    def unseen(self, judged: Collection[str]) -> Metric:
        """Itself as it was learned without that judged set and its siblings."""
        corpora: Mapping[str, str] = self.info.options.get("corpora", {})
        theirs = {corpora[name] for name in judged if name in corpora}
        theirs |= {name for name in judged if name in corpora.values()}
        return replace(self, without=theirs.pop()) if theirs else self

    def signature(self, engines: Engines) -> str:
        parts = [super().signature(engines)]
        if "language model" in self.needs:
            parts.append(engines.signature("language model", STOCK))
        return "|".join(parts)

    @property
    def uses(self) -> frozenset[str]:
        """None: its networks are those that it learned with."""
        return frozenset()

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        count = len(self.columns("turn"))
        rows: list[Scores] = [(Score.unscored("no context"),) * count] * len(exchanges)
        after = [i for i, exchange in enumerate(exchanges) if exchange.turn > 0]
        if after:
            _, judge = self.restored(engines)
            judged = judge([exchanges[i] for i in after], self.without, explain=explain)
            for i, found in zip(after, judged, strict=True):
                rows[i] = found
        return rows

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        from causerie.quality.learning import learn

        return learn(engines, run, cls.tier)


@dataclass(frozen=True)
class Faults(TrainedMetric):
    name: ClassVar[str] = "faults"
    summary: ClassVar[str] = "what is wrong with the reply: off topic, an echo, contradiction, ..."
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    config: ClassVar[type[TrainingConfig]] = QualityConfig
    learns_from: ClassVar[Source] = "judgements"

    def columns(self, level: Level) -> tuple[Column, ...]:
        limits: Mapping[str, float] = self.info.options.get(LIMITS_OF_FAULTS, {})
        return tuple(
            Column(
                fault,
                f"probability that the reply {MEANINGS[fault]}",
                "lower",
                (0.0, 1.0),
                limit=limits.get(fault) if level == "turn" else None,
            )
            for fault in FAULTS
        )

    @property
    def info(self) -> ArtifactInfo:
        return ArtifactInfo.find(self.artifact or Quality.name, Quality.name)

    @property
    def uses(self) -> frozenset[str]:
        """None: its networks are those that it learned with."""
        return frozenset()

    def restored(self, engines: Engines) -> tuple[Artifact, Judge]:
        """What `quality` has restored from the same artifact."""
        return Quality(artifact=self.artifact).restored(engines)

    def restore(self, engines: Engines, artifact: Artifact) -> Judge:
        return Quality(artifact=self.artifact).restore(engines, artifact)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        rows: list[Scores] = [(Score.unscored("no context"),) * len(FAULTS)] * len(exchanges)
        after = [i for i, exchange in enumerate(exchanges) if exchange.turn > 0]
        if after:
            _, judge = self.restored(engines)
            found = judge.faults([exchanges[i] for i in after])
            for i, row in zip(after, found, strict=True):
                rows[i] = tuple(Score.of(float(p)) for p in row)
        return rows

    @classmethod
    def train(cls, engines: Engines, run: TrainingRun) -> Trained:
        return Quality.train(engines, run)


@dataclass(frozen=True)
class QualityStandard(Quality):
    """The same with the default language model's reading of every reply."""

    name: ClassVar[str] = "quality-standard"
    tier: ClassVar[Tier] = "standard"
    research: ClassVar[str] = "quality-standard-research"
    summary: ClassVar[str] = (
        "quality with what the default language model finds: dearer, and no surer so far"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"encoder", "language model"})
