"""Robustness probe: does a metric rank the true answer above a corrupted one?

The accuracy of every column on each adversarial set, and on `random` answers from other
dialogues: 1 where the true answer scores better, ½ where both tie. A good metric is near 1 on
attacks and near 0.5 on controls, whose changes are harmless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from causerie._version import __version__
from causerie.bench.run import unusable, without
from causerie.bench.sets.catalogue import catalogue, entry_for, find_set
from causerie.bench.sets.judged import AttackItem, AttackSet, read_attack, tell_rejected
from causerie.bench.sets.units import whole_clusters
from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.progress import Watch, ignore
from causerie.render.tables import Cell, Marked, Table, markdown_table
from causerie.scoring.scorer import Scorer
from causerie.stats import Estimate, ranking_estimates

RANDOM = "random"
_UNSCORED = "no pair has a score on both sides"


@dataclass(frozen=True)
class AttackResult:
    """One attack on one corpus, with the accuracy of every column."""

    name: str
    """`ATTACK`, or `CORPUS.ATTACK`."""
    control: bool
    items: int
    of_items: int
    """Number of pairs in the whole set."""
    clusters: int
    sha256: str
    """Hash of the file; empty for random answers."""
    accuracy: Mapping[str, Estimate]
    """Share of true answers above their corrupted twins by column, ties counting half."""
    unscored: Mapping[str, Mapping[str, int]]
    """Number of unscored answers by column and reason."""

    @property
    def corpus(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def attack(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class ProbeColumn:
    """A column of a metric."""

    name: str
    sentinel: bool
    higher_is_better: bool


@dataclass(frozen=True)
class ProbeResult:
    """Accuracies by attack and column."""

    signature: str
    columns: tuple[ProbeColumn, ...]
    attacks: tuple[AttackResult, ...]


def run_probe(
    scorer: Scorer,
    folder: str | Path,
    *,
    attacks: Sequence[str] | None = None,
    optional: Collection[str] = (),
    max_items: int = 500,
    seed: int = 0,
    resamples: int = 1000,
    watch: Watch = ignore,
) -> ProbeResult:
    """Probe metrics on the adversarial sets of a folder, with at most `max_items` pairs of each.

    Samples consist of whole contexts. `attacks` names sets (`ner`, `personachat.ner`; `random` and
    `personachat.random` are made from the corpus's true answers); the default is all that the
    folder has. Samples and random answers are drawn with the seed. `optional` metrics that cannot
    be used are left out.
    """
    sets = _chosen(folder, attacks, seed)
    for attack in sets:
        tell_rejected(attack, watch)
    drawn = [whole_clusters(attack.items, max_items, seed) for attack in sets]
    scorer = without(scorer, unusable(scorer, _answers(drawn[0]), optional, watch))
    plan, results = scorer.plan, []
    for attack, items in zip(sets, drawn, strict=True):
        batch = scorer.score_all(_answers(items), task=f"scoring {attack.name}", watch=watch)
        clusters = [item.cluster for item in items]
        accuracy = {}
        for name, about in plan.columns.items():
            pairs = (about.sign * batch.values(name)).reshape(-1, 2)
            ranking = ranking_estimates(list(pairs), clusters, resamples=resamples, seed=seed)
            accuracy[name] = ranking.above
        results.append(
            AttackResult(
                attack.name,
                attack.control,
                len(items),
                len(attack.items),
                len(set(clusters)),
                attack.sha256,
                accuracy,
                {name: batch.reasons(name) for name in plan.columns},
            )
        )
    columns = tuple(
        ProbeColumn(name, about.sentinel, about.better != "lower")
        for name, about in plan.columns.items()
    )
    data = [f"{s.name}:{s.sha256[:12]}" if s.sha256 else s.name for s in sets]
    said = [f"causerie|{__version__}", f"seed|{seed}", f"max-items|{max_items}"]
    signature = " ".join([*said, *plan.signatures.values(), *data])
    return ProbeResult(signature, columns, tuple(results))


def _answers(items: Iterable[AttackItem]) -> list[Exchange]:
    """Return every true answer, each followed by its corrupted twin."""
    return [answer for item in items for answer in (item.true, item.corrupted)]


def _chosen(folder: str | Path, attacks: Sequence[str] | None, seed: int) -> list[AttackSet]:
    """Return the requested sets; each corpus ends with its random answers."""
    present = _present(folder)
    wanted = list(dict.fromkeys(attacks)) if attacks is not None else None
    if wanted is None:
        if not present:
            raise CauserieError(
                f"{folder} has no adversarial set: `causerie bench sets` says where to get them"
            )
        corpora = {name.rpartition(".")[0] for name in present}
        wanted = sorted(present) + [_random_name(corpus) for corpus in corpora]
    load = cache(read_attack)
    sets = []
    for name in sorted(wanted, key=lambda n: (n.rpartition(".")[0], _is_random(n))):
        if _is_random(name):
            corpus = name.rpartition(".")[0]
            paths = [path for n, path in sorted(present.items()) if n.rpartition(".")[0] == corpus]
            sets.append(_random(name, map(load, paths), seed))
        else:
            sets.append(load(present.get(name) or find_set(name, folder)))
    return sets


def _present(folder: str | Path) -> dict[str, Path]:
    found = {}
    for entry in catalogue().values():
        if entry.level == "attack":
            try:
                found[entry.name] = find_set(entry.name, folder)
            except CauserieError:
                if not Path(folder).is_dir():
                    raise
    return found


def _random_name(corpus: str) -> str:
    return f"{corpus}.{RANDOM}" if corpus else RANDOM


def _is_random(name: str) -> bool:
    return name.rpartition(".")[2] == RANDOM


def _random(name: str, sets: Iterable[AttackSet], seed: int) -> AttackSet:
    """Pair every true answer of a corpus with an answer from another of its dialogues."""
    known: dict[tuple[str, ...], AttackItem] = {}
    for attack in sets:
        for item in attack.items:
            known.setdefault(tuple(turn.text for turn in item.true.dialogue.turns), item)
    # Clusters are named after items within a file: across files the context decides.
    items = [replace(item, cluster="\n".join(turns[:-1])) for turns, item in known.items()]
    shuffled = [items[i] for i in np.random.default_rng(seed).permutation(len(items)).tolist()]
    drawn = []
    for place, item in enumerate(shuffled):
        others = (shuffled[(place + step) % len(shuffled)] for step in range(1, len(shuffled)))
        answer = next((_answer(other) for other in others if _strangers(item, other)), None)
        if answer is not None:
            drawn.append(replace(item, corrupted=item.true.with_response(answer)))
    if not drawn:
        raise CauserieError(
            f"{name} needs the adversarial sets of its corpus, which the folder does not have: "
            "omit it"
        )
    return AttackSet(name, tuple(drawn), False, (), "")


def _strangers(item: AttackItem, other: AttackItem) -> bool:
    return other.cluster != item.cluster and _answer(other) != _answer(item)


def _answer(item: AttackItem) -> str:
    return item.true.response.text


def probe_tables(result: ProbeResult) -> list[Table]:
    """Return tables of columns by attacks, one per corpus, attacks and controls apart."""
    tables = []
    for control, heading in ((False, "Attacks"), (True, "Controls")):
        chosen = [a for a in result.attacks if a.control == control]
        for corpus in dict.fromkeys(attack.corpus for attack in chosen):
            of_corpus = [attack for attack in chosen if attack.corpus == corpus]
            title = f"{heading}: {_corpus_title(of_corpus)}"
            tables.append(_table(result.columns, of_corpus, title, with_mean=not control))
    return tables


def probe_markdown(result: ProbeResult) -> str:
    """Return the tables as Markdown, with an explanation and the signature."""
    lines = [
        "## True answers against corrupted ones",
        "",
        "Share of true answers that score above their corrupted twin, ties counting half, with",
        "95% intervals. Sentinels are in italics.",
    ]
    harmless = "The changes of controls are harmless: there, 0.5 is right."
    for table in probe_tables(result):
        if table.title.startswith("Controls") and harmless not in lines:
            lines += ["", harmless]
        lines += ["", f"### {table.title}", "", markdown_table(table)]
    lines += ["", *_without_number(result), f"signature: `{result.signature}`", ""]
    return "\n".join(lines)


def _table(
    columns: Sequence[ProbeColumn], attacks: Sequence[AttackResult], title: str, with_mean: bool
) -> Table:
    rows: list[list[Cell]] = []
    for column in columns:
        name = Marked(column.name, "emphasis") if column.sentinel else column.name
        estimates = [attack.accuracy[column.name] for attack in attacks]
        values = [e.value for e in estimates if e.value is not None]
        whole = len(values) == len(estimates)
        mean = [sum(values) / len(values) if whole else ""] if with_mean else []
        rows.append([name, *estimates, *mean])
    head = ["", *(f"{a.attack.replace('_', ' ')} (n={a.items})" for a in attacks)]
    return Table([*head, "mean"] if with_mean else head, rows, title, digits=2)


def _corpus_title(attacks: Sequence[AttackResult]) -> str:
    """Return the name of the corpus, which is in brackets in the catalogue's titles."""
    for attack in attacks:
        _, bracket, title = entry_for(attack.name).title.rpartition(" (")
        if bracket:
            return title.removesuffix(")")
    return attacks[0].corpus or "other"


def _without_number(result: ProbeResult) -> list[str]:
    """Return why cells are empty, once per column."""
    lines = []
    for column in result.columns:
        for attack in result.attacks:
            if attack.accuracy[column.name].value is None:
                reasons = ", ".join(attack.unscored.get(column.name, {})) or _UNSCORED
                lines += [f"`{column.name}` has no number on some sets: {reasons}.", ""]
                break
    return lines
