"""The files of a model: a folder, and what each of its files must be when it is read."""

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
"""How the vectors of an encoder's tokens become one: their mean, or the first token's."""

_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
}
_SETTINGS = (".json", ".txt", ".model", ".jinja", ".tiktoken")
"""How the names of files end that decide, besides the weights, what a network computes."""
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
"""Of the first kind that a folder has, all count."""
_ADAPTER = "adapter_config.json"
_MOST_BESIDE = 256 << 20
"""Bytes of such files beside the weights: the largest tokenizers have a tenth of it."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model that count, each with the SHA-256 that it must have."""

    folder: Path
    sha256: Mapping[str, str]
    """By the path within the folder, with slashes."""
    remedy: str
    """What to do about a file that is another."""
    weights: tuple[str, ...] = ("model.safetensors",)

    @classmethod
    def listed(cls, folder: Path) -> ModelFiles:
        """What counts in a folder that somebody gives, as it is now.

        Other files may lie there, unlike in a folder of the registry: nothing ever opens them.
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
                "give a folder in which they are merged, or take the adapter away"
            )
        settings = (file for file in folder.rglob("*") if file.suffix in _SETTINGS)
        beside = sorted(file for file in settings if file.is_file())
        files = [*(file for file in weights if file.is_file()), *beside]
        _check_links(folder, files)
        largest = max(beside, key=_size, default=folder)
        if sum(map(_size, beside)) > _MOST_BESIDE:
            raise CauserieError(
                f"{folder} holds more than {_MOST_BESIDE >> 20} MB beside the weights, most of it "
                f"in {largest.relative_to(folder)}: give a folder with nothing but the model"
            )
        return cls(
            folder,
            {file.relative_to(folder).as_posix(): sha256(file) for file in files},
            "it changed after it was first read, so start again",
            tuple(file.name for file in weights),
        )

    @property
    def weights_sha256(self) -> str:
        """Of the weights alone."""
        return joint_sha256([(name, self.sha256[name]) for name in self.weights])

    @property
    def digest(self) -> str:
        """Of the weights and of the files beside them."""
        return hashlib.sha256(repr(sorted(self.sha256.items())).encode()).hexdigest()

    def check_list(self, ignored: Iterable[str] = ()) -> None:
        """Nothing else is in the folder, and nothing in it leads out of it."""
        _check_links(self.folder, self.folder.rglob("*"))
        known = {*self.sha256, *ignored}
        for file in sorted(self.folder.rglob("*")):
            if not file.is_dir() and file.relative_to(self.folder).as_posix() not in known:
                raise CauserieError(f"{file} does not belong there: {self.remedy}")

    def check_content(self) -> None:
        """Every file is what it should be, weights included; reads them all."""
        for name in self.sha256:
            self.read(name, mapped=True)

    def read(self, name: str, *, mapped: bool = False) -> Content:
        """One of the files, verified: its bytes are those that were hashed."""
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
        """What a JSON file beside the weights says; nothing if there is none."""
        return settings_in(self.folder / name, self.read(name)) if name in self.sha256 else {}

    @contextmanager
    def private_copy(self) -> Iterator[Path]:
        """A folder of this process with all files but the weights, for libraries that open files.

        What is verified is written there and nothing else, so they find nothing else.
        """
        with temporary_folder("causerie-weights") as folder:
            for name in self.sha256:
                if name.endswith(_SETTINGS):
                    target = Path(folder, name)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(self.read(name).data)
            yield Path(folder)

    def tensors(self) -> dict[str, Tensor]:
        """All weights; ValueError says what is wrong with a file of the right hash."""
        from causerie.models.weights import tensors_of, unpickled_tensors_of

        tensors: dict[str, Tensor] = {}
        for name in self._shards():
            load = tensors_of if name.endswith(".safetensors") else unpickled_tensors_of
            tensors |= load(self.read(name))
        return tensors

    def _shards(self) -> list[str]:
        """The weight files that make up the network: one, or those that an index lists."""
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
    """The weight files that an index names, all of them beside it; ValueError if it has none."""
    placed = index.json().get("weight_map")
    shards = sorted({str(shard) for shard in placed.values()}) if isinstance(placed, dict) else []
    outside = [shard for shard in shards if Path(shard).name != shard]
    if outside:
        raise ValueError(f"its index points outside its folder, to {outside[0]}")
    if not shards:
        raise ValueError("its index names no weights")
    return shards


def settings_in(file: Path, content: Content) -> dict[str, Any]:
    """What a JSON file says, or an error that names it."""
    try:
        return content.json()
    except ValueError as error:
        raise CauserieError(f"{file} is not JSON ({error}): restore it or delete it") from error


def _check_links(folder: Path, files: Iterable[Path]) -> None:
    """No symbolic link leads out of a folder; the hub's cache has its files beside snapshots."""
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
    """How an encoder was made to be used; sentence-transformers folders say so."""

    pooling: Pooling = "mean"
    max_length: int | None = None

    @classmethod
    def read(cls, settings: Callable[[str], Mapping[str, Any]]) -> SentenceSettings:
        """`settings` gives what a file beside the weights says, nothing if there is none."""
        pooling = settings("1_Pooling/config.json")
        modes = [key for key, on in pooling.items() if key.startswith("pooling_mode") and on]
        unknown = [mode for mode in modes if mode not in _POOLINGS]
        if unknown or len(modes) > 1:
            raise CauserieError(
                f"the encoder pools by {' and '.join(modes)}, which is not supported: "
                "use one that takes the mean or the first token"
            )
        max_length = settings("sentence_bert_config.json").get("max_seq_length")
        return cls(
            _POOLINGS[modes[0]] if modes else "mean",
            max_length if type(max_length) is int and max_length > 0 else None,
        )
