"""The end of a training: the new artifact compared with the shipped one and with no training."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causerie.metrics.similarity import untrained_cosines
from causerie.metrics.trained import TrainedMetric
from causerie.models.artifact import Artifact, ArtifactInfo, shipped
from causerie.stats import ClusteredRatio, Estimate, rank_of_true
from causerie.training.negatives import clusters_of, corpus_items

if TYPE_CHECKING:
    from causerie.dialogue import Exchange
    from causerie.engines import Engines
    from causerie.stats import FloatArray
    from causerie.training.corpus import Corpus
    from causerie.training.trainable import TrainingRun

RANKED = 500
"""Number of held-out exchanges that are ranked."""
COSINE = "the untrained cosine"


def verdict(
    metric: type[TrainedMetric],
    engines: Engines,
    run: TrainingRun,
    artifact: Artifact,
    held: Corpus,
) -> dict[str, str]:
    """Compare the R@1 of a new artifact with the shipped one's and the untrained cosine's.

    The shipped artifact is left out if it is built on another encoder than this training.
    """
    run.say("comparing with the shipped artifact and with the untrained cosine")
    items = corpus_items(held, RANKED, run.config.seed)
    exchanges = [exchange for item in items for exchange in item]
    ends = np.cumsum([len(item) for item in items])[:-1]
    clusters = clusters_of(item[0] for item in items)

    def found(scores: FloatArray) -> ClusteredRatio:
        return ClusteredRatio.of(rank_of_true(np.split(scores, ends)) == 1, clusters)

    run.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=run.folder) as folder:
        artifact.save(Path(folder) / metric.name)  # metrics read artifacts from folders
        new = found(_scores(metric(str(Path(folder) / metric.name)), exchanges, engines))
    others = {COSINE: found(untrained_cosines(engines.encoder, exchanges))}
    default = shipped(metric.name)
    if default is not None:
        info = ArtifactInfo.read(default)
        if info.backbone_sha256 == artifact.backbone_sha256 and info.sha256 != artifact.sha256:
            others[f"the {metric.name} that comes with causerie"] = found(
                _scores(metric(str(default)), exchanges, engines)
            )
    return told(metric.name, new, others, len(items), max(map(len, items)))


def told(
    name: str, new: ClusteredRatio, others: Mapping[str, ClusteredRatio], n: int, candidates: int
) -> dict[str, str]:
    """Return the shares with their intervals, and a sentence on the differences."""
    shares = {name: new, **others}
    on = f"on {n:,} held-out exchanges"
    results = {f"R@1 of {candidates} {on}, {who}": own.text() for who, own in shares.items()}
    gains = {who: new.estimate(own) for who, own in others.items()}
    said = [f"{_word(gain)} {who}: R@1 {gain.text(3, signed=True)}" for who, gain in gains.items()]
    return {**results, "verdict": f"{name} {'; '.join(said)}"}


def _word(gain: Estimate) -> str:
    if (gain.low or 0) > 0:
        return "better than"
    return "worse than" if (gain.high or 0) < 0 else "cannot be told apart from"


def _scores(metric: TrainedMetric, exchanges: Sequence[Exchange], engines: Engines) -> FloatArray:
    """Return the score of each exchange, NaN if it is unscored."""
    rows = metric.score_exchanges(exchanges, engines)
    return np.array([np.nan if row[0].value is None else row[0].value for row in rows])
