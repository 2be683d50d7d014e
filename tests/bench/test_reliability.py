"""The gate: sets whose judgements are chance fail it, and are in no headline."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causerie.bench.files import to_markdown
from causerie.bench.judgement import judgement_of, reliability_of
from causerie.bench.page import build_page
from causerie.bench.page.findings import overall
from causerie.bench.results import RunOptions, RunResult, from_json, rows_of, to_json
from causerie.bench.run import run_bench
from causerie.bench.sets.catalogue import catalogue, default_sets
from causerie.bench.sets.judged import read_judged
from causerie.bench.sets.units import units_of

FAST = RunOptions(resamples=200, permutations=50)


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def pairs(path: Path, noise: float) -> Path:
    """60 contexts, four systems, three voters who agree on a pair: the longer wins, or noise."""
    rng = np.random.default_rng(0)
    records = []
    for context in range(60):
        words = rng.permutation(4) * 3 + 1
        for a, b in combinations(range(4), 2):
            lead = (words[a] - words[b]) / 6 + noise * rng.standard_normal()
            records.append(
                {
                    "id": f"{context}-{a}-{b}",
                    "level": "pair",
                    "context": [{"speaker": "A", "text": f"Context {context}."}],
                    "a": {"system": f"s{a}", "text": "word " * int(words[a])},
                    "b": {"system": f"s{b}", "text": "word " * int(words[b])},
                    "judgements": [{"overall": "A" if lead > 0 else "B"}] * 3,
                }
            )
    return write(path, records)


def ratings(path: Path, noise: float) -> Path:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 9, 120)
    return write(
        path,
        [
            {
                "id": f"r{i}",
                "context": [{"speaker": "A", "text": f"Context {i}."}],
                "response": {"speaker": "B", "text": "word " * int(length)},
                "ratings": {"overall": (length + noise * rng.standard_normal(3)).tolist()},
            }
            for i, length in enumerate(lengths)
        ],
    )


@pytest.mark.parametrize("kind", [pairs, ratings])
def test_judges_with_an_order_pass_and_judges_without_one_fail(kind: Any, tmp_path: Path) -> None:
    good = reliability_of(read_judged(kind(tmp_path / "good.jsonl", 0.2)), "overall", FAST)
    bad = reliability_of(read_judged(kind(tmp_path / "bad.jsonl", 1000.0)), "overall", FAST)
    assert not good.failures
    assert good.consistency.low is not None
    assert good.consistency.low > 0.4
    assert len(bad.failures) == (2 if kind is pairs else 1)
    assert "chance" in bad.failures[0]
    if kind is pairs:
        assert bad.cyclic.value == pytest.approx(0.25, abs=0.08)


def test_the_ceiling_of_pairs_does_not_count_votes_on_the_same_comparison(tmp_path: Path) -> None:
    """Voters who always agree on a pair, about nothing, are no ceiling for a metric."""
    judged = read_judged(pairs(tmp_path / "bad.jsonl", 1000.0))
    judgement = judgement_of(judged, units_of(judged), "overall")
    assert judgement.alpha().value == 1
    assert judgement.ceiling()["voting.pearson"].value == pytest.approx(0, abs=0.15)


def test_one_judgement_an_item_can_be_checked_by_nobody(tmp_path: Path) -> None:
    records = [
        {
            "id": f"r{i}",
            "context": [{"speaker": "A", "text": f"c{i}"}],
            "response": "yes",
            "ratings": {"overall": [i % 5]},
        }
        for i in range(20)
    ]
    found = reliability_of(read_judged(write(tmp_path / "one.jsonl", records)), "overall", FAST)
    assert found.failures == ()
    assert found.consistency.value is None


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("judged")
    pairs(folder / "chance.jsonl", 1000.0)
    ratings(folder / "sound.jsonl", 0.5)
    return run_bench(folder, "chance,sound", "length", options=FAST)


def test_a_failing_set_has_no_ranks_and_is_in_no_summary(run: RunResult) -> None:
    chance, sound = run.sets
    assert chance.fails
    assert not sound.fails
    assert {row.cluster for row in chance.rows} == {None}
    assert 1 in {row.cluster for row in sound.rows}
    text = to_markdown(run)
    summary = text[text.index("## Summary") : text.index("fails the reliability gate")]
    assert "`sound`" in summary
    assert "`chance` |" not in summary
    assert "**The reliability gate fails**" in text
    assert "1 set not counted" in overall(run)


def test_page_and_data_show_it_as_failing(run: RunResult) -> None:
    page = build_page(run)
    assert page.count("These judgements fail the reliability gate") == 2
    assert "fails the gate" in page
    assert from_json(to_json(run)).sets[0].reliability == run.sets[0].reliability
    rows = list(rows_of(run))
    assert {row["fails"] for row in rows if row["set"] == "chance"} == {1}
    assert {row["fails"] for row in rows if row["set"] == "sound"} == {0}
    assert [r["value"] for r in rows if r["set"] == "chance" and r["statistic"] == "cyclic"] == [
        run.sets[0].reliability.cyclic.value
    ]


def test_no_default_set_is_known_to_fail() -> None:
    assert [name for name in default_sets() if catalogue()[name].unreliable] == []
    assert catalogue()["pairwise_dream"].unreliable
