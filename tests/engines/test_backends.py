"""Encoders through oneDNN against torch's own forward pass, and how a backend is chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from causerie import evaluate
from causerie.engines import Engines, Settings, backends, onednn
from causerie.engines.encoder import Encoder
from causerie.engines.onednn import BLOCK, streams
from causerie.errors import CauserieError
from causerie.models import Store

WORDS = sorted({word for line in tiny.CORPUS for word in line.split()})
TURN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
SEGMENT = st.lists(TURN, min_size=0, max_size=3).map(tuple)
INPUT = st.lists(SEGMENT, min_size=1, max_size=3).map(tuple)

CLOSE = {"onednn": 1e-5, "onednn-bf16": 0.05}
"""How far vectors may be from torch's, relative to their length."""

pytestmark = pytest.mark.skipif(not onednn.usable(torch.float32), reason="this torch has no oneDNN")


@pytest.fixture(scope="module", params=sorted(CLOSE))
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "onednn-bf16" and not onednn.usable(torch.bfloat16):
        pytest.skip("this processor has no instructions for bfloat16")
    return str(request.param)


@pytest.fixture(scope="module")
def tiny_mpnet(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an MPNet-like encoder: no token types, attention knows how far tokens are apart."""
    from transformers import MPNetConfig, MPNetModel

    return make(MPNetModel, MPNetConfig, tiny_bert, tmp_path_factory.mktemp("models") / "mpnet")


def make(architecture, config, tokens: Path, folder: Path, **other) -> Path:
    """A tiny network with the tokenizer of another."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tokens)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 66,
        "initializer_range": 0.3,
    }
    torch.manual_seed(0)
    architecture(config(**{**sizes, **other})).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["bert", "bert of transformers", "mpnet"])
def plain(request: pytest.FixtureRequest, tiny_bert: Path, tiny_mpnet: Path) -> Encoder:
    """An encoder that torch computes."""
    folder = tiny_mpnet if request.param == "mpnet" else tiny_bert
    return load(folder, trainable="transformers" in request.param)


def load(folder: Path, *, trainable: bool = False) -> Encoder:
    store = Store(offline=True)
    return Encoder.load(store, Settings(encoder=str(folder)), trainable=trainable)


def quick(plain: Encoder, backend: str, budget: int | None = None) -> Encoder:
    """The same encoder with another backend, and nothing remembered."""
    made = plain.as_now()
    made._budget = budget or made._budget
    made.compute_with(backend)
    return made


def far(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1)))


@settings(max_examples=15)
@given(inputs=st.lists(INPUT, min_size=1, max_size=12), pooling=st.sampled_from(["mean", "first"]))
def test_vectors_are_those_of_torch(plain: Encoder, backend: str, inputs, pooling: str) -> None:
    found = quick(plain, backend).encode(inputs, pooling)
    assert found.dtype == np.float32
    assert far(found, plain.as_now().encode(inputs, pooling)) < CLOSE[backend]


@settings(max_examples=15)
@given(data=st.data())
def test_a_text_has_the_same_bytes_whatever_passes_with_it(
    plain: Encoder, backend: str, data: st.DataObject
) -> None:
    inputs = data.draw(st.lists(INPUT, min_size=2, max_size=30))
    order = data.draw(st.permutations(range(len(inputs))))
    budget = data.draw(st.integers(1, 2000))
    one_by_one = quick(plain, backend)
    alone = np.concatenate([one_by_one.encode([i]) for i in inputs])
    together = quick(plain, backend, budget).encode([inputs[i] for i in order])
    np.testing.assert_array_equal(together, alone[order])


def test_a_text_has_the_same_bytes_in_one_thread_and_in_two(plain: Encoder, backend: str) -> None:
    inputs = [((" ".join(WORDS[i : i + n]),),) for n in (1, 3, 8, 20) for i in range(0, 60, 3)]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(quick(plain, backend).encode(inputs))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_vectors_of_tokens(plain: Encoder, backend: str) -> None:
    inputs = [((text,),) for text in (*tiny.CORPUS, "hello", tiny.CORPUS[0])]
    made = quick(plain, backend, budget=64)
    for one, expected in zip(made.tokens(inputs), plain.as_now().tokens(inputs), strict=True):
        np.testing.assert_array_equal(one.ids, expected.ids)
        assert one.vectors.shape == expected.vectors.shape
        assert far(one.vectors, expected.vectors) < CLOSE[backend]
    words, expected_words = (list(e.word_vectors(["hello music"])) for e in (made, plain))
    np.testing.assert_array_equal(words, expected_words)


@given(lengths=st.lists(st.integers(1, 64), max_size=60), budget=st.integers(1, 3 * BLOCK))
def test_streams_hold_every_row_once(lengths: list[int], budget: int) -> None:
    found = list(streams(lengths, budget))
    assert sorted(place for stream in found for place in stream) == list(range(len(lengths)))
    for stream in found:
        assert len(stream) == 1 or sum(lengths[place] for place in stream) <= budget


def test_the_backend_is_in_the_signature(tiny_bert: Path, backend: str) -> None:
    usual = Engines(Settings(encoder=str(tiny_bert)))
    other = Engines(Settings(encoder=str(tiny_bert), backend=backend))
    said = usual.signature("encoder")
    assert said.endswith(",float32")
    assert other.signature("encoder") == said.removesuffix("float32") + backend
    assert other.signature("language model") == usual.signature("language model")
    vectors = [engines.encoder.encode([(("hello",),)]) for engines in (usual, other)]
    assert 0 < far(*vectors) < CLOSE[backend]


