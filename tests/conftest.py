"""Fixtures shared by all rooms: tiny networks made on the spot, and the default weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tiny

if TYPE_CHECKING:
    from causerie.models import Store


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a GPT-2-like language model (window 128)."""
    return tiny.make_gpt2(tmp_path_factory.mktemp("models") / "tiny-gpt2")


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Llama-like language model with a chat template (window 256)."""
    return tiny.make_llama(tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a BERT-like encoder (window 64)."""
    return tiny.make_bert(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def default_models() -> Store:
    """A store that holds both default models, fetched if need be."""
    from causerie.errors import CauserieError
    from causerie.models import Store

    store = Store()
    try:
        for kind in ("encoder", "language model"):
            store.resolve("default", kind)
    except CauserieError as error:
        pytest.skip(f"the default weights are neither in the store nor fetchable: {error}")
    return store
