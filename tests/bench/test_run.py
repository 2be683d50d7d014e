"""A run from files of judgements to files of results."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from causerie.bench.files import write_results
from causerie.bench.results import RunOptions, RunResult, from_json, rows_of
from causerie.bench.run import (
    SENTINELS,
    BenchRun,
    choose_metrics,
    choose_sets,
    execute,
    run_bench,
    sets_with_dimension,
)
from causerie.dialogue import Exchange
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.io import read_table
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.progress import Progress
from causerie.scoring.plan import Plan
from causerie.scoring.store import ScoreStore, digest_of
from causerie.text import words

OPTIONS = RunOptions(max_items=40, resamples=50, permutations=200, seed=3)


@dataclass(frozen=True)
class Vowels(Metric):
    """Share of vowels; counts what it is asked. It claims a network, so that scores are kept."""

    name: ClassVar[str] = "vowels"
    summary: ClassVar[str] = "for tests"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    asked: ClassVar[list[Exchange]] = []

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(better="lower", range=(0, 1)),)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        self.asked.extend(exchanges)
        return [(Score.of(_vowels(e.response.text)),) for e in exchanges]


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    Vowels.asked.clear()


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


def planned(folder: Path, metrics: str = "bleu", *others: Metric) -> BenchRun:
    sets, _ = choose_sets("fed_turn,own", folder)
    plan = choose_metrics(metrics).plan
    chosen = {metric.name: metric for metric in others or (Vowels(),)}
    return BenchRun.of(sets, replace(plan, metrics={**chosen, **plan.metrics}), OPTIONS)


@pytest.fixture
def result(folder: Path) -> RunResult:
    return execute(planned(folder), ScoreStore(":memory:"))


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
        Vowels.asked.clear()
        with ScoreStore(tmp_path / "scores.sqlite") as store:
            result = execute(planned(folder), store)
        found.append([[row.statistics for row in judged.rows] for judged in result.sets])
        scored.append([digest_of(exchange) for exchange in Vowels.asked])
    assert found[0] == found[1]
    assert len(scored[0]) == len(set(scored[0])) >= 60
    assert not scored[1]


def test_kept_scores_load_no_network(
    folder: Path, tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causerie.engines.encoder import Encoder

    settings = Settings(encoder=str(tiny_bert))

    def run(refresh: bool = False) -> RunResult:
        with ScoreStore(tmp_path / "scores.sqlite") as store:
            return run_bench(
                folder, "own", "cosine", settings=settings, options=OPTIONS, store=store,
                refresh=refresh,
            )  # fmt: skip

    def none(*arguments: object, **options: object) -> Encoder:
        raise CauserieError("no network may be loaded")

    first = run()
    monkeypatch.setattr(Encoder, "load", none)
    again = run()
    row = again.sets[0].row("cosine")
    assert row == first.sets[0].row("cosine")  # seconds and what was cut, too
    assert row is not None
    assert row.truncated is not None
    with pytest.raises(CauserieError, match="no network may be loaded"):
        run(refresh=True)


def test_a_metric_twice_with_other_options(folder: Path) -> None:
    """BLEU-2 beside BLEU-4: the store once gave one for the other."""
    path = folder / "own.jsonl"
    records = [json.loads(line) for line in (folder / "fed_turn.jsonl").read_text().splitlines()]
    for record in records:
        record["reference"] = "oh yes idea " + record["response"]["text"][::2]
    path.write_text("\n".join(map(json.dumps, records)))
    (folder / "own.jsonl.gz").unlink()
    alone = run_bench(folder, "own", "bleu:order=2", options=OPTIONS).sets[0]
    both = run_bench(folder, "own", "bleu,b2=bleu:order=2", options=OPTIONS)
    assert set(both.columns()) == {"bleu", "b2", *SENTINELS}
    four, two, only = both.sets[0].row("bleu"), both.sets[0].row("b2"), alone.row("bleu")
    assert four is not None
    assert two is not None
    assert only is not None
    assert two.statistics == only.statistics != four.statistics
    assert "b2=bleu(order=2)" in both.signature


def test_adding_a_metric_computes_that_metric(folder: Path) -> None:
    @dataclass(frozen=True)
    class Consonants(Vowels):
        name: ClassVar[str] = "consonants"
        asked: ClassVar[list[Exchange]] = []

    store = ScoreStore(":memory:")
    execute(planned(folder), store)
    Vowels.asked.clear()
    execute(planned(folder, "bleu", Consonants(), Vowels()), store)
    assert not Vowels.asked
    assert Consonants.asked


def test_progress_ends_where_it_was_said_to_end(folder: Path) -> None:
    told: list[Progress] = []
    execute(planned(folder), ScoreStore(":memory:"), watch=told.append)
    counted = [progress for progress in told if progress.total is not None]
    assert [p.done for p in counted] == sorted(p.done for p in counted)
    assert (counted[-1].task, counted[-1].done) == ("done", counted[-1].total)
    assert {"scoring own", "statistics of own"} <= {progress.task for progress in counted}
    (note,) = (progress.note for progress in told if progress.note)
    assert note.startswith("2 sets, 5 metrics: about ")


@dataclass(frozen=True)
class Weightless(Vowels):
    name: ClassVar[str] = "weightless"

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        raise CauserieError("its weights are not here")


def test_what_nobody_named_is_left_out_if_it_cannot_be_used(folder: Path) -> None:
    run, told = planned(folder, "bleu", Weightless()), list[Progress]()
    with pytest.raises(CauserieError, match="weights are not here"):
        execute(run, watch=told.append)
    result = execute(replace(run, optional=frozenset({"weightless"})), watch=told.append)
    assert "left out: weightless: its weights are not here" in [p.note for p in told]
    assert [facts.name for facts in result.metrics] == ["bleu", *SENTINELS]
    assert "weightless" not in result.signature


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
    found, left_out = sets_with_dimension("OVERALL", sets)
    assert [judged.name for judged in found] == ["fed_turn"]
    assert left_out == ["plain: nobody judged 'OVERALL' there"]
    assert sets_with_dimension(None, sets) == (sets, [])
    with pytest.raises(CauserieError, match="no set has the dimension 'wit': they have overall"):
        sets_with_dimension("wit", sets)
    options = replace(OPTIONS, dimension="OVERALL")
    result = execute(BenchRun.of(found, Plan.of("length", speaker="all"), options))
    assert result.sets[0].dimension == "overall"
    assert result.sets[0].rows[0].statistics["spearman"].value is not None
    assert "dimension OVERALL" in result.signature


def test_metrics_take_options() -> None:
    plan = choose_metrics("bleu", {"bleu": {"order": 2}}).plan
    assert plan == replace(Plan.of("bleu:order=2,length,turns,overlap"), speaker="all")
    with pytest.raises(CauserieError, match="options are given for rouge"):
        choose_metrics("bleu", {"rouge": {}})
    with pytest.raises(CauserieError, match="has no option 'ordre'"):
        choose_metrics("all", {"bleu": {"ordre": 2}})


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
        choose_metrics("blue")
    with pytest.raises(CauserieError, match="names no metric"):
        choose_metrics("")
    chosen = choose_metrics("length,rouge")
    assert list(chosen.plan.metrics) == ["rouge", *SENTINELS]
    assert (chosen.optional, chosen.left_out) == (frozenset(), ())


def test_of_all_metrics_none_has_to_be_usable() -> None:
    chosen = choose_metrics("all,b2=bleu:order=2,rouge")
    assert {"bleu", "b2", "density"} <= chosen.plan.metrics.keys()
    assert {"bleu", "density"} <= chosen.optional
    assert chosen.optional.isdisjoint({"b2", "rouge"})
    chosen = choose_metrics("all", settings=Settings(encoder="no-such-folder/x", offline=True))
    assert "cosine" not in chosen.plan.metrics
    assert any(reason.startswith("cosine: ") for reason in chosen.left_out)


@pytest.mark.parametrize("suffix", ["md", "tex", "csv", "json"])
def test_one_file_has_the_format_of_its_suffix(
    result: RunResult, tmp_path: Path, suffix: str
) -> None:
    (path,) = write_results(result, tmp_path / f"table.{suffix}")
    text = path.read_text(encoding="utf-8")
    begins = {"md": "# How far", "tex": "\\begin{table}", "csv": "Summary\n", "json": "{"}
    assert text.replace("\r\n", "\n").startswith(begins[suffix])
    assert "vowels" in text
    if suffix == "json":
        assert from_json(text) == result
    with pytest.raises(CauserieError, match=r"\.md, \.tex, \.csv, \.json"):
        write_results(result, tmp_path / "table.docx")


PLUG_IN = """
from dataclasses import dataclass
from typing import ClassVar

from causerie.metrics.base import Metric

@dataclass(frozen=True)
class Mine(Metric):
    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "a metric of another package"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})

    def score_one(self, exchange):
        return VALUE
"""


def test_a_change_of_a_plug_ins_code_is_another_metric(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores are kept, and once they were given back after its code had changed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file, store = tmp_path / "plug_in_of_another.py", ScoreStore(":memory:")
    found = {}
    for value in ("len(exchange.response.text)", "-float(len(exchange.response.text))"):
        file.write_text(PLUG_IN.replace("VALUE", value), encoding="utf-8")
        sys.modules.pop(file.stem, None)
        importlib.invalidate_caches()
        mine = importlib.import_module(file.stem).Mine()
        row = execute(planned(folder, "bleu", mine), store).sets[1].row("mine")
        assert row is not None
        found[value] = row.statistics["spearman"].value
    one, other = found.values()
    assert one is not None
    assert one == pytest.approx(-(other or 0))
    sys.modules.pop(file.stem)
