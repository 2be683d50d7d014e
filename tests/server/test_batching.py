"""The queue: what is joined, what is refused, what is dropped, and that nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Score
from causerie.scoring import Batch, Plan
from causerie.scoring.store import Item
from causerie.server.api import batching
from causerie.server.api.batching import Batcher, ClosedError, FullError, Kind

PLAN = Plan.of("length")
LENGTH, OTHER = Kind(("length",)), Kind(("length",), explain=True)


def talk(name: str, turns: int = 1) -> list[Item]:
    """The exchanges of a dialogue, whose responses have its name and their place as text."""
    texts = ["hi", *(f"{name} {number}" for number in range(turns))]
    return list(Dialogue.from_texts(texts, id=name).exchanges())


class Table:
    """Looks scores up by the text of a response, and records the items of each pass."""

    def __init__(self) -> None:
        self.passes: list[list[str]] = []
        self.open, self.begun = Event(), Event()
        self.open.set()

    def __call__(self, kind: Kind, items: Sequence[Item]) -> Batch:
        texts = [item.response.text for item in items if isinstance(item, Exchange)]
        self.passes.append(texts)
        self.begun.set()
        assert self.open.wait(60)
        if "bad 0" in texts:
            raise CauserieError("this is bad")
        scores = tuple(Score.of(float(sum(map(ord, text)))) for text in texts)
        return Batch(PLAN, tuple(items), {"length": scores}, seconds={"length": 0.1 * len(texts)})


@contextmanager
def running(table: Table, **options: float) -> Iterator[Batcher]:
    batcher = Batcher(table, **options)
    batcher.start()
    try:
        yield batcher
    finally:
        table.open.set()
        batcher.close()


@contextmanager
def busy(table: Table, batcher: Batcher) -> Iterator[None]:
    """Keep a pass running, so that everything submitted has to wait."""
    table.open.clear()
    table.begun.clear()
    first = batcher.submit(LENGTH, [talk("first")])
    assert table.begun.wait(60)
    yield
    table.open.set()
    first.result(60)


def values(future: Future[list[Batch]]) -> list[float | None]:
    batch = Batch.joined(PLAN, future.result(60))
    return [score.value for score in batch.scores["length"]]


def expected(items: Sequence[Item]) -> list[float]:
    return [float(sum(map(ord, i.response.text))) for i in items if isinstance(i, Exchange)]


@given(
    works=st.lists(st.lists(st.integers(0, 7), max_size=6), min_size=1, max_size=12),
    first=st.integers(1, 8),
)
def test_everybody_gets_their_own_scores_in_order(works: list[list[int]], first: int) -> None:
    table = Table()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "FIRST_PASS", first)
        with running(table) as batcher:
            asked = [
                [talk(f"{n}-{m}", size) for m, size in enumerate(w)] for n, w in enumerate(works)
            ]
            with busy(table, batcher):
                futures = [
                    batcher.submit((LENGTH, OTHER)[n % 2], work, patient=n % 3 == 0)
                    for n, work in enumerate(asked)
                ]
            for work, future in zip(asked, futures, strict=True):
                assert values(future) == expected([item for record in work for item in record])
        seen = [text for texts in table.passes for text in texts]
        assert len(seen) == 1 + sum(map(sum, works))


def test_requests_that_wait_are_joined_and_kinds_kept_apart() -> None:
    table = Table()
    with running(table) as batcher:
        with busy(table, batcher):
            futures = [batcher.submit(LENGTH, [talk(name)]) for name in "abc"]
            futures.append(batcher.submit(OTHER, [talk("d")]))
        for future in futures:
            future.result(60)
    assert table.passes == [["first 0"], ["a 0", "b 0", "c 0"], ["d 0"]]


def test_a_large_request_holds_up_nobody() -> None:
    table = Table()
    with running(table) as batcher:
        with busy(table, batcher):
            large = batcher.submit(LENGTH, [talk(f"large{n}", 2) for n in range(50)])
            small = [batcher.submit(LENGTH, [talk(name)]) for name in "abc"]
        for future in (*small, large):
            future.result(60)
    second = table.passes[1]
    assert {"a 0", "b 0", "c 0", "large0 0", "large0 1"} <= set(second)
    assert len(second) <= batching.FIRST_PASS


def test_small_requests_do_not_starve_a_large_one() -> None:
    table = Table()
    with running(table) as batcher:
        with busy(table, batcher):
            large = batcher.submit(LENGTH, [talk("large", 2 * batching.FIRST_PASS)])
            small = [batcher.submit(LENGTH, [talk(f"s{n}")]) for n in range(100)]
        for future in (*small, large):
            future.result(60)
    assert "large 0" in table.passes[1]


def test_a_full_queue_says_when_to_come_again_and_recovers() -> None:
    table = Table()
    with running(table, limit=3) as batcher:
        with busy(table, batcher):
            taken = [batcher.submit(LENGTH, [talk(name)]) for name in "abc"]
            with pytest.raises(FullError) as full:
                batcher.submit(LENGTH, [talk("d")])
            assert 1 <= full.value.seconds <= 60
            patient = batcher.submit(LENGTH, [talk("e", 9)], patient=True)
            assert batcher.waiting == 3
            taken.pop().cancel()
            assert batcher.waiting == 2
            taken.append(batcher.submit(LENGTH, [talk("f")]))
        for future in (*taken, patient):
            future.result(60)
        assert batcher.waiting == 0
        # one that is larger than the queue waits for nobody
        assert len(values(batcher.submit(LENGTH, [talk("g", 9)]))) == 9


def test_nothing_is_computed_for_who_has_left() -> None:
    table = Table()
    with running(table) as batcher:
        with busy(table, batcher):
            gone, stays = (batcher.submit(LENGTH, [talk(name)]) for name in "ab")
            assert gone.cancel()
        stays.result(60)
    assert table.passes == [["first 0"], ["b 0"]]


def test_who_leaves_in_the_middle_is_not_gone_on_with() -> None:
    table = Table()
    with running(table) as batcher:
        table.open.clear()
        future = batcher.submit(LENGTH, [talk(f"t{n}") for n in range(10 * batching.FIRST_PASS)])
        assert table.begun.wait(60)
        assert future.cancel()
        table.open.set()
        batcher.submit(LENGTH, [talk("next")]).result(60)
    assert [len(texts) for texts in table.passes] == [batching.FIRST_PASS, 1]


def test_one_bad_request_spoils_no_other() -> None:
    table = Table()
    with running(table) as batcher:
        with busy(table, batcher):
            good, bad, fine = (batcher.submit(LENGTH, [talk(n)]) for n in ("a", "bad", "c"))
        assert values(good) == expected(talk("a"))
        assert values(fine) == expected(talk("c"))
        with pytest.raises(CauserieError, match="this is bad"):
            bad.result(60)
        assert batcher.waiting == 0


def test_what_was_taken_is_finished_at_the_end() -> None:
    table = Table()
    batcher = Batcher(table)
    batcher.start()
    with busy(table, batcher):
        taken = batcher.submit(LENGTH, [talk(f"t{n}") for n in range(100)])
        job = batcher.submit(LENGTH, [talk(f"j{n}") for n in range(100)], patient=True)
    batcher.close()
    assert len(values(taken)) == 100
    assert job.cancelled() or job.done()
    assert not batcher.is_alive
    with pytest.raises(ClosedError):
        batcher.submit(LENGTH, [talk("late")])


def test_passes_grow_while_they_are_quick() -> None:
    table = Table()

    def quick(kind: Kind, items: Sequence[Item]) -> Batch:
        batch = table(kind, items)
        return Batch(PLAN, batch.items, batch.scores, seconds={"length": 0.001})

    batcher = Batcher(quick)
    batcher.start()
    batcher.submit(LENGTH, [talk(f"t{n}") for n in range(1000)]).result(60)
    batcher.close()
    sizes = [len(texts) for texts in table.passes]
    assert sizes[:5] == [32, 64, 128, 256, 512]
    assert max(sizes) <= batching.LARGEST_PASS


def test_who_was_answered_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass rests for a part of what the last one took, unless there is enough to do."""
    monkeypatch.setattr(batching, "LONGEST_PAUSE", 1e9)
    monkeypatch.setattr(batching, "PAUSE", 1e9)
    table = Table()
    with running(table) as batcher:
        batcher.submit(LENGTH, [talk("first")]).result(60)
        early = batcher.submit(LENGTH, [talk("early")])
        others = [talk(f"t{n}") for n in range(batching.FIRST_PASS - 1)]
        many = batcher.submit(LENGTH, others)
        assert values(early) == expected(talk("early"))
        assert values(many) == [v for other in others for v in expected(other)]
    assert table.passes[0] == ["first 0"]
    assert "early 0" in table.passes[1]
    assert len(table.passes) == 2


def test_a_pause_ends_by_itself() -> None:
    table = Table()
    with running(table) as batcher:
        for name in ("one", "two", "three"):
            assert values(batcher.submit(LENGTH, [talk(name)])) == expected(talk(name))
    assert table.passes == [["one 0"], ["two 0"], ["three 0"]]
