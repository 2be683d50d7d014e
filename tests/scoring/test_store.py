"""Scores kept by content: nothing twice, nothing lost, nothing mixed up."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines
from causerie.engines.cache import count_cuts
from causerie.errors import CauserieError, CauserieWarning
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.progress import Progress
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.store import VERSION, Kept, ScoreStore, digest_of


@dataclass(frozen=True)
class Counting(Metric):
    """Two columns: characters of the response, and of the last turn before it."""

    version: int = 1

    name: ClassVar[str] = "counting"
    summary: ClassVar[str] = "for tests"
    needs: ClassVar[frozenset[str]] = frozenset({"encoder"})
    seen: ClassVar[list[str]] = []

    def columns(self, level: Level) -> tuple[Column, ...]:
        return Column("own"), Column("before")

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        self.seen.extend(e.response.text for e in exchanges)
        return [
            (
                Score.of(len(e.response.text), {"said": e.response.text} if explain else None),
                Score.of(len(e.context[-1].text))
                if e.context
                else Score.unscored("no turn before it"),
            )
            for e in exchanges
        ]


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    Counting.seen.clear()


def item(response: str, *context: str, name: str = "d") -> Exchange:
    turns = [Turn("ab"[i % 2], text) for i, text in enumerate((*context, response))]
    return Exchange(Dialogue(name, tuple(turns)), len(context))


ITEMS = [item("yes"), item("no, never", "really?"), item("yes"), item("hm", "so", "well, well")]
MANY = [item("x" * n, "start") for n in range(1, 201)]


def scored(
    items: Sequence[Exchange | Dialogue],
    store: ScoreStore,
    metric: Metric | None = None,
    **options: bool,
) -> Batch:
    level: Level = "dialogue" if isinstance(items[0], Dialogue) else "turn"
    plan = Plan({"counting": metric or Counting()}, level=level)
    return Scorer(plan, store, **options).score_all(items)


def test_values_reasons_and_columns() -> None:
    batch = scored(ITEMS, ScoreStore(":memory:"))
    np.testing.assert_array_equal(batch.values("counting.own"), [3, 9, 3, 2])
    np.testing.assert_array_equal(batch.values("counting.before"), [np.nan, 7, np.nan, 10])
    assert batch.reasons("counting.own") == {}
    assert batch.reasons("counting.before") == {"no turn before it": 2}
    assert batch.seconds["counting"] > 0
    assert batch.cut_share("counting") is None


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        before = scored(ITEMS[:3], store)
    assert sorted(Counting.seen) == ["no, never", "yes"]
    Counting.seen.clear()
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        after = scored(ITEMS, store)
        assert Counting.seen == ["hm"]
        again = scored(ITEMS, store, refresh=True)
    assert sorted(Counting.seen) == ["hm", "hm", "no, never", "yes"]
    for column in before.plan.columns:
        np.testing.assert_array_equal(after.values(column)[:3], before.values(column))
        np.testing.assert_array_equal(after.values(column), again.values(column))


def test_other_options_are_another_metric() -> None:
    store = ScoreStore(":memory:")
    scored(ITEMS, store)
    scored(ITEMS, store, Counting(version=2))
    assert len(Counting.seen) == 6
    assert len(store.counts()) == 2


def test_explanations_are_kept_where_they_were_asked_for() -> None:
    store, plan = ScoreStore(":memory:"), Plan({"counting": Counting()})
    scorer = Scorer(plan, store)
    scorer.score_items(ITEMS)
    explained = scorer.score_items(ITEMS, explain=True)
    assert len(Counting.seen) == 6
    assert explained.scores["counting.own"][1].explanation == {"said": "no, never"}
    assert scorer.score_items(ITEMS, explain=True).scores == explained.scores
    assert scorer.score_items(ITEMS).scores["counting.own"][1].explanation is None
    assert len(Counting.seen) == 6


def test_levels_do_not_mix() -> None:
    store = ScoreStore(":memory:")
    dialogue = Dialogue("d", (Turn("a", "one"), Turn("b", "three")))
    turn, whole = scored([Exchange(dialogue, 1)], store), scored([dialogue], store)
    for column in turn.plan.columns:
        np.testing.assert_array_equal(turn.values(column), whole.values(column))
    assert len(Counting.seen) == 2
    scored([Exchange(dialogue, 1)], store)
    scored([dialogue], store)
    assert len(Counting.seen) == 2


def test_of_a_dialogue_the_system_is_scored_where_roles_are_known() -> None:
    turns = [Turn("u", "hello", "user"), Turn("s", "hi", "system")]
    known = Dialogue("d", (*turns, Turn("u", "what a long message", "user")))
    unknown = Dialogue("e", tuple(replace(turn, role=None) for turn in known.turns))
    batch = scored([unknown, known, unknown], ScoreStore(":memory:"))
    assert batch.values("counting.own").tolist() == [10.5, 2.0, 10.5]


def test_empty_responses_reach_no_metric_and_are_not_missing() -> None:
    store = ScoreStore(":memory:")
    batch = scored([item("  ", "hello"), *ITEMS], store)
    assert batch.reasons("counting.own") == {"empty response": 1}
    assert "  " not in Counting.seen
    scorer = Scorer(batch.plan, store)
    assert scorer.missing("counting", [item("  ", "hello"), *ITEMS]) == []
    assert scorer.expected_seconds("counting", [item("  ", "hello"), *ITEMS]) == 0


def test_a_killed_run_keeps_what_was_committed(tmp_path: Path) -> None:
    path, root = tmp_path / "scores.sqlite", Path(__file__).parents[__name__.count(".")]
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(root)!r})
from {__name__} import Counting, MANY, ScoreStore, scored

def killed(self, exchanges, engines, *, explain=False):
    if self.seen:
        os.kill(os.getpid(), signal.SIGKILL)
    return counted(self, exchanges, engines, explain=explain)

counted, Counting.score_exchanges = Counting.score_exchanges, killed
scored(MANY, ScoreStore({str(path)!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    told: list[Progress] = []
    with ScoreStore(path) as store:
        scorer = Scorer(Plan({"counting": Counting()}), store)
        missing = scorer.missing("counting", MANY)
        batch = scorer.score_all(MANY, task="again", watch=told.append)
    assert 0 < len(missing) < len(MANY)
    assert sorted(Counting.seen) == sorted(e.response.text for e in missing)
    assert batch.values("counting.own").tolist() == [len(e.response.text) for e in MANY]
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 200, 200)
    assert {progress.task for progress in told} == {"again"}


@dataclass(frozen=True)
class Cutting(Counting):
    """Says that an engine cut every fourth input."""

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        count_cuts("encoder", 5, 20)
        return super().score_exchanges(exchanges, engines, explain=explain)


def test_what_was_cut_is_remembered() -> None:
    store = ScoreStore(":memory:")
    fresh = scored(ITEMS, store, Cutting())
    assert (fresh.cut_share("counting"), fresh.all_cuts()) == (0.25, {"encoder": (5, 20)})
    kept = scored(ITEMS, store, Cutting())
    assert (kept.cut_share("counting"), kept.all_cuts()) == (0.25, {})
    assert Scorer(Plan({"x": Cutting()})).score_all(ITEMS).cut_share("x") == 0.25


def test_expected_time() -> None:
    scorer = Scorer(Plan({"counting": Counting()}), ScoreStore(":memory:"))
    assert scorer.expected_seconds("counting", MANY) is None
    scorer.score_all(MANY[:100])
    rest = scorer.expected_seconds("counting", MANY)
    assert rest is not None
    assert rest > 0
    assert scorer.expected_seconds("counting", MANY[:100]) == 0
    again = Scorer(scorer.plan, scorer.store, refresh=True)
    assert (again.expected_seconds("counting", MANY[:100]) or 0) > 0


def test_no_items() -> None:
    batch = Scorer(Plan({"counting": Counting()}), ScoreStore(":memory:")).score_all([])
    assert len(batch) == 0
    assert batch.values("counting.own").shape == (0,)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    path.write_text("this is not a database, but it is long enough to look at" * 20)
    with pytest.raises(CauserieError, match="name another file with --scores"):
        ScoreStore(path)


def test_a_file_of_another_version_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        scored(ITEMS, store)
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
    with ScoreStore(path) as store:
        assert store.counts() == {}
        scored(ITEMS, store)
    assert len(Counting.seen) == 6


def test_damaged_rows_are_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        before = scored(ITEMS, store)
        with sqlite3.connect(path) as other:
            other.execute("UPDATE scores SET scores = '[[\"high\", null, null, null]]'")
        after = scored(ITEMS, store)
    assert after.scores == before.scores
    assert len(Counting.seen) == 6


def damage(path: Path, place: float) -> None:
    """Make one page of a file nonsense."""
    data = bytearray(path.read_bytes())
    start = int(len(data) * place) // 4096 * 4096
    data[start : start + 4096] = b"\xa5" * 4096
    path.write_bytes(data)


@pytest.mark.parametrize("closed", [True, False])
def test_a_damaged_file_is_set_aside_and_rebuilt(tmp_path: Path, closed: bool) -> None:
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        before = scored(MANY, store)
    damage(path, 0.5)
    if not closed:  # as it is while somebody has it open, and after a crash
        path.with_name("scores.sqlite-wal").touch()
    told = r"are damaged .* is now scores\.sqlite\.damaged"
    if closed:  # it is noticed when the page is needed
        store = ScoreStore(path)
        with pytest.warns(CauserieWarning, match=told):
            after = scored(MANY, store)
    else:
        with pytest.warns(CauserieWarning, match=told):
            store = ScoreStore(path)
        assert store.counts() == {}
        after = scored(MANY, store)
    assert after.scores == before.scores
    assert path.with_name("scores.sqlite.damaged").exists()
    scored(MANY, store)
    store.close()
    with ScoreStore(path) as store:
        assert list(store.counts().values()) == [len(MANY)]


def test_damage_is_not_set_aside_twice(tmp_path: Path) -> None:
    """Two processes notice it: what the first has rebuilt stays."""
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        scored(MANY, store)
    first, second = ScoreStore(path), ScoreStore(path)
    damage(path, 0.5)
    with pytest.warns(CauserieWarning, match="damaged") as told:
        both = [scored(MANY, store) for store in (first, second, first)]
    assert len(told) == 1
    assert both[0].scores == both[1].scores
    assert list(first.counts().values()) == list(second.counts().values()) == [len(MANY)]
    first.close()
    second.close()


def test_another_value_in_a_row_is_noticed(tmp_path: Path) -> None:
    """A flipped bit that leaves the database whole."""
    path = tmp_path / "scores.sqlite"
    with ScoreStore(path) as store:
        before = scored(ITEMS, store)
    data = path.read_bytes()
    assert data.count(b"[[9.0, ") + data.count(b"[[9, ") == 1
    path.write_bytes(data.replace(b"[[9", b"[[8"))
    with ScoreStore(path) as store:
        assert scored(ITEMS, store).scores == before.scores
    assert Counting.seen.count("no, never") == 2


@pytest.mark.parametrize(
    "scores",
    [
        (Score(1.0),),
        (Score(1.0), Score(2.0), Score(3.0)),
        (Score(1.0), Score(float("nan"))),
        (Score(1.0), Score(2.0, percentile=float("inf"))),
        (Score(1.0), Score(None)),
    ],
)
def test_rows_that_cannot_be_are_not_known(scores: Scores) -> None:
    store = ScoreStore(":memory:")
    store.put("key", {b"good": Kept((Score(1.0), Score(2.0)), 1, 0, None)}, False)
    store.put("key", {b"bad": Kept(scores, 1, 0.5, None)}, False)
    assert list(store.find("key", [b"good", b"bad"], False, 2)) == [b"good"]


def test_a_locked_file_is_waited_for_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.sqlite"
    ScoreStore(path).close()
    monkeypatch.setattr("causerie.scoring.store.WAIT", 0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CauserieError, match=r"database is locked.*wait for the other process"):
        ScoreStore(path)
    other.close()
    ScoreStore(path).close()


def test_one_row_per_content(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        scored(ITEMS, store)
        assert list(store.counts().values()) == [3]
        assert store.clear() == 3
        assert store.counts() == {}


def test_two_stores_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    ScoreStore(path).close()
    failed: list[BaseException] = []

    def work(items: Sequence[Exchange]) -> None:
        try:
            with ScoreStore(path) as store:
                scored(items, store)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in (MANY[:120], MANY[80:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with ScoreStore(path) as store:
        assert list(store.counts().values()) == [200]


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_opens_the_file_for_itself(tmp_path: Path) -> None:
    digest = b"0" * 16
    row = Kept((Score.of(1.0),), 3, 0.1, None)
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        store.put("before", {digest: row}, explain=False)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                known = store.find("before", [digest], explain=False, columns=1)
                store.put("child", {digest: row}, explain=False)
                status = 0 if known[digest].scores == row.scores else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        store.put("after", {digest: row}, explain=False)
        for key in ("before", "child", "after"):
            assert store.find(key, [digest], explain=False, columns=1)[digest].scores == row.scores
