"""Scores in a local Spark: the rows of a plain run, whatever partition they come from."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import causerie
from causerie import CauserieError, Plan
from causerie.spark import SKIPPED, schema_of, score_udf

BATCH = 7


def records() -> list[dict[str, Any]]:
    found = [
        {
            "id": f"d{index}",
            "turns": [
                {"speaker": "AB"[k % 2], "text": "tea " * (1 + (index + k) % 9)}
                for k in range(2 + index % 3)
            ],
        }
        for index in range(60)
    ]
    found[20]["turns"] = []
    return found


def test_as_spark_calls_it() -> None:
    """Batch by batch, an empty partition, a bad record."""
    plan = Plan.of("length,overlap", speaker="all")
    assert list(score_udf(plan)(iter([]))) == []
    table = pa.Table.from_pylist(records())
    scored = pa.Table.from_batches(score_udf(plan)(iter(table.to_batches(BATCH))))
    names = [part.split("`")[1] for part in schema_of(plan).split(", ")]
    assert scored.column_names == names
    good = [row for row in scored.to_pylist() if row.pop(SKIPPED) is None]
    plain = causerie.evaluate([r for r in records() if r["turns"]], plan.metrics, speaker="all")
    assert good == plain.to_pylist()
    (why,) = filter(None, scored[SKIPPED].to_pylist())
    assert "turns" in why


def test_name_that_spark_cannot_be_told() -> None:
    with pytest.raises(CauserieError, match="has a ` in its name"):
        schema_of(Plan.of("a`b=length"))


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH).getOrCreate()
    yield session
    session.stop()


@pytest.mark.slow
def test_local_spark(spark: Any) -> None:
    plan = Plan.of("length,overlap", speaker="all")
    turn = "struct<speaker: string, text: string>"
    rows = [(r["id"], [(t["speaker"], t["text"]) for t in r["turns"]]) for r in records()]
    frame = spark.createDataFrame(rows, f"id string, turns array<{turn}>").repartition(3)
    found = frame.mapInArrow(score_udf(plan), schema_of(plan)).collect()
    good = [row.asDict() for row in found if row[SKIPPED] is None]
    plain = causerie.evaluate([r for r in records() if r["turns"]], plan.metrics, speaker="all")
    expected = [{**row, SKIPPED: None} for row in plain]

    def place(row: dict[str, Any]) -> tuple[str, int]:
        return row["dialogue_id"], row["turn"]

    assert sorted(good, key=place) == sorted(expected, key=place)
    assert len(found) == len(good) + 1
