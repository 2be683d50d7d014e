"""BERT for scoring, without transformers: importing that library takes longer than most scoring.

The network of Devlin et al. (2019): embeddings, then layers of self-attention and a feed-forward
part, each followed by a residual connection and layer normalisation. Weights are named as in
published checkpoints, so trained weights fit either implementation; the tests compare this one
with transformers. Networks other than a plain BERT, and training, are left to transformers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from causerie.models.folder import ModelFiles

_PROJECTIONS = ("query", "key", "value")

_USUAL = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
}
"""Values that the configuration of a plain BERT has, if it has these keys at all."""
_UNUSED = ("pooler.", "cls.", "embeddings.position_ids")
"""Weights of a checkpoint that token vectors do not depend on."""
_UNLIMITED = 1_000_000


@dataclass(frozen=True)
class BertSizes:
    """The sizes in a configuration."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            kind = float if name == "layer_norm_eps" else int
            if type(value) is not kind or value <= 0:
                raise ValueError(f"{name} cannot be {value!r}")


class PlainTokenizer:
    """A tokenizer.json behind the part of transformers' interface that the encoder engine uses."""

    def __init__(self, files: ModelFiles) -> None:
        self._tokenizer = Tokenizer.from_buffer(bytes(files.read("tokenizer.json").data))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        settings = files.settings("tokenizer_config.json")
        longest = settings.get("model_max_length") or _UNLIMITED
        self.model_max_length = int(min(longest, _UNLIMITED))
        padding = settings.get("pad_token") or "[PAD]"
        name = padding["content"] if isinstance(padding, dict) else padding
        self.pad_token_id = int(self._tokenizer.token_to_id(name) or 0)

    def __call__(
        self, texts: Any, pair: str | None = None, *, add_special_tokens: bool = True, **_: Any
    ) -> dict[str, Any]:
        """Tokenize a list of texts, or one text with its pair; "[SEP]" in a text is plain text."""
        self._tokenizer.encode_special_tokens = True
        if isinstance(texts, str):
            one = self._tokenizer.encode(texts, pair, add_special_tokens=add_special_tokens)
            return {"input_ids": one.ids, "special_tokens_mask": one.special_tokens_mask}
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens)
        return {"input_ids": [one.ids for one in encoded]}


class _FromFile:
    """A mixin that skips initialisation, as the weights are loaded from a file."""

    def reset_parameters(self) -> None:
        pass


class Linear(_FromFile, nn.Linear):
    pass


class Embedding(_FromFile, nn.Embedding):
    pass


class LayerNorm(_FromFile, nn.LayerNorm):
    pass


class Normed(nn.Module):
    """A linear map followed by a residual connection and layer normalisation."""

    def __init__(self, inputs: int, sizes: BertSizes) -> None:
        super().__init__()
        self.dense = Linear(inputs, sizes.hidden_size)
        self.LayerNorm = LayerNorm(sizes.hidden_size, sizes.layer_norm_eps)

    def forward(self, inner: Tensor, outer: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dense(inner) + outer)
        return normed


class Attention(nn.Module):
    """Multi-head self-attention over all tokens except padding."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        width = sizes.hidden_size
        self.heads = sizes.num_attention_heads
        self.self = nn.ModuleDict({name: Linear(width, width) for name in _PROJECTIONS})
        self.output = Normed(width, sizes)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        rows, tokens, width = hidden.shape
        query, key, value = (
            self.self[name](hidden).view(rows, tokens, self.heads, -1).transpose(1, 2)
            for name in _PROJECTIONS
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        together = mixed.transpose(1, 2).reshape(rows, tokens, width)
        attended: Tensor = self.output(together, hidden)
        return attended


class Layer(nn.Module):
    """Self-attention followed by a feed-forward part."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        inner = sizes.intermediate_size
        self.attention = Attention(sizes)
        self.intermediate = nn.ModuleDict({"dense": Linear(sizes.hidden_size, inner)})
        self.output = Normed(inner, sizes)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        attended = self.attention(hidden, mask)
        inner = functional.gelu(self.intermediate["dense"](attended))
        out: Tensor = self.output(inner, attended)
        return out


class Embeddings(nn.Module):
    """The sum of word, segment and position embeddings, normalised."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        width = sizes.hidden_size
        self.word_embeddings = Embedding(sizes.vocab_size, width)
        self.position_embeddings = Embedding(sizes.max_position_embeddings, width)
        self.token_type_embeddings = Embedding(sizes.type_vocab_size, width)
        self.LayerNorm = LayerNorm(width, sizes.layer_norm_eps)

    def forward(self, ids: Tensor, types: Tensor | None) -> Tensor:
        types = torch.zeros_like(ids) if types is None else types
        positions = torch.arange(ids.shape[1], device=ids.device)
        words = self.word_embeddings(ids) + self.token_type_embeddings(types)
        embedded: Tensor = self.LayerNorm(words + self.position_embeddings(positions))
        return embedded


@dataclass(frozen=True, eq=False)
class Output:
    """The output of the network, named as in transformers."""

    last_hidden_state: Tensor


class Bert(nn.Module):
    """The whole network, with the attributes that the encoder engine needs."""

    unused = _UNUSED

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.config = sizes
        self.embeddings = Embeddings(sizes)
        layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    @property
    def device(self) -> torch.device:
        return self.embeddings.word_embeddings.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embeddings.word_embeddings.weight.dtype

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.word_embeddings

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Output:
        hidden = self.embeddings(input_ids, token_type_ids)
        seen = attention_mask.bool()
        mask = None if bool(seen.all()) else seen[:, None, None, :]
        for layer in cast(nn.ModuleList, self.encoder["layer"]):
            hidden = layer(hidden, mask)
        return Output(hidden)


def is_plain_bert(files: ModelFiles) -> bool:
    """Whether a model has a network and a tokenizer that this module can run."""
    if not all(name in files.sha256 for name in ("model.safetensors", "tokenizer.json")):
        return False
    config = files.settings("config.json")
    return "model_type" in config and all(
        config.get(key, usual) == usual for key, usual in _USUAL.items()
    )


def load_bert(files: ModelFiles, dtype: torch.dtype, device: torch.device) -> Bert:
    """Load the network; raise ValueError, KeyError or RuntimeError if its weights are wrong."""
    config = files.settings("config.json")
    sizes = BertSizes(**{name: config[name] for name in BertSizes.__dataclass_fields__})
    weights = {
        name.removeprefix("bert."): tensor.to(dtype) for name, tensor in files.tensors().items()
    }
    used = {n: t for n, t in weights.items() if not n.startswith(_UNUSED)}
    if sizes.num_hidden_layers > len(used):
        raise ValueError(f"it has no weights for {sizes.num_hidden_layers} layers")
    with torch.device("meta"):  # allocates nothing: the file has the weights
        network = Bert(sizes)
    network.load_state_dict(used, assign=True)
    return network.to(device).eval().requires_grad_(False)
