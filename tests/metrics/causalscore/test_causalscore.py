"""The metric end to end: trained on a small corpus, saved, loaded, scoring."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics import load_metric
from causerie.metrics.causalscore import CausalScore
from causerie.metrics.causalscore.classifier import Classifiers, dependents
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.formula import SCORES, CausalGraph
from causerie.metrics.causalscore.measure import position_only, predict, with_random_responses
from causerie.metrics.causalscore.questions import (
    Question,
    items_of,
    measured_triples,
)
from causerie.models.artifact import Artifact, load_artifact
from causerie.stats import auc
from causerie.training.corpus import AnnotatedCorpus
from causerie.training.trainable import Start, TrainingRun
from terminal import ended_by, run_causerie

sys.path.insert(0, str(Path(__file__).parent))
from annotated_talks import write_annotations, write_dialogues

FROZEN = CausalScoreConfig(
    interaction="towers", tuning="frozen", pooling="mean", width=32, dropout=0.0, history=5,
    rounds=2, curve=2, batch=32, epochs=10, learning_rate=6e-3, exchanges=1,
)  # fmt: skip
ADAPTER = replace(FROZEN, tuning="adapter", rank=2, epochs=5, rounds=0, curve=0)
CROSS = replace(
    ADAPTER, interaction="cross", tuning="full", epochs=1, learning_rate=1e-3, exchanges=1
)
CONFIGS = {"frozen": FROZEN, "adapter": ADAPTER, "cross": CROSS}


@pytest.fixture(scope="module")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))


@pytest.fixture(scope="module", params=CONFIGS)
def training(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of checkpoints and the log of a training."""
    return tmp_path_factory.mktemp(request.param)


def run_in(folder: Path, config: CausalScoreConfig, count: int = 240) -> TrainingRun:
    return TrainingRun(
        config=config,
        data=(write_dialogues(folder / "unlabelled.jsonl", 150, seed=2),),
        valid=(write_annotations(folder / "valid.jsonl", 80, seed=4),),
        folder=folder / "training",
        annotations=(write_annotations(folder / "train.jsonl", count, seed=1),),
        licence="public domain",
        recipe="causerie train causalscore",
    )


@pytest.fixture(scope="module")
def artifact(training: Path, engines: Engines) -> Artifact:
    config = CONFIGS[training.name.rstrip("0123456789")]
    return CausalScore.train(engines, run_in(training, config))[0]


@pytest.fixture(scope="module")
def metric(training: Path, artifact: Artifact) -> CausalScore:
    artifact.save(training / "artifact")
    return CausalScore(artifact=str(training / "artifact"))


@pytest.fixture
def classifiers(metric: CausalScore, engines: Engines) -> Classifiers:
    """Restore the metric from its artifact."""
    return metric.restored(engines)[1]


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory) -> AnnotatedCorpus:
    """Held-out annotated exchanges."""
    folder = tmp_path_factory.mktemp("test")
    return AnnotatedCorpus.read([write_annotations(folder / "t.jsonl", 80, seed=3)])


@pytest.fixture(scope="module")
def exchanges(test_set: AnnotatedCorpus) -> list[Exchange]:
    return [one.exchange for one in test_set.annotations]


def values(metric: CausalScore, exchanges: list[Exchange], engines: Engines) -> np.ndarray:
    return np.array([row[0].value for row in metric.score_exchanges(exchanges, engines)])


def exchange_of(*texts: str) -> Exchange:
    turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
    return Exchange(Dialogue("d", turns), len(turns) - 1)


def test_learns_which_utterances_are_causes(
    metric: CausalScore,
    classifiers: Classifiers,
    engines: Engines,
    test_set: AnnotatedCorpus,
    exchanges: list[Exchange],
) -> None:
    if metric.info.options["interaction"] == "cross":
        pytest.skip("weights drawn at random learn to read texts together in hours, not seconds")
    items = items_of(test_set, classifiers.history)
    examples = measured_triples(items, dependents(classifiers.unconditional, items), seed=0)
    found = predict(classifiers.conditional, examples).measures(examples)
    assert found["auc"] > 0.75
    assert found["balanced accuracy"] > 0.65
    assert found["auc"] > position_only(examples).measures(examples)["auc"] + 0.1
    false = with_random_responses(test_set.annotations, seed=0)
    scores = [*values(metric, exchanges, engines), *values(metric, false, engines)]
    assert auc(scores, [True] * len(exchanges) + [False] * len(false)) > 0.6


