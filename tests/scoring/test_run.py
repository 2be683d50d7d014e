"""A run may die at any moment: whatever is continued ends as if nothing had happened."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.progress import Progress
from causerie.scoring import Inputs, Layout, Plan, Run, Scorer, Summary
from causerie.scoring import scorer as scoring
from causerie.scoring.journal import ROWS, TALKS, Journal
from terminal import ended_by, run_causerie


def dialogues_of(count: int, turns: int = 4, seed: int = 0) -> str:
    rng = random.Random(seed)
    words = ["tea", "rain", "garden", "book", "night", "river", "friend", "song", "cat", "road"]
    lines = []
    for index in range(count):
        texts = [" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(turns)]
        record = {
            "id": f"d{seed}-{index}",
            "turns": [{"speaker": "AB"[i % 2], "text": t} for i, t in enumerate(texts)],
        }
        lines.append(json.dumps(record) + "\n")
    return "".join(lines)


def write_dialogues(path: Path, count: int, turns: int = 4, seed: int = 0) -> Path:
    path.write_text(dialogues_of(count, turns, seed))
    return path


def make_run(
    path: Path, out: Path | None, names: str = "length,overlap", *, text: bool = True, **kwargs
) -> Run:
    scorer = Scorer(Plan.of(names))
    return Run(scorer, Inputs((str(path),)), Layout(scorer.plan, text=text), out=out, **kwargs)


def finish(run: Run, notes: list[str] | None = None) -> Summary:
    def watch(progress: Progress) -> None:
        if notes is not None and progress.note:
            notes.append(progress.note)

    with run:
        summary = run.execute(watch)
        run.write()
    return summary


class KilledError(Exception):
    pass


def killed_after(batches: int):
    left = iter(range(batches))

    def die(progress: Progress) -> None:
        if progress.note is None and next(left, None) is None:
            raise KilledError

    return die


def interrupt(run: Run, batches: int = 1) -> None:
    with pytest.raises(KilledError), run:
        run.execute(killed_after(batches))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_continued_run_equals_uninterrupted_one(tmp_path: Path, suffix: str) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 2000)
    page = {name: tmp_path / f"{name}.html" for name in ("whole", "broken")}
    out = {name: tmp_path / f"{name}{suffix}" for name in page}
    whole = finish(make_run(data, out["whole"], report=page["whole"]))

    for batches in (3, 2):
        run = make_run(data, out["broken"], report=page["broken"])
        interrupt(run, batches)
        assert run.kept
        # what a crash in the middle of a write leaves behind the checkpoint
        for file in (ROWS, TALKS):
            with open(tmp_path / f"broken{suffix}.partial" / file, "ab") as lines:
                lines.write(b'{"dialogue_id": "half a r')
        assert not out["broken"].exists()
    notes: list[str] = []
    summary = finish(make_run(data, out["broken"], report=page["broken"]), notes)
    (resumed,) = notes
    assert int(resumed.split()[4]) > 5 * scoring.FIRST_BATCH
    assert "rows are already done" in resumed
    assert out["broken"].read_bytes() == out["whole"].read_bytes()
    assert page["broken"].read_bytes() == page["whole"].read_bytes()
    assert summary == whole
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_changed_input_or_metrics_start_anew_and_say_so(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    notes: list[str] = []
    interrupt(make_run(data, out, "length"))
    finish(make_run(data, out, "length,turns"), notes)
    interrupt(make_run(data, out, "length", force=True))
    write_dialogues(data, 700, seed=1)
    finish(make_run(data, out, "length", force=True), notes)
    assert [note.partition(":")[0] for note in notes] == ["starting anew"] * 2
    assert len(out.read_text().splitlines()) == 700 * 3


def test_rows_without_their_checkpoint_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted while the first batch is written: then nothing can be continued."""
    data, out = write_dialogues(tmp_path / "in.jsonl", 100), tmp_path / "out.jsonl"

    def die(*names: object) -> None:
        raise KilledError

    monkeypatch.setattr("causerie.scoring.journal.os.replace", die)
    run = make_run(data, out)
    with suppress(KilledError), run:
        run.execute()
    assert not run.kept
    assert list(tmp_path.iterdir()) == [data]


def test_corrupt_checkpoint_starts_anew(tmp_path: Path) -> None:
    folder = tmp_path / "out.partial"
    journal = Journal(folder)
    journal.open("f")
    journal.begin()
    journal.append({ROWS: [{"a": 1}], TALKS: []}, {"n": 1})
    journal.close(keep=True)
    (folder / "checkpoint.json").write_text('{"fingerprint": "f", "si')
    journal = Journal(folder)
    journal.open("f")
    assert journal.state is None
    journal.begin()
    assert list(journal.read(ROWS)) == []
    journal.close(keep=True)


