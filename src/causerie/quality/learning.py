"""How `quality` learns: judged sets and faulty replies in, an artifact and its honest numbers out.

Ratings become ranks within their set, and sets count alike. For every corpus a learner leaves
all its sets out; what is reported, and what calibrates, comes from these alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats as scipy_stats

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.licences import joint_licence
from causerie.models.artifact import Artifact
from causerie.progress import Progress
from causerie.quality.config import LIMITS_OF_FAULTS, QualityConfig, Tier
from causerie.quality.dimensions import DIMENSIONS, dimension_of
from causerie.quality.faulting import (
    MadeReplies,
    calibrate_faults,
    learn_faults,
    out_of_fold,
    report_faults,
)
from causerie.quality.features import Parts, descriptions
from causerie.quality.judging import ALL, OVERALL, TARGETS, Calibration, Judge
from causerie.quality.learner import Learner
from causerie.training.corpus import Corpus, sample
from causerie.training.judgements import JudgedReplies
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

    Floats = NDArray[np.float64]

MADE = "made faulty"
"""The corpus of replies that were made faulty: nobody judged them."""
QUANTILES, STEPS = 1001, 11
RESAMPLES = 1000
CHUNK = 256
LEAST_SETS = 2
"""Judged sets that a learner of one quality needs."""
LIMITS = (
    "English, open-domain conversation.",
    "Learned from replies of systems of 2017 to 2021, most of them weaker than today's: among good "
    "replies its differences are small and its intervals wide.",
    "Judges how replies please, not whether they are true.",
)


@dataclass(frozen=True, eq=False)
class Measured:
    """One set as the learner sees it."""

    replies: JudgedReplies
    features: Floats
    targets: Mapping[str, Floats]
    """Rank within the set, from 0 to 1, by target; not a number where nobody judged it."""
    ratings: Floats
    """What people gave overall, from 1 to 5."""


def learn(engines: Engines, run: TrainingRun, tier: Tier) -> Trained:
    """Measure the replies, fit learners with and without every corpus, calibrate, report."""
    config: QualityConfig = run.config
    taken = [one for one in run.judged if one.allowed(config.terms)]
    left = [one for one in run.judged if not one.allowed(config.terms)]
    if not taken:
        raise CauserieError(
            f"none of the judged sets may be learned from under terms={config.terms}: give others, "
            "or --set terms=research"
        )
    corpus = Corpus.read(run.data, lambda record: run.say(f"skipped {record}"), run.without)
    parts = Parts(engines)
    bank = parts.bank(_bank_replies(corpus, config))
    halves = [MadeReplies.of(half, config.made, config.seed) for half in corpus.halves(config.seed)]

    def measured(some: Sequence[JudgedReplies]) -> list[Measured]:
        found = []
        for number, one in enumerate(some):
            run.watch(Progress(f"measuring {one.name}", number, len(some), "sets"))
            drawn = _drawn(one, config)
            found.append(_measured(drawn, features(drawn.exchanges)))
        return found

    def features(exchanges: Sequence[Exchange]) -> Floats:
        parts_of = [
            parts.measure(exchanges[i : i + CHUNK], bank, tier)
            for i in range(0, len(exchanges), CHUNK)
        ]
        return np.concatenate(parts_of)

    faulty = [features(half.exchanges) for half in halves]
    made = _measured(_as_judged(halves[0]), faulty[0])
    learned, others = [*measured(taken), made], measured(left)
    learners, said = fit_all(learned, others, config)
    judged = [one for one in (*learned, *others) if one.replies.corpus != MADE]
    calibrations = {target: calibrate(judged, said[target], target) for target in TARGETS}
    all_made = MadeReplies.joined(halves)
    learners |= learn_faults(np.concatenate(faulty), all_made, config.seed)
    found = out_of_fold(faulty, halves, config.seed)
    lines, limits = calibrate_faults(found, all_made)
    judge = Judge(parts, bank, tier, learners, calibrations, lines)
    overall = {
        one.replies.name: calibrations[OVERALL].share(said[OVERALL][one.replies.name])
        * judge.sound(one.features)
        for one in judged
    }
    results = {
        **report(judged, overall, config.seed),
        **report_faults(found, lines, limits, all_made),
    }
    backbone = engines.encoder
    artifact = Artifact(
        metric="quality",
        backbone=backbone.name,
        backbone_sha256=backbone.sha256,
        options={
            **asdict(config),
            "tier": tier,
            "corpora": {one.replies.name: one.replies.corpus for one in learned if one in judged},
            "parts": parts.digests,
            LIMITS_OF_FAULTS: limits,
        },
        network={},
        statistics=judge.tensors(),
        card="",
        licence=joint_licence([run.licence]),
    )
    return replace(artifact, card=_card(run, taken, left, results, tier)), results


def fit_all(
    learned: Sequence[Measured], others: Sequence[Measured], config: QualityConfig
) -> tuple[dict[tuple[str, str], Learner], dict[str, dict[str, Floats]]]:
    """Learners by target and the corpus left out, and by target what they say of unseen sets."""
    corpora = sorted({one.replies.corpus for one in learned} - {MADE})
    learners: dict[tuple[str, str], Learner] = {}
    said: dict[str, dict[str, Floats]] = {}
    for target in TARGETS:
        of_target = [one for one in learned if np.isfinite(one.targets[target]).any()]
        for left_out in (ALL, *corpora):
            some = [one for one in of_target if one.replies.corpus != left_out]
            if target == OVERALL or len(some) >= LEAST_SETS:
                learners[target, left_out] = _fit(some, target, config)
            else:  # too few sets judge it: the overall quality stands in
                learners[target, left_out] = learners[OVERALL, left_out]
        said[target] = {
            one.replies.name: learners.get((target, one.replies.corpus), learners[target, ALL])(
                one.features
            )
            for one in (*learned, *others)
        }
    return learners, said


def _fit(some: Sequence[Measured], target: str, config: QualityConfig) -> Learner:
    known = [np.isfinite(one.targets[target]) for one in some]
    x = np.concatenate([one.features[k] for one, k in zip(some, known, strict=True)])
    y = np.concatenate([one.targets[target][k] for one, k in zip(some, known, strict=True)])
    weights = np.concatenate([np.full(k.sum(), 1 / k.sum()) for k in known if k.any()])
    return Learner.fit(
        x,
        y,
        weights * len(weights) / weights.sum(),
        trees=config.trees,
        leaves=config.leaves,
        penalty=config.penalty,
        seed=config.seed,
    )


def calibrate(some: Sequence[Measured], said: Mapping[str, Floats], target: str) -> Calibration:
    """What the predictions for unseen sets mean; sets count alike."""
    levels = np.linspace(0, 1, QUANTILES)
    sets = [one for one in some if np.isfinite(one.targets[target]).any()]
    each = [np.quantile(said[one.replies.name], levels) for one in sets or some]
    quantiles = np.quantile(np.concatenate(each), levels)
    nothing = np.zeros(0)
    found = Calibration(quantiles, nothing, nothing)
    if target != OVERALL:
        return found
    shares = np.concatenate([found.share(said[one.replies.name]) for one in sets])
    ratings = np.concatenate([one.ratings for one in sets])
    weights = np.concatenate([np.full(len(one.ratings), 1 / len(one.ratings)) for one in sets])
    known = np.isfinite(ratings)
    centres = np.linspace(0, 100, STEPS)
    means, deviations = [], []
    for centre in centres:
        near = weights * known * np.exp(-(((shares - centre) / 10) ** 2) / 2)
        mean = float(np.average(ratings[known], weights=near[known]))
        squares = (ratings[known] - mean) ** 2
        means.append(mean)
        deviations.append(float(np.sqrt(np.average(squares, weights=near[known]))))
    return Calibration(quantiles, np.maximum.accumulate(means), np.array(deviations))


def report(some: Sequence[Measured], said: Mapping[str, Floats], seed: int) -> dict[str, Any]:
    """Spearman's rho with people on every set, by learners that have not seen its corpus."""
    rng = np.random.default_rng(seed)
    rows: dict[str, Any] = {}
    draws, values = [], []
    for one in some:
        known = np.isfinite(one.ratings)
        mine, theirs = said[one.replies.name][known], one.ratings[known]
        clusters = np.unique(np.array(one.replies.clusters)[known], return_inverse=True)[1]
        places = [np.flatnonzero(clusters == c) for c in range(clusters.max() + 1)]
        value = float(scipy_stats.spearmanr(mine, theirs)[0])
        drawn = []
        for _ in range(RESAMPLES):
            picked = np.concatenate(
                [places[c] for c in rng.integers(len(places), size=len(places))]
            )
            drawn.append(scipy_stats.spearmanr(mine[picked], theirs[picked])[0])
        low, high = np.nanquantile(drawn, (0.025, 0.975))
        rows[f"{one.replies.name} (n={len(mine):,}), Spearman"] = (
            f"{value:.3f} [{low:.3f}, {high:.3f}]"
        )
        values.append(value)
        draws.append(drawn)
    low, high = np.nanquantile(np.nanmean(draws, axis=0), (0.025, 0.975))
    mean = f"{np.mean(values):.3f} [{low:.3f}, {high:.3f}]"
    return {f"mean of {len(values)} judged sets, each unseen": mean, **rows}


