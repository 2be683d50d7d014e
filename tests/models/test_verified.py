"""What is loaded is what was hashed, even if files change meanwhile."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, load_file, save, save_file

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.io.verified import Content, read_content
from causerie.metrics.density import Density
from causerie.models import Store, load_backbone
from causerie.models.artifact import ArtifactInfo, load_artifact, shipped_artifacts
from causerie.models.weights import tensors_of
from models.test_artifact import artifact, same

CPU = torch.device("cpu")
TALK = Dialogue("d", (Turn("a", "Do you like music?"), Turn("b", "I play the guitar.")))


def loaded(folder: Path, kind: str, *, trainable: bool = True):
    store = Store(folder / "no store", offline=True)
    return load_backbone(
        store, str(folder), kind, dtype=torch.float32, device=CPU, trainable=trainable
    )


def refusal(action) -> str:
    with pytest.raises(CauserieError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed_weights(folder: Path) -> bytes:
    weights = load_file(folder / "model.safetensors")
    return save({name: t + 1 for name, t in weights.items()}, {"format": "pt"})


def swap(file: Path, content: bytes) -> None:
    """Replace a file by another of the same size and modification time."""
    status = file.stat()
    other = file.with_name("swapped")
    other.write_bytes(content)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(file)


@pytest.fixture
def bert(tiny_bert: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_bert, tmp_path / "bert"))


@pytest.fixture
def gpt2(tiny_gpt2: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_gpt2, tmp_path / "gpt2"))


@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_what_replaces_a_file_after_it_was_read_is_not_loaded(
    bert: Path, monkeypatch: pytest.MonkeyPatch, trainable: bool, in_place: bool
) -> None:
    file, other = bert / "model.safetensors", changed_weights(bert)
    expected = loaded(bert, "encoder", trainable=trainable).model.state_dict()

    def read_and_swap(path: Path, **how: bool) -> Content:
        content = read_content(path, **how)
        if path == file:
            file.write_bytes(other) if in_place else swap(file, other)
        return content

    monkeypatch.setattr("causerie.models.folder.read_content", read_and_swap)
    found = loaded(bert, "encoder", trainable=trainable).model.state_dict()
    assert file.read_bytes() == other
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_signature_is_not_that_of_other_files(bert: Path, name: str) -> None:
    engines = Engines(Settings(encoder=str(bert), offline=True))
    engines.signature("encoder")
    content = (bert / name).read_bytes()
    other = changed_weights(bert) if name == "model.safetensors" else content[:-1] + b" "
    swap(bert / name, other)
    message = refusal(lambda: engines.encoder)
    assert f"{name} is not what it should be" in message
    assert "start again" in message


def test_every_file_of_a_folder_is_in_its_signature(bert: Path) -> None:
    def signature() -> str:
        return Engines(Settings(encoder=str(bert), offline=True)).signature("encoder")

    signatures = {signature()}
    for name in ("config.json", "tokenizer_config.json"):
        file = bert / name
        file.write_bytes(file.read_bytes() + b" ")
        signatures.add(signature())
    assert len(signatures) == 3


def test_what_lies_beside_weights_has_a_limit(gpt2: Path) -> None:
    """Other files are never opened; settings are copied, so their size is limited."""
    (gpt2 / "video.mp4").write_bytes(b"no model opens this")
    loaded(gpt2, "language model")
    with (gpt2 / "corpus.json").open("wb") as file:
        file.truncate(257 << 20)
    assert "256 MB beside the weights, most of it in corpus.json" in refusal(
        lambda: loaded(gpt2, "language model")
    )


def test_an_adapter_beside_a_network_is_not_loaded_unasked(gpt2: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(gpt2)
    config = LoraConfig(
        r=2, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True
    )
    get_peft_model(model, config).save_pretrained(gpt2)
    assert (gpt2 / "adapter_model.safetensors").exists()
    assert "holds an adapter" in refusal(lambda: loaded(gpt2, "language model"))


def shard(folder: Path, index: dict[str, object]) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = folder / f"model-0000{number}-of-00002.safetensors"
        save_file({name: weights[name] for name in part}, file, {"format": "pt"})
    placed = {n: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, n in enumerate(names)}
    content = {"metadata": {}, "weight_map": {**placed, **index}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))


def test_shards_make_the_same_network(gpt2: Path, tiny_gpt2: Path) -> None:
    shard(gpt2, {})
    ids = torch.tensor([[5, 6, 7]])
    found, expected = (loaded(f, "language model").model(ids).logits for f in (gpt2, tiny_gpt2))
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "place", ["../outside.safetensors", "/etc/passwd", "model-00003-of-00003.safetensors", 7, []]
)
def test_an_index_of_shards_stays_in_its_folder(gpt2: Path, place: object) -> None:
    """Even if a file outside has all that is looked for there."""
    shutil.copy(gpt2 / "model.safetensors", gpt2.parent / "outside.safetensors")
    shard(gpt2, {"transformer.wpe.weight": place})
    assert "cannot be loaded" in refusal(lambda: loaded(gpt2, "language model"))


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_link_out_of_a_folder_is_refused_but_for_the_hubs_own(bert: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--x" / "snapshots" / "0"
    blobs = tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    bert.rename(blobs)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    loaded(snapshot, "encoder")
    outside = tmp_path / "outside"
    (blobs / "config.json").rename(outside)
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to(outside)
    assert "is a link to a file outside" in refusal(lambda: loaded(snapshot, "encoder"))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("trainable", [True, False])
def test_weights_that_are_no_numbers_are_damage(bert: Path, number: float, trainable: bool) -> None:
    weights = load_file(bert / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][3, 3] = number
    save_file(weights, bert / "model.safetensors", {"format": "pt"})
    message = refusal(lambda: loaded(bert, "encoder", trainable=trainable))
    assert "not every number in embeddings.word_embeddings.weight is finite" in message


@pytest.mark.parametrize(
    "harm",
    [
        {"num_hidden_layers": 10**9},
        {"vocab_size": 10**12},
        {"hidden_size": 10**9},
        {"hidden_size": "wide"},
        {"num_attention_heads": 0},
        {"layer_norm_eps": None},
        {"_attn_implementation": "somebody/kernel"},
        {"attn_implementation": "somebody/kernel"},
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
    ],
    ids=str,
)
@pytest.mark.parametrize("trainable", [True, False])
def test_configurations_that_cannot_be(
    bert: Path, harm: dict[str, object], trainable: bool
) -> None:
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, **harm}))
    kernels = any("attn" in key for key in harm)
    if kernels and not trainable:
        loaded(bert, "encoder", trainable=False)  # a network of our own, which asks nobody
    else:
        refusal(lambda: loaded(bert, "encoder", trainable=trainable))


def test_json_that_never_ends(bert: Path) -> None:
    (bert / "config.json").write_text("[" * 10**6)
    refusal(lambda: loaded(bert, "encoder", trainable=False))


@given(st.data())
@settings(max_examples=150)
def test_safetensors_are_read_as_the_library_reads_them_or_refused(data: st.DataObject) -> None:
    tensors = {
        "a": torch.arange(6, dtype=torch.float32).view(2, 3),
        "b": torch.ones(5, dtype=torch.float16),
        "c": torch.zeros(0, 4),
        "d": torch.tensor(3, dtype=torch.int64),
    }
    content = bytearray(save(tensors))
    if data.draw(st.booleans(), "damaged"):
        place = data.draw(st.integers(0, len(content) - 1), "place")
        content[place] = data.draw(st.integers(0, 255), "byte")
    try:
        found = tensors_of(Content(content, ""))
    except ValueError:
        return
    try:
        expected = load(bytes(content))
    except Exception:  # it wants arrays without gaps, which harm nobody
        return
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_an_artifact_that_changes_is_not_scored_under_the_old_name(tmp_path: Path) -> None:
    artifact().save(tmp_path / "a")
    info = ArtifactInfo.find(str(tmp_path / "a"))
    replace(artifact(), options={"seed": 4}).save(tmp_path / "a")
    assert "changed after it was first read" in refusal(info.load)
    engines = Engines(Settings(offline=True))
    assert engines.steady(info) == info
    later = ArtifactInfo.find(str(tmp_path / "a"))
    assert "changed after it was first read" in refusal(lambda: engines.steady(later))


def test_tampering_with_a_shipped_artifact_is_found(tmp_path: Path) -> None:
    assert {"density", "grade"} <= set(shipped_artifacts())
    folder = Path(shutil.copytree(ArtifactInfo.find("density").folder, tmp_path / "density"))
    original = load_artifact("density")
    for name in ("network.safetensors", "statistics.safetensors", "config.json"):
        content = (folder / name).read_bytes()
        for place in [*range(0, 200, 20), *range(200, len(content), len(content) // 9)]:
            changed = bytearray(content)
            changed[place] ^= 4
            (folder / name).write_bytes(changed)
            try:
                found = load_artifact(str(folder))
            except CauserieError:
                continue
            assert same(found, original)
        (folder / name).write_bytes(content)


def test_an_artifact_without_a_digest_vouches_for_nothing(tmp_path: Path) -> None:
    artifact().save(tmp_path / "a")
    config = json.loads((tmp_path / "a/config.json").read_text())
    del config["sha256"]
    (tmp_path / "a/config.json").write_text(json.dumps(config))
    assert "damaged" in refusal(lambda: load_artifact(str(tmp_path / "a")))
    assert "damaged" in refusal(lambda: ArtifactInfo.find(str(tmp_path / "a")))


@pytest.mark.parametrize("part", ["network", "statistics"])
def test_an_artifact_holds_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    made = replace(artifact(), **{part: {"w": torch.tensor([1.0, float("nan")])}})
    assert "train again with a lower learning rate" in refusal(lambda: made.save(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
    with monkeypatch.context() as patch:
        patch.setattr("causerie.models.weights.check_finite", lambda _: None)
        made.save(tmp_path / "a")
    assert "not every number in w is finite" in refusal(lambda: load_artifact(str(tmp_path / "a")))


@pytest.mark.parametrize(
    "harm",
    [
        {"options": None},
        {"options": [["seed", 1]]},
        {"backbone": "all-MiniLM-L6-v2"},
        {"backbone": {"name": 7, "sha256": "0"}},
        {"backbone": {"name": "\x1b[31m", "sha256": "0"}},
        {"version": 1},
        {"sha256": None},
        {"encoder": "density"},
        {"encoder": {"of": "grade", "sha256": "0"}},
        {"encoder": {"of": "../density", "sha256": "0"}},
        {"encoder": {"of": ["density"], "sha256": "0"}},
        {"metric": "exam\x1bple"},
    ],
    ids=str,
)
def test_hostile_configurations_are_one_sentence(tmp_path: Path, harm: dict[str, object]) -> None:
    artifact().save(tmp_path / "a")
    config = json.loads((tmp_path / "a/config.json").read_text())
    (tmp_path / "a/config.json").write_text(json.dumps({**config, **harm}))
    message = refusal(lambda: load_artifact(str(tmp_path / "a")))
    assert message.isprintable()


def test_a_configuration_that_is_nested_without_end(tmp_path: Path) -> None:
    artifact().save(tmp_path / "a")
    (tmp_path / "a/config.json").write_text('{"metric": ' + "[" * 10**6)
    assert "nested too deeply" in refusal(lambda: load_artifact(str(tmp_path / "a")))


@pytest.mark.parametrize("rank", [10**9, 3, "16", None, 2.5])
@pytest.mark.filterwarnings("error")  # of peft, if it looks for the network on the hub
def test_an_adapter_has_the_rank_of_its_weights(
    tiny_llama: Path, tmp_path: Path, rank: object
) -> None:
    from causerie.engines.tuning import Tuning

    stock = loaded(tiny_llama, "language model")
    tuning = Tuning("adapter", 2)
    weights = tuning.weights(tuning.prepare(stock.model))
    made = replace(
        artifact(),
        metric="lm",
        backbone=str(tiny_llama),
        backbone_sha256=stock.sha256,
        options={"rank": rank, "layers": None, "turn_format": "chat"},
        network={f"lm.{name}": tensor for name, tensor in weights.items()},
    )
    made.save(tmp_path / "lm")
    engines = Engines(Settings(lm=str(tmp_path / "lm"), offline=True))
    refusal(lambda: engines.likelihood)


def test_what_an_artifact_names_is_fetched_only_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("causerie.models.store.hub_answers", asked)
    monkeypatch.setattr("causerie.models.sources.hub_answers", asked)
    replace(load_artifact("density"), backbone="somebody/network").save(tmp_path / "density")
    metric = Density(artifact=str(tmp_path / "density"))
    score = lambda: metric.score_exchanges([Exchange(TALK, 1)], Engines())  # noqa: E731
    assert "add --encoder somebody/network" in refusal(score)
    made = replace(
        artifact(), metric="lm", backbone="somebody/model", options={"rank": 1, "layers": None}
    )
    made.save(tmp_path / "lm")
    engines = Engines(Settings(lm=str(tmp_path / "lm")))
    assert "--lm somebody/model first" in refusal(lambda: engines.likelihood)
