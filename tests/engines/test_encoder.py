"""The encoder engine against the plain use of tokenizer and network, one input at a time."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from causerie.engines import Engines, Settings
from causerie.engines.encoder import Encoder
from causerie.errors import CauserieError
from causerie.models import Backbone, Store, load_backbone

WORDS = sorted({word for line in tiny.CORPUS for word in line.split()})
TURN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
SEGMENT = st.lists(TURN, min_size=1, max_size=3).map(tuple)
INPUT = st.lists(SEGMENT, min_size=1, max_size=2).map(tuple)


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Backbone:
    store = Store(offline=True)
    return load_backbone(store, str(folder), "encoder", dtype=dtype, device=torch.device("cpu"))


def make_roberta(folder: Path) -> Path:
    """No token types, spaces belong to tokens, two separators, positions from 2 on."""
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = Tokenizer(BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    pieces.train_from_iterator(tiny.CORPUS, trainer)
    pieces.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), False, False)
    named = dict(
        zip(
            ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token"), special, strict=True
        )
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces, bos_token="<s>", eos_token="</s>", model_max_length=64, **named
    )
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=66,
        type_vocab_size=1,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    RobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tiny_bert: Path) -> Backbone:
    return load(tiny_bert)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    return load(make_roberta(tmp_path_factory.mktemp("models") / "tiny-roberta"))


@pytest.fixture(scope="module", params=["bert", "roberta"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    found: Backbone = request.getfixturevalue(request.param)
    return found


def plainly(backbone: Backbone, segments, pooling: str) -> np.ndarray:
    """Joined by hand, tokenised by the tokenizer, alone in its batch."""
    texts = [" ".join(turns) for turns in segments]
    batch = backbone.tokenizer(*texts, return_tensors="pt")
    assert batch["input_ids"].shape[1] <= backbone.window
    if backbone.model.config.type_vocab_size == 1:
        batch.pop("token_type_ids", None)
    with torch.no_grad():
        hidden = backbone.model(**batch).last_hidden_state[0].numpy()
    return hidden.mean(axis=0) if pooling == "mean" else hidden[0]


def far(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1)))


@settings(max_examples=40)
@given(
    inputs=st.lists(
        INPUT.filter(lambda i: sum(len(t) for s in i for t in s) < 56), min_size=1, max_size=12
    ),
    budget=st.integers(1, 400),
    pooling=st.sampled_from(["mean", "first"]),
)
def test_equals_one_by_one(backbone: Backbone, inputs, budget: int, pooling: str) -> None:
    vectors = Encoder(backbone, budget).encode(inputs, pooling)
    assert vectors.dtype == np.float32
    assert far(vectors, np.array([plainly(backbone, i, pooling) for i in inputs])) < 1e-5


@settings(max_examples=40)
@given(data=st.data())
def test_long_inputs_do_not_depend_on_batch_or_order(bert: Backbone, data: st.DataObject) -> None:
    segment = st.lists(TURN, min_size=0, max_size=9).map(tuple)
    one = st.lists(segment, min_size=1, max_size=3).map(tuple)
    inputs = data.draw(st.lists(one, min_size=2, max_size=10))
    shuffled = data.draw(st.permutations(range(len(inputs))))
    budget = data.draw(st.integers(1, 1000))
    alone = np.concatenate([Encoder(bert).encode([i]) for i in inputs])
    together = Encoder(bert, budget).encode([inputs[i] for i in shuffled])
    assert far(together, alone[shuffled]) < 1e-5


def test_pooling_is_by_default_the_backbones(bert: Backbone) -> None:
    inputs = [(("hello there",), ("how are you",))]
    first = Encoder(replace(bert, pooling="first"))
    np.testing.assert_array_equal(first.encode(inputs), Encoder(bert).encode(inputs, "first"))
    assert far(first.encode(inputs), Encoder(bert).encode(inputs, "mean")) > 0.01
    with pytest.raises(CauserieError, match="unknown pooling 'max'"):
        first.encode(inputs, "max")


def test_pooling_of_a_sentence_transformers_folder(tiny_bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_bert, tmp_path / "sentences")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')
    inputs = [(("hello there",), ("how are you",))]
    found = Engines(Settings(encoder=str(folder))).encoder.encode(inputs)
    assert far(found, plainly(load(tiny_bert), inputs[0], "first")[None]) < 1e-5


def test_three_segments(bert: Backbone) -> None:
    """Every separator of a pair is repeated, and only the last segment has type 1."""
    (row,) = Encoder(bert).input.rows([(("hello",), ("music", "film"), ("pizza",))])
    tokens = bert.tokenizer.convert_ids_to_tokens(row.ids.tolist())
    text = bert.tokenizer.tokenize("music film")
    first, last = bert.tokenizer.tokenize("hello"), bert.tokenizer.tokenize("pizza")
    assert tokens == ["[CLS]", *first, "[SEP]", *text, "[SEP]", *last, "[SEP]"]
    types = Encoder(bert).input.collate([row])["token_type_ids"][0].tolist()
    assert types == [0] * (len(tokens) - len(last) - 1) + [1] * (len(last) + 1)


def test_nothing_is_computed_twice(bert: Backbone) -> None:
    computed = 0

    def count(module, arguments, keywords, output) -> None:
        nonlocal computed
        # A row of one token is there for the shape of the pass.
        computed += int((keywords["attention_mask"].sum(1) > 1).sum())

    encoder = Encoder(bert, budget=16)
    hook = bert.model.register_forward_hook(count, with_kwargs=True)
    try:
        a, b, c = (("hello",), ("you",)), (("hello",), ("music",)), (("pizza",),)
        first = encoder.encode([a, b, a, a])
        assert computed == 2
        again = encoder.encode([b, c, a])
        assert computed == 3
        encoder.encode([a], "first")
        assert computed == 4
        list(encoder.tokens([c, c, a]))
        assert computed == 6
    finally:
        hook.remove()
    np.testing.assert_array_equal(again[[2, 0, 2, 2]], first)


def test_special_tokens_in_a_text_are_text(backbone: Backbone) -> None:
    encoder = Encoder(backbone)
    special = backbone.tokenizer.all_special_tokens
    (row,) = encoder.input.rows([(("hello",), (" ".join(["hi", *special, "hi"]),))])
    (plain,) = encoder.input.rows([(("hello",), ("hi",))])
    own = set(backbone.tokenizer.all_special_ids) - {backbone.tokenizer.unk_token_id}
    assert [i for i in row.ids if i in own] == [i for i in plain.ids if i in own]
    assert row.special.sum() == plain.special.sum() < len(row.ids)


def test_token_vectors(backbone: Backbone) -> None:
    texts = [*tiny.CORPUS[:5], "hello", tiny.CORPUS[0]]
    # So small a budget that vectors are made in several parts.
    found = list(Encoder(backbone, budget=1).tokens([((text,),) for text in texts]))
    assert len(found) == len(texts)
    for text, tokens in zip(texts, found, strict=True):
        batch = backbone.tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = batch.pop("special_tokens_mask")[0].numpy()
        with torch.no_grad():
            hidden = backbone.model(**batch).last_hidden_state[0].numpy()
        assert tokens.ids.tolist() == batch["input_ids"][0].tolist()
        assert tokens.special.tolist() == special.astype(bool).tolist()
        assert far(tokens.vectors, hidden) < 1e-5


def test_word_vectors_are_the_input_embeddings(bert: Backbone) -> None:
    one, none, two = Encoder(bert).word_vectors(["hello", "", "hello hello"])
    weights = bert.model.embeddings.word_embeddings.weight.detach().numpy()
    ids = bert.tokenizer("hello", add_special_tokens=False)["input_ids"]
    np.testing.assert_array_equal(one, weights[ids])
    np.testing.assert_array_equal(two, weights[ids + ids])
    assert none.shape == (0, 48)


@pytest.mark.parametrize("text", ["", " ", "日本語 שלום 🙂", "\x00", "a\ud800b", "e\u0301"])
def test_any_text_has_a_vector(backbone: Backbone, text: str) -> None:
    vectors = Encoder(backbone).encode([((text,),), ((), (text,)), ((), ())])
    assert np.isfinite(vectors).all()


def test_no_inputs(bert: Backbone) -> None:
    encoder = Encoder(bert)
    assert encoder.encode([]).shape == (0, encoder.dimension) == (0, 48)
    assert list(encoder.tokens([])) == []
    assert list(encoder.word_vectors([])) == []


def test_settings(tiny_bert: Path) -> None:
    engines = Engines(Settings(encoder=str(tiny_bert), dtype="bfloat16", device="cpu"))
    exact = Engines(Settings(encoder=str(tiny_bert), device="cpu"))
    inputs = [(("hello there",), ("how are you",))]
    vectors = engines.encoder.encode(inputs)
    assert engines.encoder.model.dtype == torch.bfloat16
    assert vectors.dtype == np.float32
    assert 0 < far(vectors, exact.encoder.encode(inputs)) < 0.1
    assert engines.signature("encoder") != exact.signature("encoder")
    other = Engines(Settings(encoder=str(tiny_bert), device="cpu"))
    assert exact.signature("encoder") == other.signature("encoder")
    digest = exact.store.identify(str(tiny_bert), "encoder").digest
    assert exact.signature("encoder") == f"encoder:tiny-bert@{digest[:12]},float32"


def test_files_beside_the_weights_are_in_the_signature(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tiny-bert"
    shutil.copytree(tiny_bert, folder)
    before = Engines(Settings(encoder=str(folder))).signature("encoder")
    assert before == Engines(Settings(encoder=str(tiny_bert))).signature("encoder")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 9}))
    assert Engines(Settings(encoder=str(folder))).signature("encoder") != before


@pytest.mark.default_models
def test_default_encoder_equals_one_by_one(default_models: Store) -> None:
    encoder = Engines(Settings()).encoder
    backbone = load("default")
    texts = tiny.CORPUS
    inputs = [((text,),) for text in texts]
    inputs += [((texts[n - 2], texts[n - 1]), (texts[n],)) for n in range(2, len(texts))]
    inputs += [((" ".join(texts[:9]),), (texts[9],))]
    for pooling in ("mean", "first"):
        expected = np.array([plainly(backbone, i, pooling) for i in inputs])
        assert far(encoder.encode(inputs, pooling), expected) < 1e-5
        shuffled = np.random.default_rng(0).permutation(len(inputs))
        small = Encoder(backbone, budget=100).encode([inputs[i] for i in shuffled], pooling)
        assert far(small, expected[shuffled]) < 1e-5
