"""Running commands: without a process of its own, or in one that ends at a chosen moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from typer.testing import CliRunner

from causerie.cli import main


def run_causerie(*words: object, stdin: str = "") -> CompletedProcess[str]:
    """Exit status and output of `causerie WORDS`, as a process would give them.

    Starting a process costs seconds of imports.
    """
    arguments = [str(word) for word in words]
    status = 0
    with ExitStack() as stack:
        if hasattr(signal, "SIGPIPE"):  # the command changes what it does
            stack.callback(signal.signal, signal.SIGPIPE, signal.getsignal(signal.SIGPIPE))
        stack.enter_context(patch.object(sys, "argv", ["causerie", *arguments]))
        out, err, _ = stack.enter_context(CliRunner().isolation(stdin))
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        shown, said = out.getvalue().decode(), err.getvalue().decode()
    return CompletedProcess(arguments, status, shown, said)


_COMMAND = "from causerie.cli import main; main()"
_SIGNALLED = """
import signal, sys
number, place, left = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
del sys.argv[1:4]
def watch(event, arguments):
    global left
    if any(str(argument).startswith(place) for argument in arguments):
        left -= 1
        if left == 0:
            signal.raise_signal(number)
# a shell's background jobs, and so these tests in one, have signals ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.addaudithook(watch)
"""


def ended_by(
    number: signal.Signals,
    words: Sequence[object],
    touched: Path,
    times: int,
    code: str = _COMMAND,
) -> CompletedProcess[str]:
    """`causerie WORDS` in a process that gets a signal when it touches a path, or what is in it.

    The signal comes when it is about to open, rename or remove a file there, `times` counted from
    1: a moment that is the same on every machine, however busy. Other code may stand in for the
    command.
    """
    program = [sys.executable, "-c", _SIGNALLED + code, int(number), touched, times]
    return subprocess.run(
        [str(word) for word in (*program, *words)], capture_output=True, text=True, check=False
    )
