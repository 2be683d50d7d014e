"""Our numbers in the papers' tables, on sets small enough to work out by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from nltk.metrics.agreement import AnnotationTask
from scipy import stats

from causerie import metrics as registry
from causerie.bench.papers.printed import PAPERS, printed_tables
from causerie.bench.papers.render import reproduction_markdown, reproduction_text
from causerie.bench.papers.run import Ours, Reproduction, _Filling, _seen, reproduce
from causerie.dialogue import Exchange
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Metric
from causerie.metrics.trained import TrainedMetric
from causerie.progress import ignore
from causerie.scoring import plan
from causerie.stats import cont2cat, cont2cat_of_clusters
from causerie.text import words

# ROUGE-L of these with the human response "a b c d", by hand: 2 * common / all words.
TEXTS = {"human": "a b c d", "near": "a b c z", "half": "a b y z", "far": "x y"}
ROUGE = {"human": 1.0, "near": 6 / 8, "half": 4 / 8, "far": 0.0}

# Votes of two annotators on three pairs of two contexts; which system stood at each place.
PAIRS = {
    "one": [
        ("near", "human", ["B", "both good"]),
        ("near", "half", ["A", "both bad"]),
        ("half", "human", ["B", "A"]),
    ],
    "two": [
        ("far", "human", ["A", "B"]),
        ("far", "near", ["both good", "B"]),
        ("near", "human", ["A", "A"]),
    ],
}
# "A", "B" give one point, "both good" one to either; summed over pairs and annotators, and
# divided by the votes cast on the response's pairs.
POINTS = {
    ("one", "near"): 2, ("one", "human"): 3, ("one", "half"): 1,
    ("two", "far"): 2, ("two", "human"): 1, ("two", "near"): 4,
}  # fmt: skip
SEEN = {
    (context, system): sum(len(votes) for a, b, votes in pairs if system in (a, b))
    for context, pairs in PAIRS.items()
    for system in TEXTS
}


def write(folder: Path, name: str, records: Sequence[Mapping[str, Any]]) -> None:
    lines = [json.dumps(record) for record in records]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_pairs(folder: Path, name: str, dimension: str = "relevance") -> None:
    write(
        folder,
        name,
        [
            {
                "id": f"{context}-{i}",
                "level": "pair",
                "context": [{"speaker": "A", "text": context}],
                "a": {"system": a, "text": TEXTS[a]},
                "b": {"system": b, "text": TEXTS[b]},
                "judgements": [{dimension: vote} for vote in votes],
            }
            for context, pairs in PAIRS.items()
            for i, (a, b, votes) in enumerate(pairs)
        ],
    )


def write_grade(folder: Path) -> list[tuple[str, float, int]]:
    """Responses of two systems: text, ROUGE-L, rating."""
    responses = [("near", 3), ("half", 4), ("far", 1), ("human", 5), ("half", 2)]
    records, known = [], []
    for i, (kind, rating) in enumerate(responses * 2):
        system = "transformer_ranker" if i < len(responses) else "transformer_generator"
        # The generator's ratings are turned round, so that its cells differ.
        given = rating if i < len(responses) else 6 - rating + (i == 5)
        known.append((system, ROUGE[kind], given))
        records.append(
            {
                "id": f"r{i}",
                "level": "turn",
                "system": system,
                "context": [{"speaker": "A", "text": f"Context {i}."}],
                "response": {"speaker": "B", "text": TEXTS[kind]},
                "reference": TEXTS["human"],
                "ratings": {"coherence": [given, given]},
            }
        )
    write(folder, "grade_dailydialog", records)
    return known


def run(
    paper: str, folder: Path, metrics: Sequence[str] | None = ("rouge",), **options: Any
) -> Reproduction:
    settings = Settings(models_dir=folder / "no models", offline=True)
    return reproduce(paper, folder, metrics=metrics, settings=settings, **options)


def cells(reproduction: Reproduction, number: str, method: str, block: int = 0) -> dict[str, Ours]:
    table = next(t for t in reproduction.tables if t.printed.number == number)
    printed, ours = table.printed.blocks[block], table.ours[block]
    place = [row.method for row in printed.rows].index(method)
    return {c.label: cell for c, cell in zip(printed.columns, ours[place], strict=True)}


def value(cell: Ours) -> float:
    assert cell.estimate is not None
    assert cell.estimate.value is not None
    return cell.estimate.value


def test_causalscores_table_3_by_hand(tmp_path: Path) -> None:
    write_pairs(tmp_path, "pairwise_dream")
    row = cells(run("causalscore", tmp_path), "3", "ROUGE")
    scores = [ROUGE[system] for _, system in POINTS]
    points = [points / SEEN[response] for response, points in POINTS.items()]
    assert value(row["DREAM Pearson"]) == pytest.approx(np.corrcoef(scores, points)[0, 1])
    assert value(row["DREAM Spearman"]) == pytest.approx(stats.spearmanr(scores, points).statistic)
    preferred = [
        (vote == "A", ROUGE[a] - ROUGE[b])
        for pairs in PAIRS.values()
        for a, b, votes in pairs
        for vote in votes
        if vote in ("A", "B")
    ]
    expected = stats.pointbiserialr(*zip(*preferred, strict=True)).statistic
    assert value(row["DREAM Point-Biserial"]) == pytest.approx(expected)
    triples = [
        (annotator, f"{context}{i}", vote)
        for context, pairs in PAIRS.items()
        for i, (a, b, votes) in enumerate(pairs)
        for annotator, vote in enumerate([*votes, "A" if ROUGE[a] > ROUGE[b] else "B"])
    ]
    assert value(row["DREAM IAA"]) == pytest.approx(AnnotationTask(triples).alpha())


def test_beside_stands_the_number_without_human_responses(tmp_path: Path) -> None:
    """Two pairs have no human response: near over half, far against near, with two votes each."""
    write_pairs(tmp_path, "pairwise_dream")
    found = run("causalscore", tmp_path)
    row = cells(found, "3", "ROUGE")
    near_half, far_near = ROUGE["near"] - ROUGE["half"], ROUGE["far"] - ROUGE["near"]
    expected = stats.pointbiserialr([1, 0], [near_half, far_near]).statistic
    beside = row["DREAM Point-Biserial"].among_systems
    assert beside is not None
    assert beside.value == pytest.approx(expected)
    shares = [1 / 2, 0 / 2, 1 / 2, 2 / 2]  # near, half; far, near
    scores = [ROUGE[s] for s in ("near", "half", "far", "near")]
    pearson = row["DREAM Pearson"].among_systems
    assert pearson is not None
    assert pearson.value == pytest.approx(np.corrcoef(scores, shares)[0, 1])
    text = reproduction_text(found)
    assert "Each cell: printed / ours / ours without human responses." in text
    assert f"{value(row['DREAM Pearson']):.3f} [" in text
    assert f"] / {pearson.value:.3f}" in text


def test_other_items_than_the_papers_have_a_footnote(tmp_path: Path) -> None:
    write_pairs(tmp_path, "pairwise_dream")
    found = run("causalscore", tmp_path)
    footnote, gate = cells(found, "3", "ROUGE")["DREAM Pearson"].footnotes
    assert "fails the reliability gate" in found.footnotes[gate - 1]
    assert found.footnotes[footnote - 1] == (
        "On 6 items of `pairwise_dream`; the protocol keeps 600 of the published file."
    )
    assert f" ({footnote})({gate})" in reproduction_text(found)


def test_a_file_without_an_item_of_the_protocol_says_so(tmp_path: Path) -> None:
    write_grade(tmp_path)
    path = tmp_path / "grade_dailydialog.jsonl"
    path.write_text(path.read_text().replace("transformer_", "other_"))
    found = run("grade", tmp_path)
    (footnote,) = cells(found, "1", "ROUGE")["Transformer-Ranker Pearson"].footnotes
    assert "has no item that the protocol" in found.footnotes[footnote - 1]


def test_a_row_has_the_options_of_its_metric(tmp_path: Path) -> None:
    """DEnsity prints BLEU-2, whatever the caller sets; GRADE just BLEU."""
    write_grade(tmp_path)
    options = {"bleu": {"order": 3}}
    assert "bleu(order=2)" in run("density", tmp_path, ["bleu"]).signature
    assert "order" not in run("grade", tmp_path, ["bleu"]).signature
    assert "bleu(order=3)" in run("grade", tmp_path, ["bleu"], options=options).signature
    found = run("density", tmp_path, ["bleu"], options=options)
    assert "bleu(order=2)" in found.signature
    assert "bleu(order=3)" not in found.signature


def test_a_metric_that_the_paper_has_not_stands_in_a_row_of_its_own(tmp_path: Path) -> None:
    known = write_grade(tmp_path)
    found = run("grade", tmp_path, ["rouge", "mine=rouge", "length", "two=bleu:order=2"])
    printed, mine = cells(found, "1", "ROUGE"), cells(found, "1", "mine")
    assert {label: value(cell) for label, cell in mine.items()} == {
        label: value(cell) for label, cell in printed.items()
    }
    ratings = [rating for system, _, rating in known if system == "transformer_ranker"]
    texts = ["near", "half", "far", "human", "half"]
    lengths = [len(words(TEXTS[kind])) for kind in texts]
    assert value(cells(found, "1", "length")["Transformer-Ranker Pearson"]) == pytest.approx(
        np.corrcoef(lengths, ratings)[0, 1]
    )
    assert "bleu(order=2)" in found.signature
    for text in (reproduction_text(found), reproduction_markdown(found)):
        assert "not in the paper" in text
        assert f"– / {value(mine['Average']):.3f}" in text
    for table in found.tables:  # and in every table whose data is public
        for block in table.printed.blocks:
            own = [row.method for row in block.rows if row.group == "not in the paper"]
            public = any(column.protocol for column in block.columns)
            assert own == (["mine", "length", "two"] if public else [])
    assert "not in the paper" not in reproduction_text(run("grade", tmp_path, None))


def test_what_is_missing_has_a_footnote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pairs(tmp_path, "pairwise_dream")
    installed = [name for name in registry.names() if name != "causalscore"]
    monkeypatch.setattr(registry, "names", lambda: tuple(installed))
    found = run("causalscore", tmp_path, metrics=None)

    def note(number: str, method: str, label: str, block: int = 0) -> str:
        (footnote,) = cells(found, number, method, block)[label].footnotes
        return found.footnotes[footnote - 1]

    assert "'pairwise_msc' is not in" in note("3", "ROUGE", "MSC Pearson")
    assert "no ratings of 'overall'" in note("3", "ROUGE", "DREAM Pearson", block=1)
    assert note("3", "CausalScore", "DREAM Pearson") == "The metric `causalscore` is not installed."
    assert "`bertscore` cannot be used" in note("3", "BERTScore", "DREAM Pearson")
    assert cells(found, "3", "BLEURT")["DREAM Pearson"] == Ours()  # no such metric anywhere
    assert len(found.footnotes) == len(set(found.footnotes))


def test_metrics_that_were_not_asked_for_stay_empty_without_a_word(tmp_path: Path) -> None:
    write_pairs(tmp_path, "pairwise_dream")
    found = run("causalscore", tmp_path)
    assert set(cells(found, "3", "BLEU").values()) == {Ours()}
    assert "The metric `causalscore` is not installed." not in found.footnotes
    assert found.signature.split()[1].startswith("rouge")


def test_grades_table_is_cut_by_system_and_averaged(tmp_path: Path) -> None:
    known = write_grade(tmp_path)
    row = cells(run("grade", tmp_path), "1", "ROUGE")
    expected = {}
    for label, system in (
        ("Transformer-Ranker", "transformer_ranker"),
        ("Transformer-Generator", "transformer_generator"),
    ):
        scores, ratings = zip(*[(s, r) for name, s, r in known if name == system], strict=True)
        expected[f"{label} Pearson"] = np.corrcoef(scores, ratings)[0, 1]
        expected[f"{label} Spearman"] = stats.spearmanr(scores, ratings).statistic
    assert {label: value(cell) for label, cell in row.items() if label != "Average"} == (
        pytest.approx(expected)
    )
    assert value(row["Average"]) == pytest.approx(np.mean(list(expected.values())))
    assert len(set(np.round(list(expected.values()), 6))) == 4


def test_an_average_of_some_cells_is_none(tmp_path: Path) -> None:
    write_grade(tmp_path)
    path = tmp_path / "grade_dailydialog.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:5]) + "\n", encoding="utf-8")
    row = cells(run("grade", tmp_path), "1", "ROUGE")
    assert value(row["Transformer-Ranker Pearson"])
    assert row["Transformer-Generator Pearson"].footnotes
    assert row["Average"] == Ours()


@dataclass(frozen=True)
class Dimensions(Metric):
    """Stands in for FED: dimensions of its own, lower is better."""

    name: ClassVar[str] = "fed"
    summary: ClassVar[str] = "stand-in"

    def columns(self, level: Level) -> tuple[Column, ...]:
        names = ("semantically-appropriate", "interesting", "overall")
        return tuple(Column(name, better="lower") for name in names)

    def score_one(self, exchange: Exchange) -> dict[str, float]:
        n = int(exchange.response.text)
        return dict(
            zip((c.name for c in self.columns("turn")), (n, (n - 2) ** 2, n % 2), strict=True)
        )


@dataclass(frozen=True)
class Broken(Metric):
    name: ClassVar[str] = "cpmi"
    summary: ClassVar[str] = "stand-in"
    tries: ClassVar[int] = 0

    def score_one(self, exchange: Exchange) -> float:
        type(self).tries += 1
        raise CauserieError("its weights are not here: fetch them")


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Metric]]:
    """The registry as it will be once these metrics are installed."""
    metrics: dict[str, type[Metric]] = {"fed": Dimensions, "cpmi": Broken}
    for module in (registry, plan):
        monkeypatch.setattr(module, "names", lambda: tuple(metrics))
        monkeypatch.setattr(module, "load_metric", lambda name, **options: metrics[name]())
    Broken.tries = 0
    return metrics


def write_fed(folder: Path) -> None:
    ratings = [3, 1, 2, 0]
    write(
        folder,
        "fed_turn",
        [
            {
                "id": f"f{i}",
                "level": "turn",
                "context": [{"speaker": "user", "text": f"Say {i}."}],
                "response": {"speaker": "system", "text": str(i)},
                "ratings": {d: [rating] for d in ("Interesting", "Semantically appropriate")},
            }
            for i, rating in enumerate(ratings)
        ],
    )


def test_dimensions_meet_by_name_and_direction_is_corrected(
    tmp_path: Path, stand_ins: dict[str, type[Metric]]
) -> None:
    write_fed(tmp_path)
    row = cells(run("cpmi", tmp_path, ["fed"]), "1", "FED*")
    ratings = [3, 1, 2, 0]
    appropriate = stats.spearmanr([0, -1, -2, -3], ratings).statistic
    interesting = stats.spearmanr([-4, -1, 0, -1], ratings).statistic
    assert value(row["Semantically appropriate"]) == pytest.approx(appropriate)
    assert value(row["Interesting"]) == pytest.approx(interesting)
    assert appropriate != interesting


def test_a_metric_that_cannot_run_is_tried_once_and_told(
    tmp_path: Path, stand_ins: dict[str, type[Metric]]
) -> None:
    write_fed(tmp_path)
    found = run("cpmi", tmp_path, None)
    (footnote,) = cells(found, "1", "FED + C-PMI")["Interesting"].footnotes
    assert "weights are not here: fetch them" in found.footnotes[footnote - 1]
    assert Broken.tries == 1
    assert value(cells(found, "1", "FED")["Interesting"])


def test_text_shows_printed_and_ours_in_the_papers_unit(
    tmp_path: Path, stand_ins: dict[str, type[Metric]]
) -> None:
    write_fed(tmp_path)
    found = run("cpmi", tmp_path, ["fed"])
    expected = 100 * stats.spearmanr([-4, -1, 0, -1], [3, 1, 2, 0]).statistic
    for text in (reproduction_text(found), reproduction_markdown(found)):
        assert f"32.5 / {expected:.1f}" in text
        assert found.paper.differs in text
        assert "(1) " in text


def test_our_numbers_have_intervals_and_stars(tmp_path: Path) -> None:
    """The interval is that of a plain bootstrap over contexts; a star says that it leaves out 0."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(list(TEXTS), 80).tolist()
    ratings = [round(5 * ROUGE[kind]) + int(rng.integers(0, 5)) for kind in kinds]
    write(
        tmp_path,
        "grade_dailydialog",
        [
            {
                "id": f"r{i}",
                "level": "turn",
                "system": "transformer_ranker" if i < 60 else "transformer_generator",
                "context": [{"speaker": "A", "text": f"Context {i}."}],
                "response": {"speaker": "B", "text": TEXTS[kind]},
                "reference": TEXTS["human"],
                "ratings": {"coherence": [rating] if i < 60 else [int(rng.integers(0, 5))]},
            }
            for i, (kind, rating) in enumerate(zip(kinds, ratings, strict=True))
        ],
    )
    found = run("grade", tmp_path)
    row = cells(found, "1", "ROUGE")
    cell = row["Transformer-Ranker Pearson"]
    scores = np.array([ROUGE[kind] for kind in kinds[:60]])
    draws = rng.integers(0, 60, (4000, 60))
    by_hand = [np.corrcoef(scores[d], np.array(ratings[:60])[d])[0, 1] for d in draws]
    assert cell.estimate is not None
    assert [cell.estimate.low, cell.estimate.high] == pytest.approx(
        np.quantile(by_hand, [0.025, 0.975]), abs=0.04
    )
    assert cell.significant
    by_chance = row["Transformer-Generator Pearson"]
    assert by_chance.estimate is not None
    assert not by_chance.significant
    assert by_chance.estimate.low is not None
    assert by_chance.estimate.high is not None
    assert by_chance.estimate.low < 0 < by_chance.estimate.high
    for text in (reproduction_text(found), reproduction_markdown(found).replace("\\*", "*")):
        assert f"/ {value(cell):.3f}* [{cell.estimate.low:.3f}, {cell.estimate.high:.3f}]" in text
        assert f"/ {value(by_chance):.3f} [" in text
        assert "a star: it leaves out 0" in text


