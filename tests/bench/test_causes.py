"""Classifiers on annotated causes, and the command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from causerie.bench.causes import causes_markdown, run_causes
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.causalscore import CausalScore
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.measure import DiscoveryTest
from causerie.metrics.causalscore.questions import Question
from causerie.training.corpus import AnnotatedCorpus
from causerie.training.trainable import TrainingRun
from terminal import run_causerie

sys.path.insert(0, str(Path(__file__).parents[1] / "metrics" / "causalscore"))
from annotated_talks import write_annotations


@pytest.fixture(scope="module")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("annotated")
    return [write_annotations(folder / f"{name}.test.jsonl", 40, n) for n, name in enumerate("ab")]


@pytest.fixture(scope="module")
def artifact(engines: Engines, files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact")
    config = CausalScoreConfig(
        interaction="towers", tuning="frozen", pooling="mean", width=16, history=5, rounds=0,
        curve=0, batch=32, epochs=5, learning_rate=3e-3,
    )  # fmt: skip
    train = write_annotations(folder / "train.jsonl", 120, seed=9)
    run = TrainingRun(config, (), (), folder / "training", (train,), unseen=tuple(files))
    CausalScore.train(engines, run)[0].save(folder / "artifact")
    return folder / "artifact"


def test_every_file_and_all_of_them(engines: Engines, artifact: Path, files: list[Path]) -> None:
    metric = CausalScore(str(artifact))
    corpus = AnnotatedCorpus.read(files)
    result = run_causes(metric, engines, corpus, ["a", "b"], resamples=100)
    assert [domain.name for domain in result.domains] == ["a", "b", "all"]
    assert [domain.exchanges for domain in result.domains] == [40, 40, 80]
    for domain in result.domains:
        for answers in (domain.unconditional, domain.conditional):
            found, position, always = answers
            assert (always.auc.value, always.balanced_accuracy.value) == (0.5, 0.5)
            assert position.at_equal_distance.value == 0.5
            for one in (found, position):
                assert one.auc.low is not None
                assert one.auc.high is not None
                assert one.auc.value is not None
                assert one.auc.low <= one.auc.value <= one.auc.high
        # negatives of the unconditional classifier stand where positives do
        assert domain.unconditional[1].auc.value == 0.5
        assert domain.conditional[1].auc.value > 0.55  # type: ignore[operator]
        assert set(domain.true_against_random) == {
            "mean", "unconditional", "conditional", "max", "sum", "noisy-or",
        }  # fmt: skip
    assert result == run_causes(metric, engines, corpus, ["a", "b"], resamples=100)
    text = causes_markdown(result)
    assert "| all | position only |" in text
    assert "Exchanges: a 40 of 40 dialogues; b 40 of" in text


def command(tiny_bert: Path, *more: str) -> list[str]:
    words = ["bench", "causes", "--offline", "--threads", "1"]
    return [*words, "--encoder", str(tiny_bert), *more]


def test_the_command(artifact: Path, files: list[Path], tiny_bert: Path, tmp_path: Path) -> None:
    words = [word for file in files for word in ("--annotations", str(file))]
    words += ["--metric", f"{artifact}:history=3", "--out", str(tmp_path / "causes.md")]
    done = run_causerie(*command(tiny_bert, *words))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "causes.md").read_text() in done.stdout
    assert "| b | C_cond |" in done.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--metric", "length"], "length does not find causes"),
        (["--annotations", "nowhere.jsonl"], "nowhere.jsonl does not exist"),
        (["--test", "guess"], "test must be one of fisherz, kci, rcit"),
    ],
)
def test_wrong_commands_are_one_sentence(
    artifact: Path, files: list[Path], tiny_bert: Path, more: list[str], message: str
) -> None:
    words = command(tiny_bert, "--annotations", str(files[0]), "--metric", str(artifact), *more)
    done = run_causerie(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_test_without_learning(engines: Engines) -> None:
    pytest.importorskip("causallearn")
    about = "The lake was cold, so we stayed at home."
    test = DiscoveryTest(engines.encoder, "fisherz")
    alike, repeated, same = test.probabilities(
        [
            Question(about, about, "I like pizza."),
            Question(about, "Really?", about),
            Question(about, about),
        ]
    )
    assert alike == pytest.approx(1)
    assert repeated == 0  # given itself, an utterance says nothing more
    assert same == pytest.approx(1)


def test_a_missing_library_is_said(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", None)
    with pytest.raises(CauserieError, match=r"pip install 'causerie\[discovery\]'"):
        DiscoveryTest(engines.encoder)
