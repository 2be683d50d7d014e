"""Loading networks: any encoder, language model or ranker that transformers supports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError
from causerie.models.folder import ModelFiles, Pooling
from causerie.models.libraries import libraries
from causerie.models.registry import Kind
from causerie.models.sources import first_line
from causerie.models.store import Resolved, Store
from causerie.progress import announced

if TYPE_CHECKING:
    import torch

_LIKE = {
    "encoder": "BERT or MiniLM",
    "language model": "GPT-2 or Llama",
    "ranker": "DialogRPT, with one output",
}
_WINDOW = 2048
"""Window in tokens of networks without a limit, such as those with relative positions."""


@dataclass(frozen=True)
class Backbone:
    """A pretrained network with its tokenizer, in evaluation mode on its device."""

    name: str
    sha256: str
    model: Any
    """A `transformers.PreTrainedModel`."""
    tokenizer: Any
    """A fast tokenizer, with a padding token."""
    pooling: Pooling = "mean"

    @cached_property
    def window(self) -> int:
        """Maximum number of tokens in one input, special ones included."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or _WINDOW
        usable = positions - _reserved_positions(self.model)
        return int(min(usable, self.tokenizer.model_max_length))


def load_backbone(
    store: Store,
    name: str,
    kind: Kind,
    *,
    dtype: torch.dtype,
    device: torch.device,
    trainable: bool = True,
) -> Backbone:
    """Load a model by registry name, local folder or hub name.

    A plain BERT for scoring is loaded without transformers, which takes seconds to import.
    """
    resolved = store.resolve(name, kind)
    files = store.files(resolved)
    if kind == "encoder" and not trainable:
        found = _plain_bert(resolved, files, dtype, device)
        if found is not None:
            return found
    with libraries(offline=True), announced(f"loading {resolved.name}"):
        try:
            with files.private_copy() as folder:
                tokenizer = _load_tokenizer(resolved, folder)
                model = _load_model(resolved, files, kind, folder, dtype)
        except CauserieError:
            raise
        except Exception as error:  # a folder can be damaged in too many ways to list
            raise CauserieError(
                f"{resolved.name} cannot be loaded as {_article(kind)} ({first_line(error)}): "
                "give the folder or hub name of a complete transformers model"
            ) from error
    return Backbone(
        resolved.name, resolved.sha256, model.to(device).eval(), tokenizer, resolved.pooling
    )


def _plain_bert(
    resolved: Resolved, files: ModelFiles, dtype: torch.dtype, device: torch.device
) -> Backbone | None:
    """Load a complete plain BERT; None for others, whose faults transformers describes better."""
    from causerie.models.bert import PlainTokenizer, is_plain_bert, load_bert

    with announced(f"loading {resolved.name}"):
        try:
            if not is_plain_bert(files):
                return None
            tokenizer = PlainTokenizer(files)
            model = load_bert(files, dtype, device)
        except CauserieError:
            raise
        except Exception:  # a damaged file: loading it with transformers gives the better message
            return None
    if resolved.max_length is not None:
        tokenizer.model_max_length = min(tokenizer.model_max_length, resolved.max_length)
    return Backbone(resolved.name, resolved.sha256, model, tokenizer, resolved.pooling)


def _load_tokenizer(resolved: Resolved, folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    if not tokenizer.is_fast:
        raise CauserieError(f"{resolved.name} has no fast tokenizer: use another model")
    # Some folders set a fixed padding or truncation; the engines decide how to cut.
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    if tokenizer.pad_token is None:
        # Padding is masked, so any token will do; a new one would not be in the embeddings.
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    if resolved.max_length is not None:
        tokenizer.model_max_length = min(tokenizer.model_max_length, resolved.max_length)
    return tokenizer


def _load_model(
    resolved: Resolved, files: ModelFiles, kind: Kind, folder: Path, dtype: torch.dtype
) -> Any:
    import torch
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
    )
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL,
    )
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_MASKED_LM_MAPPING_NAMES as MASKED,
    )

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    # BERT and its kin are listed as causal, too, but are bidirectional unless configured so.
    encodes = config.model_type in MASKED and not getattr(config, "is_decoder", False)
    fits = {
        "encoder": encodes,
        "language model": config.model_type in CAUSAL and not encodes,
        "ranker": config.num_labels == 1,
    }
    if not fits[kind]:
        raise CauserieError(
            f"{resolved.name} is a network of type {config.model_type}, not {_article(kind)}: "
            f"use one like {_LIKE[kind]}"
        )
    architectures: dict[str, Any] = {
        "encoder": AutoModel,
        "language model": AutoModelForCausalLM,
        "ranker": AutoModelForSequenceClassification,
    }
    _check_config(resolved, config)
    tensors = files.tensors()
    layers = getattr(config, "num_hidden_layers", None) or 0
    if layers > len(tensors):
        raise ValueError(f"it has no weights for {layers} layers")
    with torch.device("meta"):  # only the class is needed, not a network
        architecture = type(architectures[kind].from_config(config, trust_remote_code=False))
    model, report = architecture.from_pretrained(
        None, config=config, state_dict=tensors, dtype=dtype, output_loading_info=True
    )
    model.name_or_path = str(files.folder)  # without a local path, peft asks the hub
    # Missing weights would be random, and scores meaningless. The pooler
    # is not used.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise CauserieError(
            f"{resolved.name} is not complete as {_article(kind)} (no weights for {missing[0]}): "
            "give the folder or hub name of a complete transformers model"
        )
    return model


def _check_config(resolved: Resolved, config: Any) -> None:
    """Refuse settings that would make transformers fetch and run hardware code ("kernels")."""
    attention = getattr(config, "_attn_implementation", None)
    if attention not in (None, "eager", "sdpa") or hasattr(config, "quantization_config"):
        raise CauserieError(
            f"{resolved.name} asks for kernels or quantised weights, which are not used here: "
            "give a plain float32, float16 or bfloat16 model"
        )


def _article(kind: Kind) -> str:
    return f"an {kind}" if kind == "encoder" else f"a {kind}"


def _reserved_positions(model: Any) -> int:
    """Return how many positions are reserved: RoBERTa counts from the padding token's id + 1."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return 0 if padding is None else int(padding) + 1
    return 0
