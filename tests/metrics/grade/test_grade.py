"""The metric as users meet it: trained on a small corpus, saved, loaded, scoring."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.graph import Graph, Hops
from causerie.metrics import load_metric
from causerie.metrics.grade import Grade
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.grade.learning import (
    Ranking,
    RankingTuple,
    draw_tuples,
    examples_of,
    read_tuples,
    scores_of,
    write_tuples,
)
from causerie.metrics.grade.scorer import Scorer
from causerie.metrics.grade.train import learn, prepare
from causerie.models.artifact import Artifact, load_artifact
from causerie.stats import ClusteredRatio, wins
from causerie.training.corpus import Corpus
from causerie.training.trainable import Start, TrainingRun
from terminal import run_causerie

sys.path.insert(0, str(Path(__file__).parent))
from small_graph import exchange_of, write_talks

FROZEN = GradeConfig(
    interaction="towers", tuning="frozen", pooling="mean", width=8, hidden=16, batch=16, epochs=8,
    learning_rate=5e-3,
)  # fmt: skip
ADAPTER = replace(FROZEN, tuning="adapter", rank=2, epochs=0.3)
CROSS = replace(FROZEN, interaction="cross", tuning="full", pooling="first", epochs=0.3)
CONFIGS = {"frozen": FROZEN, "adapter": ADAPTER, "cross": CROSS}


@pytest.fixture(scope="module")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))


def run_in(folder: Path, config: GradeConfig) -> TrainingRun:
    return TrainingRun(
        config=config,
        data=(write_talks(folder / "train.jsonl", 90, seed=1),),
        valid=(write_talks(folder / "valid.jsonl", 60, seed=2),),
        folder=folder / "training",
        licence="public domain",
        recipe="causerie train grade",
    )


@pytest.fixture(scope="module", params=CONFIGS)
def artifact(
    request: pytest.FixtureRequest, engines: Engines, tmp_path_factory: pytest.TempPathFactory
) -> Artifact:
    folder = tmp_path_factory.mktemp(request.param)
    return Grade.train(engines, run_in(folder, CONFIGS[request.param]))[0]


@pytest.fixture(scope="module")
def metric(artifact: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Grade:
    return saved(artifact, tmp_path_factory.mktemp("grade") / "artifact")


@pytest.fixture
def scorer(metric: Grade, engines: Engines) -> Scorer:
    """What the metric restores from its artifact."""
    return metric.restored(engines)[1]


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Conversations that no training saw."""
    return Corpus.read([write_talks(tmp_path_factory.mktemp("test") / "t.jsonl", 60, seed=3)])


def saved(artifact: Artifact, folder: Path) -> Grade:
    artifact.save(folder)
    return Grade(artifact=str(folder))


def values(metric: Grade, exchanges: list[Exchange], engines: Engines) -> np.ndarray:
    return np.array([row[0].value for row in metric.score_exchanges(exchanges, engines)])


def test_learns_to_rank(
    artifact: Artifact, scorer: Scorer, held_out: Corpus, engines: Engines
) -> None:
    """What is near in words is about something else: only the context tells."""
    if artifact.options["tuning"] != "frozen":
        pytest.skip("weights drawn at random learn to read in hours, not seconds")
    config = GradeConfig(**artifact.options)
    tuples = draw_tuples(held_out, "both", None, engines.encoder, config)
    examples = examples_of(scorer.topics, tuples)
    won = wins(*scores_of(scorer, examples))
    for kind in ("lexical", "embedding"):
        assert won[[example.kind == kind for example in examples]].mean() > 0.75
    assert "lexical negatives" in artifact.card
    assert "the longer response" in artifact.card


def test_scores_do_not_depend_on_company(
    metric: Grade, scorer: Scorer, engines: Engines, held_out: Corpus
) -> None:
    exchanges = held_out.exchanges[:20]
    together = values(metric, exchanges, engines)
    scorer.encoder.forget()
    backwards = values(metric, exchanges[::-1], engines)[::-1]
    scorer.encoder.forget()
    alone = np.concatenate([values(metric, [exchange], engines) for exchange in exchanges])
    np.testing.assert_allclose(together, backwards, rtol=1e-5)
    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_saved_and_loaded_scores_the_same(
    metric: Grade, engines: Engines, held_out: Corpus, tmp_path: Path, tiny_bert: Path
) -> None:
    load_artifact(str(metric.artifact)).save(tmp_path / "mine")
    fresh = Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))
    loaded = load_metric(str(tmp_path / "mine"))
    assert isinstance(loaded, Grade)
    exchanges = held_out.exchanges[:30]
    ours, theirs = values(metric, exchanges, engines), values(loaded, exchanges, fresh)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert loaded.signature(fresh) == metric.signature(engines)
    card = (tmp_path / "mine" / "card.md").read_text()
    for expected in ("train.jsonl", "public domain", "causerie train grade", "everyday"):
        assert expected in card


