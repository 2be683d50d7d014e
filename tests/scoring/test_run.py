"""A run may die at any moment: whatever is continued ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
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


def write_dialogues(path: Path, count: int, turns: int = 4, seed: int = 0) -> Path:
    rng = random.Random(seed)
    words = ["tea", "rain", "garden", "book", "night", "river", "friend", "song", "cat", "road"]
    with open(path, "w") as file:
        for index in range(count):
            texts = [" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(turns)]
            record = {
                "id": f"d{index}",
                "turns": [{"speaker": "AB"[i % 2], "text": t} for i, t in enumerate(texts)],
            }
            file.write(json.dumps(record) + "\n")
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


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    probe = (
        "import resource, sys; from causerie.cli import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
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
