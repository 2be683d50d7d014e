"""Encoders through oneDNN, the library of processors' fast routines that comes with torch.

The layers of a BERT (Devlin et al., 2019) or an MPNet (Song et al., 2020) for scoring: weights
are put in order for the processor once, and what follows a linear map (GELU, or what went in
before it, added) is done along with it. In float32, or with weights and what passes between
layers in bfloat16, half as many bytes and twice as quick where a processor has the instructions.

Nothing is padded: the tokens of many texts pass one after another, and only attention looks at
one text at a time, those of one length together. Linear maps are given so many tokens at a time,
always as many, so that a text's numbers do not depend on what passes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causerie.errors import CauserieError
from causerie.models.bert import Bert

if TYPE_CHECKING:
    from causerie.engines.encoder import Pass, Row

BLOCK = 128
"""Tokens of which linear maps are made at a time."""

_FIRST_POSITION = {"bert": 0, "mpnet": 2}
_DTYPES = {"onednn": torch.float32, "onednn-bf16": torch.bfloat16}

Weights: TypeAlias = Mapping[str, Tensor]
Groups: TypeAlias = "list[tuple[int, int, int]]"
"""Where texts of one length begin in a stream of tokens, how many they are, and how long."""


class Linear:
    """A linear map whose weights are in the order that the processor likes best."""

    def __init__(self, weights: Weights, *names: str, dtype: torch.dtype) -> None:
        """Several maps of one input are one."""
        together = torch.cat([weights[f"{name}.weight"] for name in names]).to(dtype).contiguous()
        self._bias = torch.cat([weights[f"{name}.bias"] for name in names]).to(dtype)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(together, BLOCK)

    def __call__(self, block: Tensor, then: str = "none") -> Tensor:
        made: Tensor = torch.ops.mkldnn._linear_pointwise(
            block, self._weight, self._bias, then, [], "none"
        )
        return made

    def plus(self, block: Tensor, other: Tensor) -> Tensor:
        made: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            block, other, self._weight, self._bias, "add"
        )
        return made


class Norm:
    """Layer normalisation."""

    def __init__(self, weights: Weights, name: str, epsilon: float, dtype: torch.dtype) -> None:
        self._weight = weights[f"{name}.weight"].to(dtype)
        self._bias = weights[f"{name}.bias"].to(dtype)
        self._epsilon = epsilon

    def __call__(self, block: Tensor) -> Tensor:
        return functional.layer_norm(
            block, self._weight.shape, self._weight, self._bias, self._epsilon
        )


@dataclass(frozen=True)
class Names:
    """What an architecture calls the parts of a layer."""

    query: str
    key: str
    value: str
    output: str
    norm: str


NAMES = {
    "bert": Names(
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
    ),
    "mpnet": Names(
        "attention.attn.q",
        "attention.attn.k",
        "attention.attn.v",
        "attention.attn.o",
        "attention.LayerNorm",
    ),
}


class Layer:
    """Attention, then a feed-forward part; blocks in, blocks out."""

    def __init__(
        self, weights: Weights, names: Names, heads: int, epsilon: float, dtype: torch.dtype
    ) -> None:
        self._heads = heads
        self._looks = Linear(weights, names.query, names.key, names.value, dtype=dtype)
        self._together = Linear(weights, names.output, dtype=dtype)
        self._norm = Norm(weights, names.norm, epsilon, dtype)
        self._inner = Linear(weights, "intermediate.dense", dtype=dtype)
        self._outer = Linear(weights, "output.dense", dtype=dtype)
        self._last = Norm(weights, "output.LayerNorm", epsilon, dtype)

    def __call__(
        self, blocks: list[Tensor], groups: Groups, biases: Mapping[int, Tensor | None]
    ) -> list[Tensor]:
        attended = self._attended(
            torch.cat([self._looks(block) for block in blocks]), groups, biases
        )
        made = []
        for block, seen in zip(blocks, torch.split(attended, BLOCK), strict=True):
            middle = self._norm(self._together.plus(seen, block))
            made.append(self._last(self._outer.plus(self._inner(middle, "gelu"), middle)))
        return made

    def _attended(
        self, looks: Tensor, groups: Groups, biases: Mapping[int, Tensor | None]
    ) -> Tensor:
        """What every token takes from those of its text, in float32: that is little work."""
        width = looks.shape[1] // 3
        found = looks.new_zeros(len(looks), width)
        for start, texts, length in groups:
            stop = start + texts * length
            query, key, value = (
                looks[start:stop].float().view(texts, length, 3, self._heads, -1)
            ).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=biases[length]
            )
            found[start:stop] = mixed.transpose(1, 2).reshape(texts * length, width)
        return found


class Embeddings:
    """Words, positions and segments together, in float32."""

    def __init__(self, weights: Weights, architecture: str, epsilon: float) -> None:
        self._words = weights["word_embeddings.weight"]
        self._positions = weights["position_embeddings.weight"][_FIRST_POSITION[architecture] :]
        self._types = weights.get("token_type_embeddings.weight")
        self._norm = Norm(weights, "LayerNorm", epsilon, torch.float32)

    def __call__(self, rows: Sequence[Row]) -> Tensor:
        """The tokens of the rows one after another, and as many more as make whole blocks."""
        lengths = [len(row) for row in rows]
        ids = _stream([row.ids for row in rows])
        positions = _stream([np.arange(length) for length in lengths])
        embedded = self._words[ids] + self._positions[positions]
        if self._types is not None:
            places = [np.arange(length) for length in lengths]
            later = [(p >= row.last) & (row.last > 0) for p, row in zip(places, rows, strict=True)]
            embedded += self._types[_stream(later)]
        return self._norm(embedded)


class OneDnn:
    """A network for scoring, with what the encoder engine asks a network for."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        """Its weights are copied, in the order that the processor likes, from another network."""
        architecture = "bert" if isinstance(model, Bert) else model.config.model_type
        config, weights = model.config, model.state_dict()
        heads, epsilon = int(config.num_attention_heads), float(config.layer_norm_eps)
        self.config, self.device, self.dtype = config, torch.device("cpu"), dtype
        self._words = model.get_input_embeddings()
        self._embeddings = Embeddings(_below(weights, "embeddings"), architecture, epsilon)
        self._layers = [
            Layer(_below(weights, f"encoder.layer.{i}"), NAMES[architecture], heads, epsilon, dtype)
            for i in range(config.num_hidden_layers)
        ]
        self._distances: Tensor | None = None
        if architecture == "mpnet":
            longest = torch.empty(1, config.max_position_embeddings, 1)
            self._distances = model.encoder.compute_position_bias(longest).detach()

    def get_input_embeddings(self) -> Any:
        return self._words

    def passes(self, rows: Sequence[Row], budget: int) -> Iterator[Pass]:
        """The token vectors of the rows, those of one length together and without padding."""
        for places in streams([len(row) for row in rows], budget):
            groups, start = [], 0
            for length, same in groupby(places, key=lambda place: len(rows[place])):
                count = len(list(same))
                groups.append((start, count, length))
                start += count * length
            hidden = self._hidden([rows[place] for place in places], groups)
            done = 0
            for start, count, length in groups:
                vectors = hidden[start : start + count * length].view(count, length, -1)
                mask = torch.ones(count, length, dtype=torch.long)
                yield places[done : done + count], vectors, mask
                done += count

    def _hidden(self, rows: Sequence[Row], groups: Groups) -> Tensor:
        with torch.inference_mode():
            biases = {length: self._bias(length) for _, _, length in groups}
            blocks = list(torch.split(self._embeddings(rows).to(self.dtype), BLOCK))
            for layer in self._layers:
                blocks = layer(blocks, groups, biases)
            return torch.cat(blocks).float()

    def _bias(self, length: int) -> Tensor | None:
        """What attention adds for how far apart two tokens are, in an MPNet."""
        if self._distances is None:
            return None
        return self._distances[:, :, :length, :length]


def streams(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Places of rows that pass one after another, at most `budget` tokens, short ones first."""
    stream: list[int] = []
    tokens = 0
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        if stream and tokens + lengths[place] > budget:
            yield stream
            stream, tokens = [], 0
        stream.append(place)
        tokens += lengths[place]
    if stream:
        yield stream