def naive_graph(classifiers: Classifiers, exchange: Exchange) -> CausalGraph:
    """Ask the classifiers one question at a time."""
    window = [turn.text for turn in exchange.context[-classifiers.history :]]
    response = exchange.response.text

    def p(question: Question) -> float:
        both = classifiers.unconditional, classifiers.conditional
        classifier = both[question.given is not None]
        classifier.encoder.forget()
        return float(classifier.probabilities([question])[0])

    unconditional = tuple(p(Question(said, response)) for said in window)
    found = [i for i in range(len(window)) if unconditional[i] > 0.5]
    pairs = permutations(found, 2)
    conditional = {
        (i, j): p(Question(window[i], response, window[j], (len(window) - i, len(window) - j)))
        for i, j in pairs
    }
    return CausalGraph(unconditional, conditional)


def some(classifiers: Classifiers, exchanges: list[Exchange]) -> list[Exchange]:
    """Return exchanges with no, one, two and many dependents, as far as there are any."""
    chosen: dict[int, Exchange] = {}
    for exchange, graph in zip(exchanges, classifiers.graphs(exchanges), strict=True):
        chosen.setdefault(len(graph.dependents), exchange)
    twice = exchange_of("I like pizza.", "I like pizza.", "What about the lake?", "Really, pizza?")
    return [*chosen.values(), twice]


@pytest.mark.parametrize("variant", SCORES)
def test_scores_are_those_of_one_question_at_a_time(
    engines: Engines,
    metric: CausalScore,
    classifiers: Classifiers,
    exchanges: list[Exchange],
    variant: str,
) -> None:
    asked = some(classifiers, exchanges)
    one = replace(metric, score=variant)  # type: ignore[arg-type]
    naive = [SCORES[variant](naive_graph(classifiers, exchange)) for exchange in asked]
    np.testing.assert_allclose(values(one, asked, engines), naive, rtol=1e-4, atol=1e-6)


def test_two_utterances_with_equal_text_are_two(metric: CausalScore, engines: Engines) -> None:
    twice = exchange_of("I like pizza.", "I like pizza.", "Really, pizza?")
    (graph,) = metric.graphs([twice], engines)
    assert len(graph.unconditional) == 2
    assert graph.unconditional[0] == graph.unconditional[1]
    if graph.dependents:
        assert set(graph.conditional) == {(0, 1), (1, 0)}


def test_explanation_is_the_graph(
    metric: CausalScore, classifiers: Classifiers, engines: Engines, exchanges: list[Exchange]
) -> None:
    asked = some(classifiers, exchanges)
    rows = metric.score_exchanges(asked, engines, explain=True)
    for exchange, graph, (score,) in zip(asked, classifiers.graphs(asked), rows, strict=True):
        found = json.loads(json.dumps(score.explanation))
        first = exchange.turn - len(graph.unconditional)
        turns = [entry["turn"] for entry in found["dependents"]]
        assert turns == [first + i for i in graph.dependents]
        assert [e["p"] for e in found["dependents"]] == pytest.approx(
            [graph.unconditional[i] for i in graph.dependents], abs=1e-4
        )
        assert [e["turn"] - first for e in found["dependents"] if e["direct"]] == list(
            graph.direct_causes
        )
        for row, i in zip(found["conditional"], graph.dependents, strict=True):
            for p, j in zip(row, graph.dependents, strict=True):
                assert p is None if i == j else abs(p - graph.conditional[i, j]) < 1e-4


def test_history_is_how_far_back_causes_are_sought(
    engines: Engines, metric: CausalScore, exchanges: list[Exchange]
) -> None:
    far = max(exchanges, key=lambda e: e.turn)
    turns = far.dialogue.turns
    cut = replace(far, dialogue=replace(far.dialogue, turns=turns[-3:]), turn=2)
    near = replace(metric, history=2)
    found, expected = values(near, [far], engines), values(near, [cut], engines)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(near.graphs([far], engines)[0].unconditional) == 2
    (score,) = near.score_exchanges([far], engines)[0]
    assert score.percentile is None  # human scores are known for another window
    with pytest.raises(CauserieError, match="history is at least 1"):
        CausalScore(history=0)