def _drawn(replies: JudgedReplies, config: QualityConfig) -> JudgedReplies:
    """At most so many replies, whole clusters, without those that cannot be measured."""
    usable = [
        i
        for i, exchange in enumerate(replies.exchanges)
        if exchange.turn > 0 and exchange.response.text.strip()
    ]
    clusters: dict[str, list[int]] = {}
    for i in usable:
        clusters.setdefault(replies.clusters[i], []).append(i)
    kept: list[int] = []
    for own in random.Random(config.seed).sample(list(clusters.values()), len(clusters)):
        if len(kept) + len(own) <= config.per_set or not kept:
            kept += own
    kept.sort()
    return replace(
        replies,
        exchanges=tuple(replies.exchanges[i] for i in kept),
        clusters=tuple(replies.clusters[i] for i in kept),
        humans=tuple(replies.humans[i] for i in kept) if replies.humans else (),
        ratings={name: values[kept] for name, values in replies.ratings.items()},
    )


def _measured(replies: JudgedReplies, features: Floats) -> Measured:
    names = {name: dimension_of(name, replies.ratings) for name in DIMENSIONS}
    wanted = {OVERALL: replies.main, **names}
    nobody = np.full(len(replies), np.nan)
    low, high = replies.scales[replies.main]
    return Measured(
        replies,
        features,
        {t: _ranks(replies.ratings[d]) if d else nobody for t, d in wanted.items()},
        1 + 4 * (replies.ratings[replies.main] - low) / (high - low),
    )


