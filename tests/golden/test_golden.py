"""Every metric gives the numbers that it gave before: a golden file of what 0.1.0 scored.

`odd.jsonl` has 225 odd exchanges (one word, emoji, other scripts, markup, echoes, long texts,
long histories, roles, references); `scores.json` what was made of them and of the example
conversations by the command line of version 0.1.0 (commit 642e8b1) and, since they stand on other
weights, by `density`, `causalscore`, `grade` and language models of the commit that brought these.
Numbers may differ in the last digits, by how texts fall into batches.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Engines
from causerie.io import read
from causerie.scoring import Batch, Plan, Scorer

HERE = Path(__file__).parent
INPUTS = {"odd": HERE / "odd.jsonl", "examples": HERE.parents[1] / "examples/conversations.jsonl"}
CASES: list[dict[str, Any]] = json.loads((HERE / "scores.json").read_text("utf-8"))
LIKELIHOODS = ("perplexity", "relevance", "fed", "cpmi")
FEW = {"perplexity": 12, "fed": 1}
"""Items of a case, of the shortest dialogues, that language models score here. With
CAUSERIE_GOLDEN=all in the environment they score all that the file has, which takes an hour."""


def is_slow(case: dict[str, Any]) -> bool:
    return str(case["metrics"]).startswith(LIKELIHOODS)


def key_of(item: Dialogue | Exchange) -> tuple[str, int | None]:
    return (item.id, None) if isinstance(item, Dialogue) else (item.dialogue.id, item.turn)


@pytest.fixture(scope="module")
def engines(default_models: object) -> Engines:
    return Engines()


@pytest.mark.default_models
@pytest.mark.parametrize(
    "case", CASES, ids=[f"{c['input']}-{c['level']}-{c['metrics'][:24]}" for c in CASES]
)
def test_equal_to_what_was_scored_before(case: dict[str, Any], engines: Engines) -> None:
    wanted = case["dialogues"] or list(dict.fromkeys(name for name, _ in case["rows"]))
    records = [
        record
        for record in read(INPUTS[case["input"]])
        if isinstance(record, Dialogue) and record.id in wanted
    ]
    plan = Plan.of(case["metrics"], level=case["level"], speaker=case["speaker"])
    scorer = Scorer(plan, engines=engines)
    if is_slow(case) and os.environ.get("CAUSERIE_GOLDEN") != "all":
        records.sort(key=lambda d: sum(len(turn.text) for turn in d.turns))
        items = [item for record in records for item in scorer.items_of(record)]
        batch = scorer.score_items(items[: FEW[case["metrics"].partition(",")[0]]])
    else:
        batch = Batch.joined(plan, scorer.batches(records))
    rows = {tuple(row): place for place, row in enumerate(case["rows"])}
    places = [rows[key_of(item)] for item in batch.items]
    if not is_slow(case):
        assert len(places) == len([name for name, _ in case["rows"] if name in wanted])
    tolerance = 1e-4 if is_slow(case) else 1e-5
    for column, expected in case["columns"].items():
        name, percentile = column.removesuffix(".percentile"), column.endswith(".percentile")
        scores = batch.scores[name]
        found = [score.percentile if percentile else score.value for score in scores]
        then = [expected[place] for place in places]
        if name == "meteor" and any(v is not None for v in found):
            continue  # the golden file was made where there was no WordNet
        assert [v is None for v in found] == [v is None for v in then], column
        # A value on the border of a quantile may fall on either side of it.
        np.testing.assert_allclose(
            np.array([np.nan if v is None else v for v in found], dtype=np.float64),
            np.array([np.nan if v is None else v for v in then], dtype=np.float64),
            rtol=tolerance,
            atol=0.11 if percentile else tolerance,
            err_msg=column,
        )
