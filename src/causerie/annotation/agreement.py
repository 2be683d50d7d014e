"""How far annotators agree: with each other, with the correct answers, and over time.

Only the first round counts, because a reviewer has seen what somebody else marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from causerie.annotation.marks import State
from causerie.annotation.project import Assignment, Snapshot
from causerie.annotation.tasks import Item, Question, Task, clauses_in
from causerie.stats import (
    Estimate,
    FloatArray,
    cohen_kappa,
    cyclic_triples,
    krippendorff_alpha,
    leave_one_out_ratings,
    vote_codes,
)

STEPS = 10
"""Number of points of a curve over time."""
KAPPA, ALPHA, F1 = "Cohen's kappa", "Krippendorff's alpha", "F1 of clauses"
CIRCLES, CEILING = "preferred in a circle", "one against the others"


@dataclass(frozen=True)
class Between:
    """Agreement of two annotators on the items that both have finished."""

    first: str
    second: str
    items: int
    measures: Mapping[str, Estimate]


@dataclass(frozen=True)
class Agreement:
    items: int
    """Number of items that several annotators have finished."""
    by_name: Mapping[str, Mapping[str, Estimate]]
    """Every measure, by label or question."""
    between: tuple[Between, ...]


@dataclass(frozen=True)
class Quality:
    """How good an annotator's work is, from 0 to 1."""

    gold: Estimate
    """Mean similarity to the correct answers of the dry run."""
    others: Estimate
    """Mean similarity to what others found in the first round."""

    @property
    def value(self) -> float | None:
        """The mean of both, or whichever is known."""
        known = [one.value for one in (self.gold, self.others) if one.value is not None]
        return sum(known) / len(known) if known else None


def agreement(project: Snapshot) -> Agreement:
    """Measure agreement in the first round, over all annotators and between every two of them."""
    done = _done(project)
    shared = {item: works for item, works in done.items() if len(works) > 1}
    people = sorted({person for works in shared.values() for person in works})
    between = []
    for one, other in combinations(people, 2):
        both = {i: works for i, works in shared.items() if one in works and other in works}
        if both:
            names = (project.people[one].name, project.people[other].name)
            found = _measures(project, both, [one, other])
            pooled = {m: _pooled([by[m] for by in found.values()]) for m in _between(project.task)}
            between.append(Between(*names, len(both), pooled))
    measured = _measures(project, shared, people) if shared else {}
    return Agreement(len(shared), measured, tuple(between))


def similarity(one: State, other: State, item: Item, task: Task) -> float:
    """Return the similarity of two states (0 to 1): F1 of clauses, or nearness of answers."""
    if task.is_marked:
        found = [_labelled(state, item, task) for state in (one, other)]
        total = len(found[0]) + len(found[1])
        return 2 * len(found[0] & found[1]) / total if total else 1.0
    scale = {question.name: question.scale for question in task.questions}
    near = []
    for asked in one.answers.keys() & other.answers.keys():
        a, b = one.answers[asked], other.answers[asked]
        if isinstance(a, int) and isinstance(b, int):
            near.append(1 - abs(a - b) / (scale[asked[1]] - 1))
        else:
            near.append(float(a == b))
    return sum(near) / len(near) if near else 1.0


def qualities(project: Snapshot) -> dict[int, Quality]:
    """Return everybody's quality, by person."""
    gold: dict[int, list[float]] = defaultdict(list)
    for one in project.assignments.values():
        listed, state = project.items[one.item], project.states[one.id]
        if one.round == "dry" and listed.gold is not None and state.finished:
            found = similarity(project.judged(one.id), listed.gold, listed.item, project.task)
            gold[one.person].append(found)
    others = {person: [near for _, near in nears] for person, nears in _to_others(project).items()}
    return {
        person: Quality(_mean(gold.get(person, [])), _mean(others.get(person, [])))
        for person in project.people
    }


def over_time(project: Snapshot) -> dict[int, list[float]]:
    """Return each person's mean similarity to the others, over steps of the items they finished."""
    curves = {}
    for person, nears in _to_others(project).items():
        values = [near for _, near in sorted(nears)]
        parts = np.array_split(np.array(values), min(STEPS, len(values)))
        curves[person] = [float(part.mean()) for part in parts]
    return curves


def disagreements(project: Snapshot) -> list[tuple[int, float]]:
    """Return items that several have finished and how far they differ (0 to 1), largest first."""
    found = []
    for item, works in _done(project).items():
        pairs = combinations([project.judged(one.id) for one in works.values()], 2)
        listed = project.items[item].item
        near = [similarity(a, b, listed, project.task) for a, b in pairs]
        if near:
            found.append((item, 1 - sum(near) / len(near)))
    return sorted(found, key=lambda one: (-one[1], one[0]))


def _done(project: Snapshot) -> dict[int, dict[int, Assignment]]:
    """Return the finished assignments of the first round, by item and person."""
    return {
        item: {one.person: one for one in found}
        for item in project.items
        if (found := project.finished(item, "first"))
    }


def _to_others(project: Snapshot) -> dict[int, list[tuple[float, float]]]:
    """Return, by person, when each shared item was finished and its mean similarity to others."""
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for item, works in _done(project).items():
        listed = project.items[item].item
        states = {person: project.judged(one.id) for person, one in works.items()}
        for person, state in states.items():
            rest = [
                similarity(state, other, listed, project.task)
                for key, other in states.items()
                if key != person
            ]
            if rest:
                last = project.events[works[person].id][-1].at
                found[person].append((last, sum(rest) / len(rest)))
    return dict(found)