def _stream(parts: Sequence[Any]) -> Tensor:
    """Numbers one after another, with zeros up to a whole number of blocks."""
    joined = np.concatenate(parts).astype(np.int64)
    return torch.from_numpy(np.pad(joined, (0, -len(joined) % BLOCK)))


def _below(weights: Weights, name: str) -> dict[str, Tensor]:
    """The weights of a part, by their names in it."""
    head = f"{name}."
    return {key.removeprefix(head): one for key, one in weights.items() if key.startswith(head)}


def converted(model: Any, backend: str, name: str) -> OneDnn:
    """A network as `onednn` or `onednn-bf16` computes it; an error says why if it cannot."""
    dtype = _DTYPES[backend]
    if not usable(dtype):
        wanted = " in bfloat16" if dtype == torch.bfloat16 else ""
        raise CauserieError(
            f"this torch or this processor cannot compute with oneDNN{wanted}: "
            f"leave out --backend {backend}, or use --backend auto"
        )
    if not supports(model):
        kind = getattr(model.config, "model_type", type(model).__name__)
        raise CauserieError(
            f"--backend {backend} computes networks like BERT and MPNet on processors, and {name} "
            f"is of type {kind} on {model.device.type}: leave it out, or use --backend auto"
        )
    return OneDnn(model, dtype)


@cache
def usable(dtype: torch.dtype) -> bool:
    """Whether torch was built with oneDNN, and the processor has instructions for the numbers."""
    if not torch._C._has_mkldnn:
        return False
    try:
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        block = torch.zeros(BLOCK, 16, dtype=dtype)
        weights = {"one.weight": torch.zeros(16, 16), "one.bias": torch.zeros(16)}
        linear = Linear(weights, "one", dtype=dtype)
        linear.plus(linear(block, "gelu"), block)
    except (AttributeError, RuntimeError, TypeError):  # another version of torch
        return False
    return True


def supports(model: Any) -> bool:
    """Whether a network is one that this module knows, in float32 on the processor."""
    if model.device.type != "cpu" or model.dtype != torch.float32:
        return False
    if isinstance(model, Bert):
        return True
    config = model.config
    return (
        config.model_type in NAMES
        and config.hidden_act == "gelu"
        and getattr(config, "position_embedding_type", "absolute") in (None, "absolute")
        and not getattr(config, "is_decoder", False)
    )
