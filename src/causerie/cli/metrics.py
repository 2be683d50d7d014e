"""`causerie metrics`: what can be scored."""

from __future__ import annotations


def metrics() -> None:
    """List the metrics, one line each: what it measures, its direction, what it needs."""
    from rich.console import Console
    from rich.table import Table

    from causerie import metrics as registry

    table = Table(box=None, pad_edge=False)
    for heading in ("metric", "better", "needs", "what it measures"):
        table.add_column(heading, overflow="fold")
    for name in registry.names():
        metric = registry.find(name)
        better = "sentinel" if metric.sentinel else "higher" if metric.higher_is_better else "lower"
        table.add_row(name, better, ", ".join(sorted(metric.needs)), metric.summary)
    Console().print(table)