def test_explanation_is_the_topic_graph(metric: Grade, engines: Engines) -> None:
    exchange = exchange_of("I lost my dog.", "Call a doctor for the cat!", "The dog is at school.")
    (score,) = metric.score_exchanges([exchange], engines, explain=True)[0]
    found = json.loads(json.dumps(score.explanation))
    assert {"dog", "doctor", "cat"} <= set(found["topics"]["context"])
    assert {"dog", "school"} <= set(found["topics"]["response"])
    graph = Graph.open()
    hops = Hops(graph)
    pairs = set()
    for edge in found["edges"]:
        one = found["topics"]["context"][edge["context"]]
        other = found["topics"]["response"][edge["response"]]
        pairs.add((one, other))
        naive = int(hops.between([graph.find(one) or 0], [graph.find(other) or 0])[0, 0])
        assert edge["hops"] == naive
        assert edge["weight"] == pytest.approx(1 / (naive + 1), abs=1e-4)
        assert (edge["path"][0], edge["path"][-1], len(edge["path"])) == (one, other, naive + 1)
        assert 0 < edge["attention"] < 1
    assert len(pairs) == len(found["topics"]["context"]) * len(found["topics"]["response"])
    (plain,) = metric.score_exchanges([exchange], engines)[0]
    assert plain.value == pytest.approx(score.value)
    assert "topics" not in (plain.explanation or {})


def test_percentiles_and_dialogues(metric: Grade, engines: Engines, held_out: Corpus) -> None:
    rows = metric.score_exchanges(held_out.exchanges, engines)
    scores = np.array([row[0].value for row in rows])
    percentiles = np.array([row[0].percentile for row in rows])
    assert (np.diff(percentiles[np.argsort(scores)]) >= 0).all()
    assert 25 < percentiles.mean() < 75
    dialogue = held_out.dialogues[0]
    (whole,) = metric.score_dialogues([dialogue], engines)[0]
    assert whole.value == pytest.approx(values(metric, dialogue.exchanges(), engines).mean())
    assert whole.percentile is not None
    (nothing,) = metric.score_dialogues([Dialogue("d", (Turn("A", "Hello"),))], engines)[0]
    assert nothing.value is None


def test_odd_exchanges(metric: Grade, engines: Engines) -> None:
    (score,) = metric.score_exchanges([exchange_of("Hello.")], engines)[0]
    assert (score.value, score.reason) == (None, "no context")
    assert metric.score_exchanges([], engines) == []
    odd = (
        ("Hm.", "Oh."), ("qwrtz pflmb", "xyzzy"), ("1 2 3", "42"), ("🙂", "🙂🙂"),
        ("שלום", "日本語"),
        ("dog " * 500, "fine " * 2000), ("dog", "."), (".", "The dog."), (" ", "Yes, the dog."),
    )  # fmt: skip
    found = values(metric, [exchange_of(*texts) for texts in odd], engines)
    assert (found >= 0).all()
    assert (found <= 1).all()


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1).filter(lambda t: t.strip() != ""), min_size=2, max_size=4))
def test_any_text_has_a_score(metric: Grade, engines: Engines, texts: list[str]) -> None:
    (value,) = values(metric, [exchange_of(*texts)], engines)
    assert 0 <= value <= 1


def test_only_the_last_utterances_count(metric: Grade, engines: Engines) -> None:
    texts = ("Do you like the guitar?", "What about the dog?", "The dog, really?")
    longer = exchange_of("Something else.", "And more.", *texts)
    short, long = (values(metric, [e], engines) for e in (exchange_of(*texts), longer))
    np.testing.assert_allclose(long, short)


