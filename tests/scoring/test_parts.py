"""A run in parts: the rows of a plain run, whoever scores which part and when."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causerie.errors import CauserieError
from causerie.io import Folder, read
from causerie.scoring import Inputs, Layout, Plan, Run, Scorer, Summary
from causerie.scoring.parts import (
    PART_TURNS,
    SUMMARY,
    Chunk,
    Job,
    Told,
    Worker,
    check_folder,
    chunks_of,
    finish,
)

BAD = "{not json\n"


def write_logs(path: Path, dialogues: int, seed: int = 0) -> Path:
    lines = []
    for index in range(dialogues):
        texts = ["tea " * (1 + (index * 7 + k * 3 + seed) % 9) for k in range(2 + index % 6)]
        turns = [{"speaker": "AB"[k % 2], "text": t if k != 4 else ""} for k, t in enumerate(texts)]
        system = "xyz"[index % 3]
        lines.append(
            json.dumps({"id": f"d{seed}-{index}", "system": system, "turns": turns}) + "\n"
        )
        if index % 97 == 5:
            lines.append(BAD)
    path.write_text("".join(lines))
    return path


def job(folder: Path, metrics: str = "length,overlap", **choices: Any) -> Job:
    return Job(Layout(Plan.of(metrics), **choices), Folder(str(folder)), report=True)


def chunks(*paths: Path) -> list[Chunk]:
    return [c for n, path in enumerate(paths) for c in chunks_of(read(path), n)]


def done(job: Job, found: list[Chunk]) -> tuple[list[Told], Summary, list[Any]]:
    worker = Worker(job)
    told = [worker.score(chunk) for chunk in found]
    names = [one.name for one in sorted(told, key=lambda one: (one.input, one.number))]
    return told, *finish(job, names, ["in"])


def plain(tmp_path: Path, paths: list[Path], layout: Layout) -> tuple[pa.Table, Summary, str]:
    out, page = tmp_path / "plain.parquet", tmp_path / "plain.html"
    inputs = Inputs(tuple(map(str, paths)))
    with Run(Scorer(layout.plan), inputs, layout, out=out, report=page, force=True) as run:
        summary = run.execute()
        run.write()
    return pq.read_table(out).replace_schema_metadata(), summary, page.read_text()


def rounded(content: Any) -> Any:
    """Without the last bits, which depend on the order of additions."""
    if isinstance(content, float):
        return float(f"{content:.9g}")
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    return [rounded(one) for one in content] if isinstance(content, (list, tuple)) else content


def test_parts_are_a_plain_run(tmp_path: Path) -> None:
    paths = [write_logs(tmp_path / f"{n}.jsonl", 700, n) for n in range(2)]
    work = job(tmp_path / "out", explain=True, conversations=True)
    found = chunks(*paths)
    assert len(found) > 4
    told, summary, talks = done(work, found[::-1])
    table, expected, page = plain(tmp_path, paths, work.layout)
    # how people read a folder of parts; what is no part must not disturb them
    assert pq.read_table(tmp_path / "out").replace_schema_metadata().equals(table)
    assert rounded(summary.to_json()) == rounded(expected.to_json())
    assert sum(len(one.skipped) for one in told) == expected.rejected == 16
    assert f"{paths[1]}:7: " in told[0].skipped[-1] or any(
        one.startswith(f"{paths[1]}:7: ") for part in told for one in part.skipped
    )
    written = json.loads((tmp_path / "out" / SUMMARY).read_text())
    assert rounded(Summary.from_json(written["summary"]).to_json()) == rounded(expected.to_json())
    assert written["parts"] == sorted(one.name for one in told)
    summary.write_page(tmp_path / "parts.html", work.layout.plan, talks, "0.jsonl and 1.jsonl")
    assert (tmp_path / "parts.html").read_text() == page


def test_what_is_there_is_not_scored_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_logs(tmp_path / "in.jsonl", 900)
    work, found = job(tmp_path / "out"), chunks(path)
    Worker(work).score(found[1])
    scored = []
    original = Scorer.batches
    monkeypatch.setattr(
        Scorer, "batches", lambda self, *a, **k: scored.append(1) or original(self, *a, **k)
    )
    told, _, _ = done(work, found)
    assert [one.found for one in told] == [number == 1 for number in range(len(found))]
    assert len(scored) == len(found) - 1
    assert all(one.items for one in told)


def test_what_decides_rows_decides_names(tmp_path: Path) -> None:
    (chunk, *_) = chunks(write_logs(tmp_path / "in.jsonl", 10))
    work = job(tmp_path / "out")
    other = [
        work.name_of(replace(chunk, records=chunk.records[1:])),
        job(tmp_path, "length").name_of(chunk),
        job(tmp_path, text=False).name_of(chunk),
        job(tmp_path, explain=True).name_of(chunk),
        replace(work, report=False).name_of(chunk),
        work.name_of(chunks(write_logs(tmp_path / "other.jsonl", 10))[0]),
    ]
    assert len({work.name_of(chunk), *other}) == 7
    assert pickle.loads(pickle.dumps(work)).name_of(chunk) == work.name_of(chunk)
    assert job(tmp_path / "elsewhere").name_of(chunk) == work.name_of(chunk)


def test_records_are_cut_at_the_same_places_and_none_is_lost(tmp_path: Path) -> None:
    path = write_logs(tmp_path / "in.jsonl", 1500)
    once, again = chunks(path), chunks(path)
    assert once == again
    assert [record for chunk in once for record in chunk.records] == list(read(path))
    sizes = [sum(len(getattr(r, "turns", "1")) for r in chunk.records) for chunk in once]
    assert all(PART_TURNS <= size < PART_TURNS + 7 for size in sizes[:-1])
    before = [sum(len(c.records) for c in once[:n]) for n in range(len(once))]
    assert [chunk.before for chunk in once] == before


def test_finishing_removes_what_does_not_belong(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done(job(out, "length"), chunks(write_logs(tmp_path / "in.jsonl", 900)))
    (out / SUMMARY).unlink()
    (out / ".part-000000-000009-0123456789abcdef.parquet.1-aa.tmp").write_text("half a part")
    work = job(out, "overlap")
    assert check_folder(work.folder, force=False) > 1
    told, _, _ = done(work, chunks(tmp_path / "in.jsonl"))
    assert sorted(p.name for p in out.iterdir()) == sorted([*(t.name for t in told), SUMMARY])


def test_damaged_part_is_removed_and_said(tmp_path: Path) -> None:
    work, found = job(tmp_path / "out"), chunks(write_logs(tmp_path / "in.jsonl", 900))
    told, _, _ = done(work, found)
    part = tmp_path / "out" / told[1].name
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(CauserieError, match=rf"{part.name} was damaged and is removed"):
        Worker(work).score(found[1])
    assert not part.exists()
    assert not Worker(work).score(found[1]).found


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    work = job(out)
    assert check_folder(work.folder, force=False) == 0
    done(work, chunks(write_logs(tmp_path / "in.jsonl", 10)))
    with pytest.raises(CauserieError, match="finished run already"):
        check_folder(work.folder, force=False)
    assert check_folder(work.folder, force=True) == 0
    assert list(out.iterdir()) == []
    (out / "thesis.txt").write_text("mine")
    for force in (True, False):
        with pytest.raises(CauserieError, match=r"has thesis\.txt"):
            check_folder(work.folder, force=force)


def test_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match=r"sent work by 0\.0\.0"):
        Worker(replace(job(tmp_path), version="0.0.0"))