def test_what_is_to_be_trained_is_torch_s(tiny_bert: Path, backend: str) -> None:
    made = Engines(Settings(encoder=str(tiny_bert), backend=backend)).new_encoder()
    assert isinstance(made.model, torch.nn.Module)


@pytest.fixture
def store_of(tmp_path: Path, tiny_bert: Path):
    """What makes settings with a model store of their own."""
    return lambda encoder=tiny_bert: Settings(
        encoder=str(encoder), backend="auto", models_dir=tmp_path / "models", threads=1
    )


def test_auto_is_settled_once(
    store_of, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "WORTHWHILE", 0.0)
    monkeypatch.setattr(backends, "NEAREST", {"onednn": 0.9999, "onednn-bf16": 2.0})
    engines = Engines(store_of())
    assert engines.signature("encoder").endswith(",onednn")
    assert isinstance(engines.encoder.model, onednn.OneDnn)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("causerie: --backend auto: onednn (")
    kept = json.loads((store_of().models_dir / backends.KEPT).read_text())
    assert list(kept.values()) == [["onednn", "onednn"]]
    assert f"torch {torch.__version__}" in next(iter(kept))

    monkeypatch.setattr(backends, "_chosen", None)
    assert Engines(store_of()).signature("encoder").endswith(",onednn")
    assert capsys.readouterr().err == ""


def test_auto_leaves_what_is_wrong_or_no_quicker(store_of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "WORTHWHILE", 1e6)
    assert Engines(store_of()).backend() == "torch"
    (store_of().models_dir / backends.KEPT).write_text("nonsense")
    monkeypatch.setattr(backends, "WORTHWHILE", 0.0)
    monkeypatch.setattr(onednn.Linear, "plus", lambda self, block, other: other)
    assert Engines(store_of()).backend() == "torch"


def test_auto_wants_the_same_bytes_alone(store_of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "WORTHWHILE", 0.0)
    original = onednn.OneDnn._hidden

    def depends(self, rows, groups):
        return original(self, rows, groups) * (1 + 1e-6 * len(rows))

    monkeypatch.setattr(onednn.OneDnn, "_hidden", depends)
    assert Engines(store_of()).backend() == "torch"


def test_a_network_that_is_not_supported(
    store_of, tiny_bert: Path, tmp_path: Path, backend: str
) -> None:
    from transformers import BertConfig, BertModel

    folder = make(BertModel, BertConfig, tiny_bert, tmp_path / "relu", hidden_act="relu")
    with pytest.raises(CauserieError, match=rf"--backend {backend} computes .* or use .*auto"):
        _ = Engines(Settings(encoder=str(folder), backend=backend)).encoder
    engines = Engines(store_of(folder))
    assert engines.signature("encoder").endswith(",float32")
    assert engines.encoder.encode([(("hello",),)]).shape == (1, 48)


def test_a_torch_without_onednn(
    store_of, tiny_bert: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn, "usable", lambda dtype: False)
    with pytest.raises(CauserieError, match=r"cannot compute with oneDNN.* or use --backend auto"):
        _ = Engines(Settings(encoder=str(tiny_bert), backend=backend)).encoder
    assert Engines(store_of()).backend() == "torch"


@pytest.mark.parametrize("missing", ["build", "operation"])
def test_what_is_usable(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "build":
        monkeypatch.setattr(torch._C, "_has_mkldnn", False)
    else:
        monkeypatch.setattr(onednn.Linear, "plus", lambda *_: torch.ops.mkldnn._no_such_thing)
    assert not onednn.usable.__wrapped__(torch.float32)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"backend": "onnx"}, "unknown backend 'onnx': use torch, onednn, onednn-bf16 or auto"),
        ({"backend": "onednn", "dtype": "bfloat16"}, "leave out --device and --dtype"),
        ({"backend": "onednn-bf16", "device": "cuda"}, "leave out --device and --dtype"),
    ],
)
def test_settings_that_do_not_fit(chosen: dict[str, str], told: str) -> None:
    with pytest.raises(CauserieError, match=told):
        Settings(**chosen)


@pytest.mark.usefixtures("default_models")
def test_scores_of_the_metrics_that_ship(backend: str) -> None:
    dialogue = [text for text in tiny.CORPUS if text.isascii()]
    metrics = "density,causalscore,grade,cosine,length"
    torch_s, ours, float32 = (
        evaluate(dialogue, metrics, speaker="all", settings=Settings(backend=name))
        for name in ("torch", backend, "onednn")
    )
    for column, most in (("density", 0.05), ("grade", 0.05), ("causalscore", 1e-4)):
        expected = np.array(torch_s[column].to_pylist()[1:])
        apart = np.abs(np.array(ours[column].to_pylist()[1:]) - expected).max()
        assert apart < most * expected.std(), column
    assert ours["length"] == torch_s["length"]
    assert ours["causalscore"] == float32["causalscore"]
    parts = {part.partition("@")[0]: part for part in ours.signature.split()}
    assert parts["density"].endswith(f"|{backend}")
    assert parts["causalscore"].endswith("|onednn")
    assert all(part.rpartition("|")[2] == "float32" for part in torch_s.signature.split()[1:4])