def test_harm_is_said(engines: Engines, artifact: Artifact, tmp_path: Path) -> None:
    network = {k: t for k, t in artifact.network.items() if "fc_3" not in k}
    options = {**artifact.options, "colour": "red"}
    for part, harm in (("network", network), ("options", options)):
        harmed = saved(replace(artifact, **{part: harm}), tmp_path / part)  # type: ignore[arg-type]
        with pytest.raises(CauserieError, match="damaged"):
            harmed.restored(engines)
    other = saved(replace(artifact, backbone_sha256="0" * 64), tmp_path / "other")
    with pytest.raises(CauserieError, match="trained on other weights"):
        other.restored(engines)
    good = saved(artifact, tmp_path / "good")
    moved = shutil.copytree(Graph.open().folder, tmp_path / "moved")
    found = replace(good, graph=str(moved))
    assert found.restored(engines)[1].topics.graph.folder == moved
    assert found.signature(engines) == good.signature(engines)  # the same graph elsewhere
    changed = shutil.copytree(moved, tmp_path / "changed")
    vectors = bytearray((changed / "vectors.safetensors").read_bytes())
    vectors[-1] ^= 1
    (changed / "vectors.safetensors").write_bytes(vectors)
    with pytest.raises(CauserieError, match="is damaged"):
        replace(good, graph=str(changed)).restored(engines)
    write_sums(changed)  # a graph of its own, then
    with pytest.raises(CauserieError, match="trained with another graph"):
        replace(good, graph=str(changed)).restored(engines)


def test_tuples_are_drawn_once(tmp_path: Path, held_out: Corpus, engines: Engines) -> None:
    tuples = draw_tuples(held_out, "both", 40, engines.encoder, FROZEN)
    assert len(tuples) == pytest.approx(40, abs=4)
    said = {turn.text for dialogue in held_out.dialogues for turn in dialogue.turns}
    for one in tuples:
        dialogue = held_out.dialogues[one.dialogue]
        texts = [turn.text for turn in dialogue.turns]
        assert 1 <= len(one.context) <= 2
        at = [i for i in range(1, len(texts)) if texts[i] == one.true]
        assert any(tuple(texts[max(0, i - 2) : i]) == one.context for i in at)
        assert one.false in said
        assert one.exchange(one.false).response.text == one.false
    again = draw_tuples(held_out, "both", 40, engines.encoder, FROZEN)
    assert tuples == again
    kinds = [t.kind for t in draw_tuples(held_out, "random", 40, engines.encoder, FROZEN)]
    assert set(kinds) == {"random"}
    write_tuples(tmp_path / "t.jsonl", {"seed": 0}, tuples)
    assert read_tuples(tmp_path / "t.jsonl", {"seed": 0}) == tuples
    assert read_tuples(tmp_path / "t.jsonl", {"seed": 1}) is None
    assert read_tuples(tmp_path / "nothing.jsonl", {}) is None
    (tmp_path / "t.jsonl").write_text('{"seed": 0}\n{"half": ')
    assert read_tuples(tmp_path / "t.jsonl", {"seed": 0}) is None


def test_accuracy_counts_ties_half_and_dialogues_as_one() -> None:
    won = wins([0.3, 0.2, 0.5, 0.1], [0.1, 0.2, 0.7, 0.0])
    assert won.tolist() == [1, 0.5, 0, 1]
    shares = ClusteredRatio.of(won, [7, 7, 9, 9])
    assert (shares.part.tolist(), shares.whole.tolist()) == ([1.5, 1], [2, 2])
    assert shares.ratio() == 2.5 / 4


def test_an_epoch_sees_every_tuple_once(engines: Engines, tmp_path: Path) -> None:
    run = run_in(tmp_path, replace(FROZEN, batch=10, tuples=50))
    materials = prepare(engines, run)
    short = replace(run, config=replace(FROZEN, epochs=0.1), folder=tmp_path / "learned")
    scorer, progress = learn(materials, short)
    assert progress.step >= 1
    task = Ranking(scorer, materials.train[:40], materials.measured)
    seen = [id(example) for index in range(len(task.batches)) for example in task.batch(index)]
    assert len(set(seen)) == len(seen) == len(task.batches) * FROZEN.batch
    assert task.batch(0) != task.batch(len(task.batches))
    assert [*map(id, task.batch(0))] == seen[: FROZEN.batch]
    # the tuples of the same folder are not drawn again, with other settings they are
    before = (tmp_path / "training" / "tuples.jsonl").stat().st_mtime_ns
    prepare(engines, run_in(tmp_path, replace(FROZEN, batch=5, tuples=50)))
    assert (tmp_path / "training" / "tuples.jsonl").stat().st_mtime_ns == before


