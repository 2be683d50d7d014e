"""Architectures for which packed passes are wrong, or right only up to a length."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from causerie.engines.likelihood import Likelihood
from causerie.engines.selfcheck import packable
from causerie.engines.tree import Segment, Tree
from causerie.errors import CauserieError
from engines.oracle import Network, agrees, one_by_one, path_of, trees

WINDOW = 96
NEAR = 8
"""How far back the layers look that do not see everything."""

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": WINDOW,
    "initializer_range": 0.3,
}
MISTRAL = ("Mistral", SIZES | {"sliding_window": NEAR})
GEMMA = ("Gemma2", SIZES | {"head_dim": 8, "sliding_window": NEAR})
LLAMA = ("Llama", SIZES)
NEO = (
    "GPTNeo",
    {
        "hidden_size": 32,
        "num_layers": 2,
        "attention_types": [[["global", "local"], 1]],
        "num_heads": 4,
        "window_size": NEAR,
        "max_position_embeddings": WINDOW,
        "initializer_range": 0.3,
    },
)
MPT = ("Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "initializer_range": 0.3})
BLOOM = ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3})
MAMBA = ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4})

Architecture = tuple[str, dict[str, Any]]
Make = Callable[[Architecture], Network]


@pytest.fixture(scope="module")
def make(tiny_gpt2) -> Make:
    tokenizer = AutoTokenizer.from_pretrained(tiny_gpt2)

    def make(architecture: Architecture) -> Network:
        name, sizes = architecture
        special = dict.fromkeys(("bos_token_id", "eos_token_id"), tokenizer.eos_token_id)
        config = getattr(transformers, f"{name}Config")(
            vocab_size=len(tokenizer), **special, **sizes
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
        return Network(name, "0" * 64, model, tokenizer, WINDOW)

    return make


@pytest.mark.parametrize(
    ("architecture", "longest"),
    [
        (LLAMA, WINDOW),
        (MISTRAL, NEAR),
        (GEMMA, NEAR),
        (NEO, 0),
        (MPT, 0),
        (BLOOM, 0),
        (MAMBA, 0),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_what_may_be_packed(make: Make, architecture: Architecture, longest: int) -> None:
    assert packable(make(architecture)) == longest


@settings(max_examples=15)
@given(tree=trees(longest=12, nodes=12), budget=st.integers(1, 60))
@pytest.mark.parametrize("architecture", [MISTRAL, GEMMA, NEO, MPT, BLOOM], ids=lambda a: a[0])
@pytest.mark.filterwarnings("ignore:.*scored separately")
def test_equals_one_by_one(make: Make, architecture: Architecture, tree: Tree, budget: int) -> None:
    network = make(architecture)
    engine = Likelihood(network, budget=budget)
    nodes = range(1, len(tree))
    scores = engine.score(tree, segments=nodes)
    for node in nodes:
        agrees(scores.segment(node), one_by_one(network, tree.prefix, path_of(tree, node))[-1])


def conversation(lengths: list[int]) -> tuple[Tree, list[int]]:
    draw = random.Random(0)
    tree, nodes = Tree((1,)), [Tree.ROOT]
    for length in lengths:
        nodes.append(tree.add(nodes[-1], Segment.of(draw.randrange(2, 300) for _ in range(length))))
    return tree, nodes[1:]


def test_it_says_so_once_where_nothing_can_be_packed(make: Make) -> None:
    tree, nodes = conversation([5, 6, 7])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        engine = Likelihood(make(BLOOM))
        engine.score(tree, segments=nodes)
    assert [str(one.message) for one in told] == [
        "Bloom cannot be used with packed passes: every text is scored separately, which is slower"
    ]
    # One sequence holds all three; its last token is only predicted.
    assert engine.tokens_computed == 1 + 5 + 6 + 7 - 1


def test_commands_show_it_as_one_line() -> None:
    code = (
        "import warnings; from causerie import cli; from causerie.errors import CauserieWarning\n"
        "cli.app = lambda **_: warnings.warn('it is slower', CauserieWarning)\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "causerie: it is slower\n"


def test_short_texts_are_packed_where_layers_look_back_only_so_far(make: Make) -> None:
    engine = Likelihood(make(MISTRAL))
    tree = Tree((1,))
    short = [tree.add(tree.ROOT, Segment.of((2, 3, n, 5))) for n in range(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.score(tree, segments=short)
    assert engine.tokens_computed == 1 + 2 + 6
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for lengths in ([5, 6], [9, 9]):
            tree, nodes = conversation(lengths)
            engine.score(tree, segments=nodes)
    assert [str(one.message) for one in told] == [
        f"Mistral looks back only {NEAR} tokens in some layers: "
        "long texts are scored separately, which is slower"
    ]


def test_llama_says_nothing(make: Make) -> None:
    tree, nodes = conversation([5, 6, 7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Likelihood(make(LLAMA)).score(tree, segments=nodes)


def test_a_network_that_looks_ahead_is_refused(make: Make) -> None:
    network = make(LLAMA)
    embeddings = network.model.get_input_embeddings()
    hook = embeddings.register_forward_hook(lambda module, given, out: out + out.sum(1, True))
    with pytest.raises(CauserieError, match=r"Llama does not predict .*: choose another .* --lm"):
        Likelihood(network)
    hook.remove()


def test_a_network_that_fails_is_refused(make: Make) -> None:
    network = make(LLAMA)

    def fail(*_: object) -> None:
        raise RuntimeError("no such kernel\nand more")

    network.model.register_forward_pre_hook(fail)
    with pytest.raises(CauserieError, match=r"^Llama cannot score plain text \(no such kernel\): "):
        Likelihood(network)


def test_numbers_that_are_not_finite_are_refused(make: Make) -> None:
    network = make(LLAMA)
    network.model.get_input_embeddings().weight.data[:] = float("nan")
    with pytest.raises(CauserieError, match=r"not finite in torch\.float32: choose another"):
        Likelihood(network)
