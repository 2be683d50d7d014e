"""How a reply is read: against a plain forward pass, and the same with any number of threads."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from causerie.dialogue import Dialogue
from causerie.engines import Engines, Settings, used_threads
from causerie.engines.likelihood import Likelihood
from causerie.engines.reading import Reading, read_replies

TALK = Dialogue.from_texts(
    [
        "Do you like music?",
        "I play the guitar, and the piano on Sundays.",
        "Really?",
        "Yes. " * 12,
        "שלום, 🙂!",
    ]
)
EXCHANGES = list(TALK.exchanges())


@pytest.fixture
def engine(tiny_llama: Path) -> Likelihood:
    return Engines(Settings(lm=str(tiny_llama), offline=True)).likelihood


@pytest.mark.parametrize("turns", [0, 4])
def test_every_token_of_a_reply_is_read(engine: Likelihood, turns: int) -> None:
    model = engine.backbone.model
    for exchange, read in zip(
        EXCHANGES, read_replies(engine, EXCHANGES, turns, [1, 2]), strict=True
    ):
        ids: list[int] = [*engine.format.prefix]
        said = (
            [*exchange.recent(turns).context, exchange.response] if turns else [exchange.response]
        )
        for before, turn in zip([None, *said], said, strict=False):
            after = exchange.role_of(before) if before else None
            segment = engine.format.segment(exchange.role_of(turn), turn.text, after=after)
            start, stop = len(ids) + segment.start, len(ids) + segment.stop
            ids += segment.tokens
        with torch.inference_mode():
            found = model(torch.tensor([ids]), output_hidden_states=True)
        spread = found.logits[0, start - 1 : stop - 1].log_softmax(-1)
        expected = spread.gather(1, torch.tensor(ids[start:stop])[:, None])[:, 0]
        entropies = torch.distributions.Categorical(logits=spread).entropy()
        assert read.log_probs == pytest.approx(expected.numpy(), rel=1e-4)
        assert read.entropies == pytest.approx(entropies.numpy(), rel=1e-4)
        for layer, state in zip([1, 2], read.layers, strict=True):
            mean = found.hidden_states[layer][0, start:stop].mean(0).numpy()
            assert state == pytest.approx(mean, rel=1e-3, abs=1e-4)


def test_what_is_read_does_not_depend_on_threads(engine: Likelihood) -> None:
    """In a network of an ordinary width, where threads share out the rows of a product."""
    config = copy.deepcopy(engine.backbone.model.config)
    config.hidden_size, config.intermediate_size, config.head_dim = 576, 1536, 64
    config.num_attention_heads, config.num_key_value_heads = 9, 3
    torch.manual_seed(0)
    engine.backbone = replace(engine.backbone, model=LlamaForCausalLM(config).eval())

    def read(threads: int) -> list[bytes]:
        with used_threads(threads):
            readings = [one for turns in (0, 4) for one in read_replies(engine, EXCHANGES, turns)]
        return [part for one in readings for part in written(one)]

    expected = read(1)
    assert np.unique(expected).size > 1
    for threads in (2, 3):
        assert read(threads) == expected


def written(one: Reading) -> tuple[bytes, bytes]:
    return one.log_probs.tobytes(), one.entropies.tobytes()