def _between(task: Task) -> tuple[str, ...]:
    return (KAPPA, ALPHA, F1) if task.is_marked else (KAPPA, ALPHA)


_Works = Mapping[int, Mapping[int, Assignment]]


def _measures(
    project: Snapshot, works: _Works, people: Sequence[int]
) -> dict[str, dict[str, Estimate]]:
    """Return every measure, by label or question."""
    task = project.task
    if task.is_marked:
        return {label: _of_label(project, works, people, label) for label in task.labels}
    return {q.name: _of_question(project, works, people, q) for q in task.questions}


def _of_label(
    project: Snapshot, works: _Works, people: Sequence[int], label: str
) -> dict[str, Estimate]:
    rows: list[list[float]] = []
    for item, by_person in works.items():
        turns = project.items[item].item.markable(project.task)
        marked = {
            person: {m.place.turn for m in project.states[one.id].marks if m.label == label}
            for person, one in by_person.items()
        }
        for turn in range(len(turns)):
            found = [float(turn in marked[p]) if p in marked else np.nan for p in people]
            rows.append(found)
    ratings = np.array(rows, dtype=np.float64)
    f1 = [_clause_f1(project, works, one, other, label) for one, other in combinations(people, 2)]
    return {
        KAPPA: _mean_kappa(ratings),
        ALPHA: krippendorff_alpha(ratings),
        F1: _pooled(f1),
    }


def _clause_f1(project: Snapshot, works: _Works, one: int, other: int, label: str) -> Estimate:
    """Return the F1 of the clauses that two annotators marked, over all items of both."""
    shared = total = items = 0
    for item, by_person in works.items():
        if one in by_person and other in by_person:
            found = [
                {
                    (turn, clause)
                    for name, turn, clause in _labelled(
                        project.states[by_person[person].id], project.items[item].item, project.task
                    )
                    if name == label
                }
                for person in (one, other)
            ]
            items += 1
            shared += len(found[0] & found[1])
            total += len(found[0]) + len(found[1])
    reason = "nobody marked anything" if items else "no item of both"
    return Estimate(2 * shared / total, items) if total else Estimate(None, items, reason=reason)


def _labelled(state: State, item: Item, task: Task) -> set[tuple[str, int, int]]:
    """Return the marked clauses with their labels."""
    return {
        (label, turn, clause)
        for label in {mark.label for mark in state.marks}
        for turn, clause in clauses_in(
            item, task, [mark.place for mark in state.marks if mark.label == label]
        )
    }


def _of_question(
    project: Snapshot, works: _Works, people: Sequence[int], question: Question
) -> dict[str, Estimate]:
    units = [
        (item, turn)
        for item in works
        for turn in (project.items[item].item.asked if project.task.kind == "replies" else (None,))
    ]
    given: list[list[int | str | None]] = []
    for item, turn in units:
        states = {person: project.judged(one.id) for person, one in works[item].items()}
        answers = {p: state.answers.get((turn, question.name)) for p, state in states.items()}
        given.append([answers.get(person) for person in people])
    if project.task.kind != "pairs":
        ratings = np.array([[np.nan if v is None else float(v) for v in row] for row in given])
        return {
            KAPPA: _mean_kappa(ratings),
            ALPHA: krippendorff_alpha(ratings, "interval"),
            CEILING: leave_one_out_ratings(ratings),
        }
    votes = [[None if vote is None else str(vote) for vote in row] for row in given]
    codes = vote_codes(votes)
    sides = list(_sides(project, [item for item, _ in units]))
    first, second = ([pair[side] for pair in sides] for side in (0, 1))
    return {
        KAPPA: _mean_kappa(codes),
        ALPHA: krippendorff_alpha(codes),
        CIRCLES: cyclic_triples(votes, first, second),
    }


def _sides(project: Snapshot, pairs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of each pair's responses; repeated responses have the same number."""
    numbers: dict[object, int] = {}
    for item in pairs:
        kept = project.items[item].item
        keys = [(kept.turns, candidate) for candidate in kept.candidates]
        first, second = (numbers.setdefault((str(key[0]), key[1]), len(numbers)) for key in keys)
        yield first, second


def _mean_kappa(ratings: FloatArray) -> Estimate:
    """Return the mean kappa of every two raters, weighted by the units both have rated."""
    columns = range(ratings.shape[1])
    return _pooled([cohen_kappa(ratings[:, a], ratings[:, b]) for a, b in combinations(columns, 2)])


def _pooled(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of the estimates, weighted by their n."""
    known = [(one.value, one.n) for one in estimates if one.value is not None and one.n]
    total = sum(n for _, n in known)
    if not known:
        reason = next((one.reason for one in estimates if one.reason), "no two annotators")
        return Estimate(None, sum(one.n for one in estimates), reason=reason)
    return Estimate(sum(value * n for value, n in known) / total, total)


def _mean(values: Sequence[float]) -> Estimate:
    if not values:
        return Estimate(None, 0, reason="nothing finished that could be compared")
    return Estimate(sum(values) / len(values), len(values))
