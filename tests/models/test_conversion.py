from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from causerie.errors import CauserieError
from causerie.models import Store, load_backbone
from causerie.models.conversion import convert_gguf
from models.shelf import Shelf, digest, wheel_source

WEIGHTS = "tiny.gguf"


def write_gguf(folder: Path, file: Path, pre: str) -> None:
    """Convert a saved Llama to a GGUF file with the format's own package."""
    from gguf import GGUFWriter
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    config, weights = model.config, model.state_dict()
    writer = GGUFWriter(file, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)

    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in special else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(vocabulary.index("<|im_start|>"))
    writer.add_eos_token_id(vocabulary.index("<|im_end|>"))
    writer.add_unk_token_id(vocabulary.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text("utf-8"))

    def add(name: str, key: str, heads: int | None = None) -> None:
        array = weights[key].numpy().astype(np.float32)
        if heads is not None:  # the format's order of rotary dimensions
            array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        writer.add_tensor(name, np.ascontiguousarray(array))

    add("token_embd.weight", "model.embed_tokens.weight")
    add("output_norm.weight", "model.norm.weight")
    for i in range(config.num_hidden_layers):
        layer = f"model.layers.{i}"
        add(f"blk.{i}.attn_norm.weight", f"{layer}.input_layernorm.weight")
        q, k = config.num_attention_heads, config.num_key_value_heads
        add(f"blk.{i}.attn_q.weight", f"{layer}.self_attn.q_proj.weight", heads=q)
        add(f"blk.{i}.attn_k.weight", f"{layer}.self_attn.k_proj.weight", heads=k)
        add(f"blk.{i}.attn_v.weight", f"{layer}.self_attn.v_proj.weight")
        add(f"blk.{i}.attn_output.weight", f"{layer}.self_attn.o_proj.weight")
        add(f"blk.{i}.ffn_norm.weight", f"{layer}.post_attention_layernorm.weight")
        for part in ("gate", "up", "down"):
            add(f"blk.{i}.ffn_{part}.weight", f"{layer}.mlp.{part}_proj.weight")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module", params=["smollm", "gpt-2"])
