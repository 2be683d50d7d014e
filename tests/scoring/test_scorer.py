"""The scorer: the same numbers in any batch, order and thread, and each text once."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.engines.encoder import Encoder
from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.scoring import Batch, Plan, Scorer
from causerie.scoring.store import ScoreStore


def talks(count: int, seed: int = 0) -> list[Dialogue]:
    rng = random.Random(seed)
    return [
        Dialogue(
            str(number),
            tuple(
                Turn("AB"[place % 2], " ".join(rng.choices(tiny.CORPUS, k=rng.randint(1, 3))))
                for place in range(rng.randint(2, 7))
            ),
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def scorer(tiny_bert: Path, tiny_gpt2: Path) -> Scorer:
    settings = Settings(encoder=str(tiny_bert), lm=str(tiny_gpt2))
    return Scorer(Plan.of("cosine,perplexity,overlap,length", settings=settings))


def numbers(batch: Batch) -> dict[str, np.ndarray]:
    return {column: batch.values(column) for column in batch.plan.columns}


def test_eight_threads_get_the_numbers_of_one(scorer: Scorer) -> None:
    dialogues = talks(24)
    alone = [numbers(scorer.score_items(scorer.items_of(one))) for one in dialogues]
    fresh = Scorer(scorer.plan)  # its networks are loaded by whichever thread comes first
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda d: fresh.score_items(fresh.items_of(d)), dialogues))
    for expected, batch in zip(alone, together, strict=True):
        assert set(batch.cuts["cosine"]) <= {"encoder"}
        for column, values in numbers(batch).items():
            np.testing.assert_array_equal(values, expected[column])


def test_whole_and_dialogue_by_dialogue_are_the_same_to_the_last_bit(scorer: Scorer) -> None:
    dialogues = talks(30, seed=3)
    whole = Batch.joined(scorer.plan, scorer.batches(dialogues))
    fresh = Scorer(scorer.plan)
    parts = [fresh.score_items(fresh.items_of(one)) for one in reversed(dialogues)]
    one_by_one = Batch.joined(scorer.plan, reversed(parts))
    for column in scorer.plan.columns:
        np.testing.assert_array_equal(one_by_one.values(column), whole.values(column))


SCRIPT = """
import multiprocessing, sys
from causerie import Dialogue
from causerie.engines import Settings
from causerie.scoring import Plan, Scorer

encoder, lm, method = sys.argv[1:]
settings = Settings(encoder=encoder, lm=lm, threads=2)
scorer = Scorer(Plan.of("cosine,perplexity", settings=settings))
# So many, and as long, that several threads share out what a pass computes.
texts = [["hello you", "hi there", f"{n} " + "music " * (20 + n % 8)] for n in range(60)]
dialogues = [Dialogue.from_texts(one) for one in texts]

def score(_):
    rows = [row for batch in scorer.batches(dialogues) for _, row in batch.rows()]
    return [(row["cosine"].value, row["perplexity"].value) for row in rows]

if __name__ == "__main__":
    expected = score(0)  # before the fork, networks are loaded and threads have worked
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(score, range(2))
    assert found == [expected] * 2, (found, expected)
    print("equal", len(expected))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_get_the_same_numbers(
    tiny_bert: Path, tiny_gpt2: Path, tmp_path: Path, method: str
) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    command = [sys.executable, str(script), str(tiny_bert), str(tiny_gpt2), method]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "equal 120\n", done.stderr


