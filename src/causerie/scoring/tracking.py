"""Figures of a run kept where a team keeps all of its experiments: MLflow or Weights & Biases.

Both are optional and configured by their own means (addresses, projects, accounts).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from causerie.errors import CauserieError
from causerie.scoring.plan import Plan
from causerie.scoring.summary import Summary

TRACKERS = ("mlflow", "wandb")
LONGEST_TAG = 5_000
"""Characters that MLflow takes in a tag."""


def check_tracker(name: str) -> None:
    """Raise now what `track` would raise after a long run."""
    if name not in TRACKERS:
        raise CauserieError(f"unknown tracker {name!r}: use {' or '.join(TRACKERS)}")
    if find_spec(name) is None:
        raise CauserieError(f"--log {name} needs a package: pip install {name}")


def track(name: str, title: str, plan: Plan, summary: Summary, files: Sequence[Path]) -> None:
    """Keep the means of a run, what decided them and the files that were written."""
    figures = figures_of(summary)
    about = {"signature": plan.signature, "metrics": ",".join(plan.metrics), "level": plan.level}
    client: Any = import_module(name)
    try:
        if name == "mlflow":
            with client.start_run(run_name=title):
                client.set_tags({key: text[:LONGEST_TAG] for key, text in about.items()})
                client.log_metrics(figures)
                for file in files:
                    client.log_artifact(str(file))
        else:
            with client.init(name=title, config=about, job_type="causerie score") as run:
                run.log(figures)
                for file in files:
                    run.save(str(file.resolve()), base_path=str(file.resolve().parent))
    except Exception as error:  # theirs, of any kind
        raise CauserieError(
            f"all is scored and written, but {name} did not keep it "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]})"
        ) from error


def figures_of(summary: Summary) -> dict[str, float]:
    """Counts and means, those of each system after a slash, under names that both take.

    MLflow keeps names in folders, so none may be the beginning of another, up to a slash.
    """
    figures = {"items": float(summary.items), "skipped": float(summary.rejected)}
    for name, one in summary.columns.items():
        if one.mean is not None:
            figures[_name(name)] = one.mean
        figures[_name(f"{name}.unscored")] = float(one.unscored.total())
    for group in summary.groups if len(summary.groups) > 1 else ():
        for name, one in group.figures.items():
            if one.mean is not None:
                figures[f"{_name(name)} by system/{_name(group.label)}"] = one.mean
    return figures


def _name(text: str) -> str:
    """Letters, digits and what MLflow takes besides."""
    name = re.sub(r"[^\w\-. ]", "_", text, flags=re.ASCII)
    return name if name.strip(". ") else "_"
