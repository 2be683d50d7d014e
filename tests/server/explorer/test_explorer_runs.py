"""Runs on disk: found, described, watched; marks that last; exports that others read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.io import Rejected, read
from causerie.scoring import Inputs, Layout, Plan, Run, Scorer
from causerie.server.explorer import export, replies, runs
from causerie.server.explorer.filters import ANY, Filter
from causerie.server.explorer.marks import Mark, Marks
from causerie.server.explorer.runs import Library, open_run
from causerie.server.explorer.tables import Tables
from pages import HOSTILE
from scored import chats, row, write_scores


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    tables = Tables()
    yield tables
    tables.close()


TALK = {
    "id": "t1",
    "system": "aria",
    "messages": [
        {"role": "user", "content": "Hi! <b>"},
        {"role": "assistant", "content": "Hello you."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "=SUM(1)"},
        {"role": "user", "content": "Bye."},
    ],
}


def scored(tmp_path: Path, suffix: str, name: str = "run") -> Path:
    source = tmp_path / "chats.jsonl"
    source.write_text(json.dumps(TALK) + "\n")
    scorer = Scorer(Plan.of("length,turns"))
    layout = Layout(scorer.plan, explain=True, conversations=True)
    out = tmp_path / f"{name}{suffix}"
    with Run(scorer, Inputs((str(source),)), layout, out=out) as run:
        run.execute()
        run.write()
    return out


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv", ".tsv.gz"])
def test_tables_of_every_format_hold_whole_conversations(
    tmp_path: Path, tables: Tables, suffix: str
) -> None:
    run = open_run("run", scored(tmp_path, suffix), tmp_path / "cache")
    (turns,) = replies.conversation(tables, run, "t1")
    assert [t["text"] for t in turns] == [m["content"] for m in TALK["messages"]]  # type: ignore[index]
    assert [t["side"] for t in turns] == ["user", "system", "user", "system", "user"]
    assert turns[3]["scores"] == {"length": 2.0, "turns": 3.0}
    assert run.scores["length"].about.sentinel
    assert run.rows == 2
    assert run.about.get("signature", "").startswith("causerie|" if suffix == ".parquet" else "")
    # a table that is not Parquet is converted only once
    kept = [p.stat().st_mtime_ns for p in (tmp_path / "cache").glob("*")]
    open_run("run", tmp_path / f"run{suffix}", tmp_path / "cache")
    assert [p.stat().st_mtime_ns for p in (tmp_path / "cache").glob("*")] == kept


def test_a_folder_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RESCAN", 0.0)
    folder = tmp_path / "runs"
    (folder / "week").mkdir(parents=True)
    library = Library([folder])
    with pytest.raises(CauserieError, match="no scores here yet"):
        library.run(None)
    first = write_scores(folder / "a.parquet", chats())
    os.utime(first, (1_000, 1_000))
    (folder / "notes.csv").write_text("a,b\n1,2\n")
    (folder / "input.jsonl").write_text('{"id": "x", "turns": []}\n')
    (folder / "broken.parquet").write_bytes(b"PAR1 not a table")
    pq.write_table(pa.table({"x": [1]}), folder / "other.parquet")
    assert [*library.runs()] == ["a.parquet"]
    before = library.run(None)
    assert library.run(None) is before, "what has not changed is the same run"
    write_scores(folder / "week" / "b.parquet", chats(count=2))
    assert [*library.runs()] == ["week/b.parquet", "a.parquet"]
    write_scores(first, chats(count=3))
    assert library.run("a.parquet").rows != before.rows
    first.unlink()
    with pytest.raises(CauserieError, match="no run named"):
        library.run("a.parquet")


def test_a_file_that_was_named_is_told_about(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(CauserieError, match="does not exist"):
        Library([path])
    path.write_bytes(b"PAR1")
    with pytest.raises(CauserieError, match="not a table of scores"):
        Library([path]).runs()


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        paths.append(write_scores(tmp_path / name / "s.parquet", chats(count=1)))
    assert sorted(Library(paths).runs()) == sorted(map(str, paths))


def test_the_column_that_a_person_sees_first(tmp_path: Path) -> None:
    def main(*names: str) -> str:
        table = pa.table({"dialogue_id": ["a"], **{name: [1.0] for name in names}})
        pq.write_table(table, tmp_path / "x.parquet")
        return open_run("x", tmp_path / "x.parquet").main.name

    assert main("length", "density", "quality.rating", "quality") == "quality"
    assert main("length", "density", "quality.rating") == "quality.rating"
    assert main("length", "cosine", "density") == "density"
    assert main("length", "faults.off_topic", "cosine") == "cosine"
    assert main("length", "odd<b>") in ("length", "odd<b>")


def test_numbers_that_are_none_and_odd_names_are_no_trouble(tmp_path: Path, tables: Tables) -> None:
    name = HOSTILE[3]
    table = pa.table(
        {
            "dialogue_id": ["a", "b"],
            "row": [1, 2],
            name: [float("nan"), 2.0],
            "c0": [True, False],
            "nested": [{"x": 1}, {"x": 2}],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    run = open_run("x", tmp_path / "x.parquet")
    assert [*run.scores] == ["row", name]
    assert tables.profile(run).scored == {"row": 2, name: 1}
    (found,) = replies.page(tables, run, Filter(metric=name, least=1.0))
    assert found["dialogue"] == "b"


def test_marks_last_and_belong_to_names(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "marks.sqlite"
    marks = Marks(path)
    key, other = ("d", "aria", 3), (HOSTILE[0], "", -1)
    assert marks.set("run", key, Mark((" odd  one", "x", "x", " "), " why? ")) == Mark(
        ("odd one", "x"), "why?"
    )
    marks.set("run", other, Mark((HOSTILE[1][:60],), ""))
    marks.set("elsewhere", key, Mark(("y",)))
    marks.close()
    marks = Marks(path)
    assert marks.of("run", [key, other, ("no", "", 0)]) == {
        key: Mark(("odd one", "x"), "why?"),
        other: Mark((HOSTILE[1][:60],)),
    }
    assert marks.keys("run", "x") == [key]
    assert sorted(marks.keys("run", ANY)) == sorted([key, other])
    assert marks.tags("run") == {"": 1, "odd one": 1, "x": 1, HOSTILE[1][:60]: 1}
    marks.set("run", key, Mark())
    assert marks.keys("run", ANY) == [other]
    with pytest.raises(CauserieError, match="at most 60 characters"):
        marks.set("run", key, Mark(("x" * 61,)))
    marks.close()


def test_another_database_is_not_taken_for_marks(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    with pytest.raises(CauserieError, match="of another program"):
        Marks(path)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(CauserieError, match="cannot hold marks"):
        Marks(path)


def test_what_is_exported_is_read_again(tmp_path: Path, tables: Tables) -> None:
    """Exports are conversations to train on, or replies with context to judge or annotate."""
    run = open_run("r", write_scores(tmp_path / "r.parquet", chats(count=2)))
    marks = Marks(tmp_path / "marks.sqlite")
    marks.set("r", ("aria-1", "aria", 3), Mark(("dull",), "so dull"))
    wanted = Filter(system="aria", text="answer 3")
    out = {}
    for what in ("replies", "conversations"):
        out[what] = tmp_path / f"{what}.jsonl"
        lines = export.lines(tables, run, wanted, what, marks)  # type: ignore[arg-type]
        out[what].write_text("".join(lines))
    replies_read = [*read(str(out["replies"]))]
    assert all(isinstance(record, Exchange) for record in replies_read)
    assert [(r.dialogue.id, r.dialogue.system, r.turn) for r in replies_read] == [  # type: ignore[union-attr]
        ("aria-0#3", "aria", 3),
        ("aria-1#3", "aria", 3),
    ]
    assert replies_read[1].response.text == "answer 3 of aria about subject 1"  # type: ignore[union-attr]
    assert replies_read[1].dialogue.metadata["tags"] == ["dull"]  # type: ignore[union-attr]
    talks = [*read(str(out["conversations"]))]
    assert not any(isinstance(record, Rejected) for record in talks)
    assert [len(talk.turns) for talk in talks] == [6, 6]  # type: ignore[union-attr]
    assert [t.role for t in talks[0].turns[:2]] == ["user", "system"]  # type: ignore[union-attr]
    bare = write_scores(tmp_path / "bare.parquet", [row("d", 1, "x", density=1.0)], whole=False)
    with pytest.raises(CauserieError, match="--conversations"):
        export.check(open_run("bare", bare))
    marks.close()
