"""Models of the hub: their files in the local hub cache, held against the names they have there."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path

from causerie.errors import CauserieError
from causerie.io.verified import read_content
from causerie.models.folder import ModelFiles, shards_of
from causerie.models.libraries import libraries
from causerie.models.packages import SourceError
from causerie.models.sources import SILENT_HUB, first_line
from causerie.progress import announced

_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", re.ASCII)
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SETTINGS = (
    "tokenizer_config.json",
    "tokenizer.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
"""What tokenizers are made of, besides config.json, which every model has."""
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The first that there is, in one piece or with an index of its pieces."""


def is_hub_name(name: str) -> bool:
    """Whether it looks like `owner/name` or, as some old models are called, `name`."""
    return _NAME.fullmatch(name) is not None


def hub_file(name: str, file: str, offline: bool, revision: str | None = None) -> Path | None:
    """One file of a hub model, in the local hub cache: `.../snapshots/COMMIT/file`.

    None if the hub (offline: the cache) has no such file; `SourceError` if the hub has no such
    model or does not answer.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    with libraries(offline), announced(f"asking the model hub for {name}"):
        try:
            return Path(hf_hub_download(name, file, revision=revision, local_files_only=offline))
        except LocalEntryNotFoundError as error:
            if offline:
                return None
            raise SourceError(SILENT_HUB) from error
        except EntryNotFoundError:
            return None
        except GatedRepoError as error:
            raise SourceError("its owners must grant you access, and you must log in") from error
        except RepositoryNotFoundError as error:
            raise SourceError("the model hub has no such model, or none you may see") from error
        except Exception as error:  # of the hub client and of the HTTP library beneath it
            raise SourceError(first_line(error)) from error


def hub_files(name: str, revision: str, offline: bool) -> ModelFiles:
    """Fetch what a network and its tokenizer need; `SourceError` if it is not to be had.

    The cache calls large files by their SHA-256 and small ones by git's hash, so each can be held
    against its name; nothing else is there to hold them against.
    """

    def get(file: str) -> Path | None:
        return hub_file(name, file, offline, revision)

    config = get("config.json")
    if config is None:
        raise SourceError("it has no config.json")
    for file in _SETTINGS:
        get(file)
    folder = config.parent
    for weights in _WEIGHTS:
        if get(weights):
            break
        if get(f"{weights}.index.json"):
            for shard in shards_of(read_content(folder / f"{weights}.index.json")):
                get(shard)
            break
    else:
        raise SourceError("it has no model.safetensors")
    files = ModelFiles.listed(folder)
    named = {file: _named(folder / file, digest) for file, digest in files.sha256.items()}
    return replace(files, sha256=named, remedy="delete it, and it is fetched again")


def _named(file: Path, digest: str) -> str:
    """The SHA-256 that a cached file should have; that of small ones is right if git's is."""
    name = os.path.basename(os.path.realpath(file))
    if not _BLOB.fullmatch(name):  # where there are no links, files have their own names
        return digest
    if len(name) == 64:
        return name
    content = read_content(file)
    head = f"blob {len(content.data)}\0".encode()
    if hashlib.sha1(head + content.data[:], usedforsecurity=False).hexdigest() != name:
        raise CauserieError(f"{file} is damaged: delete it, and it is fetched again")
    return content.sha256
