from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from causerie.errors import CauserieError
from causerie.models import Backbone, Store, load_backbone

CPU = torch.device("cpu")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", offline=True)


def load(store: Store, folder: Path, kind, dtype=torch.float32) -> Backbone:
    return load_backbone(store, str(folder), kind, dtype=dtype, device=CPU)


def refusal(store: Store, folder: Path, kind) -> str:
    with pytest.raises(CauserieError) as caught:
        load(store, folder, kind)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def copy(tmp_path: Path):
    return lambda folder: Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("fixture", "kind", "window"),
    [
        ("tiny_gpt2", "language model", 128),
        ("tiny_llama", "language model", 256),
        ("tiny_bert", "encoder", 64),
    ],
)
def test_loads_ready_for_use(
    store: Store, request: pytest.FixtureRequest, fixture: str, kind: str, window: int
) -> None:
    from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

    folder = request.getfixturevalue(fixture)
    backbone = load(store, folder, kind)
    assert backbone.window == window
    assert not backbone.model.training
    assert backbone.model.dtype == torch.float32
    assert backbone.model.config._attn_implementation == "sdpa"
    plain = AutoTokenizer.from_pretrained(folder)
    assert backbone.tokenizer.pad_token_id is not None
    assert len(backbone.tokenizer) == len(plain) == backbone.model.config.vocab_size
    inputs = plain("I like hiking <|endoftext|> do you?", return_tensors="pt")
    architecture = AutoModel if kind == "encoder" else AutoModelForCausalLM
    expected = architecture.from_pretrained(folder)(**inputs)[0]
    torch.testing.assert_close(backbone.model(**inputs)[0], expected)


def test_the_padding_token_changes_no_encoding(store: Store, tiny_gpt2: Path) -> None:
    from transformers import AutoTokenizer

    plain = AutoTokenizer.from_pretrained(tiny_gpt2)
    assert plain.pad_token is None
    ours = load(store, tiny_gpt2, "language model").tokenizer
    for text in ("Hello!", "!", "a <|endoftext|> b", "12:30 café 🙂"):
        assert ours(text).input_ids == plain(text).input_ids


def test_no_end_token_still_means_a_padding_token(store: Store, tiny_gpt2: Path, copy) -> None:
    folder = copy(tiny_gpt2)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    for token in ("bos_token", "eos_token", "unk_token"):
        settings.pop(token)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    backbone = load(store, folder, "language model")
    assert backbone.tokenizer.pad_token_id == 0
    assert len(backbone.tokenizer) == backbone.model.config.vocab_size


def test_dtype_is_as_asked(store: Store, tiny_llama: Path) -> None:
    assert load(store, tiny_llama, "language model", torch.bfloat16).model.dtype == torch.bfloat16


def test_fixed_padding_and_truncation_of_a_tokenizer_are_lifted(
    store: Store, tiny_bert: Path, copy
) -> None:
    folder = copy(tiny_bert)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["truncation"] = {
        "max_length": 4,
        "strategy": "LongestFirst",
        "stride": 0,
        "direction": "Right",
    }
    tokenizer["padding"] = {
        "strategy": {"Fixed": 4},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    backend = load(store, folder, "encoder").tokenizer.backend_tokenizer
    assert len(backend.encode("do you like music and pizza and books").ids) > 4
    assert len(backend.encode("hello").ids) < 4 or 0 not in backend.encode("hello").ids


def test_the_length_an_encoder_was_made_for_limits_its_window(
    store: Store, tiny_bert: Path, copy
) -> None:
    folder = copy(tiny_bert)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 48}')
    assert load(store, folder, "encoder").window == 48


@pytest.mark.parametrize("kind", ["Roberta", "MPNet"])
def test_some_networks_keep_positions_for_themselves(
    store: Store, tiny_bert: Path, tmp_path: Path, kind: str
) -> None:
    import transformers
    from transformers import AutoTokenizer

    folder = tmp_path / kind
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=400,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=42,
        pad_token_id=1,
    )
    getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(folder)
    backbone = load(store, folder, "encoder")
    assert backbone.window == 40
    full = torch.full((1, 40), 7)
    assert backbone.model(input_ids=full).last_hidden_state.isfinite().all()
    with pytest.raises((IndexError, RuntimeError)):  # one more does not fit
        backbone.model(input_ids=torch.full((1, 41), 7))


def test_a_model_of_the_other_kind(store: Store, tiny_bert: Path, tiny_gpt2: Path) -> None:
    assert "type bert, not a language model" in refusal(store, tiny_bert, "language model")
    assert "type gpt2, not an encoder" in refusal(store, tiny_gpt2, "encoder")


def test_missing_weights_are_not_made_up(store: Store, tiny_gpt2: Path, copy) -> None:
    folder = copy(tiny_gpt2)
    weights = load_file(folder / "model.safetensors")
    del weights["transformer.h.1.mlp.c_fc.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "transformer.h.1.mlp.c_fc.weight" in refusal(store, folder, "language model")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"garbage"),
        ("model.safetensors", b""),
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "no-such-type"}'),
        ("config.json", None),
        ("tokenizer.json", b"{}"),
    ],
)
def test_a_damaged_folder_is_one_clear_sentence(
    store: Store, tiny_gpt2: Path, copy, file: str, content: bytes | None
) -> None:
    folder = copy(tiny_gpt2)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    assert "cannot be loaded as a language model" in refusal(store, folder, "language model")


def test_code_in_a_folder_is_never_run(store: Store, tiny_gpt2: Path, copy) -> None:
    folder = copy(tiny_gpt2)
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "mine"
    config["auto_map"] = {
        "AutoConfig": "mine.Config",
        "AutoModelForCausalLM": "mine.Model",
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    refusal(store, folder, "language model")
    assert not (folder / "ran").exists()


def test_offline_loading_opens_no_connection_and_says_nothing(
    store: Store,
    tiny_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    attempts: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        attempts.append(arguments)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("causerie.progress.print", lambda *_, **__: None, raising=False)
    load(store, tiny_llama, "language model")
    assert attempts == []
    assert capfd.readouterr() == ("", "")


def test_two_threads_leave_the_libraries_as_they_were() -> None:
    """A setting changed by one thread must not be restored as the default by the other."""
    import logging

    from huggingface_hub import constants

    from causerie.models.libraries import libraries

    def state() -> tuple[object, ...]:
        names = ("transformers", "huggingface_hub")
        return constants.HF_HUB_OFFLINE, *(logging.getLogger(name).level for name in names)

    before, first_is_in, first_is_out = state(), threading.Event(), threading.Event()

    def second() -> None:
        first_is_in.wait(10)
        with libraries(offline=True):
            first_is_out.wait(1)

    other = threading.Thread(target=second)
    other.start()
    with libraries(offline=True):
        first_is_in.set()
        time.sleep(0.2)  # in which the other would be in, too, if it could
    first_is_out.set()
    other.join(10)
    assert state() == before
