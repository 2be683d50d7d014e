"""The figures of a run in sentences: how good it is, which system is better, where it fails."""

from __future__ import annotations

from causerie.render.numbers import brief, counted, listed
from causerie.render.page import shown
from causerie.server.explorer.overview import Ranking, System
from causerie.server.explorer.runs import ScoredRun, Scores
from causerie.server.explorer.tables import Profile
from causerie.stats import Estimate

CERTAIN = 0.05
NAMED = 3


def label_of(system: str | None) -> str:
    """Return the label of a system, or of rows that name none."""
    return shown(system) if system else "unnamed system"


def how_good(scores: Scores, mean: Estimate, profile: Profile) -> str:
    """Return a sentence on the mean of a column over all replies."""
    if mean.value is None:
        return f"Nothing has a score called {shown(scores.name)}."
    low, high = scores.about.range
    ends = "" if low is None or high is None else f" on a scale from {brief(low)} to {brief(high)}"
    good = {"higher": " (higher is better)", "lower": " (lower is better)", None: ""}
    within = f" {interval(mean)}" if mean.low is not None else ""
    percentile = profile.percentiles[scores.name]
    human = (
        ""
        if percentile is None
        else (f" Replies score better than {percentile:.0f}% of human ones, on average.")
    )
    return (
        f"{shown(scores.name)}{good[scores.about.better]} is {brief(mean.value)}{within} on average"
        f"{ends}, over {_replies(mean.n)} in "
        f"{counted(profile.dialogues, 'conversation')}.{human}"
    )


def which_is_better(scores: Scores, ranking: Ranking) -> str:
    """Return a sentence on which system leads, by how much, and whether that is certain."""
    if len(ranking.systems) < 2:
        return ""
    first, *others = ranking.systems
    best = "best" if scores.about.better else "highest"
    gap, p = ranking.behind[0]
    lead = (
        f"{label_of(first.name)} scores {best}, {brief(abs(gap.value or 0.0))} ahead of "
        f"{label_of(others[0].name)}"
    )
    sure = [s for s, (_, p) in zip(others, ranking.behind, strict=True) if p and p < CERTAIN]
    sure += [s for s, (_, p) in zip(others, ranking.behind, strict=True) if p == 0]
    unsure = [system for system in others if system not in sure]
    if len(others) == 1:
        told = "and that is certain" if sure else "but that may be chance"
        within = f" {interval(gap, turned=True)}" if gap.low is not None else ""
        return f"{lead}{within}, {told} ({chance(p)})."
    if not unsure:
        return f"{lead}; its lead over all {len(others)} others is certain ({chance(p)})."
    if not sure:
        return f"{lead}; no difference between the best and another is certain ({chance(p)})."
    return f"{lead}. Its lead is certain over {_names(sure)}, but not over {_names(unsure)}."


def where_it_fails(run: ScoredRun, found: list[System], profile: Profile, scores: Scores) -> str:
    """Return sentences on the most frequent fault, empty replies, and missing scores."""
    sentences = []
    worst = max(
        (
            (share, fault, system)
            for system in found
            for fault, share in system.faults.items()
            if share
        ),
        key=lambda one: one[0],
        default=None,
    )
    if worst:
        share, fault, system = worst
        sentences.append(
            f"The most frequent fault is “{shown(fault_name(fault))}”: {share:.1%} of the replies "
            f"of {label_of(system.name)}."
        )
    if profile.empty:
        sentences.append(f"{_replies(profile.empty)} say nothing and count as the worst.")
    unscored = run.rows - profile.scored[scores.name] - profile.empty
    if unscored > 0:
        sentences.append(f"{_replies(unscored)} have no {shown(scores.name)}.")
    return " ".join(sentences)


def versus(label_a: str, label_b: str, scores: Scores, gap: Estimate, p: float | None) -> str:
    """Return a sentence on whether b is better than a."""
    if gap.value is None:
        return f"These cannot be compared: {gap.reason}."
    if gap.value == 0:
        return f"{label_a} and {label_b} score the same on average."
    better = gap.value * scores.about.sign > 0
    word = (
        ("better" if better else "worse")
        if scores.about.better
        else ("higher" if better else "lower")
    )
    told = "that is certain" if p is not None and p < CERTAIN else "that may be chance"
    within = f" {interval(gap)}" if gap.low is not None else ""
    return (
        f"{label_b} scores {word} than {label_a}: the mean of {shown(scores.name)} differs by "
        f"{brief(gap.value)}{within}; {told} ({chance(p)})."
    )


def chance(p: float | None) -> str:
    """Return a p-value in words."""
    if p is None:
        return "too few conversations to tell"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def interval(estimate: Estimate, *, turned: bool = False) -> str:
    """Return the 95% interval as text; `turned` negates it."""
    assert estimate.low is not None
    assert estimate.high is not None
    ends = (-estimate.high, -estimate.low) if turned else (estimate.low, estimate.high)
    return f"[{brief(ends[0])}, {brief(ends[1])}]"


def fault_name(column: str) -> str:
    """Return the name of a fault in plain words."""
    return column.rpartition("faults.")[2].replace("_", " ").replace("-", " ")


def _replies(count: int) -> str:
    return "1 reply" if count == 1 else f"{count:,} replies"


def _names(systems: list[System]) -> str:
    names = [label_of(system.name) for system in systems]
    more = len(names) - NAMED
    return listed([*names[:NAMED], *([f"{more} more"] if more > 0 else [])])
