"""The BERT that runs without transformers, compared with the one of transformers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causerie.engines.encoder import Encoder
from causerie.engines.settings import Settings
from causerie.models import Store, load_backbone
from causerie.models.bert import Bert, PlainTokenizer, is_plain_bert
from causerie.models.folder import ModelFiles

WORDS = [
    "hi",
    "there",
    "music",
    "[SEP]",
    "[CLS]",
    "ok?",
    "naïve",
    "今天",
    "👋🏽",
    "",
    "a b c " * 40,
]


def encoders(folder: Path, dtype: str = "float32") -> tuple[Encoder, Encoder]:
    """Load the network for scoring and, with transformers, for training."""
    settings = Settings(encoder=str(folder), device="cpu", dtype=dtype)
    store = Store()
    plain, known = (Encoder.load(store, settings, trainable=t) for t in (False, True))
    assert isinstance(plain.model, Bert)
    assert type(known.model).__module__.startswith("transformers")
    return plain, known


@pytest.fixture(scope="module")
def both(tiny_bert: Path) -> tuple[Encoder, Encoder]:
    return encoders(tiny_bert)


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=1, max_size=6))
def test_vectors_equal_those_of_transformers(
    both: tuple[Encoder, Encoder], texts: list[tuple[str, str]]
) -> None:
    inputs = [((a,), (b,)) for a, b in texts]
    plain, known = (encoder.encode(inputs) for encoder in both)
    np.testing.assert_allclose(plain, known, rtol=1e-5, atol=1e-6)


@given(st.lists(st.text(max_size=60), max_size=5))
def test_tokens_equal_those_of_transformers(
    both: tuple[Encoder, Encoder], texts: list[str]
) -> None:
    plain, known = (encoder.input.rows([((t,),) for t in texts]) for encoder in both)
    assert [row.ids.tolist() for row in plain] == [row.ids.tolist() for row in known]
    assert [row.special.tolist() for row in plain] == [row.special.tolist() for row in known]


def test_windows_and_padding_equal_those_of_transformers(both: tuple[Encoder, Encoder]) -> None:
    plain, known = both
    assert plain.input.window == known.input.window
    assert plain.input.tokenizer.pad_token_id == known.input.tokenizer.pad_token_id


def test_another_precision(tiny_bert: Path) -> None:
    plain, known = encoders(tiny_bert, "bfloat16")
    inputs = [(("hi there",),), (("music",), ("ok?",))]
    assert plain.model.dtype == torch.bfloat16
    np.testing.assert_allclose(plain.encode(inputs), known.encode(inputs), atol=0.05)


def test_what_is_no_plain_bert_is_left_to_transformers(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "relu"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    assert is_plain_bert(ModelFiles.listed(tiny_bert))
    assert not is_plain_bert(ModelFiles.listed(folder))
    loaded = load_backbone(
        Store(), str(folder), "encoder", dtype=torch.float32, device=torch.device("cpu"),
        trainable=False,
    )  # fmt: skip
    assert not isinstance(loaded.model, Bert)


def test_a_limit_of_the_tokenizer_is_kept(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(tiny_bert, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 16}))
    assert PlainTokenizer(ModelFiles.listed(folder)).model_max_length == 16


def test_scoring_with_a_plain_bert_does_not_import_transformers(tiny_bert: Path) -> None:
    code = (
        "import sys; from causerie.scoring.scorer import load; from causerie.engines import "
        "Settings; from causerie.dialogue import Dialogue, Turn; "
        f"load('cosine', Settings(encoder={str(tiny_bert)!r})).score("
        "Dialogue('d', (Turn('a', 'hi'), Turn('b', 'ok')))); "
        "print('transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.usefixtures("default_models")
@pytest.mark.parametrize("metric", ["cosine", "density"])
def test_scoring_with_what_ships_does_not_import_transformers(metric: str) -> None:
    code = (
        "import sys, causerie; "
        f"causerie.evaluate(['hi there', 'hello, how are you?'], {metric!r}); "
        "print('transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