def pre(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def shelf(pre: str, tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """A registry that lists the conversion of its GGUF file."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    file = shelf.root / WEIGHTS
    write_gguf(tiny_llama, file, pre)
    convert_gguf(file, shelf.root / "known")
    pins = {one.name: digest(one.read_bytes()) for one in (shelf.root / "known").iterdir()}
    register(shelf, pins)
    return shelf


def register(shelf: Shelf, pins: dict[str, str]) -> None:
    files = {WEIGHTS: (shelf.root / WEIGHTS).read_bytes()}
    source = wheel_source("tiny")
    shelf.register(source, files=files, kind="language model", converted=pins)


@pytest.fixture(scope="module")
def converted(shelf: Shelf) -> Store:
    store = Store(shelf.root / "store", offline=True, registry=shelf.registry)
    store.pull("small", shelf.root / WEIGHTS)
    return store


def load(store: Store):
    kind, device = "language model", torch.device("cpu")
    return load_backbone(store, "default", kind, dtype=torch.float32, device=device)


def test_the_network_and_its_tokenizer_survive(
    converted: Store, tiny_llama: Path, pre: str
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    backbone = load(converted)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama)
    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    assert backbone.window == 256
    assert (backbone.tokenizer.bos_token, backbone.tokenizer.eos_token) == (
        tokenizer.bos_token,
        tokenizer.eos_token,
    )
    messages = [{"role": "user", "content": "Tell me more about it!"}]
    for text in (
        "I went hiking, and you?",
        "naïve 🙂 שלום",
        tokenizer.apply_chat_template(messages, tokenize=False),
    ):
        assert backbone.tokenizer(text).input_ids == tokenizer(text).input_ids
        inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        torch.testing.assert_close(
            backbone.model(**inputs).logits, model(**inputs).logits, rtol=1e-4, atol=1e-4
        )
    assert backbone.tokenizer.apply_chat_template(
        messages, tokenize=False
    ) == tokenizer.apply_chat_template(messages, tokenize=False)


def test_digits_stand_alone_where_the_model_was_made_so(converted: Store, pre: str) -> None:
    splitter = load(converted).tokenizer.backend_tokenizer.pre_tokenizer
    pieces = [piece for piece, _ in splitter.pre_tokenize_str("at 1230\n\n5")]
    expected = {
        "smollm": ["at", "Ġ", "1", "2", "3", "0", "ĊĊ", "5"],
        "gpt-2": ["at", "Ġ1230", "Ċ", "Ċ", "5"],
    }
    assert pieces == expected[pre]


def test_converted_files_are_those_that_the_registry_knows(converted: Store, shelf: Shelf) -> None:
    files = converted.verify("small")
    folder = converted.path("small")
    assert set(files) == {file.name for file in folder.iterdir()}
    assert "model.safetensors" in files
    assert WEIGHTS not in files
    for name in files:
        original = (folder / name).read_bytes()
        (folder / name).write_bytes(original[:-1] + bytes([original[-1] ^ 1]))
        # Nothing in the folder can vouch for another file: not even what once did.
        manifest = {"made of": dict(converted.entries()[0].files), "files": {}}
        manifest["files"] = {f.name: digest(f.read_bytes()) for f in folder.iterdir()}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(CauserieError, match=f"{name} is not what it should be"):
            converted.verify("small")
        with pytest.raises(CauserieError, match=f"{name} is not what it should be"):
            load(Store(converted.folder, offline=True, registry=shelf.registry))
        (folder / name).write_bytes(original)
    load(converted)  # what earlier versions left there harms nobody
    (folder / "manifest.json").unlink()


def test_what_other_libraries_convert_otherwise_is_converted_anew(
    shelf: Shelf, converted: Store, tmp_path: Path
) -> None:
    """In this case only the GGUF file can be verified, so it alone is kept."""
    register(shelf, {**converted.entries()[0].converted, "tokenizer.json": "0" * 64})
    store = Store(tmp_path / "store", offline=True, registry=shelf.registry)
    folder = store.pull("small", shelf.root / WEIGHTS)
    assert [file.name for file in folder.iterdir()] == [WEIGHTS]
    assert list(store.verify("small")) == [WEIGHTS]
    ids = torch.tensor([[1, 5, 9]])
    anew = load(store)
    assert torch.equal(anew.model(ids).logits, load(converted).model(ids).logits)
    assert anew.sha256 == digest((shelf.root / WEIGHTS).read_bytes())
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(CauserieError, match=f"{WEIGHTS} is not what it should be"):
        load(Store(store.folder, offline=True, registry=shelf.registry))
    register(shelf, dict(converted.entries()[0].converted))


def test_conversion_does_not_tell_versions(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("transformers", "transformers.configuration_utils"):
        monkeypatch.setattr(f"{module}.__version__", "99.1")
    monkeypatch.setattr("transformers.generation.configuration_utils.__version__", "99.1")
    convert_gguf(shelf.root / WEIGHTS, tmp_path / "later")
    for file in (tmp_path / "later").iterdir():
        assert file.read_bytes() == (shelf.root / "known" / file.name).read_bytes(), file.name


def test_the_hash_is_that_of_the_fetched_weights(converted: Store) -> None:
    (entry,) = converted.entries()
    assert converted.resolve("small", "language model").sha256 == entry.files[WEIGHTS]


def test_what_cannot_be_converted_leaves_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(b"GGUF but not really")
    files, pins = {WEIGHTS: b"GGUF but not really"}, {"model.safetensors": "0" * 64}
    shelf.register(files=files, kind="language model", converted=pins)
    store = Store(tmp_path / "store", registry=shelf.registry)
    with pytest.raises(CauserieError, match="could not be converted"):
        store.pull("small", tmp_path / WEIGHTS)
    assert [file.name for file in store.folder.iterdir()] in ([], [".small.lock"])