def test_saved_and_loaded_scores_the_same(
    metric: CausalScore,
    engines: Engines,
    exchanges: list[Exchange],
    tmp_path: Path,
    tiny_bert: Path,
) -> None:
    load_artifact(str(metric.artifact)).save(tmp_path / "mine")
    fresh = Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))
    loaded = load_metric(str(tmp_path / "mine"))
    assert isinstance(loaded, CausalScore)
    ours, theirs = values(metric, exchanges, engines), values(loaded, exchanges, fresh)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert loaded.signature(fresh) == metric.signature(engines)
    card = (tmp_path / "mine" / "card.md").read_text()
    for expected in (
        "annotations: `train.jsonl`", "unlabelled dialogues: `unlabelled.jsonl`", "public domain",
        "round 0 of self-training", "C_cond, by position only", "true against random, noisy-or",
    ):  # fmt: skip
        assert expected in card


def test_order_and_company_do_not_matter(
    metric: CausalScore, classifiers: Classifiers, engines: Engines, exchanges: list[Exchange]
) -> None:
    asked = exchanges[:20]

    def forgotten(exchanges: list[Exchange]) -> np.ndarray:
        classifiers.unconditional.encoder.forget()
        classifiers.conditional.encoder.forget()
        return values(metric, exchanges, engines)

    together = forgotten(asked)
    np.testing.assert_allclose(together, forgotten(asked[::-1])[::-1], rtol=1e-4)
    alone = np.concatenate([forgotten([exchange]) for exchange in asked])
    np.testing.assert_allclose(together, alone, rtol=1e-4)


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1).filter(lambda t: t.strip() != ""), min_size=2, max_size=8))
def test_any_text_has_a_score(metric: CausalScore, engines: Engines, texts: list[str]) -> None:
    (value,) = values(metric, [exchange_of(*texts)], engines)
    assert 0 <= value <= 1


def test_odd_exchanges(metric: CausalScore, engines: Engines) -> None:
    (score,) = metric.score_exchanges([exchange_of("Hello.")], engines)[0]
    assert (score.value, score.reason) == (None, "no context")
    assert metric.score_exchanges([], engines) == []
    for texts in (("How are you?", "fine " * 2000), ["How are you?"] * 300):
        assert np.isfinite(values(metric, [exchange_of(*texts)], engines)).all()


def test_percentiles_and_dialogues(
    metric: CausalScore, engines: Engines, test_set: AnnotatedCorpus
) -> None:
    rows = metric.score_exchanges(test_set.dialogues.exchanges, engines)
    scores = np.array([row[0].value for row in rows])
    percentiles = np.array([row[0].percentile for row in rows])
    order = np.argsort(scores)
    assert (np.diff(percentiles[order]) >= 0).all()
    dialogue = test_set.dialogues.dialogues[0]
    (whole,) = metric.score_dialogues([dialogue], engines)[0]
    assert whole.value == pytest.approx(values(metric, dialogue.exchanges(), engines).mean())
    assert whole.percentile is not None
    (nothing,) = metric.score_dialogues([Dialogue("d", (Turn("A", "Hello"),))], engines)[0]
    assert nothing.value is None


def test_without_explanations_the_values_are_the_same(
    metric: CausalScore, engines: Engines, exchanges: list[Exchange]
) -> None:
    before = metric.score_exchanges(exchanges[:9], engines, explain=True)
    rows = metric.score_exchanges(exchanges[:9], engines)
    assert [row[0].value for row in rows] == [row[0].value for row in before]
    assert all("dependents" in (row[0].explanation or {}) for row in before)
    assert all("dependents" not in (row[0].explanation or {}) for row in rows)


def saved(artifact: Artifact, folder: Path) -> CausalScore:
    artifact.save(folder)
    return CausalScore(artifact=str(folder))


