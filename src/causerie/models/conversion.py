"""GGUF to safetensors, once: loading a GGUF takes half a minute, loading safetensors a second."""

from __future__ import annotations

import os
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from causerie.models.libraries import libraries

_WRITTEN_BY = "5.22.2"
"""The version of transformers written into converted files, whichever made them: it changes
nothing, and the registry pins the files byte for byte."""


def convert_gguf(file: Path, folder: Path) -> None:
    """Save the network in a GGUF file as an ordinary float32 transformers folder."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # No setting turns off the progress bar that transformers shows here.
    with libraries(offline=True), open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        tokenizer = AutoTokenizer.from_pretrained(
            file.parent, gguf_file=file.name, local_files_only=True
        )
        _split_digits(tokenizer, file)
        tokenizer.save_pretrained(folder)
        model: Any = AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32, local_files_only=True
        )
        # The weights are ordinary tensors by now, yet transformers refuses to save a model
        # that it still considers quantised.
        del model.config.quantization_config
        model.hf_quantizer = None
        model.save_pretrained(folder)
    for saved in folder.glob("*config.json"):
        text = saved.read_text("utf-8")
        own, pinned = (
            f'"transformers_version": "{v}"' for v in (transformers.__version__, _WRITTEN_BY)
        )
        saved.write_text(text.replace(own, pinned), "utf-8")
    for saved in folder.iterdir():
        saved.chmod(0o644)  # safetensors makes its files private; a store may be shared


def _split_digits(tokenizer: Any, file: Path) -> None:
    """Restore the first step of "smollm" tokenizers: every digit is a token of its own."""
    from gguf import GGUFReader
    from tokenizers.pre_tokenizers import Digits, Sequence

    field = GGUFReader(file).fields.get("tokenizer.ggml.pre")
    if field is not None and field.contents() == "smollm":
        backend = tokenizer.backend_tokenizer
        backend.pre_tokenizer = Sequence([Digits(individual_digits=True), backend.pre_tokenizer])