def test_start_from_another_artifact(engines: Engines, artifact: Artifact, tmp_path: Path) -> None:
    """Its own artifacts give the network, too; one of another metric only the encoder."""
    if artifact.options["tuning"] != "adapter":
        pytest.skip("only an adapter is worth taking over")
    artifact.save(tmp_path / "own")
    replace(artifact, metric="density").save(tmp_path / "other")
    assert Grade.inherited(artifact) == artifact.options
    assert set(Grade.inherited(replace(artifact, metric="density"))) == {
        "tuning", "rank", "layers", "pooling", "window",
    }  # fmt: skip
    config = replace(
        GradeConfig(**artifact.options), fixed=True, tuples=40, epochs=1.0, learning_rate=1e-9
    )
    for name, same in (("own", True), ("other", False)):
        folder = tmp_path / name
        start = Start.load(str(folder))
        run = replace(run_in(tmp_path, config), start=start, folder=tmp_path / f"{name}.tr")
        made = Grade.train(engines, run)[0]
        for key, weight in artifact.network.items():
            alike = torch.allclose(made.network[key], weight, atol=1e-4)
            assert alike or not (same or key.startswith("encoder.")), key
        different = [k for k in made.network if k.startswith("network.fc_1")]
        if not same:
            assert not torch.allclose(made.network[different[0]], artifact.network[different[0]])
    other = Start.load(str(tmp_path / "other"))
    wrong = replace(run_in(tmp_path, replace(config, rank=3)), start=other)
    with pytest.raises(CauserieError, match="--init was trained with rank=2"):
        Grade.train(engines, wrong)
    with pytest.raises(CauserieError, match="fixed=true needs the encoder of --init"):
        Grade.train(engines, run_in(tmp_path, config))


def command(folder: Path, encoder: Path, *more: str) -> list[str]:
    config = {**asdict(FROZEN), "tuples": 60, "epochs": 2.0}
    changed = {k: v for k, v in config.items() if v != asdict(GradeConfig())[k]}
    sets = [word for k, v in changed.items() for word in ("--set", f"{k}={v}")]
    return [
        "train", "grade", "--offline", "--threads", "1",
        "--encoder", str(encoder), "--data", str(folder / "train.jsonl"),
        "--valid", str(folder / "valid.jsonl"), *sets, *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_train_and_score_on_the_command_line(tmp_path: Path, tiny_bert: Path) -> None:
    run_in(tmp_path, FROZEN)
    done = run_causerie(*command(tmp_path, tiny_bert, "--out", str(tmp_path / "mine")))
    assert done.returncode == 0, done.stderr
    assert "lexical negatives" in done.stderr
    assert load_artifact(str(tmp_path / "mine"), "grade").options["graph_sha256"]
    scored = run_causerie(
        "score", tmp_path / "valid.jsonl", "--metrics", "grade", "--encoder", tiny_bert,
        "--set", f"grade.artifact={tmp_path / 'mine'}", "--offline", "--explain", "--percentiles",
        "--out", tmp_path / "s.jsonl", "--report", tmp_path / "report.html",
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    row = json.loads((tmp_path / "s.jsonl").open().readline())
    assert 0 <= row["grade"] <= 1
    assert row["explanation"]["grade"]["edges"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"interaction": "none"}, "interaction is cross or towers, not 'none'"),
        ({"negatives": "hard"}, "negatives is both or lexical or embedding or random"),
        ({"history": 0}, "history is at least 1, not 0"),
        ({"hops": 6}, "hops is at most cap"),
        ({"keep_edges": 1.5}, "keep_edges is from 0 to 1"),
        ({"margin": -1.0}, "margin is at least 0"),
    ],
)
def test_wrong_settings_are_one_sentence(changed: dict[str, object], message: str) -> None:
    with pytest.raises(CauserieError, match=message):
        GradeConfig(**changed)  # type: ignore[arg-type]


def write_sums(folder: Path) -> None:
    """Say of a graph's files that they are as they should be."""
    names = (folder / "SHA256SUMS").read_text().split()[1::2]
    sums = (
        f"{sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in names
        if (folder / name).exists()
    )
    (folder / "SHA256SUMS").write_text("".join(sums))


def test_a_graph_without_vectors_is_refused(engines: Engines, tmp_path: Path) -> None:
    folder = shutil.copytree(Graph.open().folder, tmp_path / "bare")
    (folder / "vectors.safetensors").unlink()
    write_sums(folder)
    with pytest.raises(CauserieError, match="has no vectors"):
        prepare(engines, run_in(tmp_path, replace(FROZEN, graph=str(folder))))


def test_ranking_tuple_is_an_exchange() -> None:
    one = RankingTuple(("a", "b"), "c", "d", "lexical", 3)
    exchange = one.exchange(one.true)
    assert [turn.text for turn in exchange.context] == ["a", "b"]
    assert (exchange.response.text, exchange.turn) == ("c", 2)
