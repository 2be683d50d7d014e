"""The files of a benchmark run (data as JSON and Parquet, a text, a page) and of a probe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from causerie.bench.markdown import to_markdown
from causerie.bench.probe import ProbeResult, probe_markdown
from causerie.bench.results import RunResult, SetResult, to_json
from causerie.io import write_table, write_whole
from causerie.stats import Estimate

_TYPES: Mapping[str, type] = {
    "set": str,
    "level": str,
    "dimension": str,
    "column": str,
    "metric": str,
    "kind": str,
    "statistic": str,
    "value": float,
    "low": float,
    "high": float,
    "n": int,
    "reason": str,
    "cluster": int,
    "seconds_per_1000": float,
    "truncated": float,
}


def write_results(result: RunResult, folder: Path) -> list[Path]:
    """Write results.json, .parquet, .md and .html; each appears whole or not at all."""
    from causerie.bench.page import write_page

    data, table, text, page = (folder / f"results.{s}" for s in ("json", "parquet", "md", "html"))
    write_whole(data, to_json(result) + "\n")
    write_whole(text, to_markdown(result))
    write_table(rows_of(result), list(_TYPES), table, _TYPES)
    write_page(page, result)
    return [data, table, text, page]


def write_probe(result: ProbeResult, folder: Path) -> list[Path]:
    """Write probe.json and probe.md."""
    data, text = (folder / f"probe.{suffix}" for suffix in ("json", "md"))
    content = json.dumps(asdict(result), ensure_ascii=False, allow_nan=False, indent=1)
    write_whole(data, content + "\n")
    write_whole(text, probe_markdown(result))
    return [data, text]


def rows_of(result: RunResult) -> Iterator[dict[str, object]]:
    """One row per set, dimension, column and statistic; what people reach is a column `human`,
    what a metric that knows nothing gets a column `constant`.
    """
    for judged in result.sets:
        for name, estimate in judged.ceiling.items():
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="ceiling")
        for name, estimate in judged.limit.items():
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="limit")
        for name, estimate in judged.floor.items():
            yield _row(judged, judged.dimension, name, estimate, column="constant", kind="floor")
        for name, estimate in (("alpha", judged.alpha), ("kappa", judged.kappa)):
            yield _row(judged, judged.dimension, name, estimate, column="human", kind="agreement")
        for row in judged.rows:
            facts = {
                "column": row.column,
                "metric": row.metric,
                "kind": "sentinel" if row.sentinel else "metric",
                "seconds_per_1000": row.seconds_per_1000,
                "truncated": row.truncated,
            }
            for name, estimate in row.statistics.items():
                cluster = row.cluster if name == judged.main else None
                yield _row(judged, judged.dimension, name, estimate, cluster=cluster, **facts)
            for dimension, estimates in row.dimensions.items():
                if dimension != judged.dimension:
                    for name, estimate in estimates.items():
                        yield _row(judged, dimension, name, estimate, **facts)


def _row(
    judged: SetResult, dimension: str, statistic: str, estimate: Estimate, **more: object
) -> dict[str, object]:
    return {
        "set": judged.name,
        "level": judged.level,
        "dimension": dimension,
        "statistic": statistic,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "reason": estimate.reason,
        **more,
    }
