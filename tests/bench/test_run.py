"""A run from files of judgements to files of results."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from causerie.bench.files import write_results
from causerie.bench.results import RunOptions, RunResult, from_json, rows_of
from causerie.bench.run import SENTINELS, about, choose_metrics, choose_sets, execute, plan
from causerie.bench.scores import ScoreStore
from causerie.bench.sets.judged import JudgedSet
from causerie.dialogue import Exchange
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.io import read_table
from causerie.metrics.base import Metric, Score, Scores
from causerie.metrics.sentinels import Length
from causerie.text import words

OPTIONS = RunOptions(max_items=40, resamples=50, permutations=200, seed=3)


class Vowels(Metric):
    """Share of vowels; counts what it is asked."""

    name = "vowels"
    summary = "for tests"
    higher_is_better = False

    def __init__(self, engines: Engines) -> None:
        super().__init__(engines)
        self.scored = 0

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        self.scored += len(exchanges)
        return [(Score.of(_vowels(e.response.text)),) for e in exchanges]


def _vowels(text: str) -> float:
    return sum(c in "aeiou" for c in text) / max(1, len(text))


def write_set(path: Path, records: int = 30) -> None:
    """Responses whose ratings grow with their length, three to a context."""
    generator = np.random.default_rng(records)
    lines = []
    for i in range(records):
        length = int(generator.integers(1, 12))
        ratings = np.clip(length / 3 + generator.normal(size=3), 1, 5).round(1).tolist()
        reply = " ".join(generator.choice(["oh", "yes", "rhythm", "idea", "try"], length))
        lines.append(
            json.dumps(
                {
                    "id": f"i{i}",
                    "context": [{"speaker": "A", "text": f"Question {i // 3}?"}],
                    "response": {"speaker": "B", "text": reply},
                    "system": ["x", "y", "z"][i % 3],
                    "ratings": {"overall": ratings, "humour": ["none"] * 3},
                }
            )
        )
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_set(tmp_path / "fed_turn.jsonl")
    write_set(tmp_path / "own.jsonl.gz", 90)
    return tmp_path


def sets_and_metrics(folder: Path) -> tuple[list[JudgedSet], list[Metric]]:
    engines = Engines()
    sets, _ = choose_sets("fed_turn,own", folder)
    metrics, _ = choose_metrics("bleu", engines)
    return sets, [Vowels(engines), *metrics]


@pytest.fixture
def result(folder: Path) -> RunResult:
    sets, metrics = sets_and_metrics(folder)
    store = ScoreStore(":memory:")
    return execute(plan(sets, metrics, store, OPTIONS), store)


def test_every_metric_and_every_sentinel_on_every_set(result: RunResult) -> None:
    assert [judged.name for judged in result.sets] == ["fed_turn", "own"]
    for judged in result.sets:
        assert {row.column for row in judged.rows} == {"vowels", "bleu", *SENTINELS}
    assert result.columns()[:2] == ("vowels", "bleu")
    assert set(result.columns()[2:]) == set(SENTINELS)


def test_numbers_are_those_of_the_file(folder: Path, result: RunResult) -> None:
    records = [json.loads(line) for line in (folder / "fed_turn.jsonl").read_text().splitlines()]
    human = [np.mean(r["ratings"]["overall"]) for r in records]
    length = [len(words(r["response"]["text"])) for r in records]
    vowels = [-_vowels(r["response"]["text"]) for r in records]
    for name, scores in (("length", length), ("vowels", vowels)):
        row = result.sets[1].row(name), result.sets[0].row(name)
        assert row[1] is not None
        assert row[0] is not None
        assert row[1].statistics["spearman"].value is None  # fed_turn's dimension is "Overall"
        assert row[1].dimensions["overall"]["spearman"].value == pytest.approx(
            stats.spearmanr(scores, human).statistic
        )
        assert row[0].statistics["spearman"].value is not None


def test_gaps_have_reasons(result: RunResult) -> None:
    first, second = result.sets
    row = second.row("bleu")
    assert row is not None
    assert row.statistics["spearman"].reason == "unscored: no reference"
    assert row.unscored == {"no reference": second.items}
    row = first.row("length")
    assert row is not None
    assert "no dimension 'Overall'" in (row.statistics["spearman"].reason or "")
    assert row.dimensions["humour"]["spearman"].reason == "no rating of 'humour' can be used"


def test_a_sample_of_whole_contexts(result: RunResult) -> None:
    own = result.sets[1]
    assert (own.items, own.of_items, own.clusters) == (39, 90, 13)
    assert "39 of 90 items" in own.notes[0]


def test_a_second_run_scores_nothing_and_finds_the_same(folder: Path, tmp_path: Path) -> None:
    found, scored = [], []
    for _ in range(2):
        sets, metrics = sets_and_metrics(folder)
        with ScoreStore(tmp_path / "scores.sqlite") as store:
            result = execute(plan(sets, metrics, store, OPTIONS), store)
        found.append([[row.statistics for row in judged.rows] for judged in result.sets])
        vowels = metrics[0]
        assert isinstance(vowels, Vowels)
        scored.append(vowels.scored)
    assert found[0] == found[1]
    assert scored[0] >= 69
    assert scored[1] == 0


def test_adding_a_metric_computes_that_metric(folder: Path) -> None:
    store = ScoreStore(":memory:")
    sets, (vowels, *others) = sets_and_metrics(folder)
    execute(plan(sets, others, store, OPTIONS), store)
    known = plan(sets, others, store, OPTIONS)
    assert [sum(seconds) for seconds in known.scoring] == [0] * len(others)
    added = plan(sets, [vowels, *others], store, OPTIONS)
    assert sum(added.scoring[0]) > 0
    assert sum(map(sum, added.scoring[1:])) == 0


def test_progress_ends_where_it_was_said_to_end(folder: Path) -> None:
    store, told = ScoreStore(":memory:"), []
    sets, metrics = sets_and_metrics(folder)
    planned = plan(sets, metrics, store, OPTIONS)
    execute(planned, store, lambda what, done, total: told.append((what, done, total)))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1] == ("done", planned.seconds, planned.seconds)
    assert {"vowels on own", "statistics of own"} <= {what for what, *_ in told}


def test_files(result: RunResult, tmp_path: Path) -> None:
    pytest.importorskip("causerie.bench.page")
    written = write_results(result, tmp_path / "deep" / "out")
    assert [path.name for path in written] == [
        f"results.{suffix}" for suffix in ("json", "parquet", "md", "html")
    ]
    assert from_json(written[0].read_text(encoding="utf-8")) == result
    types = {"set": str, "column": str, "statistic": str, "dimension": str, "reason": str}
    rows = list(read_table(written[1], types))
    assert len(rows) == len(list(rows_of(result)))
    row = next(
        r
        for r in rows
        if (r["set"], r["column"], r["statistic"], r["dimension"])
        == ("own", "vowels", "pearson", "overall")
    )
    own = result.sets[1].row("vowels")
    assert own is not None
    assert row["value"] == own.statistics["pearson"].value
    assert row["low"] == own.statistics["pearson"].low
    assert "## own" in written[2].read_text(encoding="utf-8")


def test_results_that_cannot_be_written(result: RunResult, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CauserieError, match="choose another place"):
        write_results(result, tmp_path / "file")


def test_the_signature_names_what_decides_the_numbers(result: RunResult) -> None:
    for part in ("causerie ", "vowels", "bleu", "own:", "seed 3", "max-items 40"):
        assert part in result.signature


def test_sets_by_name_must_be_there(folder: Path) -> None:
    with pytest.raises(CauserieError, match="fed_dialog"):
        choose_sets("fed_turn,fed_dialog", folder)
    with pytest.raises(CauserieError, match="names no set"):
        choose_sets(" , ", folder)


def test_groups_of_sets_stand_beside_names(folder: Path) -> None:
    sets, _ = choose_sets("own,default", folder)
    assert [judged.name for judged in sets] == ["own", "fed_turn"]


def test_a_broken_file_does_not_end_a_run_that_did_not_name_it(folder: Path) -> None:
    (folder / "fed_dialog.jsonl").write_text("{bad\n")
    (folder / "grade_convai2.jsonl.gz").write_bytes(b"no gzip")
    sets, left_out = choose_sets("default", folder)
    assert [judged.name for judged in sets] == ["fed_turn"]
    for name in ("fed_dialog.jsonl has no judged record", "grade_convai2.jsonl.gz"):
        assert any(name in reason for reason in left_out)
    with pytest.raises(CauserieError, match="has no judged record"):
        choose_sets("default,fed_dialog", folder)


def test_a_dimension_chooses_the_sets_that_have_it(folder: Path) -> None:
    record = json.loads((folder / "fed_turn.jsonl").read_text().splitlines()[0])
    other = {**record, "ratings": {"grammar": [1, 2]}}
    (folder / "plain.jsonl").write_text(json.dumps(other))
    sets, _ = choose_sets("fed_turn,plain", folder)
    found, left_out = about("OVERALL", sets)
    assert [judged.name for judged in found] == ["fed_turn"]
    assert left_out == ["plain: nobody judged 'OVERALL' there"]
    assert about(None, sets) == (sets, [])
    with pytest.raises(CauserieError, match="no set has the dimension 'wit': they have overall"):
        about("wit", sets)
    store, options = ScoreStore(":memory:"), replace(OPTIONS, dimension="OVERALL")
    result = execute(plan(found, [Length(Engines())], store, options), store)
    assert result.sets[0].dimension == "overall"
    assert result.sets[0].rows[0].statistics["spearman"].value is not None
    assert "dimension OVERALL" in result.signature


def test_metrics_take_options() -> None:
    metrics, _ = choose_metrics("bleu", Engines(), {"bleu": {"order": 2}})
    assert metrics[0].options == {"order": 2}
    with pytest.raises(CauserieError, match="--set names rouge, which --metrics does not"):
        choose_metrics("bleu", Engines(), {"rouge": {}})
    with pytest.raises(CauserieError, match="has no option 'ordre'"):
        choose_metrics("all", Engines(), {"bleu": {"ordre": 2}})


def test_default_sets_are_those_that_are_there(folder: Path, tmp_path: Path) -> None:
    for names in ("default", "all"):
        sets, left_out = choose_sets(names, folder)
        assert [judged.name for judged in sets] == ["fed_turn"]
        assert any("fed_dialog" in reason for reason in left_out)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CauserieError, match="bench sets"):
        choose_sets("default", tmp_path / "empty")
    with pytest.raises(CauserieError, match="no folder"):
        choose_sets("default", tmp_path / "nowhere")


def test_unknown_metrics() -> None:
    with pytest.raises(CauserieError, match="unknown metric 'blue'"):
        choose_metrics("blue", Engines())
    with pytest.raises(CauserieError, match="names no metric"):
        choose_metrics("", Engines())
    metrics, left_out = choose_metrics("length,rouge", Engines())
    assert [metric.name for metric in metrics] == ["rouge", *SENTINELS]
    assert left_out == []
