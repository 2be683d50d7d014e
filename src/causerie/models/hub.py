"""Models of the hub: their files in the local hub cache, verified against their names there."""

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
"""Files of tokenizers, fetched beside config.json, which every model has."""
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The first that exists is used, in one piece or in shards with an index."""


def is_hub_name(name: str) -> bool:
    """Whether the name looks like `owner/name` or like `name`, as some old models are called."""
    return _NAME.fullmatch(name) is not None


def hub_file(name: str, file: str, offline: bool, revision: str | None = None) -> Path | None:
    """Return the path of a hub model's file in the local cache: `.../snapshots/COMMIT/file`.

    Returns None if the hub (offline: the cache) has no such file; raises `SourceError` if the
    hub has no such model or does not answer.
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
    """Fetch the files of a network and its tokenizer; raise `SourceError` if that fails.

    The cache names large files by their SHA-256 and small ones by git's hash, so each file can be
    verified against its name; no other digests are available.
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
    return replace(files, sha256=named, remedy="delete it, and it will be fetched again")


def _named(file: Path, digest: str) -> str:
    """Return the SHA-256 that a cached file should have; small files are checked by git's hash."""
    name = os.path.basename(os.path.realpath(file))
    if not _BLOB.fullmatch(name):  # on systems without links, files keep their own names
        return digest
    if len(name) == 64:
        return name
    content = read_content(file)
    head = f"blob {len(content.data)}\0".encode()
    if hashlib.sha1(head + content.data[:], usedforsecurity=False).hexdigest() != name:
        raise CauserieError(f"{file} is damaged: delete it, and it will be fetched again")
    return content.sha256