FORKED_MEANWHILE = """
import os, signal, threading
import torch
from causerie.engines import Engines, Settings

engines = Engines(Settings(threads=2))
begun, done = threading.Event(), threading.Event()

def compute():
    with engines.computing():
        begun.set()
        done.wait()

threading.Thread(target=compute).start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)  # whoever waits for a thread that did not survive the fork is ended
    with engines.computing():
        os._exit(torch.get_num_threads())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_while_another_thread_computes_does_not_wait_for_it() -> None:
    """It makes its own networks, and computes with one thread."""
    command = [sys.executable, "-c", FORKED_MEANWHILE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr


def test_scoring_leaves_the_number_of_threads_as_it_was(tiny_bert: Path) -> None:
    import torch

    before = torch.get_num_threads()
    settings = Settings(encoder=str(tiny_bert), threads=before + 1)
    Scorer(Plan.of("cosine", settings=settings)).score(talks(1)[0])
    assert torch.get_num_threads() == before


def test_what_was_cut_is_counted_per_batch_whoever_else_scores(scorer: Scorer) -> None:
    long = Dialogue("long", (Turn("A", "hi"), Turn("B", "music " * 200)))
    short = Dialogue("short", (Turn("A", "hi"), Turn("B", "ok")))
    with ThreadPoolExecutor(4) as pool:
        batches = list(
            pool.map(lambda d: scorer.score_items(scorer.items_of(d)), [long, short] * 8)
        )
    for number, batch in enumerate(batches):
        cut, seen = batch.cuts["cosine"]["encoder"]
        assert (cut, seen) == ((1, 2) if number % 2 == 0 else (0, 2))


@given(seed=st.integers(0, 10_000))
def test_batches_and_order_do_not_change_numbers(scorer: Scorer, seed: int) -> None:
    items = [e for d in talks(6, seed) for e in d.exchanges()]
    whole = scorer.score_items(items)
    shuffled = random.Random(seed).sample(range(len(items)), len(items))
    parts = [scorer.score_items([items[place]]) for place in shuffled]
    joined = Batch.joined(scorer.plan, parts)
    for column in scorer.plan.columns:
        np.testing.assert_allclose(
            joined.values(column), whole.values(column)[shuffled], rtol=1e-4, atol=1e-6
        )


def test_an_empty_response_is_a_row_and_the_rest_is_scored(scorer: Scorer) -> None:
    dialogue = Dialogue(
        "d", (Turn("A", "hi"), Turn("B", "  "), Turn("A", "hello?"), Turn("B", "ok"))
    )
    rows = scorer.score(dialogue)
    assert [row["cosine"].reason for row in rows] == ["empty response", None, None]
    assert all(score.value is None for score in rows[0].values())
    assert all(row["length"].value is not None for row in rows[1:])


def test_each_text_goes_through_an_encoder_once(tiny_bert: Path) -> None:
    """However many metrics ask for it, and token vectors serve those who want whole texts."""
    settings = Settings(encoder=str(tiny_bert))
    metrics = "cosine,c2=cosine,cosine-ref,bertscore"
    dialogues = [
        Dialogue(d.id, tuple(Turn(t.speaker, t.text, references=("ok then",)) for t in d.turns))
        for d in talks(10)
    ]
    scorer = Scorer(Plan.of(metrics, settings=settings, speaker="all"))
    encoder = scorer.engines.encoder
    passed: list[tuple[int, ...]] = []
    forward = Encoder.forward

    def counted(self: Encoder, batch: dict[str, Any]) -> Any:
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
            if mask.sum() > 1:  # a row of one token is there for the shape of the pass
                passed.append(tuple(ids[mask.bool()].tolist()))
        return forward(self, batch)

    encoder.forward = counted.__get__(encoder)  # type: ignore[method-assign]
    items = [e for d in dialogues for e in d.exchanges()]
    scorer.score_items(items)
    assert len(passed) == len(set(passed)) > 0


def test_a_look_up_locks_nobody_out(scorer: Scorer, tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    (first, second) = talks(2, 3)
    with ScoreStore(path) as one, ScoreStore(path) as other:
        Scorer(scorer.plan, one, engines=scorer.engines).score(first, explain=False)
        reader = Scorer(scorer.plan, one, engines=scorer.engines)
        assert not reader.missing("cosine", first.exchanges())
        assert not one._database.in_transaction
        Scorer(scorer.plan, other, engines=scorer.engines).score(second)


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.sqlite"
    with closing(sqlite3.connect(path)) as mine, mine:
        mine.execute("CREATE TABLE scores (player TEXT)")
        mine.execute("INSERT INTO scores VALUES ('ann')")
    with pytest.raises(CauserieError, match="not one of causerie's"):
        ScoreStore(path)
    with closing(sqlite3.connect(path)) as mine:
        assert mine.execute("SELECT player FROM scores").fetchall() == [("ann",)]


def test_empty_responses_are_the_worst_of_their_dialogue() -> None:
    """Half of the replies of a dialogue are empty: its mean falls by half; all: it is empty."""
    good = Turn("B", "yes indeed", references=("yes indeed",))
    silent = Turn("B", "", references=("yes indeed",))
    ask = Turn("A", "really?")
    plan = Plan.of("rouge,length", level="dialogue", speaker="B")
    rows = [
        Scorer(plan).score(Dialogue("d", turns))[0]
        for turns in ((ask, good, ask, good), (ask, good, ask, silent), (ask, silent, ask, silent))
    ]
    assert [row["rouge"].value for row in rows] == [1.0, 0.5, None]
    assert rows[2]["rouge"].reason == "empty response"
    assert rows[1]["length"].value == 2.0, "neither end of a sentinel is worst"


@dataclass(frozen=True)
class Odd(Metric):
    """Returns what no metric returns."""

    returned: Literal["nothing", "text", "list"] = "nothing"
    name = "odd"
    summary = "odd"

    def score_one(self, exchange: Exchange) -> Any:
        return {"nothing": None, "text": "three", "list": [1.0]}[self.returned]


@pytest.mark.parametrize("returned", ["nothing", "text", "list"])
def test_what_a_metric_returns_is_checked(returned: Any) -> None:
    with pytest.raises(CauserieError, match="score_one returned"):
        Scorer(Plan.of(Odd(returned))).score(talks(1)[0])


def test_what_is_no_dialogue_is_said() -> None:
    scorer = Scorer(Plan.of("length"))
    with pytest.raises(CauserieError, match="from_messages"):
        scorer.score([{"role": "user", "content": "hi"}])  # type: ignore[call-overload]
    with pytest.raises(CauserieError, match=r"Plan\.of"):
        Scorer("length")  # type: ignore[arg-type]
    with pytest.raises(CauserieError, match="is not a metric"):
        Plan({"x": "length"})  # type: ignore[dict-item]


def test_engines_of_other_settings_are_refused(tiny_bert: Path) -> None:
    with pytest.raises(CauserieError, match="other settings"):
        Scorer(Plan.of("cosine"), engines=Engines(Settings(encoder=str(tiny_bert))))


def test_levels_and_items_must_agree(scorer: Scorer) -> None:
    (dialogue,) = talks(1)
    with pytest.raises(CauserieError, match="level turn cannot score dialogues"):
        scorer.score_items([dialogue])
    whole = Scorer(Plan.of("length", level="dialogue"))
    with pytest.raises(CauserieError, match="needs whole dialogues"):
        whole.items_of(Exchange(dialogue, 1))


def test_a_full_disk_is_one_sentence_and_what_was_kept_stays(
    scorer: Scorer, tmp_path: Path
) -> None:
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        kept = Scorer(scorer.plan, store, engines=scorer.engines)
        first = talks(4, 1)
        expected = [numbers(kept.score_items(kept.items_of(d))) for d in first]
        (pages,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count = {pages}")  # no page can be added
        many = [e for dialogue in talks(400, 2) for e in dialogue.exchanges()]
        with pytest.raises(CauserieError, match=r"cannot be used \(database or disk is full\)"):
            kept.score_items(many)
    with ScoreStore(path) as store:
        again = Scorer(scorer.plan, store, engines=scorer.engines)
        for dialogue, values in zip(first, expected, strict=True):
            for column, found in numbers(again.score_items(again.items_of(dialogue))).items():
                np.testing.assert_array_equal(found, values[column])