def test_harm_is_said(engines: Engines, artifact: Artifact, tmp_path: Path) -> None:
    network = {k: t for k, t in artifact.network.items() if "classifier" not in k}
    options = {**artifact.options, "colour": "red"}
    for part, harm in (("network", network), ("options", options)):
        harmed = saved(replace(artifact, **{part: harm}), tmp_path / part)  # type: ignore[arg-type]
        with pytest.raises(CauserieError, match="damaged"):
            harmed.restored(engines)
    other = saved(replace(artifact, backbone_sha256="0" * 64), tmp_path / "other")
    with pytest.raises(CauserieError, match="trained on other weights"):
        other.restored(engines)
    with pytest.raises(CauserieError, match="score is mean or unconditional"):
        CausalScore(score="median")  # type: ignore[arg-type]


def test_no_number_is_no_score(engines: Engines, artifact: Artifact, tmp_path: Path) -> None:
    metric = saved(artifact, tmp_path / "sound")
    graph = CausalGraph((0.9, float("nan")), {})
    dialogue = exchange_of("How are you?", "Fine.")
    score = metric._score(graph, dialogue, artifact, "turn.mean", explain=False)
    assert (score.value, score.reason) == (None, "the classifiers give no number")


def test_every_round_and_the_curve_are_logged(training: Path, artifact: Artifact) -> None:
    def lines(name: str) -> list[dict[str, float]]:
        return [json.loads(line) for line in (training / "training" / name).open()]

    rounds = lines("rounds.jsonl")
    assert [r["round"] for r in rounds] == list(range(len(rounds)))
    assert rounds[0]["kept"]
    assert (len(rounds) > 1) <= bool(artifact.options["rounds"])
    if artifact.options["curve"]:
        curve = lines("learning-curve.jsonl")
        half, all_of_them = (point["annotations"] for point in curve)
        assert half == pytest.approx(all_of_them / 2, rel=0.1)
        assert all(0 <= point["low"] <= point["auc"] <= point["high"] <= 1 for point in curve)
        assert (training / "training" / "learning-curve.svg").exists()
    else:
        assert not (training / "training" / "learning-curve.jsonl").exists()


def test_the_encoder_of_another_artifact_can_be_the_start(
    engines: Engines, artifact: Artifact, tmp_path: Path
) -> None:
    """An artifact of the metric gives heads, too; one of another metric only the encoder."""
    if artifact.options["tuning"] != "adapter":
        pytest.skip("only an adapter is worth taking over")
    artifact.save(tmp_path / "own")
    replace(artifact, metric="density").save(tmp_path / "other")
    assert CausalScore.inherited(artifact) == artifact.options
    encoder = CausalScore.inherited(replace(artifact, metric="density"))
    assert encoder == {"tuning": "adapter", "rank": 2, "layers": None, "pooling": "mean",
                       "window": 256}  # fmt: skip

    def started(name: str, config: CausalScoreConfig) -> Artifact:
        start = Start.load(str(tmp_path / name))
        run = replace(run_in(tmp_path, config, 20), start=start)
        return CausalScore.train(engines, replace(run, folder=tmp_path / f"{name}.training"))[0]

    config = replace(ADAPTER, fixed=True, epochs=0.1, learning_rate=1e-9)
    for name, same in (("own", True), ("other", False)):
        made = started(name, config)
        for key, weight in artifact.network.items():
            alike = torch.allclose(made.network[key], weight, atol=1e-4)
            if key.startswith("encoder."):
                assert alike, key
            elif key.endswith("hidden.weight"):
                assert alike is same, key
    with pytest.raises(CauserieError, match="trained with rank=2: do not change"):
        started("other", replace(config, rank=4))
    with pytest.raises(CauserieError, match="fixed=true needs the encoder of --init"):
        CausalScore.train(engines, run_in(tmp_path, config, 20))


def command(folder: Path, tiny_bert: Path, *more: str) -> list[str]:
    settings = "interaction=towers tuning=frozen pooling=mean width=16 dropout=0.0 history=5"
    settings += " batch=16 epochs=3 learning_rate=1e-2 rounds=1 curve=2 exchanges=2 confidence=0.5"
    sets = [word for setting in settings.split() for word in ("--set", setting)]
    words = ["train", "causalscore", "--offline", "--threads", "1"]
    words += ["--encoder", str(tiny_bert), *sets]
    words += ["--annotations", str(folder / "train.jsonl")]
    return [*words, "--unlabelled", str(folder / "unlabelled.jsonl"), *more]


