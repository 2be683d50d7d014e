"""Stores, on SQLite and PostgreSQL alike: nothing is lost, doubled or changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from annotation.making import CAUSES, do, event, mark, person_of, project_of, talks
from causerie.annotation.assignment import first_round
from causerie.annotation.marks import Event
from causerie.annotation.project import NewItem, Settings
from causerie.annotation.store import RefusedError, Store
from causerie.annotation.tokens import parse_token
from causerie.errors import CauserieError


@pytest.fixture
def kept(location: str) -> Iterator[Store]:
    made = Store.open(location, create=True)
    yield made
    made.close()


def test_what_is_kept_is_there_after_opening_again(kept: Store, location: str) -> None:
    number, _ = project_of(kept, talks(3), ["ann", "ben"], overlap=1.0)
    do(kept, number, "ann", "talk0", "first", mark(0, 0, 15, key="the-first-mark"))
    before = kept.snapshot(number)
    kept.close()
    again = Store.open(location)
    after = again.snapshot(again.project("p"))
    again.close()
    assert after == before
    (state,) = [state for state in after.states.values() if state.finished]
    assert [(m.place.turn, m.key) for m in state.marks] == [(0, "the-first-mark")]


def test_sending_twice_is_keeping_once(kept: Store) -> None:
    number, _ = project_of(kept, talks(1), ["ann"])
    (one,) = kept.snapshot(number).assignments.values()
    events = [mark(0, 0, 5), event("comment", text="why?\u2028\U0001f511 \\u0000")]
    for _ in range(3):
        found = kept.append(number, one.id, one.person, events)
    kept.append(number, one.id, one.person, [events[0], mark(1, 0, 3)])
    now = kept.snapshot(number)
    assert [e.action for e in now.events[one.id]] == ["mark", "comment", "mark"]
    assert now.states[one.id].comment == "why?\u2028\U0001f511 \\u0000"
    assert found.states[one.id].comment == now.states[one.id].comment
    with pytest.raises(RefusedError, match="used for something else"):
        kept.append(number, one.id, one.person, [mark(1, 0, 2, key=events[0].key)])


def test_all_of_a_request_is_kept_or_nothing(kept: Store) -> None:
    number, _ = project_of(kept, talks(1), ["ann"])
    (one,) = kept.snapshot(number).assignments.values()
    with pytest.raises(RefusedError, match="span of a turn's text"):
        kept.append(number, one.id, one.person, [mark(0, 0, 5), mark(3, 0, 1)])
    assert kept.snapshot(number).events == {}


def test_the_log_can_only_grow(kept: Store, location: str) -> None:
    number, _ = project_of(kept, talks(1), ["ann"])
    do(kept, number, "ann", "talk0", "first", mark(0, 0, 5))
    url = location.replace("postgresql:", "postgresql+pg8000:")
    engine = sa.create_engine(url if "://" in url else f"sqlite:///{url}")
    for change in ("UPDATE log SET body = '{}'", "DELETE FROM log"):
        with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
            connection.exec_driver_sql(change)
    engine.dispose()
    assert len(next(iter(kept.snapshot(number).events.values()))) == 2


def test_tokens_open_what_they_are_for_until_they_are_revoked(kept: Store) -> None:
    number, tokens = project_of(kept, talks(1), ["ann"])
    other, others = project_of(kept, talks(1), ["ann"], name="q")
    found = kept.who(tokens["ann"])
    assert found is not None
    assert (found[0], found[1].name, found[1].role) == (number, "ann", "annotator")
    foreign = kept.who(others["ann"])
    assert foreign is not None
    assert foreign[0] == other
    person, secret = parse_token(tokens["ann"]) or (0, "")
    for bad in ("", "ann", tokens["ann"][:-1], f"{person + 1}-{secret}", f"{person}-{'A' * 43}"):
        assert kept.who(bad) is None
    kept.add_person(number, "nobody", "annotator", link=False)
    silent = person_of(kept.snapshot(number), "nobody")
    assert kept.who(f"{silent}-{secret}") is None
    renewed = kept.add_person(number, "ann", "annotator")
    assert kept.who(tokens["ann"]) is None
    assert kept.who(renewed or "") is not None
    kept.revoke(number, "ann")
    assert kept.who(renewed or "") is None
    with pytest.raises(CauserieError, match="nobody named 'eve'"):
        kept.revoke(number, "eve")


def test_no_secret_is_in_the_database(kept: Store, location: str, tmp_path: Path) -> None:
    _, tokens = project_of(kept, talks(1), ["ann"])
    url = location.replace("postgresql:", "postgresql+pg8000:")
    engine = sa.create_engine(url if "://" in url else f"sqlite:///{url}")
    with engine.begin() as connection:
        everything = str(connection.exec_driver_sql("SELECT * FROM people").fetchall())
    engine.dispose()
    assert "ann" in everything
    assert all(token.partition("-")[2] not in everything for token in tokens.values())


def test_an_assignment_is_of_one_person_and_one_project(kept: Store) -> None:
    number, _ = project_of(kept, talks(1), ["ann"])
    other, _ = project_of(kept, talks(1), ["ben"], name="q")
    (one,) = kept.snapshot(number).assignments.values()
    stranger = person_of(kept.snapshot(other), "ben")
    for project, person in ((number, stranger), (other, stranger), (other, one.person)):
        with pytest.raises(RefusedError, match="you have no such assignment"):
            kept.append(project, one.id, person, [event("open")])


def test_many_who_write_at_once_lose_nothing(kept: Store) -> None:
    number, _ = project_of(kept, talks(4), [f"p{n}" for n in range(8)], annotators=8, overlap=1.0)
    work = list(kept.snapshot(number).assignments.values())
    assert len(work) == 32
    sent: list[tuple[int, Event]] = []
    failed: list[BaseException] = []

    def annotate(person: int) -> None:
        try:
            for turn in range(3):
                for one in (w for w in work if w.person == person):
                    made = mark(turn, 0, 3)
                    kept.append(number, one.id, person, [made])
                    kept.append(number, one.id, person, [made])
                    sent.append((one.id, made))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=annotate, args=[p]) for p in {w.person for w in work}]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    now = kept.snapshot(number)
    found = {(key, e.key) for key, events in now.events.items() for e in events}
    assert found == {(key, e.key) for key, e in sent}
    assert sum(map(len, now.events.values())) == len(sent) == 96


def test_planning_twice_at_once_assigns_once(kept: Store) -> None:
    number = kept.create("p", Settings(CAUSES))
    kept.add_items(number, [NewItem(item) for item in talks(20)])
    for name in ("ann", "ben"):
        kept.add_person(number, name, "annotator")
    threads = [threading.Thread(target=kept.assign, args=[number, first_round]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = kept.snapshot(number)
    assert len(now.assignments) == 25
    assert len({(a.item, a.person) for a in now.assignments.values()}) == 25


def test_items_come_once(kept: Store) -> None:
    number, _ = project_of(kept, talks(2), ["ann"])
    assert kept.add_items(number, [NewItem(item) for item in talks(5)]) == 3
    assert [one.place for one in kept.snapshot(number).items.values()] == [0, 1, 2, 3, 4]


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="exist: create it with causerie annotate init"):
        Store.open(tmp_path / "none.db")
    wrong = tmp_path / "wrong.db"
    wrong.write_text("This is no database, and it is long enough to be looked at." * 50)
    with pytest.raises(CauserieError, match="is not a project: name another file"):
        Store.open(wrong)
    with pytest.raises(CauserieError, match="postgresql://USER"):
        Store.open("mysql://there")
    with pytest.raises(CauserieError, match=r"u:\*\*\*@127"):
        Store.open("postgresql://u:secret@127.0.0.1:1/x")
    store = Store.open(tmp_path / "new.db", create=True)
    with pytest.raises(CauserieError, match="there is no project None: there are none"):
        store.project()
    store.create("a", Settings(CAUSES))
    with pytest.raises(CauserieError, match="already a project 'a'"):
        store.create("a", Settings(CAUSES))
    store.create("b", Settings(CAUSES))
    with pytest.raises(CauserieError, match="say which project with --project: there are a, b"):
        store.project()
    store.close()
