"""The human response among random ones: ranks by hand, and the command."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import pytest

from causerie.bench.ranking import ranking_markdown, ranking_picture, run_ranking
from causerie.bench.scores import ScoreStore
from causerie.dialogue import Exchange
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.metrics.base import Metric, Score, Scores
from causerie.training.candidates import corpus_items, ranking_items
from causerie.training.corpus import Corpus
from terminal import run_causerie


class Alike(Metric):
    """How many words the response shares with the last turn."""

    name = "alike"
    summary = ""

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        return [(Score.of(self.value(e)),) for e in exchanges]

    def value(self, exchange: Exchange) -> float:
        last, response = exchange.last(1)[0].text.split(), exchange.response.text.split()
        return len(set(last) & set(response))


class Unlike(Alike):
    name = "unlike"
    higher_is_better = False


class Silent(Alike):
    name = "silent"

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        return [(Score.unscored("never"),) for _ in exchanges]


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


def test_ranks_by_hand(talks: Path, tmp_path: Path) -> None:
    engines = Engines()
    metrics = {"mine": Alike(engines), "worst": Unlike(engines), "none": Silent(engines)}
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        result = run_ranking(metrics, Corpus.read([talks]), store, max_items=40)
    assert (result.items, result.of_items) == (40, 40)
    mine, worst, none = result.columns
    # thirty are found at once; ten share no word, so all 15 others tie with them
    assert mine.recall.value == pytest.approx(30 / 40)
    assert mine.mrr.value == pytest.approx((30 + 10 / 16) / 40)
    assert mine.above_random.value == pytest.approx((30 + 10 / 2) / 40)
    assert mine.recall.low is not None
    assert mine.recall.low < 0.75 < mine.recall.high  # type: ignore[operator]
    assert worst.recall.value == 0
    assert none.recall.value is None
    text = ranking_markdown(result)
    assert "| mine | 0.750 [" in text
    assert "| none | – |" in text
    assert result.signature in text
    picture = ElementTree.fromstring(ranking_picture(result))
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}path")) == 4  # two columns scored


def test_sample_is_drawn_with_the_seed(talks: Path, tmp_path: Path) -> None:
    metrics = {"mine": Alike(Engines())}
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        corpus = Corpus.read([talks])
        runs = [run_ranking(metrics, corpus, store, max_items=9, seed=s) for s in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0].columns != runs[2].columns
    assert runs[0].items == 9


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
    with pytest.raises(CauserieError, match="no others"):
        corpus_items(Corpus((Corpus.read([talks]).sources[0][:1],)), None, 0)


def test_command(talks: Path, tmp_path: Path) -> None:
    words = ["bench", "rank", "--data", talks]
    words += ["--scores", tmp_path / "scores.sqlite", "--max-items", "20"]
    done = run_causerie(*words, "--metrics", "overlap,length", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "out" / "ranking.md").read_text() + "\n"
    assert "| overlap |" in done.stdout
    assert (tmp_path / "out" / "ranking.svg").read_text().startswith("<svg")
    wrong = run_causerie(*words, "--metrics", "length:x")
    assert wrong.returncode == 2
    assert "METRIC:OPTION=VALUE" in wrong.stderr