def test_the_command_trains_and_resumes_to_the_same_weights(
    tmp_path: Path, tiny_bert: Path
) -> None:
    """A run that is killed in self-training and resumed ends like an uninterrupted one."""
    write_annotations(tmp_path / "train.jsonl", 80, seed=1)
    write_dialogues(tmp_path / "unlabelled.jsonl", 40, seed=2)
    whole = command(tmp_path, tiny_bert, "--out", str(tmp_path / "whole"))
    done = run_causerie(*whole)
    assert done.returncode == 0, done.stderr
    assert "C_cond: AUC / balanced accuracy" in done.stderr
    assert "round 1: " in done.stderr

    broken = command(tmp_path, tiny_bert, "--out", str(tmp_path / "broken"))
    checkpoint = tmp_path / "broken.training" / "conditional-1" / "checkpoint.safetensors"
    killed = ended_by(signal.SIGKILL, broken, checkpoint, times=2)
    assert killed.returncode == -9, killed.stderr
    refused = run_causerie(*broken)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    resumed = run_causerie(*broken, "--resume")
    assert resumed.returncode == 0, resumed.stderr

    one, other = (load_artifact(str(tmp_path / n), "causalscore") for n in ("whole", "broken"))
    assert one.network.keys() == other.network.keys()
    assert all(torch.equal(one.network[k], other.network[k]) for k in one.network)
    for name in ("rounds.jsonl", "learning-curve.jsonl"):
        logs = [(tmp_path / f"{n}.training" / name).read_text() for n in ("whole", "broken")]
        assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--set", "colour=red"],
            "causalscore has no option 'colour': its options are batch, epochs",
        ),
        (["--set", "history=1"], "history is at least 2, not 1"),
        (["--set", "confidence=1.5"], "confidence must be from 0.5 to below 1, not 1.5"),
        (["--set", "causes=mine"], "causes is annotated or weak or preceding two"),
        (["--set", "causes=weak"], "causes=weak learns from dialogues alone"),
        (["--set", "interaction=none"], "interaction is cross or towers"),
        (["--valid", "nowhere.jsonl"], "nowhere.jsonl does not exist"),
        (["--init", "nothing"], "nothing is not an artifact"),
    ],
)
def test_wrong_commands_are_one_sentence(
    tmp_path: Path, tiny_bert: Path, more: list[str], message: str
) -> None:
    write_annotations(tmp_path / "train.jsonl", 20, seed=1)
    write_dialogues(tmp_path / "unlabelled.jsonl", 4, seed=2)
    done = run_causerie(*command(tmp_path, tiny_bert, "--out", str(tmp_path / "out")), *more)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_learned_from_is_said(tmp_path: Path) -> None:
    talks = str(write_dialogues(tmp_path / "talks.jsonl", 4, seed=1))
    for words, message in (
        (["causalscore"], "from dialogues: give --annotations or --data"),
        (["density", "--annotations", talks], "density does not learn from annotations"),
        (["density"], "density learns from dialogues: give --data"),
    ):
        done = run_causerie("train", *words, "--out", tmp_path / "o")
        assert done.returncode == 2
        assert message in done.stderr


def test_dialogues_alone_give_weak_labels(tmp_path: Path, tiny_bert: Path) -> None:
    write_dialogues(tmp_path / "talks.jsonl", 60, seed=2)
    words = command(tmp_path, tiny_bert, "--out", str(tmp_path / "weak"))
    at = words.index("--annotations")
    words = [*words[:at], "--data", str(tmp_path / "talks.jsonl"), *words[at + 4 :]]
    done = run_causerie(*words, "--set", "distance=true", "--set", "said=true")
    assert done.returncode == 0, done.stderr
    assert "learns from weak labels" in done.stderr
    made = load_artifact(str(tmp_path / "weak"), "causalscore")
    assert made.options["causes"] == "weak"
    assert "Nobody annotated the causes" in made.card


def test_what_came_before_a_repeated_turn_is_no_cause(
    metric: CausalScore, engines: Engines
) -> None:
    """They caused that turn; the repetition depends on the turn alone."""
    texts = ("I like pizza.", "Really, pizza?", "I like the lake.")
    echo, own, other = (
        metric.graphs([exchange_of(*texts, response)], engines)[0]
        for response in ("I LIKE the lake", "Really, pizza?", "Really, the lake?")
    )
    assert [len(graph.unconditional) for graph in (echo, own, other)] == [1, 2, 3]
