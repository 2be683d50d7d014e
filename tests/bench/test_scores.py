"""Scores kept by content: nothing twice, nothing lost, nothing mixed up."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from causerie.bench.scores import ScoreStore, digest_of, expected_seconds, score_items
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Metric, Score, Scores


class Counting(Metric):
    """Two columns: characters of the response, and of the last turn before it."""

    name = "counting"
    summary = "for tests"

    def __init__(self, engines: Engines, version: int = 1) -> None:
        super().__init__(engines)
        self.version = version
        self.seen: list[str] = []

    @property
    def signature(self) -> str:
        return f"counting-{self.version}"

    def dimensions(self, level: Level) -> tuple[str, ...]:
        return ("own", "before")

    def score_exchanges(self, exchanges: Sequence[Exchange]) -> list[Scores]:
        self.seen += [e.response.text for e in exchanges]
        return [
            (
                Score.of(len(e.response.text)),
                Score.of(len(e.context[-1].text))
                if e.context
                else Score.unscored("no turn before it"),
            )
            for e in exchanges
        ]


def item(response: str, *context: str, name: str = "d") -> Exchange:
    turns = [Turn("ab"[i % 2], text) for i, text in enumerate((*context, response))]
    return Exchange(Dialogue(name, tuple(turns)), len(context))


ITEMS = [item("yes"), item("no, never", "really?"), item("yes"), item("hm", "so", "well, well")]


def test_values_reasons_and_columns() -> None:
    scored = score_items(Counting(Engines()), ITEMS, ScoreStore(":memory:"))
    assert scored.columns == ("counting.own", "counting.before")
    expected = [[3, 9, 3, 2], [np.nan, 7, np.nan, 10]]
    np.testing.assert_array_equal(scored.values, expected)
    assert scored.reasons == {"counting.own": {}, "counting.before": {"no turn before it": 2}}
    assert scored.seconds_per_1000 is not None
    assert scored.seconds_per_1000 > 0
    assert scored.truncated is None


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    first, again = Counting(Engines()), Counting(Engines())
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        before = score_items(first, ITEMS[:3], store)
    assert sorted(first.seen) == ["no, never", "yes"]
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        after = score_items(again, ITEMS, store)
    assert again.seen == ["hm"]
    np.testing.assert_array_equal(after.values[:, :3], before.values)


def test_another_signature_is_another_metric() -> None:
    store = ScoreStore(":memory:")
    score_items(Counting(Engines()), ITEMS, store)
    changed = Counting(Engines(), version=2)
    score_items(changed, ITEMS, store)
    assert len(changed.seen) == 3


def test_levels_do_not_mix() -> None:
    store = ScoreStore(":memory:")
    dialogue = Dialogue("d", (Turn("a", "one"), Turn("b", "three")))
    turn = score_items(Counting(Engines()), [Exchange(dialogue, 1)], store)
    whole = score_items(Counting(Engines()), [dialogue], store)
    np.testing.assert_array_equal(turn.values, whole.values)
    metric = Counting(Engines())
    score_items(metric, [Exchange(dialogue, 1)], store)
    score_items(metric, [dialogue], store)
    assert metric.seen == []


def test_of_a_dialogue_the_system_is_scored_where_roles_are_known() -> None:
    turns = [Turn("user", "hello", "user"), Turn("system", "hi", "system")]
    known = Dialogue("d", (*turns, Turn("user", "what a long message", "user")))
    unknown = Dialogue.from_texts([turn.text for turn in known.turns], id="e")
    scored = score_items(Counting(Engines()), [unknown, known, unknown], ScoreStore(":memory:"))
    assert scored.values[0].tolist() == [10.5, 2.0, 10.5]


def test_a_killed_run_keeps_what_was_committed(tmp_path: Path) -> None:
    path, tests = tmp_path / "scores.sqlite", Path(__file__).parent
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(tests)!r})
from test_scores import Counting, MANY
from causerie.bench.scores import ScoreStore, score_items
from causerie.engines import Engines

class Killed(Counting):
    def score_exchanges(self, exchanges):
        if self.seen:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score_exchanges(exchanges)

score_items(Killed(Engines()), MANY, ScoreStore({str(path)!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    metric = Counting(Engines())
    told: list[tuple[int, int]] = []
    with ScoreStore(path) as store:
        scored = score_items(metric, MANY, store, lambda *progress: told.append(progress))
    assert 0 < len(metric.seen) < len(MANY)
    assert told[0] == (len(MANY) - len(metric.seen), len(MANY))
    assert told[-1] == (len(MANY), len(MANY))
    assert scored.values[0].tolist() == [len(e.response.text) for e in MANY]


MANY = [item("x" * n, "start") for n in range(1, 201)]


class Cutting(Counting):
    """Says that an engine cut every fourth input."""

    def __init__(self) -> None:
        super().__init__(CuttingEngines())


class CuttingEngines(Engines):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def truncation(self) -> dict[str, tuple[int, int]]:
        self.calls += 1
        return {"encoder": (self.calls * 5, self.calls * 20)}


def test_truncation_is_remembered() -> None:
    store = ScoreStore(":memory:")
    assert score_items(Cutting(), ITEMS, store).truncated == 0.25
    assert score_items(Counting(Engines()), ITEMS, store).truncated == 0.25


def test_expected_time() -> None:
    store, metric = ScoreStore(":memory:"), Counting(Engines())
    assert expected_seconds(metric, MANY, store) is None
    score_items(metric, MANY[:100], store)
    rest = expected_seconds(metric, MANY, store)
    assert rest is not None
    assert rest > 0
    assert expected_seconds(metric, MANY[:100], store) == 0


def test_no_items() -> None:
    scored = score_items(Counting(Engines()), [], ScoreStore(":memory:"))
    assert scored.values.shape == (2, 0)
    assert scored.seconds_per_1000 is None


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    path.write_text("this is not a database, but it is long enough to look at" * 20)
    with pytest.raises(CauserieError, match="delete that file"):
        ScoreStore(path)


def test_one_row_per_content(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path / "scores.sqlite")
    score_items(Counting(Engines()), ITEMS, store)
    other = sqlite3.connect(tmp_path / "scores.sqlite")
    assert other.execute("SELECT COUNT(*) FROM scores").fetchone() == (3,)


texts = st.text(max_size=8)


@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, max_size=2))
def test_what_the_digest_sees(turns: list[str], later: list[str]) -> None:
    """What a metric may look at, and nothing else."""
    base = item(turns[-1], *turns[:-1])
    dialogue = base.dialogue
    others = tuple(Turn("z", text) for text in later)
    same = replace(dialogue, id="other", rating=3.0, date="today", system="bot", metadata={"a": 1})
    assert digest_of(Exchange(replace(same, turns=(*same.turns, *others)), base.turn)) == digest_of(
        base
    )
    response = base.response
    changed = [
        replace(response, text=response.text + "!"),
        replace(response, speaker="someone"),
        replace(response, role="system"),
        replace(response, references=("one",)),
        replace(response, features={"confidence": 0.5}),
    ]
    different = [Exchange(replace(dialogue, background=("fact",)), base.turn)]
    for turn in changed:
        whole = replace(dialogue, turns=(*dialogue.turns[:-1], turn))
        different.append(Exchange(whole, base.turn))
    digests = {digest_of(base), digest_of(dialogue), *map(digest_of, different)}
    assert len(digests) == 2 + len(different)
