"""Parsing `--metrics`, `--set`, `--without` and `--variant`, shared by several commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError
from causerie.options import parse

if TYPE_CHECKING:
    from causerie.engines import Settings
    from causerie.metrics.base import Level
    from causerie.metrics.judge import Judge
    from causerie.scoring.plan import Plan


def chosen_plan(
    metrics: str | None,
    assignments: list[str] | None,
    hypotheses: Path | None,
    settings: Settings,
    *,
    judge: Mapping[str, Any] | None = None,
    level: str = "turn",
    speaker: str | None = None,
) -> Plan:
    """Return the plan for a command line; refuse options without effect."""
    from causerie.scoring.plan import DEFAULT_METRICS, Plan

    named = DEFAULT_METRICS if metrics is None else metrics
    options = with_judge(metric_options(assignments or []), named, judge or {})
    options = with_hypotheses(options, named, hypotheses)
    of_level: Level = level  # type: ignore[assignment] # the plan checks it
    plan = Plan.of(named, options=options, settings=settings, level=of_level, speaker=speaker)
    plan.check_settings()
    return plan


def metric_options(assignments: list[str]) -> dict[str, dict[str, Any]]:
    """Parse `bleu.order=2` to `{"bleu": {"order": 2}}`; values are JSON if possible, else text."""
    options: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        metric, dot, option = target.rpartition(".")
        if not (equals and dot and metric and option):
            raise CauserieError(f"--set {assignment}: write METRIC.OPTION=VALUE")
        options.setdefault(metric, {})[option.replace("-", "_")] = parse(text)
    return options


def with_hypotheses(
    options: dict[str, dict[str, Any]], metrics: str, file: Path | None
) -> dict[str, dict[str, Any]]:
    """Add a file of hypotheses to the options of every chosen metric that takes one."""
    if file is None:
        return options
    from causerie.scoring.plan import metrics_by_alias

    chosen = metrics_by_alias(metrics, {})
    takers = [a for a, m in chosen.items() if "hypotheses" in {one.name for one in fields(m)}]
    if not takers:
        raise CauserieError(
            f"none of {metrics} takes --hypotheses: add fed, cpmi or cpmi-sym, or omit it"
        )
    return options | {a: {"hypotheses": str(file), **options.get(a, {})} for a in takers}


def with_judge(
    options: dict[str, dict[str, Any]], metrics: str, given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Add the values of the --judge options to the options of every judge among the metrics."""
    if not given:
        return options
    from causerie.scoring.plan import aliases_of

    judges = aliases_of(metrics, "judge")
    if not judges:
        raise CauserieError(
            "--judge-url, --judge-model, --judge-key-env and --max-cost are for the metric judge: "
            "name it in --metrics"
        )
    return options | {alias: {**given, **options.get(alias, {})} for alias in judges}


def judge_of_pairs(
    metrics: str | None, assignments: list[str], given: Mapping[str, Any]
) -> tuple[Judge, list[str], Mapping[str, Any]]:
    """Return the judge that compares replies, and its options that remain for the metrics.

    All of them remain if a judge is among the metrics, and none otherwise.
    """
    from causerie.metrics.judge import Judge
    from causerie.options import make
    from causerie.scoring.plan import DEFAULT_METRICS, aliases_of

    options = {**given, **metric_options(assignments).get("judge", {})}
    judge = make(Judge, options, "metric 'judge'")
    if aliases_of(metrics or DEFAULT_METRICS, "judge"):
        return judge, assignments, given
    return judge, [one for one in assignments if not one.startswith("judge.")], {}


def fields_of(assignments: list[str]) -> dict[str, frozenset[str]]:
    """Parse `--without quality_control=fail` to values by field; a field may have several."""
    found: dict[str, frozenset[str]] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise CauserieError(f"--without {assignment}: write FIELD=VALUE")
        found[name] = found.get(name, frozenset()) | {value}
    return found


def artifacts_of(assignments: list[str]) -> dict[str, str]:
    """Parse `["without graph=FOLDER"]` to artifacts by name; names may have spaces."""
    found = {}
    for assignment in assignments:
        name, equals, artifact = map(str.strip, assignment.partition("="))
        if not (name and equals and artifact):
            raise CauserieError(f"{assignment}: write NAME=ARTIFACT")
        found[name] = artifact
    return found
