"""A run may die at any moment: whatever is continued ends as if nothing had happened."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from causerie import metrics
from causerie.dialogue import Dialogue, Turn
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.io import write_table
from causerie.scoring import Inputs, Layout, Run, Summary, Watcher
from causerie.scoring.journal import Journal
from causerie.scoring.table import CHUNK_EXCHANGES, chunks
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


def make_run(path: Path, out: Path | None, names: str = "length,overlap", **kwargs) -> Run:
    engines = Engines()
    layout = Layout(tuple(metrics.load(name, engines) for name in names.split(",")), **kwargs)
    return Run(Inputs((str(path),)), layout, engines, out=out)


def finish(run: Run, out: Path, watcher: Watcher | None = None) -> Summary:
    summary = run.execute(watcher or Watcher())
    write_table(run.rows(), list(run.layout.types), out, run.layout.types)
    run.close(keep=False)
    return summary


class KilledError(Exception):
    pass


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_continued_run_equals_uninterrupted_one(tmp_path: Path, suffix: str) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 2000)
    whole = finish(make_run(data, tmp_path / f"whole{suffix}"), tmp_path / f"whole{suffix}")

    out = tmp_path / f"broken{suffix}"
    for deaths in (1, 2):
        chunks_left = iter(range(deaths))

        def die(summary: Summary, left=chunks_left) -> None:
            if next(left, None) is None:
                raise KilledError

        run = make_run(data, out)
        with pytest.raises(KilledError):
            run.execute(Watcher(advanced=die))
        # what a crash in the middle of a write leaves behind the checkpoint
        with open(run.journal.folder / "rows.jsonl", "ab") as rows:
            rows.write(b'{"dialogue_id": "half a r')
        run.close(keep=True)
        assert not out.exists()
    resumed: list[int] = []
    summary = finish(make_run(data, out), out, Watcher(resumed=lambda s: resumed.append(s.items)))
    assert resumed
    assert resumed[0] > CHUNK_EXCHANGES
    assert out.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    assert summary == whole
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_changed_input_or_metrics_start_anew(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"

    def interrupt(names: str = "length") -> None:
        run = make_run(data, out, names)
        with pytest.raises(KilledError):
            run.execute(Watcher(advanced=lambda s: (_ for _ in ()).throw(KilledError)))
        run.close(keep=True)

    interrupt()
    resumed: list[int] = []
    watcher = Watcher(resumed=lambda s: resumed.append(s.items))
    finish(make_run(data, out, "length,turns"), out, watcher)
    interrupt()
    write_dialogues(data, 700, seed=1)
    finish(make_run(data, out), out, watcher)
    assert resumed == []
    assert len(out.read_text().splitlines()) == 700 * 3


def test_corrupt_checkpoint_starts_anew(tmp_path: Path) -> None:
    folder = tmp_path / "out.partial"
    journal = Journal(folder)
    journal.resume("f")
    journal.append([{"a": 1}], {"n": 1})
    journal.close(keep=True)
    (folder / "checkpoint.json").write_text('{"fingerprint": "f", "si')
    journal = Journal(folder)
    assert journal.resume("f") is None
    assert list(journal.rows()) == []
    journal.close(keep=True)


@pytest.mark.parametrize("lost", ["rows.jsonl", "checkpoint.json"])
def test_killed_while_clearing_up(tmp_path: Path, lost: str) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    run = make_run(data, out)
    run.execute(Watcher())
    (run.journal.folder / lost).unlink()
    run.close(keep=True)
    finish(make_run(data, out), out)
    assert len(out.read_text().splitlines()) == 800 * 3


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 3)
    for out, expected in [
        (data, "is an input"),
        (tmp_path, "is a folder"),
        (data / "out.csv", "cannot be written to"),
    ]:
        with pytest.raises(CauserieError, match=expected):
            make_run(data, out)
    assert len(data.read_text().splitlines()) == 3


def test_a_run_without_rows_leaves_nothing(tmp_path: Path) -> None:
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_text("{}\n")
    run = make_run(data, out)
    assert run.execute(Watcher()).rejected == 1
    run.close(keep=True)
    assert list(tmp_path.iterdir()) == [data]


def test_strict_also_minds_what_an_earlier_run_skipped(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 800), tmp_path / "out.jsonl"
    data.write_text("not json\n" + data.read_text())
    run = make_run(data, out)
    with pytest.raises(KilledError):
        run.execute(Watcher(advanced=lambda s: (_ for _ in ()).throw(KilledError)))
    run.close(keep=True)
    run = make_run(data, out)
    run.strict = True
    with pytest.raises(CauserieError, match="1 bad records were skipped"):
        run.execute(Watcher())
    run.close(keep=False)


def test_two_metrics_of_one_name_are_refused() -> None:
    both = (metrics.load("bleu"), metrics.load("bleu", order=2))
    with pytest.raises(CauserieError, match="a column bleu"):
        Layout(both)


def test_limit_reads_no_further(tmp_path: Path) -> None:
    data = write_dialogues(tmp_path / "in.jsonl", 2)
    first, second = data.read_text().splitlines()
    data.write_text(f"{first}\nnot json\n{second}\n")
    assert [type(r).__name__ for r in Inputs((str(data),), limit=1).records()] == ["Dialogue"]


def test_long_texts_make_small_chunks() -> None:
    dialogue = Dialogue("d", (Turn("A", "x" * 1_500_000), Turn("B", "y")))
    assert [len(chunk) for chunk in chunks([dialogue] * 7)] == [3, 3, 1]


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    data, out = write_dialogues(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    run = make_run(data, out)
    with pytest.raises(CauserieError, match=r"another run is writing out\.jsonl"):
        make_run(data, out)
    run.close(keep=False)


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
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert moments > 3
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
