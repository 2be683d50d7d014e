"""How well causalscore finds annotated causes, and true responses among random ones.

For each file of annotations: both classifiers beside two baselines (always positive, and position
only), and the AUC of true against random responses by every score. Intervals are clustered by
dialogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causerie._version import __version__
from causerie.engines import Engines
from causerie.metrics.causalscore import CausalScore
from causerie.metrics.causalscore.formula import SCORES, CausalGraph
from causerie.metrics.causalscore.measure import (
    DRAWN,
    SIGNIFICANT,
    Answered,
    DiscoveryTest,
    always_positive,
    evaluation_examples,
    position_only,
    predict,
    with_random_responses,
)
from causerie.metrics.causalscore.questions import Example
from causerie.progress import Progress, Watch, ignore
from causerie.render.tables import Cell, Table, markdown_table
from causerie.stats import (
    Estimate,
    auc_of_clusters,
    balanced_accuracy_of_clusters,
    estimates_of,
)
from causerie.training.corpus import AnnotatedCorpus

POOLED = "all"


@dataclass(frozen=True)
class Answering:
    """How well one classifier or baseline does."""

    name: str
    auc: Estimate
    at_equal_distance: Estimate
    """AUC among utterances equally far from their response, where position is uninformative."""
    balanced_accuracy: Estimate


@dataclass(frozen=True)
class DomainCauses:
    """Results on one file of annotations, or on all of them together."""

    name: str
    exchanges: int
    dialogues: int
    unconditional: tuple[Answering, ...]
    conditional: tuple[Answering, ...]
    true_against_random: Mapping[str, Estimate]
    """AUC by name of the score."""


@dataclass(frozen=True)
class CausesResult:
    signature: str
    domains: tuple[DomainCauses, ...]


@dataclass(frozen=True)
class _Measured:
    """The examples of one file with their predictions, and graphs of true and random responses."""

    examples: Mapping[str, list[Example]]
    answers: Mapping[str, Mapping[str, Answered]]
    true: list[CausalGraph]
    random: list[CausalGraph]
    conversations: list[tuple[str, ...]]


def run_causes(
    metric: CausalScore,
    engines: Engines,
    corpus: AnnotatedCorpus,
    names: Sequence[str],
    *,
    test: DiscoveryTest | None = None,
    resamples: int = 1000,
    seed: int = 0,
    watch: Watch = ignore,
) -> CausesResult:
    """Measure on annotations unseen in training; `names` are those of the files."""
    measured = []
    for number, (name, source) in enumerate(zip(names, corpus.sources, strict=True)):
        watch(Progress(name, number, len(names), "files"))
        measured.append(_measure(metric, engines, AnnotatedCorpus((source,)), test, seed))
    domains = [
        _domain(name, [one], resamples, seed) for name, one in zip(names, measured, strict=True)
    ]
    if len(measured) > 1:
        domains.append(_domain(POOLED, measured, resamples, seed))
    signature = " ".join(
        [
            f"causerie|{__version__}",
            f"seed|{seed}",
            f"annotations|{corpus.sha256[:12]}",
            metric.signature(engines),
        ]
    )
    return CausesResult(signature, tuple(domains))


def _measure(
    metric: CausalScore,
    engines: Engines,
    corpus: AnnotatedCorpus,
    test: DiscoveryTest | None,
    seed: int,
) -> _Measured:
    examples: dict[str, list[Example]] = {}
    answers: dict[str, dict[str, Answered]] = {}
    _, classifiers = metric.restored(engines)
    asked = evaluation_examples(classifiers, corpus, seed, metric.history)
    for name, (classifier, questions) in asked.items():
        examples[name] = questions
        answers[name] = {
            name: predict(classifier, questions),
            "position only": position_only(questions),
            "always positive": always_positive(questions),
        }
        if test:
            answers[name]["test without learning"] = predict(test, questions, SIGNIFICANT)
    return _Measured(
        examples,
        answers,
        metric.graphs([one.exchange for one in corpus.annotations], engines),
        metric.graphs([e for s in corpus.sources for e in with_random_responses(s, seed)], engines),
        [one.conversation for one in corpus.annotations],
    )


def _domain(name: str, parts: Sequence[_Measured], resamples: int, seed: int) -> DomainCauses:
    conversations = [c for part in parts for c in part.conversations]
    scores = [
        [score(graph) for part in parts for graph in (*part.true, *part.random)]
        for score in SCORES.values()
    ]
    labels = [label for p in parts for label in [True] * len(p.true) + [False] * len(p.random)]
    clusters = [
        c
        for part in parts
        for c in (*part.conversations, *(c for c in part.conversations for _ in range(DRAWN)))
    ]
    found = estimates_of(
        auc_of_clusters(scores, labels, clusters), len(labels), resamples=resamples, seed=seed
    )
    return DomainCauses(
        name,
        len(conversations),
        len(set(conversations)),
        _answering(parts, "C_uncond", resamples, seed),
        _answering(parts, "C_cond", resamples, seed),
        dict(zip(SCORES, found, strict=True)),
    )


def _answering(
    parts: Sequence[_Measured], classifier: str, resamples: int, seed: int
) -> tuple[Answering, ...]:
    examples = [example for part in parts for example in part.examples[classifier]]
    labels = [example.label for example in examples]
    clusters = [example.conversation for example in examples]
    names = list(parts[0].answers[classifier])
    answers = [[part.answers[classifier][name] for part in parts] for name in names]
    scores = [np.concatenate([one.scores for one in row]) for row in answers]
    decisions = [np.concatenate([one.decisions for one in row]) for row in answers]
    distances = [example.distance for example in examples]
    columns = (
        estimates_of(statistic, len(labels), resamples=resamples, seed=seed)
        for statistic in (
            auc_of_clusters(scores, labels, clusters),
            auc_of_clusters(scores, labels, clusters, distances),
            balanced_accuracy_of_clusters(decisions, labels, clusters),
        )
    )
    return tuple(map(Answering, names, *columns))


def causes_tables(result: CausesResult) -> list[Table]:
    """Return a table for each classifier, and one for true against random responses."""
    headings = ["data", "answer", "AUC", "AUC at equal distance", "balanced accuracy"]
    titles = {"unconditional": "Dependent or not", "conditional": "Dependent given another"}
    tables = []
    for kind, title in titles.items():
        rows: list[list[Cell]] = [
            [domain.name, one.name, one.auc, one.at_equal_distance, one.balanced_accuracy]
            for domain in result.domains
            for one in getattr(domain, kind)
        ]
        tables.append(Table(headings, rows, title, align="llrrr"))
    true: list[list[Cell]] = [[d.name, *d.true_against_random.values()] for d in result.domains]
    return [*tables, Table(["data", *SCORES], true, "True against random responses: AUC")]


def causes_markdown(result: CausesResult) -> str:
    """Return the tables as Markdown, with the sizes of the data and the signature."""
    sizes = [f"{d.name} {d.exchanges:,} of {d.dialogues:,} dialogues" for d in result.domains]
    lines = ["## Annotated causes", ""]
    lines += [f"Exchanges: {'; '.join(sizes)}. 95% intervals by dialogue.", ""]
    for table in causes_tables(result):
        lines += [f"### {table.title}", "", markdown_table(table), ""]
    return "\n".join([*lines, f"signature: `{result.signature}`", ""])
