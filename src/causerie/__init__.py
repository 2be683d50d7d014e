"""causerie: score open-domain conversations without reference answers.

>>> import causerie
>>> dialogue = causerie.Dialogue("d1", (causerie.Turn("A", "Hi!"), causerie.Turn("B", "Hello.")))
>>> causerie.load("length").score(dialogue)[0]["length"].value
1.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from causerie._version import __version__
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie import testing
    from causerie.bench.compare import CompareResult, compare
    from causerie.engines import Engines, Settings
    from causerie.io import Rejected, read
    from causerie.metrics.base import Column, Metric, Score
    from causerie.scoring import Plan, Result, Scorer, ScoreStore, Summary, evaluate, load
    from causerie.server.client import Client

__all__ = [
    "CauserieError",
    "Client",
    "Column",
    "CompareResult",
    "Dialogue",
    "Engines",
    "Exchange",
    "Metric",
    "Plan",
    "Rejected",
    "Result",
    "Score",
    "ScoreStore",
    "Scorer",
    "Settings",
    "Summary",
    "Turn",
    "__version__",
    "compare",
    "evaluate",
    "load",
    "read",
    "testing",
]

# Loaded on first use: `import causerie` and `causerie --help` must stay quick.
_LAZY = {
    name: module
    for module, names in {
        "causerie.bench.compare": ("CompareResult", "compare"),
        "causerie.engines": ("Engines", "Settings"),
        "causerie.io": ("Rejected", "read"),
        "causerie.metrics.base": ("Column", "Metric", "Score"),
        "causerie.scoring": (
            *("Plan", "Result", "ScoreStore", "Scorer", "Summary"),
            *("evaluate", "load"),
        ),
        "causerie.server.client": ("Client",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name == "testing":
        return import_module("causerie.testing")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'causerie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
