"""The human response among random ones: ranks by hand, and the command."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from causerie.bench.ranking import ranking_markdown, ranking_picture, run_ranking, variants
from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Metric, Score
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Scorer
from causerie.training.corpus import Corpus
from causerie.training.negatives import corpus_items, ranking_items
from terminal import run_causerie


@dataclass(frozen=True)
class Alike(Metric):
    """Number of words that the response shares with the last turn."""

    name: ClassVar[str] = "alike"
    summary: ClassVar[str] = ""

    def score_one(self, exchange: Exchange) -> float | Score:
        last, response = exchange.last(1)[0].text.split(), exchange.response.text.split()
        return len(set(last) & set(response))


@dataclass(frozen=True)
class Unlike(Alike):
    name: ClassVar[str] = "unlike"

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(better="lower"),)


@dataclass(frozen=True)
class Words(Alike):
    """Number of words in the response."""

    name: ClassVar[str] = "words"

    def score_one(self, exchange: Exchange) -> float | Score:
        return len(exchange.response.text.split())


@dataclass(frozen=True)
class Silent(Alike):
    name: ClassVar[str] = "silent"

    def score_one(self, exchange: Exchange) -> float | Score:
        return Score.unscored("never")


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Forty dialogues; the response repeats the number of its dialogue, save in every fourth."""
    lines = []
    for number in range(40):
        answer = f"yes {number}" if number % 4 else "yes"
        turns = [{"speaker": "A", "text": f"is it {number}"}, {"speaker": "B", "text": answer}]
        lines.append(json.dumps({"id": str(number), "turns": turns}))
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(lines))
    return path


def scorer(**metrics: Metric) -> Scorer:
    return Scorer(Plan(metrics, speaker="all"))


def test_ranks_by_hand(talks: Path) -> None:
    metrics = scorer(mine=Alike(), worst=Unlike(), none=Silent())
    result = run_ranking(metrics, Corpus.read([talks]), max_items=40)
    assert (result.items, result.of_items) == (40, 40)
    mine, worst, none = result.columns
    # thirty are found at once; ten share no word, so all 15 others tie with them
    assert mine.ranking.recall.value == pytest.approx(30 / 40)
    assert mine.ranking.mrr.value == pytest.approx((30 + 10 / 16) / 40)
    assert mine.ranking.above.value == pytest.approx((30 + 10 / 2) / 40)
    assert mine.ranking.recall.low is not None
    assert mine.ranking.recall.low < 0.75 < mine.ranking.recall.high  # type: ignore[operator]
    assert worst.ranking.recall.value == 0
    assert none.ranking.recall.value is None
    text = ranking_markdown(result)
    assert "| mine | 0.750 [" in text
    assert "| none | – |" in text
    assert result.signature in text
    picture = ElementTree.fromstring(ranking_picture(result))
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}path")) == 4  # two columns scored


def test_attacks_and_the_baseline_by_hand(tmp_path: Path) -> None:
    lines = []
    for number in range(40):
        turns = [{"speaker": "A", "text": f"is it {number}"}]
        turns.append({"speaker": "B", "text": f"yes it is indeed {number}"})
        lines.append(json.dumps({"id": str(number), "turns": turns}))
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(lines))
    metrics = scorer(longer=Words(), cosine=Alike(), silent=Silent())
    result = run_ranking(metrics, Corpus.read([path]), max_items=40, attacks=True)
    longer, cosine, silent = result.columns
    # the longest of equals is never first; the words in common tell every dialogue
    assert longer.gain is not None
    assert (longer.gain.value, longer.gain.low, longer.gain.high) == (-1, -1, -1)
    assert cosine.gain is None
    last, shuffled = longer.attacks["the last turn"], longer.attacks["shuffle"]
    assert last.above.value == 1  # five words against three
    assert last.gain is not None
    assert last.gain.value == 0.5  # all three words are in common on both sides: half
    assert shuffled.above.value == 0.5
    assert silent.attacks["shuffle"].above.value is None
    text = ranking_markdown(result)
    assert "| longer | the last turn | 40 | 1.000 [1.000, 1.000] | 0.500" in text
    assert "R@1 above cosine" in text


def test_sample_is_drawn_with_the_seed(talks: Path) -> None:
    metrics, corpus = scorer(mine=Alike()), Corpus.read([talks])
    runs = [run_ranking(metrics, corpus, max_items=9, seed=s) for s in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0].columns != runs[2].columns
    assert runs[0].items == 9


def test_variants_of_one_metric_stand_beside_each_other() -> None:
    named = variants("density, density:distance=classifier,c=density:distance=euclidean,here/mine")
    assert named == {
        "density": "density",
        "density:distance=classifier": "density:distance=classifier",
        "c": "c=density:distance=euclidean",
        "mine": "here/mine",
    }
    del named["mine"]
    assert list(Plan.of(named).columns) == list(named)


def test_few_dialogues_give_fewer_candidates(talks: Path) -> None:
    exchanges = Corpus.read([talks]).exchanges
    assert [len(item) for item in ranking_items(exchanges, 0)] == [16] * 40
    assert all(len(item) > 1 for item in ranking_items(exchanges[:2], 0))
    assert ranking_items(exchanges[:1], 0) == []


def test_candidates_are_of_the_same_file(talks: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(talks.read_text().replace("yes", "no"))
    for true, *drawn in corpus_items(Corpus.read([talks, other]), 30, 0):
        word = true.response.text.split()[0]
        assert {e.response.text.split()[0] for e in drawn} == {word}
    with pytest.raises(CauserieError, match="no negatives"):
        corpus_items(Corpus((Corpus.read([talks]).sources[0][:1],)), None, 0)


def test_command(talks: Path, tmp_path: Path) -> None:
    words = ["bench", "rank", "--data", talks]
    words += ["--scores", tmp_path / "scores.sqlite", "--max-items", "20"]
    done = run_causerie(
        *words, "--metrics", "overlap,length", "--attacks", "--out", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "out" / "ranking.md").read_text() + "\n"
    assert "| overlap |" in done.stdout
    assert "| length | echo |" in done.stdout
    assert (tmp_path / "out" / "ranking.svg").read_text().startswith("<svg")
    wrong = run_causerie(*words, "--metrics", "length:x")
    assert wrong.returncode == 2
    assert "x: write KEY=VALUE" in wrong.stderr
