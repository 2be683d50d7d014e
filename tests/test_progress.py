"""Progress is told as events; the console draws any of them and keeps the notes."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from causerie.cli import console as shown
from causerie.progress import Progress, announced, counting, ignore, print_note


def test_counting_tells_one_task() -> None:
    told: list[Progress] = []
    counting(told.append, "scoring", "responses")(3, 10)
    assert told == [Progress("scoring", 3, 10, "responses")]
    ignore(told[0])


def test_what_takes_long_is_announced() -> None:
    told: list[Progress] = []
    heard = threading.Event()

    def watch(progress: Progress) -> None:
        told.append(progress)
        heard.set()

    with announced("fetching a model", watch, after=0):
        heard.wait()
    assert told == [Progress("fetching a model", note="fetching a model ...")]


def test_what_is_quick_is_not_announced() -> None:
    told: list[Progress] = []
    with announced("fetching a model", told.append, after=3600):
        pass
    assert told == []


def test_only_notes_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_note(Progress("training", 1, 2))
    print_note(Progress("training", note="skipped a line"))
    assert capsys.readouterr() == ("", "causerie: skipped a line\n")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a person sees, with a terminal that has no colours."""
    file = io.StringIO()
    monkeypatch.setattr(
        shown,
        "console",
        Console(file=file, force_terminal=True, width=120, no_color=True, highlight=False),
    )
    return file


def test_the_display_draws_any_progress_and_keeps_notes(screen: io.StringIO) -> None:
    with shown.Display() as watch:
        watch(Progress("training density", 50, 200, "steps", "loss 0.31"))
        watch(Progress("training density", note="skipped [bold]line 3[/bold]\x1b]0;x\x07"))
        bar = watch._bar.tasks[0]
        assert (bar.completed, bar.total, bar.description) == (50, 200, "training density")
        watch(Progress("reading", 75, 100, "bytes", "12 responses"))
        watch._bar.refresh()
    text = screen.getvalue()
    assert "skipped [bold]line 3[/bold]�]0;x�" in text
    assert "12 responses" in text
    assert "75%" in text
    assert "75 of 100" not in text  # bytes are told by the bar


def test_counts_stand_beside_the_bar(screen: io.StringIO) -> None:
    with shown.Display() as watch:
        watch(Progress("training density", 1500, 2000, "steps", "loss 0.31"))
        watch._bar.refresh()
    assert "1,500 of 2,000 steps loss 0.31" in screen.getvalue()