def _ranks(ratings: Floats) -> Floats:
    """Ranks from 0 to 1 of those that were judged, ties in the middle."""
    ranks = np.full(len(ratings), np.nan)
    known = np.isfinite(ratings)
    ranks[known] = (scipy_stats.rankdata(ratings[known]) - 0.5) / max(1, known.sum())
    return ranks


def _bank_replies(corpus: Corpus, config: QualityConfig) -> list[str]:
    """Replies of the dialogues, some of each file."""
    replies = []
    for source in corpus.sources:
        own = list(dict.fromkeys(e.response.text for d in source for e in d.exchanges()))
        share = -(-config.bank // len(corpus.sources))
        replies += sample([text for text in own if text.strip()], share, config.seed)
    return replies


def _as_judged(made_ones: MadeReplies) -> JudgedReplies:
    """Made replies as one more judged set: good ones are liked, faulty ones are not."""
    return JudgedReplies(
        MADE,
        MADE,
        "that of the dialogues",
        "strict",
        made_ones.exchanges,
        {"good": made_ones.fine.astype(np.float64)},
        {"good": (0.0, 1.0)},
        "good",
        tuple(f"made/{cluster}" for cluster in made_ones.clusters),
    )


def _card(
    run: TrainingRun,
    taken: Sequence[JudgedReplies],
    left: Sequence[JudgedReplies],
    results: Mapping[str, Any],
    tier: Tier,
) -> str:
    config: QualityConfig = run.config
    about = (
        f"A small learner over {len(descriptions(tier))} numbers (tier `{tier}`) that predicts "
        "where a reply stands among judged ones. What is stored is numbers about numbers: no text "
        "of the judged sets. Every result is of a learner that saw no set of the same corpus."
    )
    facts = {f"learned from {one.name} ({one.corpus})": one.licence for one in taken} | {
        f"only tested on {one.name} ({one.corpus})": one.licence for one in left
    }
    facts["terms"] = config.terms
    return run.card("quality", about, {**facts, **results}, LIMITS)
