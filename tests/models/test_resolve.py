from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.models import Store

KINDS = ("encoder", "language model")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", offline=True)


def refusal(store: Store, name: str, kind="encoder") -> str:
    with pytest.raises(CauserieError) as caught:
        store.resolve(name, kind)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_registry_pins_everything_and_has_a_default_of_each_kind(store: Store) -> None:
    entries = store.entries()
    assert sorted(e.kind for e in entries if "default" in e.aliases) == sorted(KINDS)
    for entry in entries:
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in entry.files.values())
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in entry.converted.values())
        assert bool(entry.converted) == entry.is_gguf
        assert entry.size > 0
        assert entry.weights in entry.files
        assert entry.sources
        assert entry.licence in ("Apache-2.0", "WordNet")


def test_a_local_folder_is_itself_and_hashed(store: Store, tiny_bert: Path) -> None:
    resolved = store.resolve(str(tiny_bert), "encoder")
    weights = (tiny_bert / "model.safetensors").read_bytes()
    assert str(resolved.files.folder) == resolved.name == str(tiny_bert)
    assert resolved.sha256 == hashlib.sha256(weights).hexdigest()
    assert (resolved.pooling, resolved.max_length, resolved.revision) == ("mean", None, None)


def test_every_shard_counts(store: Store, tmp_path: Path) -> None:
    digests = set()
    for number, shards in enumerate([(b"a", b"b"), (b"a", b"c"), (b"c", b"b"), (b"b", b"a")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        for i, content in enumerate(shards, start=1):
            (folder / f"model-0000{i}-of-00002.safetensors").write_bytes(content)
        digests.add(store.resolve(str(folder), "encoder").sha256)
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"word_embedding_dimension": 384}, "mean"),
        ({"pooling_mode_max_tokens": True}, None),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None),
    ],
)
def test_pooling_is_what_the_folder_says(
    store: Store, tmp_path: Path, modes: dict[str, object], expected: str | None
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text(json.dumps(modes))
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 77}')
    if expected is None:
        assert "not supported" in refusal(store, str(tmp_path))
    else:
        resolved = store.resolve(str(tmp_path), "encoder")
        assert (resolved.pooling, resolved.max_length) == (expected, 77)


def test_a_folder_without_weights(store: Store, tmp_path: Path) -> None:
    assert "holds no model.safetensors" in refusal(store, str(tmp_path))


@pytest.mark.parametrize(
    "name", ["./no/such/folder", "/no/such/folder", "a/b/c", "", "x" * 5000 + "/", "nul\0", "$HOME"]
)
def test_what_can_be_neither_folder_nor_hub_name_lists_the_known_names(
    store: Store, name: str
) -> None:
    assert {e.name for e in store.entries() if e.name in refusal(store, name)} == {
        e.name for e in store.entries() if e.kind == "encoder"
    }


@pytest.mark.parametrize("name", ["no-such-model", "owner/no-such-model"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_hub_name_offline_is_looked_up_in_the_local_cache_only(
    store: Store, name: str, kind: str
) -> None:
    message = refusal(store, name, kind)
    assert "--offline" in message
    assert all((e.name in message) == (e.kind == kind) for e in store.entries())


def test_a_known_model_of_the_other_kind(store: Store) -> None:
    message = refusal(store, "all-MiniLM-L6-v2", "language model")
    assert "is a known encoder" in message
    assert "SmolLM2-135M-Instruct" in message


def test_unknown_names_for_pull_verify_path(store: Store) -> None:
    for action in (store.pull, store.verify, store.path):
        with pytest.raises(CauserieError, match=r"unknown model 'nothing'.*all-MiniLM-L6-v2"):
            action("nothing")
    for action in (store.verify, store.path):
        with pytest.raises(CauserieError, match="run `causerie models pull all-MiniLM-L6-v2`"):
            action("all-MiniLM-L6-v2")


def test_making_a_store_imports_nothing_heavy() -> None:
    code = (
        "import sys; from causerie.models import Store; Store().entries();"
        "print(*{'torch', 'transformers', 'huggingface_hub', 'pyarrow', 'gguf'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
