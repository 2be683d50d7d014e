"""`--set` on the command line: values for the options of metrics."""

from __future__ import annotations

import json
from typing import Any

from causerie.errors import CauserieError


def metric_options(assignments: list[str]) -> dict[str, dict[str, Any]]:
    """`bleu.order=2` gives `{"bleu": {"order": 2}}`; a value is JSON where it can be, else text."""
    options: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        metric, dot, option = target.rpartition(".")
        if not (equals and dot and metric and option):
            raise CauserieError(f"--set {assignment}: write METRIC.OPTION=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        options.setdefault(metric, {})[option.replace("-", "_")] = value
    return options