def test_the_interval_of_an_agreement_is_of_whole_contexts() -> None:
    rng = np.random.default_rng(1)
    votes = [[str(rng.choice(["A", "B"])) for _ in range(3)] for _ in range(40)]
    differences = np.array([votes[i].count("A") - 1.5 + rng.normal() for i in range(40)])
    clusters = [f"c{i // 4}" for i in range(40)]
    statistic = cont2cat_of_clusters(differences, votes, clusters)
    counts = rng.integers(0, 3, (5, 10)).astype(float)
    for drawn, alpha in zip(counts, statistic(counts)[:, 0], strict=True):
        pairs = [i for i in range(40) for _ in range(int(drawn[i // 4]))]
        expected = cont2cat(differences[pairs], [votes[i] for i in pairs])[0].value
        assert alpha == pytest.approx(expected)


def test_rows_of_other_trainings_take_artifacts(tmp_path: Path) -> None:
    write_grade(tmp_path)

    def note(found: Reproduction) -> str:
        (footnote,) = cells(found, "3", "no graph branch")["Transformer-Ranker Pearson"].footnotes
        return found.footnotes[footnote - 1]

    assert "--variant" in note(run("grade", tmp_path, ["grade"]))
    mine = {"without graph": str(tmp_path / "mine")}
    assert f"{tmp_path / 'mine'} is not an artifact" in note(
        run("grade", tmp_path, ["grade"], variants=mine)
    )
    with pytest.raises(CauserieError, match="variant 'graphless': there are random negatives"):
        run("grade", tmp_path, ["grade"], variants={"graphless": "mine"})


def test_research_has_a_model_for_each_domain(tmp_path: Path) -> None:
    pytest.importorskip("causerie_research")
    paper = printed_tables("causalscore")

    def artifact(number: str, judged: str, research: bool) -> str | None:
        settings = Settings(models_dir=tmp_path, offline=True, research=research)
        filling = _Filling(tmp_path, {}, True, Engines(settings), None, False, {}, ignore)
        table = paper.table(number)
        filling.models = table.models
        row = next(row for row in table.blocks[0].rows if row.method == "CausalScore")
        chosen = filling._chosen(row, judged)
        assert isinstance(chosen, TrainedMetric)
        return chosen.artifact

    assert artifact("2", "pairwise_dream", True) == "causalscore-dream"
    assert artifact("6", "pairwise_msc", True) == "causalscore-msc"
    assert artifact("7", "pairwise_msc", True) == "causalscore-cgdialog"
    assert artifact("2", "pairwise_dream", False) is None


def test_a_cell_says_what_its_metric_has_seen() -> None:
    pytest.importorskip("causerie_research")
    tuned = registry.load_metric("density", artifact="density-dailydialog")
    (said,) = _seen(tuned, "dailydialog_zhao")
    assert said == (
        "`density-dailydialog` learned from DailyDialog; `dailydialog_zhao` is made of "
        "DailyDialog, too."
    )
    assert len(_seen(tuned, "usr_personachat")) == 1
    assert not _seen(tuned, "grade_empatheticdialogues")
    assert not _seen(registry.load_metric("density"), "dailydialog_zhao")
    assert not _seen(registry.load_metric("rouge"), "dailydialog_zhao")


@dataclass(frozen=True)
class Topics(Metric):
    """Stands in for DEnsity: the response with the context's number in it is the true one."""

    distance: str = "mahalanobis"
    name: ClassVar[str] = "density"
    summary: ClassVar[str] = "stand-in"

    def score_one(self, exchange: Exchange) -> float:
        true = exchange.context[-1].text.split()[-1] == exchange.response.text.split()[-1]
        return float(true == (self.distance == "classifier"))


def test_response_selection_is_measured_on_dialogues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "names", lambda: ("density",))
    monkeypatch.setattr(registry, "load_metric", lambda name, **own: Topics(**own))
    (tmp_path / "corpora").mkdir()
    lines = [
        json.dumps({"id": f"d{i}", "turns": [
            {"speaker": "A", "text": f"ask {i}"}, {"speaker": "B", "text": f"answer {i}"},
        ]})
        for i in range(30)
    ]  # fmt: skip
    missing = cells(run("density", tmp_path, None), "5", "L_RS + L_CL")["DailyDialog R@1"]
    assert missing.estimate is None
    with gzip.open(tmp_path / "corpora" / "dailydialog.test.jsonl.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    found = run("density", tmp_path, None)
    row = cells(found, "5", "L_RS + L_CL")
    assert value(row["DailyDialog R@1"]) == value(row["DailyDialog MRR"]) == 1
    assert "On 30 of 30 exchanges of `dailydialog.test`." in found.footnotes
    assert row["ConvAI2 R@1"].estimate is None
    assert "90.62 / 100.00 [100.00, 100.00]" in reproduction_text(found)


def test_text_fits_the_width_and_loses_nothing(tmp_path: Path) -> None:
    write_pairs(tmp_path, "pairwise_dream")
    found = run("causalscore", tmp_path)
    text = reproduction_text(found, width=80)
    table = text.split("Table 3")[1].split("Table 5")[0]
    assert max(len(line) for line in table.splitlines() if "BLEURT" in line) <= 80
    for table_ in found.tables:
        for block in table_.printed.blocks:
            for column in block.columns:
                assert column.label in text
            for row in block.rows:
                assert all(cell.printed in text for cell in row.cells)


def test_markdown_rows_have_the_columns_of_their_head(tmp_path: Path) -> None:
    write_pairs(tmp_path, "pairwise_dream")
    text = reproduction_markdown(run("causalscore", tmp_path))
    widths = [
        {line.count("|") for line in part.splitlines() if line.startswith("|")}
        for part in text.split("\n\n")
        if part.startswith("|")
    ]
    assert len(widths) == 16
    assert all(len(width) == 1 for width in widths)
    assert "0.294\\*" in text


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_works_without_data(tmp_path: Path, paper: str) -> None:
    found = run(paper, tmp_path, metrics=None)
    assert all(
        cell.estimate is None for table in found.tables for block in table.ours
        for row in block for cell in row
    )  # fmt: skip
    assert found.footnotes
    assert found.paper.title in reproduction_markdown(found)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="there is no paper 'gread'"):
        run("gread", tmp_path)
    with pytest.raises(CauserieError, match=r"unknown metric 'ruoge'.*rouge"):
        run("grade", tmp_path, ["ruoge"])
    with pytest.raises(CauserieError, match="there is no folder"):
        run("grade", tmp_path / "none")