def test_lines_are_held_until_they_are_worth_waiting_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causerie.scoring.journal.HELD_SECONDS", math.inf)
    journal = Journal(tmp_path / "out.partial")
    journal.open("f")
    journal.begin()
    assert journal.hold({ROWS: [{"a": "x" * 1000}], TALKS: []})  # nothing is kept yet
    journal.append({}, {"n": 1})
    assert not journal.hold({ROWS: [{"a": 1}], TALKS: [{"b": 1}]})
    assert (len(list(journal.read(ROWS))), len(list(journal.read(TALKS)))) == (1, 0)
    assert journal.hold({ROWS: [{"a": "y" * 200}], TALKS: []})
    monkeypatch.setattr("causerie.scoring.journal.HELD_SECONDS", -1.0)
    assert journal.hold({ROWS: [], TALKS: []})
    journal.append({}, {"n": 2})
    assert [len(str(row["a"])) for row in journal.read(ROWS)] == [1000, 1, 200]
    assert list(journal.read(TALKS)) == [{"b": 1}]
    journal.close(keep=True)
    again = Journal(tmp_path / "out.partial")
    again.open("f")
    assert again.state == {"n": 2}
    again.close(keep=False)


@pytest.mark.parametrize("file", [ROWS, TALKS, "checkpoint.json"])
@pytest.mark.parametrize("change", ["a digit", "a bracket", "cut"])
def test_a_damaged_journal_is_not_continued(tmp_path: Path, file: str, change: str) -> None:
    data, page = write_dialogues(tmp_path / "in.jsonl", 200), tmp_path / "page.html"
    finish(make_run(data, tmp_path / "whole.jsonl"))
    out = tmp_path / "out.jsonl"
    interrupt(make_run(data, out, report=page), batches=2)
    damaged = tmp_path / "out.jsonl.partial" / file
    before = damaged.read_bytes()
    digit = before.replace(b"1,", b"2,")
    changed = {"a digit": digit, "a bracket": before.replace(b"{", b"[", 1), "cut": before[:-9]}
    assert changed[change] != before
    damaged.write_bytes(changed[change])
    notes: list[str] = []
    finish(make_run(data, out, report=page), notes)
    assert not any("continuing" in note for note in notes)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("lost", [ROWS, TALKS, "checkpoint.json"])
def test_killed_while_clearing_up(tmp_path: Path, lost: str) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    with suppress(KilledError), make_run(data, out) as run:
        run.execute()
        (tmp_path / "out.jsonl.partial" / lost).unlink()
        raise KilledError
    finish(make_run(data, out))
    assert len(out.read_text().splitlines()) == 800 * 3


def test_killed_between_the_table_and_the_page(tmp_path: Path) -> None:
    """What this very run has written needs no --force."""
    data, out, page = (tmp_path / name for name in ("in.jsonl", "out.jsonl", "page.html"))
    write_dialogues(data, 40)
    with suppress(KilledError), make_run(data, out, report=page) as run:
        run.execute()
        run.write()
        raise KilledError
    finish(make_run(data, out, report=page))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "page.html"]


def test_making_a_run_has_no_effect(tmp_path: Path) -> None:
    make_run(tmp_path / "missing.jsonl", tmp_path / "out.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 3)
    (tmp_path / "folder.csv").mkdir()
    for out, expected in [
        (data, "is an input"),
        (tmp_path / "folder.csv", "is a folder"),
        (tmp_path / "out.docx", "suffix"),
        (data / "out.csv", "cannot be written to"),
    ]:
        with pytest.raises(CauserieError, match=expected), make_run(data, out):
            pass
    for report, expected in [(data, "is an input"), (tmp_path / "page.pdf", ".html")]:
        with pytest.raises(CauserieError, match=expected), make_run(data, None, report=report):
            pass
    page = tmp_path / "page.html"
    with (
        pytest.raises(CauserieError, match="no-text"),
        make_run(data, None, report=page, text=False),
    ):
        pass
    assert len(data.read_text().splitlines()) == 3


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 3)
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    for existing in (out, page):
        existing.write_text("precious")
        with pytest.raises(CauserieError, match="--force"):
            finish(make_run(data, out, report=page))
        assert existing.read_text() == "precious"
        existing.unlink()
    out.write_text("old")
    finish(make_run(data, out, report=page, force=True))
    assert out.read_text().startswith("dialogue_id,")


