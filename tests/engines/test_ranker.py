"""Rankers against the network asked for one response at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from causerie import CauserieError, Dialogue, Engines, Settings, Turn
from causerie.dialogue import Exchange
from causerie.engines import counted_cuts

TALK = Dialogue(
    "d",
    (
        Turn("user", "Do you like music?"),
        Turn("bot", "I have been learning the guitar."),
        Turn("user", "Really? <|endoftext|>"),
        Turn("bot", "Tell me more about it!"),
    ),
)


@pytest.fixture(scope="module")
def engines() -> Engines:
    return Engines(Settings(device="cpu"))


def one_by_one(folder: Path, turns: list[str]) -> float:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    ids: list[int] = []
    for text in turns:
        plain = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        ids += [*([tokenizer.eos_token_id] if ids else []), *plain]
    with torch.inference_mode():
        hidden = model.transformer(torch.tensor([ids])).last_hidden_state
        return float(torch.sigmoid(model.score(hidden[0, -1])))


def test_batches_equal_one_by_one(engines: Engines, tiny_ranker: Path) -> None:
    texts = [turn.text for turn in TALK.turns]
    exchanges = [Exchange(TALK, turn) for turn in (3, 1, 2)]
    expected = [one_by_one(tiny_ranker, texts[: turn + 1]) for turn in (3, 1, 2)]
    ranker = engines.ranker(str(tiny_ranker))
    np.testing.assert_allclose(ranker.score(exchanges), expected, rtol=1e-4)
    assert len({round(value, 4) for value in expected}) == 3
    ranker._budget = 1  # every exchange by itself
    np.testing.assert_allclose(ranker.score(exchanges), expected, rtol=1e-4)
    assert engines.ranker(str(tiny_ranker)) is ranker
    assert ranker.score([]).shape == (0,)


def test_the_oldest_turns_give_way(engines: Engines, tiny_ranker: Path) -> None:
    long = Dialogue("d", (Turn("user", "music " * 200), *TALK.turns))
    ranker = engines.ranker(str(tiny_ranker))
    with counted_cuts() as cuts:
        (found,) = ranker.score([Exchange(long, 4)])
        (short,) = ranker.score([Exchange(TALK, 3)])
    assert found == pytest.approx(short, rel=1e-4)
    assert cuts["ranker"] == (1, 2)


def test_other_networks_are_refused(engines: Engines, tiny_gpt2: Path) -> None:
    with pytest.raises(CauserieError, match="not a ranker: use one like DialogRPT"):
        engines.ranker(str(tiny_gpt2))
    with pytest.raises(CauserieError, match="no ranker has a name here"):
        engines.ranker("there/is/none")
