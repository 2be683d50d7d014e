"""The command line without a process of its own: starting one costs seconds of imports."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from subprocess import CompletedProcess
from unittest.mock import patch

from typer.testing import CliRunner

from causerie.cli import main


def run_causerie(*words: object, stdin: str = "") -> CompletedProcess[str]:
    """Exit status and output of `causerie WORDS`, as a process would give them."""
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
