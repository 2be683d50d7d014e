"""What the files beside a network's weights say about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from causerie.errors import CauserieError
from causerie.models.hashing import sha256_of_all

Pooling: TypeAlias = Literal["mean", "first"]
"""How the vectors of an encoder's tokens become one: their mean, or the first token's."""

_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
}


@dataclass(frozen=True)
class SentenceSettings:
    """How an encoder was made to be used; sentence-transformers folders say so."""

    pooling: Pooling = "mean"
    max_length: int | None = None

    @classmethod
    def read(cls, find: Callable[[str], Path | None]) -> SentenceSettings:
        """`find` gives the path of a file beside the weights, or None."""
        pooling = _json(find("1_Pooling/config.json"))
        modes = [key for key, on in pooling.items() if key.startswith("pooling_mode") and on]
        unknown = [mode for mode in modes if mode not in _POOLINGS]
        if unknown or len(modes) > 1:
            raise CauserieError(
                f"the encoder pools by {' and '.join(modes)}, which is not supported: "
                "use one that takes the mean or the first token"
            )
        max_length = _json(find("sentence_bert_config.json")).get("max_seq_length")
        return cls(
            _POOLINGS[modes[0]] if modes else "mean",
            max_length if isinstance(max_length, int) else None,
        )


def _json(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        content = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise CauserieError(f"{file} is not JSON: restore it or delete it") from error
    return content if isinstance(content, dict) else {}


def weights_sha256(folder: Path) -> str:
    """Of the weight files that transformers would load from a folder."""
    for pattern in ("model*.safetensors", "pytorch_model*.bin"):
        if files := sorted(folder.glob(pattern)):
            return sha256_of_all(files)
    raise CauserieError(
        f"{folder} holds no model.safetensors: give the folder of a saved transformers model"
    )


def folder_digest(folder: Path, weights: str) -> str:
    """Of the weights and of the files beside them that decide what a network computes."""
    beside = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and file.suffix in (".json", ".txt", ".model", ".jinja")
    )
    return hashlib.sha256(f"{weights} {sha256_of_all(beside)}".encode()).hexdigest()