def test_a_refused_run_leaves_the_progress_of_another(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    out.write_text("old")
    interrupt(make_run(data, out, "length", force=True))
    with pytest.raises(CauserieError, match="--force"):
        finish(make_run(data, out, "turns"))
    notes: list[str] = []
    finish(make_run(data, out, "length"), notes)
    assert "continuing" in notes[0]


@pytest.mark.skipif(os.name != "posix", reason="permissions are a matter of POSIX")
def test_files_have_the_usual_permissions(tmp_path: Path) -> None:
    data, out, page = (tmp_path / name for name in ("in.jsonl", "out.csv", "page.html"))
    write_dialogues(data, 3)
    finish(make_run(data, out, report=page))
    assert {out.stat().st_mode, page.stat().st_mode} == {data.stat().st_mode}


def test_a_run_without_rows_leaves_nothing(tmp_path: Path) -> None:
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_text("{}\n")
    with suppress(KilledError), make_run(data, out) as run:
        assert run.execute().rejected == 1
        assert not run.kept
        raise KilledError
    assert list(tmp_path.iterdir()) == [data]


def test_strict_also_minds_what_an_earlier_run_skipped(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    data.write_text("not json\n" + data.read_text())
    interrupt(make_run(data, out))
    with pytest.raises(CauserieError, match="1 bad records were skipped"):
        finish(make_run(data, out, strict=True))


def test_limit_reads_no_further(tmp_path: Path) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 2)
    first, second = data.read_text().splitlines()
    data.write_text(f"{first}\nnot json\n{second}\n")
    assert [type(r).__name__ for r in Inputs((str(data),), limit=1).records()] == ["Dialogue"]


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    with make_run(data, out), pytest.raises(CauserieError, match=r"is writing out\.jsonl"):
        make_run(data, out).__enter__()


def test_the_page_shows_what_was_scored_even_if_the_input_changes(tmp_path: Path) -> None:
    data, page = write_dialogues(tmp_path / "in.jsonl", 30), tmp_path / "page.html"
    data.write_text(data.read_text().replace("tea", "coffee"))
    with make_run(data, None, report=page) as run:
        run.execute()
        write_dialogues(data, 5, seed=3)
        run.write()
    assert "coffee" in page.read_text()


def grown(data: Path) -> None:
    with open(data, "a") as file:
        file.write(dialogues_of(50, seed=7))


def shrunk(data: Path) -> None:
    with open(data, "r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) // 3)


def replaced(data: Path) -> None:
    other = data.with_name("other.jsonl")
    other.write_text(dialogues_of(2000, seed=8))
    other.replace(data)


@pytest.mark.parametrize("change", [grown, shrunk, replaced])
def test_a_page_and_rows_are_of_one_reading(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """The input changes in the middle of the run: every score stands beside what it is of."""
    data, page, out = (tmp_path / name for name in ("in.jsonl", "page.html", "out.jsonl"))
    write_dialogues(data, 2000)
    changes = iter([change])

    def watch(progress: Progress) -> None:
        if progress.note is None and (due := next(changes, None)):
            due(data)

    with make_run(data, out, "length", report=page) as run:
        run.execute(watch)
        run.write()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) > 100
    assert all(row["length"] == len(row["text"].split()) for row in rows)
    said = {(row["dialogue_id"], row["turn"]): row["text"] for row in rows}
    written = re.search(r'id="data">(.*?)</script>', page.read_text())
    assert written is not None
    talks = json.loads(written[1])["dialogues"]
    assert len(talks) > 100
    for talk in talks:
        for place, turn in enumerate(talk["turns"]):
            if "scores" in turn:
                assert turn["scores"] == [len(turn["text"].split())]
                assert turn["text"] == said[talk["id"], place]


def test_a_run_that_is_ended_while_it_opens_its_journal_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    interrupt(make_run(data, out))

    def ended(*words: object) -> None:
        raise SystemExit(143)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_sum", ended)
        with pytest.raises(SystemExit):
            finish(make_run(data, out))
    notes: list[str] = []
    finish(make_run(data, out), notes)
    assert "continuing" in notes[0]


def test_a_touched_file_or_another_path_to_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    finish(make_run(data, tmp_path / "whole.jsonl"))
    monkeypatch.chdir(tmp_path)
    interrupt(make_run(Path("in.jsonl"), out))
    os.utime(data, (1, 1))
    notes: list[str] = []
    finish(make_run(data, out), notes)
    assert "continuing" in notes[0]
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes(), "the file column, too"


def test_what_was_read_and_has_changed_is_scored_anew(tmp_path: Path) -> None:
    """Of the same size and time, so that only its content tells."""
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    interrupt(make_run(data, out))
    before = data.stat()
    text = data.read_text()
    place = text.index("rain")
    data.write_text(text[:place] + "snow" + text[place + 4 :])
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (data.stat().st_size, data.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    notes: list[str] = []
    finish(make_run(data, out), notes)
    assert notes == [
        "starting anew: the run that was interrupted here has read what the inputs no longer hold"
    ]
    finish(make_run(data, tmp_path / "whole.jsonl"))
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_file_that_grew_goes_on(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    interrupt(make_run(data, out))
    grown(data)
    notes: list[str] = []
    finish(make_run(data, out), notes)
    assert "continuing" in notes[0]
    finish(make_run(data, tmp_path / "whole.jsonl"))
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_link_in_the_place_of_the_journal_is_refused(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    partial = tmp_path / "out.jsonl.partial"
    partial.symlink_to(elsewhere)
    with pytest.raises(CauserieError, match="is a link"):
        finish(make_run(data, out))
    partial.unlink()
    partial.mkdir()
    (elsewhere / "precious").write_text("precious")
    (partial / ROWS).symlink_to(elsewhere / "precious")
    with pytest.raises(CauserieError, match="is a link"):
        finish(make_run(data, out))
    assert (elsewhere / "precious").read_text() == "precious"


def test_a_journal_closes_while_another_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out.partial"
    first, second = Journal(folder), Journal(folder)
    first.open("f")
    acquire = second._lock.acquire

    def after_the_first(*words: object, **options: object) -> object:
        if first._lock.is_locked:  # the folder has been found, its lock not yet taken
            first.close(keep=False)
        return acquire(*words, **options)

    monkeypatch.setattr(second._lock, "acquire", after_the_first)
    second.open("f")
    second.begin()
    with pytest.raises(CauserieError, match="another run is writing"):
        Journal(folder).take(0)
    second.append({ROWS: [{"a": 1}], TALKS: []}, {})
    assert list(second.read(ROWS)) == [{"a": 1}]
    second.close(keep=False)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_is_being_removed_takes_nobody_elses_rows_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, removed = tmp_path / "out.partial", shutil.rmtree
    first, second = Journal(folder), Journal(folder)
    first.open("f")
    first.begin()

    def in_between(path: Path, **options: bool) -> None:
        monkeypatch.undo()
        second.open("f")
        second.begin()
        second.append({ROWS: [{"a": 1}], TALKS: []}, {})
        removed(path, **options)

    monkeypatch.setattr("causerie.scoring.journal.shutil.rmtree", in_between)
    first.close(keep=False)
    assert list(second.read(ROWS)) == [{"a": 1}]
    second.close(keep=False)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_cleared_and_what_a_living_one_has_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    living, dead = Journal.temporary(), Journal.temporary()
    living.open("f")
    dead.open("f")
    dead._lock.release()  # as the system does with the locks of a process that is no more
    gone = tmp_path / f".{dead.folder.name}.0123abcd.old"
    gone.mkdir()
    other = tmp_path / "causerie-made-by-hand"
    other.mkdir()
    new = Journal.temporary()
    assert {p.name for p in tmp_path.iterdir()} == {
        living.folder.name,
        new.folder.name,
        other.name,
    }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this platform")
def test_killed_at_any_moment_and_resumed(tmp_path: Path) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 2_000)
    words = ["score", data, "--metrics", "length,overlap", "--out"]
    run_causerie(*words, tmp_path / "whole.jsonl")
    out = tmp_path / "broken.jsonl"
    # Ever later, from before the first row until everything is written and is cleared up.
    moments = 0
    for moments in count(1):
        done = ended_by(signal.SIGKILL, [*words, out], touched=out, times=3 * moments - 2)
        if done.returncode != -signal.SIGKILL:
            break
    # If the last one was killed while it cleared up, there was nothing left to do.
    assert done.returncode == 0 or "exists already" in done.stderr
    assert moments > 3
    assert not out.with_name("broken.jsonl.partial").exists()
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.skipif(not Path("/proc").exists(), reason="memory is told by Linux")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    # `getrusage` would tell of this process, too, where it is larger.
    probe = (
        "from causerie.cli import main\n"
        "try: main()\n"
        "finally: print(*[n.split()[1] for n in open('/proc/self/status') if 'VmHWM' in n])"
    )
    peaks = []
    for dialogues in (4_000, 40_000):
        data = write_dialogues(tmp_path / f"{dialogues}.jsonl", dialogues, turns=3)
        out = tmp_path / f"{dialogues}.out.jsonl"
        command = ["score", data, "--metrics", "length,overlap", "--out", out]
        done = subprocess.run(
            [sys.executable, "-c", probe, *command], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout.split()[-1]))
        assert out.read_bytes().count(b"\n") == dialogues * 2
    # One number kept of every row, 32 bytes, would show.
    assert peaks[1] < 1.03 * peaks[0], peaks
