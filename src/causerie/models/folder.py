"""The files of a model: a folder with the digest that each file must have when it is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from causerie.errors import CauserieError
from causerie.io.atomic import temporary_folder
from causerie.io.verified import Content, joint_sha256, read_content, sha256

if TYPE_CHECKING:
    from torch import Tensor

Pooling: TypeAlias = Literal["mean", "first"]
"""How an encoder's token vectors become one vector: their mean, or the first token's."""

_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
}
_SETTINGS = (".json", ".txt", ".model", ".jinja", ".tiktoken")
"""Suffixes of the files that, besides the weights, determine what a network computes."""
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
"""Patterns of weight files; all files of the first pattern that matches any are used."""
_ADAPTER = "adapter_config.json"
_MOST_BESIDE = 256 << 20
"""Maximum size of the files beside the weights, in bytes; the largest tokenizers need a tenth."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model that are used, each with the SHA-256 digest that it must have."""

    folder: Path
    sha256: Mapping[str, str]
    """Digests by path within the folder, with slashes."""
    remedy: str
    """What to do about a file with another digest, for error messages."""
    weights: tuple[str, ...] = ("model.safetensors",)

    @classmethod
    def listed(cls, folder: Path) -> ModelFiles:
        """List the files used in a folder that a user gives, with their present digests.

        Unlike in a folder of the registry, other files may be there: nothing ever opens them.
        """
        found = (sorted(folder.glob(pattern)) for pattern in _WEIGHTS)
        weights = next((files for files in found if files), None)
        if weights is None:
            raise CauserieError(
                f"{folder} holds no model.safetensors: give the folder of a saved "
                "transformers model"
            )
        if (folder / _ADAPTER).exists():
            raise CauserieError(
                f"{folder} holds an adapter ({_ADAPTER}) beside a network: "
                "give a folder in which they are merged, or remove the adapter"
            )
        settings = (file for file in folder.rglob("*") if file.suffix in _SETTINGS)
        beside = sorted(file for file in settings if file.is_file())
        files = [*(file for file in weights if file.is_file()), *beside]
        _check_links(folder, files)
        largest = max(beside, key=_size, default=folder)
        if sum(map(_size, beside)) > _MOST_BESIDE:
            raise CauserieError(
                f"{folder} holds more than {_MOST_BESIDE >> 20} MB beside the weights, most of it "
                f"in {largest.relative_to(folder)}: give a folder that holds only the model"
            )
        return cls(
            folder,
            {file.relative_to(folder).as_posix(): sha256(file) for file in files},
            "it changed after it was first read, so start again",
            tuple(file.name for file in weights),
        )

    @property
    def weights_sha256(self) -> str:
        """Digest of the weights alone."""
        return joint_sha256([(name, self.sha256[name]) for name in self.weights])

    @property
    def digest(self) -> str:
        """Digest of the weights and of the files beside them."""
        return hashlib.sha256(repr(sorted(self.sha256.items())).encode()).hexdigest()

    def check_list(self, ignored: Iterable[str] = ()) -> None:
        """Check that the folder has no other files and no links that lead out of it."""
        _check_links(self.folder, self.folder.rglob("*"))
        known = {*self.sha256, *ignored}
        for file in sorted(self.folder.rglob("*")):
            if not file.is_dir() and file.relative_to(self.folder).as_posix() not in known:
                raise CauserieError(f"{file} does not belong there: {self.remedy}")

    def check_content(self) -> None:
        """Read and verify every file, weights included."""
        for name in self.sha256:
            self.read(name, mapped=True)

    def read(self, name: str, *, mapped: bool = False) -> Content:
        """Read one file, verified: the bytes returned are those that were hashed."""
        file = self.folder / name
        try:
            content = read_content(file, mapped=mapped)
        except FileNotFoundError as error:
            raise CauserieError(f"{file} is missing: {self.remedy}") from error
        except OSError as error:
            raise CauserieError(f"{file} cannot be read ({error}): {self.remedy}") from error
        if content.sha256 != self.sha256[name]:
            raise CauserieError(
                f"{file} is not what it should be (its SHA-256 differs): {self.remedy}"
            )
        return content

    def settings(self, name: str) -> dict[str, Any]:
        """Return the contents of a JSON file beside the weights; empty if there is none."""
        return settings_in(self.folder / name, self.read(name)) if name in self.sha256 else {}

    @contextmanager
    def private_copy(self) -> Iterator[Path]:
        """Copy all files but the weights to a private folder, for libraries that open files.

        Only verified bytes are written there, so the libraries cannot find anything else.
        """
        with temporary_folder("causerie-weights") as folder:
            for name in self.sha256:
                if name.endswith(_SETTINGS):
                    target = Path(folder, name)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(self.read(name).data)
            yield Path(folder)

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights; raise ValueError if a file with the right digest is unusable."""
        from causerie.models.weights import tensors_of, unpickled_tensors_of

        tensors: dict[str, Tensor] = {}
        for name in self._shards():
            load = tensors_of if name.endswith(".safetensors") else unpickled_tensors_of
            tensors |= load(self.read(name))
        return tensors

    def _shards(self) -> list[str]:
        """Return the weight files of the network: one, or the shards that an index lists."""
        whole = [name for name in self.weights if name.count(".") == 1 and "-of-" not in name]
        if whole:
            return whole[:1]
        pickled = self.weights[0].endswith(".bin")
        index = f"{'pytorch_model.bin' if pickled else 'model.safetensors'}.index.json"
        if index not in self.sha256:
            raise ValueError(f"it has no {index}")
        shards = shards_of(self.read(index))
        for shard in shards:
            if shard not in self.weights:
                raise ValueError(f"its weights should be in {shard}, which is not in its folder")
        return shards


def _size(file: Path) -> int:
    return file.stat().st_size


def shards_of(index: Content) -> list[str]:
    """Return the weight files that an index names, all beside it; raise ValueError otherwise."""
    placed = index.json().get("weight_map")
    shards = sorted({str(shard) for shard in placed.values()}) if isinstance(placed, dict) else []
    outside = [shard for shard in shards if Path(shard).name != shard]
    if outside:
        raise ValueError(f"its index points outside its folder, to {outside[0]}")
    if not shards:
        raise ValueError("its index names no weights")
    return shards


def settings_in(file: Path, content: Content) -> dict[str, Any]:
    """Parse a JSON file, or raise an error that names it."""
    try:
        return content.json()
    except ValueError as error:
        raise CauserieError(f"{file} is not JSON ({error}): restore it or delete it") from error


def _check_links(folder: Path, files: Iterable[Path]) -> None:
    """Check that no link leads out of a folder; the hub's cache keeps files beside snapshots."""
    inside = Path(os.path.realpath(folder))
    if inside.parent.name == "snapshots":
        inside = inside.parent.parent
    for file in files:
        if file.is_symlink() and inside not in Path(os.path.realpath(file)).parents:
            raise CauserieError(
                f"{file} is a link to a file outside its folder: put the file itself there"
            )


@dataclass(frozen=True)
class SentenceSettings:
    """How an encoder is to be used, as a sentence-transformers folder specifies it."""

    pooling: Pooling = "mean"
    max_length: int | None = None

    @classmethod
    def read(cls, settings: Callable[[str], Mapping[str, Any]]) -> SentenceSettings:
        """`settings` returns the contents of a file beside the weights; empty if there is none."""
        pooling = settings("1_Pooling/config.json")
        modes = [key for key, on in pooling.items() if key.startswith("pooling_mode") and on]
        unknown = [mode for mode in modes if mode not in _POOLINGS]
        if unknown or len(modes) > 1:
            raise CauserieError(
                f"the encoder uses {' and '.join(modes)}, which is not supported: "
                "use an encoder with mean or first-token pooling"
            )
        max_length = settings("sentence_bert_config.json").get("max_seq_length")
        return cls(
            _POOLINGS[modes[0]] if modes else "mean",
            max_length if type(max_length) is int and max_length > 0 else None,
        )
