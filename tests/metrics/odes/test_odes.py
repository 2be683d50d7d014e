"""odes: the classifier, its training on a tiny encoder, the metric and its command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from causerie import CauserieError, Dialogue, Engines, Settings, Turn
from causerie.cli import app
from causerie.io import Rejected, read_labelled
from causerie.metrics.odes import CLASSES, OTHER, Odes, Utterance
from causerie.metrics.odes.classifier import Classifier, Committee, Seen, SignalHead, read
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import fingerprint
from causerie.metrics.odes.train import (
    Example,
    Recognition,
    f1_scores,
    judged_loss,
    labels_of,
    measure,
)
from causerie.models.artifact import load_artifact
from causerie.training.trainable import Start, TrainingRun


@pytest.fixture(scope="module")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), device="cpu"))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odes") / "training"


@pytest.fixture(scope="module")
def trained(engines: Engines, training: Path) -> Odes:
    run = TrainingRun(
        config=OdesConfig(utterances=1, width=8, hidden=8, epochs=4, learning_rate=1e-2),
        data=(), valid=(), folder=training,
    )  # fmt: skip
    artifact, results = Odes.train(engines, run)
    assert "macro F1 on held-out templates" in results
    artifact.save(training.with_name("artifact"))
    return Odes(artifact=str(training.with_name("artifact")))


@pytest.fixture(scope="module")
def classifier(engines: Engines, trained: Odes) -> Classifier:
    """What the metric restores from its artifact."""
    return trained.restored(engines)[1]  # type: ignore[no-any-return]


def test_f1_by_hand() -> None:
    said = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=bool)
    true = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]], dtype=bool)
    first, second, third = f1_scores(said, true)
    assert first == pytest.approx(2 / 3)  # precision 1/2, recall 1
    assert second == pytest.approx(2 / 3)  # precision 1, recall 1/2
    assert np.isnan(third)


def test_labels_are_by_class_and_may_be_several() -> None:
    example = Example(Utterance("you dumb bot", None), frozenset({"insult", "critique"}))
    (row,) = labels_of([example])
    assert {CLASSES[i] for i in np.flatnonzero(row)} == {"insult", "critique"}


def test_what_is_not_judged_neither_teaches_nor_counts(classifier: Classifier) -> None:
    logits = torch.tensor([[2.0, -1.0], [0.5, 3.0]], requires_grad=True)
    labels, judged = torch.tensor([[1.0, 0], [0, 0]]), torch.tensor([[1.0, 1], [1, 0]])
    loss = judged_loss(logits, labels, judged)
    p = 1 / (1 + np.exp(-logits.detach().numpy()))
    by_hand = -(np.log(p[0, 0]) + np.log(1 - p[0, 1]) + np.log(1 - p[1, 0])) / 3
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)
    loss.backward()
    assert logits.grad is not None
    assert (logits.grad != 0).tolist() == [[True, True], [True, False]]

    said = Utterance("you are stupid", None)
    (row,) = classifier.probabilities([said]) > 0.5
    fired = {name for name, fires in zip(CLASSES, row, strict=True) if fires}
    known = [Example(said, frozenset({"insult"}), frozenset({"insult"}))]
    whole = [Example(said, frozenset({"insult"}))]
    for some, counted in ((known, fired & {"insult"}), (whole, fired)):
        scores = dict(zip(CLASSES, measure(classifier, some), strict=True))
        assert {name for name, f1 in scores.items() if not np.isnan(f1)} == counted | {"insult"}


def test_what_is_read_of_an_utterance(engines: Engines) -> None:
    encoder = engines.encoder
    first, second = read(encoder, [Utterance("hello you", None), Utterance("hello", "who?")])
    (tokens,) = encoder.tokens([(("hello you",),)])
    size = encoder.dimension**0.5

    def scaled(vector: np.ndarray) -> np.ndarray:
        return size * vector / np.linalg.norm(vector)

    np.testing.assert_allclose(first.tokens, [scaled(v) for v in tokens.vectors], rtol=1e-4)
    np.testing.assert_allclose(first.whole, scaled(tokens.vectors.mean(0)), rtol=1e-4)
    (words,) = encoder.word_vectors(["hello you"])
    np.testing.assert_allclose(first.words, scaled(words.mean(0)), rtol=1e-4)
    assert not first.before.any()
    np.testing.assert_allclose(
        second.before, scaled(encoder.encode([(("who?",),)], "mean")[0]), rtol=1e-4
    )


def test_the_head_takes_the_strongest_pattern_whatever_the_padding(engines: Engines) -> None:
    torch.manual_seed(0)
    head = SignalHead(engines.encoder.dimension, OdesConfig(width=4, hidden=4)).eval()
    some = read(engines.encoder, [Utterance("a b c d e f g h", "x"), Utterance("a", None)])
    with torch.inference_mode():
        together = head(Seen.of(some))
        torch.testing.assert_close(together[1], head(Seen.of(some[1:]))[0], rtol=1e-5, atol=1e-6)
        rows = torch.cat([torch.zeros(1, len(some[0].whole)), some[0].tokens])
        rows = torch.cat([rows, torch.zeros(1, len(some[0].whole))])
        kernel, bias = head.patterns.weight, head.patterns.bias
        found = [
            max(
                float(torch.nn.functional.gelu((kernel[k] * rows[i : i + 3].T).sum() + bias[k]))
                for i in range(len(rows) - 2)
            )
            for k in range(4)
        ]
        seen = torch.cat([torch.tensor(found), some[0].whole, some[0].words, some[0].before])
        expected = head.classes(torch.nn.functional.gelu(head.hidden(seen)))
    torch.testing.assert_close(together[0], expected, rtol=1e-4, atol=1e-4)


def test_a_committee_is_the_mean_of_heads_that_learn_by_themselves(engines: Engines) -> None:
    torch.manual_seed(0)
    config = OdesConfig(width=4, hidden=4, members=3)
    committee = Committee(engines.encoder.dimension, config).eval()
    some = [Example(Utterance("stop it", "hi"), frozenset({"stop_request"}))] * 2
    readings = read(engines.encoder, [one.utterance for one in some])
    each = committee.each(readings)
    assert len({tuple(logits[0].tolist()) for logits in each}) == 3
    torch.testing.assert_close(committee(readings), sum(each) / 3)

    classifier = Classifier(engines.encoder, config)
    classifier.head.load_state_dict(committee.state_dict())
    task = Recognition(classifier, some, some)
    task.loss(task.batch(0)).backward()  # type: ignore[no-untyped-call]
    alone = Classifier(engines.encoder, replace(config, members=1))
    weights = {
        key.replace("members.1", "members.0"): weight
        for key, weight in committee.state_dict().items()
        if "members.1" in key
    }
    alone.head.load_state_dict(weights)
    one = Recognition(alone, some, some)
    one.loss(one.batch(0)).backward()  # type: ignore[no-untyped-call]
    theirs = classifier.head.get_parameter("members.1.classes.bias").grad
    own = alone.head.get_parameter("members.0.classes.bias").grad
    assert theirs is not None
    torch.testing.assert_close(3 * theirs, own)


def test_the_weights_of_a_single_head_are_a_committee_of_one(engines: Engines) -> None:
    config = OdesConfig(width=4, hidden=4)
    head = SignalHead(engines.encoder.dimension, config)
    committee = Committee(engines.encoder.dimension, config)
    committee.load_state_dict(head.state_dict())
    for name, weight in head.state_dict().items():
        torch.testing.assert_close(committee.get_parameter(f"members.0.{name}"), weight)


def test_probabilities_do_not_depend_on_the_batch(classifier: Classifier) -> None:
    some = [Utterance("stop", None), Utterance("you said that", "hi"), Utterance("stop", "hi")]
    together = classifier.probabilities(some)
    alone = np.concatenate([classifier.probabilities([one]) for one in reversed(some)])[::-1]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    assert classifier.probabilities([]).shape == (0, 14)


def test_scores_are_of_users_with_the_turn_before(
    trained: Odes, classifier: Classifier, engines: Engines
) -> None:
    turns = (
        Turn("bot", "do you like cats?", "system"),
        Turn("ann", "no", "user"),
        Turn("ann", "stop it", "user"),
        Turn("bot", "okay", "system"),
    )
    dialogue = Dialogue("d", turns)
    rows = trained.score_exchanges(dialogue.exchanges("all"), engines)
    assert [column.name for column in trained.columns("turn")] == list(CLASSES)
    said = [Utterance("no", turns[0].text), Utterance("stop it", None)]
    expected = classifier.probabilities(said)
    found = [[score.value for score in row] for row in rows[:2]]
    np.testing.assert_allclose(np.array(found, dtype=float), expected, rtol=1e-6)
    assert {score.reason for score in rows[2]} == {"a turn of the system: odes reads users"}
    (whole,) = trained.score_dialogues([dialogue], engines)
    by_class = dict(zip(CLASSES, whole, strict=True))
    assert by_class["insult"].value == pytest.approx(expected[:, CLASSES.index("insult")].max())
    assert by_class[OTHER].value == pytest.approx(expected[:, CLASSES.index(OTHER)].min())
    (nothing,) = trained.score_dialogues([Dialogue("e", turns[:1])], engines)
    assert nothing[0].reason == "no turn of a user to read"


def test_praise_is_good_and_no_signal_is_neither_good_nor_bad() -> None:
    better = {column.name: column.better for column in Odes().columns("turn")}
    assert (better.pop("compliment"), better.pop(OTHER)) == ("higher", None)
    assert set(better.values()) == {"lower"}


def test_training_goes_on_from_an_artifact(trained: Odes, engines: Engines, tmp_path: Path) -> None:
    before = load_artifact(str(trained.artifact))
    config = OdesConfig(**{**before.options, "epochs": 0.1, "learning_rate": 1e-9})
    start = Start(str(trained.artifact), before)
    run = TrainingRun(config=config, data=(), valid=(), folder=tmp_path / "on", start=start)
    after, _ = Odes.train(engines, run)
    for name, weight in before.network.items():
        torch.testing.assert_close(after.network[name], weight, rtol=1e-2, atol=1e-4)
    wider = replace(run, config=replace(config, width=9), folder=tmp_path / "wider")
    with pytest.raises(CauserieError, match="trained with width=8: do not change these"):
        Odes.train(engines, wider)


def test_training_lowers_the_loss(trained: Odes, classifier: Classifier, training: Path) -> None:
    log = [json.loads(line) for line in (training / "metrics.jsonl").read_text().splitlines()]
    losses = [entry["loss"] for entry in log if "loss" in entry]
    assert np.mean(losses[-5:]) < 0.6 * losses[0]
    artifact = load_artifact(str(trained.artifact))
    assert fingerprint()[:12] in artifact.card
    assert set(artifact.part("head")) == set(classifier.head.state_dict())


def test_labelled_utterances(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    records = [
        {"text": "stop", "labels": ["stop_request"], "context": ["hi", "do you like cats?"]},
        {"text": "hi", "labels": ["greeting"]},
        {"text": "hi", "labels": []},
        {"text": "", "labels": ["other"]},
        {"text": "hi", "labels": [], "judged": ["insult", "obscenity"]},
        {"text": "hi", "labels": ["insult"], "judged": ["obscenity"]},
        {"text": "hi", "labels": [], "judged": []},
        {"text": "hi", "labels": "insult", "judged": ["insult"]},
    ]
    file.write_text("\n".join(map(json.dumps, records)))
    records_read = list(read_labelled(file, CLASSES))
    bad = [one for one in records_read if isinstance(one, Rejected)]
    good, partly = (one for one in records_read if not isinstance(one, Rejected))
    assert (good.text, good.before, good.labels) == ("stop", "do you like cats?", {"stop_request"})
    assert good.judged == set(CLASSES)
    assert (partly.labels, partly.judged) == (set(), {"insult", "obscenity"})
    assert [str(one.reason).split(":")[0] for one in bad] == [
        "unknown label 'greeting'",
        "labels must be a list with something in it",
        "text is empty",
        "label 'insult' is not among those judged",
        "judged must be a list with something in it",
        "labels must be a list",
    ]


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"dropout": 1.0}, {"width": 0}])
def test_settings_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(CauserieError):
        OdesConfig(**wrong)  # type: ignore[arg-type]


def test_the_command(trained: Odes, tiny_bert: Path, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    turns = [{"speaker": "bot", "text": "hi"}, {"speaker": "user", "text": "stop"}]
    chats.write_text(json.dumps({"id": "d", "turns": turns}))
    out = tmp_path / "scores.jsonl"
    options = ["--set", f"odes.artifact={trained.artifact}", "--encoder", str(tiny_bert)]
    result = CliRunner().invoke(
        app, ["score", str(chats), "-m", "odes", "--speaker", "user", "-o", str(out), *options]
    )
    assert result.exit_code == 0, result.output
    row = json.loads(out.read_text())
    assert 0 <= row["odes.stop_request"] <= 1


def test_no_log_or_report_spells_an_obscenity_out(
    trained: Odes, tiny_bert: Path, tmp_path: Path
) -> None:
    chats, out, page = (tmp_path / name for name in ("chats.jsonl", "scores.jsonl", "page.html"))
    turns = [
        {"speaker": "bot", "text": "holy shit"},
        {"speaker": "user", "text": "fuck you", "references": ["shit"]},
    ]
    good = {"id": "d", "turns": turns, "note": "bullshit"}
    bad = {"id": "fuck", "turns": [{"speaker": "shit", "text": 3}]}
    chats.write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    options = ["--set", f"odes.artifact={trained.artifact}", "--encoder", str(tiny_bert)]
    options += ["--out", str(out), "--report", str(page), "--explain"]
    result = CliRunner().invoke(
        app, ["score", str(chats), "-m", "odes", "--speaker", "user", *options]
    )
    assert result.exit_code == 1, result.output
    assert "f*** you" in result.output
    assert "f*** you" in page.read_text()
    for shown in (result.output, page.read_text()):  # rows hold the text as it was said
        assert "fuck" not in shown
        assert "shit" not in shown
