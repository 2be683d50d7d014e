"""The robustness probe on attacks small enough to count by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from causerie.bench.files import write_probe
from causerie.bench.probe import probe_markdown, run_probe
from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Metric
from causerie.metrics.ngrams import Bleu
from causerie.metrics.sentinels import Length
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Scorer
from causerie.scoring.store import ScoreStore


@dataclass(frozen=True)
class Shortness(Metric):
    """Words of the response, the fewer the better."""

    name: ClassVar[str] = "shortness"
    summary: ClassVar[str] = "few words"

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(better="lower"),)

    def score_one(self, exchange: Exchange) -> float:
        return len(exchange.response.text.split())


@dataclass(frozen=True)
class Seen(Metric):
    """Keeps what it was asked to score."""

    name: ClassVar[str] = "seen"
    summary: ClassVar[str] = "everything"
    asked: ClassVar[list[tuple[tuple[str, ...], str]]] = []

    def score_one(self, exchange: Exchange) -> float:
        self.asked.append((tuple(t.text for t in exchange.context), exchange.response.text))
        return 0.0


def attack(context: str, answer: str, corrupted: str) -> dict[str, Any]:
    return {
        "context": [{"speaker": "A", "text": context}],
        "answer": answer,
        "adversarial": corrupted,
    }


def write(folder: Path, name: str, records: Sequence[dict[str, Any]]) -> None:
    lines = [json.dumps({"id": f"{name}-{i}", **record}) for i, record in enumerate(records)]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def probe(folder: Path, metrics: Sequence[type[Metric]] = (Length,), **options: Any):
    plan = Plan.of([metric() for metric in metrics], speaker="all")
    return run_probe(Scorer(plan, ScoreStore(":memory:")), folder, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(
        tmp_path,
        "ner",
        [
            attack("one?", "a b c", "a"),  # longer
            attack("one?", "a b", "a b c"),  # shorter
            attack("two?", "a b", "c d"),  # as long
            attack("three?", "a b c d", "c d"),  # longer
        ],
    )
    write(tmp_path, "ner_neutral", [attack("one?", "a b", "c d"), attack("two?", "a", "b c")])
    return tmp_path


def test_accuracy_by_hand_with_ties_half(folder: Path) -> None:
    result = probe(folder, (Length, Shortness), attacks=["ner", "ner_neutral"])
    ner, neutral = result.attacks
    assert (ner.name, ner.control, ner.items, ner.clusters) == ("ner", False, 4, 3)
    assert ner.accuracy["length"].value == 2.5 / 4
    assert ner.accuracy["shortness"].value == 1.5 / 4
    assert ner.accuracy["length"].n == 4
    assert ner.accuracy["length"].low < 2.5 / 4 < ner.accuracy["length"].high
    assert (neutral.name, neutral.control) == ("ner_neutral", True)
    assert neutral.accuracy["length"].value == 0.25
    assert [c.higher_is_better for c in result.columns] == [True, False]


def test_random_answers_come_from_another_context(folder: Path) -> None:
    Seen.asked.clear()
    (result,) = probe(folder, (Seen,), attacks=["random"]).attacks
    true = {
        (("one?",), "a b c"), (("one?",), "a b"), (("two?",), "a b"), (("three?",), "a b c d"),
        (("two?",), "a"),
    }  # fmt: skip
    assert true <= set(Seen.asked)
    drawn = set(Seen.asked) - true
    assert drawn
    for context, answer in drawn:
        assert (context, answer) not in true
        assert any(answer == other for at, other in true if at != context)
    assert (result.items, result.clusters, result.sha256) == (5, 3, "")
    assert result.accuracy["seen"].value == 0.5


def test_a_sample_has_whole_contexts(tmp_path: Path) -> None:
    write(tmp_path, "ner", [attack(f"{i // 3}?", f"a {i}", f"b {i}") for i in range(30)])
    (result,) = probe(tmp_path, attacks=["ner"], max_items=10).attacks
    assert (result.items, result.clusters, result.of_items) == (9, 3, 30)


def test_without_names_all_of_the_folder_with_random_last(folder: Path) -> None:
    write(folder, "personachat.ner", [attack("a?", "x", "y y"), attack("b?", "z z z", "y")])
    names = [attack.name for attack in probe(folder).attacks]
    assert names == ["ner", "ner_neutral", "random", "personachat.ner", "personachat.random"]


def test_sample_is_fixed_by_the_seed(folder: Path) -> None:
    write(folder, "dullness", [attack(f"{i}?", "a " * (i + 1), "b") for i in range(40)])

    def asked(seed: int) -> set[tuple[tuple[str, ...], str]]:
        Seen.asked.clear()
        options = {"attacks": ["dullness"], "max_items": 10, "seed": seed}
        (result,) = probe(folder, (Seen,), **options).attacks
        assert (result.items, result.of_items) == (10, 40)
        return set(Seen.asked)

    assert asked(1) == asked(1) != asked(2)


def test_a_metric_that_cannot_score_has_a_reason(folder: Path) -> None:
    result = probe(folder, (Bleu,), attacks=["ner"])
    accuracy = result.attacks[0].accuracy["bleu"]
    assert (accuracy.value, accuracy.reason) == (None, "no pair has a score on both sides")
    text = probe_markdown(result)
    assert "| bleu | – |  |" in text
    (reason,) = result.attacks[0].unscored["bleu"]
    assert f"`bleu` has no number on some sets: {reason}." in text


def test_markdown_keeps_controls_apart(folder: Path) -> None:
    text = probe_markdown(probe(folder, (Length, Shortness), attacks=["ner", "ner_neutral"]))
    attacks, controls = text.split("### Controls: DailyDialog")
    assert "### Attacks: DailyDialog" in attacks
    assert "ner (n=4)" in attacks
    assert "ner neutral" not in attacks
    assert "ner neutral (n=2)" in controls
    assert "0.5 is right" in attacks  # said before the controls begin
    assert "| *length* | 0.62 [" in attacks
    assert "| shortness | 0.38 [" in attacks


def test_results_are_written_as_data_and_text(folder: Path, tmp_path: Path) -> None:
    result = probe(folder, (Bleu, Length))
    data, text = write_probe(result, tmp_path / "out")
    assert json.loads(data.read_text())["attacks"][0]["items"] == 4
    assert text.read_text() == probe_markdown(result)


@pytest.mark.parametrize(
    ("attacks", "message"),
    [
        (["nre"], "did you mean ner"),
        (["pronoun"], "is not in"),
        (["personachat.random"], "omit it"),
    ],
)
def test_what_is_not_there(folder: Path, attacks: list[str], message: str) -> None:
    with pytest.raises(CauserieError, match=message):
        probe(folder, attacks=attacks)


def test_a_folder_without_attacks(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="has no adversarial set"):
        probe(tmp_path)
    with pytest.raises(CauserieError, match="there is no folder"):
        probe(tmp_path / "none")
