"""Artifacts: what is loaded equals what was saved, and everything else is an error."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from causerie.errors import CauserieError
from causerie.licences import Licence
from causerie.models.artifact import (
    Artifact,
    ArtifactInfo,
    load_artifact,
    metric_of,
    shipped,
)
from causerie.training.trainable import Start, TrainingRun


def artifact() -> Artifact:
    generator = torch.Generator().manual_seed(0)
    return Artifact(
        metric="example",
        backbone="all-MiniLM-L6-v2",
        backbone_sha256="0" * 64,
        options={"seed": 3, "name": "ü"},
        network={"head.w": torch.randn(3, 4, generator=generator), "encoder.b": torch.ones(2)},
        statistics={"mean": torch.randn(5, generator=generator)},
        card="# example\n",
        licence="CC0",
    )


def same(one: Artifact, other: Artifact) -> bool:
    tensors = all(
        mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)
        for mine, theirs in ((one.network, other.network), (one.statistics, other.statistics))
    )
    return tensors and (one.options, one.card, one.licence) == (
        other.options,
        other.card,
        other.licence,
    )


def test_loaded_is_saved(tmp_path: Path) -> None:
    saved = artifact()
    saved.save(tmp_path / "made" / "here")
    loaded = load_artifact(str(tmp_path / "made" / "here"), "example")
    assert same(loaded, saved)
    assert loaded.sha256 == saved.sha256
    assert metric_of(tmp_path / "made" / "here") == "example"
    names = sorted(path.name for path in (tmp_path / "made" / "here").iterdir())
    weights = ["network.safetensors", "statistics.safetensors"]
    assert names == ["LICENSE", "card.md", "config.json", *weights]
    assert [p.name for p in (tmp_path / "made").iterdir()] == ["here"]  # nothing half-done


def test_weights_are_halves_and_statistics_floats_at_once() -> None:
    made = artifact()
    assert {t.dtype for t in made.network.values()} == {torch.float16}
    assert {t.dtype for t in made.statistics.values()} == {torch.float32}
    part = made.part("head")
    assert part.keys() == {"w"}
    assert part["w"].dtype == torch.float32
    assert torch.equal(part["w"], made.network["head.w"].float())


def test_hash_covers_all_that_decides_a_score() -> None:
    made = artifact()
    others = [
        replace(made, options={"seed": 4, "name": "ü"}),
        replace(made, backbone_sha256="1" * 64),
        replace(made, network={**made.network, "encoder.b": torch.zeros(2)}),
        replace(made, statistics={"mean": made.statistics["mean"] + 1}),
        replace(made, statistics={"median": made.statistics["mean"]}),
    ]
    assert len({made.sha256, *(other.sha256 for other in others)}) == 1 + len(others)
    assert replace(made, card="other words").sha256 == made.sha256


def test_replaces_an_artifact_but_nothing_else(tmp_path: Path) -> None:
    artifact().save(tmp_path / "a")
    replace(artifact(), card="new").save(tmp_path / "a")
    assert load_artifact(str(tmp_path / "a"), "example").card == "new"
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "monday.txt").write_text("dear diary")
    with pytest.raises(CauserieError, match="is not an artifact"):
        artifact().save(tmp_path / "diary")
    assert (tmp_path / "diary" / "monday.txt").read_text() == "dear diary"
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(CauserieError, match="is not an artifact"):
        artifact().save(tmp_path / "bert")
    (tmp_path / "empty").mkdir()
    artifact().save(tmp_path / "empty")
    assert same(load_artifact(str(tmp_path / "empty"), "example"), artifact())


def test_a_failed_swap_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact().save(tmp_path / "a")
    replaced = os.replace

    def fail(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise OSError("Input/output error")
        replaced(source, target)

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="Input/output"):
        replace(artifact(), card="new").save(tmp_path / "a")
    monkeypatch.undo()
    assert load_artifact(str(tmp_path / "a"), "example").card == "# example\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_foreign_ones_are_refused(tmp_path: Path) -> None:
    artifact().save(tmp_path / "a")
    with pytest.raises(CauserieError, match="artifact of example, not of density"):
        load_artifact(str(tmp_path / "a"), "density")
    with pytest.raises(CauserieError, match="nowhere is not an artifact"):
        load_artifact("nowhere", "example")
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(CauserieError, match="not the configuration of a causerie artifact"):
        load_artifact(str(tmp_path / "bert"), "example")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: _cut(folder / "network.safetensors"),
        lambda folder: _cut(folder / "config.json"),
        lambda folder: (folder / "statistics.safetensors").unlink(),
        lambda folder: (folder / "card.md").write_bytes(b"\xff\xfe\xff"),
        lambda folder: (folder / "network.safetensors").write_bytes(b""),
        lambda folder: (folder / "config.json").write_text(
            json.dumps({"metric": "example", "backbone": []})
        ),
    ],
    ids=["cut weights", "cut config", "no statistics", "bad card", "empty weights", "bad config"],
)
def test_damage_is_said_in_one_sentence(tmp_path: Path, harm: object) -> None:
    artifact().save(tmp_path / "a")
    harm(tmp_path / "a")  # type: ignore[operator]
    with pytest.raises(CauserieError, match="damaged"):
        load_artifact(str(tmp_path / "a"), "example")


def test_a_failed_save_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact().save(tmp_path / "a")

    def full(*args: object, **options: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        replace(artifact(), card="new").save(tmp_path / "a")
    assert load_artifact(str(tmp_path / "a"), "example").card == "# example\n"
    shutil.rmtree(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions are a matter of POSIX")
def test_all_its_files_have_the_permissions_that_new_files_have(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        artifact().save(tmp_path / "a")
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "a").iterdir()}
    assert set(modes.values()) == {0o640}, modes


def test_an_encoder_that_comes_with_causerie_is_not_written_again(tmp_path: Path) -> None:
    density = load_artifact("density")
    encoder = {k: t for k, t in density.network.items() if k.startswith("encoder.")}
    mine = replace(
        artifact(),
        backbone_sha256=density.backbone_sha256,
        network={"head.w": torch.ones(3), **encoder},
        encoder_of="density",
    )
    mine.save(tmp_path / "a")
    assert (tmp_path / "a" / "network.safetensors").stat().st_size < 1000
    loaded = load_artifact(str(tmp_path / "a"))
    assert same(loaded, mine)
    assert loaded.sha256 == mine.sha256
    loaded.save(tmp_path / "b")  # and again
    assert same(load_artifact(str(tmp_path / "b")), mine)
    other = replace(mine, network={**mine.network, "encoder.more": torch.ones(1)})
    other.save(tmp_path / "c")
    with pytest.raises(CauserieError, match="has another encoder in density"):
        load_artifact(str(tmp_path / "c"))


def test_a_path_is_no_name_of_a_shipped_one(tmp_path: Path) -> None:
    artifact().save(tmp_path / "mine")
    assert shipped("density") is not None
    for path in (str(tmp_path / "mine"), "", ".", "..", "density/../density"):
        assert shipped(path) is None


def test_the_licence_of_every_source_is_told_without_weights(tmp_path: Path) -> None:
    whole = replace(artifact(), licence="chitchat: MIT; talks: CC-BY-4.0")
    whole.save(tmp_path / "a")
    info = ArtifactInfo.read(tmp_path / "a")
    assert info.licences == (Licence("chitchat", "MIT"), Licence("talks", "CC-BY-4.0"))
    assert info.free
    assert info.sha256 == replace(whole, licence="talks: not for you").sha256
    replace(whole, licence="chitchat: MIT; talks: not for you").save(tmp_path / "b")
    assert not ArtifactInfo.read(tmp_path / "b").free


def test_a_training_that_goes_on_keeps_the_licences_of_what_it_began_with(tmp_path: Path) -> None:
    start = Start("a", replace(artifact(), licence="chitchat: MIT; talks: CC-BY-4.0"))
    licence = "talks: CC-BY-4.0; letters: CC0-1.0"
    run = TrainingRun(None, (), (), tmp_path, licence=licence, start=start)
    assert run.whole_licence == "chitchat: MIT; talks: CC-BY-4.0; letters: CC0-1.0"
    assert replace(run, start=None).whole_licence == licence
