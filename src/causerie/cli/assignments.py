"""`--metrics` and `--set` on the command line: which metrics, and values for their options."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError
from causerie.options import parse

if TYPE_CHECKING:
    from causerie.engines import Settings
    from causerie.metrics.base import Level
    from causerie.scoring.plan import Plan


def chosen_plan(
    metrics: str | None,
    assignments: list[str] | None,
    hypotheses: Path | None,
    settings: Settings,
    *,
    level: str = "turn",
    speaker: str | None = None,
) -> Plan:
    """The plan that a command line asks for; an option that has no effect is refused."""
    from causerie.scoring.plan import DEFAULT_METRICS, Plan

    named = DEFAULT_METRICS if metrics is None else metrics
    options = with_hypotheses(metric_options(assignments or []), named, hypotheses)
    of_level: Level = level  # type: ignore[assignment] # the plan checks it
    plan = Plan.of(named, options=options, settings=settings, level=of_level, speaker=speaker)
    plan.check_settings()
    return plan


def metric_options(assignments: list[str]) -> dict[str, dict[str, Any]]:
    """`bleu.order=2` gives `{"bleu": {"order": 2}}`; a value is JSON where it can be, else text."""
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
    """The options, and the file for every chosen metric that takes hypotheses."""
    if file is None:
        return options
    from causerie.scoring.plan import metrics_by_alias

    chosen = metrics_by_alias(metrics, {})
    takers = [a for a, m in chosen.items() if "hypotheses" in {one.name for one in fields(m)}]
    if not takers:
        raise CauserieError(f"none of {metrics} takes --hypotheses: fed, cpmi and cpmi-sym do")
    return options | {a: {"hypotheses": str(file), **options.get(a, {})} for a in takers}
