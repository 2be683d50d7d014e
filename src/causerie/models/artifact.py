"""Artifacts: trained metrics on disk, as a folder of JSON, safetensors and a card.

config.json          metric, version, hyper-parameters, backbone with its hash, seed
network.safetensors  trained weights, float16
statistics.safetensors  means, covariances, calibration: float32
adapter/             low-rank adapter of the backbone, if it was tuned that way
card.md              data, licence, recipe, results, limits
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie._version import __version__
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from torch import Tensor

CALIBRATION = "calibration"
"""The statistic that holds a metric's quantiles among human responses."""


@dataclass(frozen=True)
class Artifact:
    """A trained metric, read from disk."""

    folder: Path
    metric: str
    backbone: str
    """Registry name, folder or hub name of the network it was trained on."""
    backbone_sha256: str
    options: Mapping[str, Any]
    """The metric's own hyper-parameters."""
    network: Mapping[str, Tensor]
    statistics: Mapping[str, Tensor]
    sha256: str

    @property
    def adapter(self) -> Path | None:
        folder = self.folder / "adapter"
        return folder if folder.is_dir() else None


def shipped(name: str) -> Path | None:
    """Folder of an artifact that comes with causerie."""
    folder = Path(str(files("causerie").joinpath("artifacts", name)))
    return folder if (folder / "config.json").is_file() else None


def load_artifact(name: str | Path, metric: str) -> Artifact:
    """A shipped artifact by its name, or any by its folder."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = (shipped(name) if isinstance(name, str) else None) or Path(name)
    if not (folder / "config.json").is_file():
        raise CauserieError(
            f"{name} is no artifact: give the name of a shipped one or a folder that "
            "`causerie train` wrote"
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        found = config["metric"]
        if found != metric:
            raise CauserieError(f"{name} is an artifact of {found}, not of {metric}")
        artifact = Artifact(
            folder=folder,
            metric=found,
            backbone=config["backbone"]["name"],
            backbone_sha256=config["backbone"]["sha256"],
            options=config["options"],
            network={k: t.float() for k, t in load_file(folder / "network.safetensors").items()},
            statistics=load_file(folder / "statistics.safetensors"),
            sha256=_hash(folder),
        )
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CauserieError(
            f"the artifact in {folder} is damaged: train it again or reinstall causerie "
            f"({type(error).__name__}: {error})"
        ) from error
    return artifact


def save_artifact(
    folder: Path,
    *,
    metric: str,
    backbone: str,
    backbone_sha256: str,
    options: Mapping[str, Any],
    training: Mapping[str, Any],
    network: Mapping[str, Tensor],
    statistics: Mapping[str, Tensor],
    card: str,
    adapter: Path | None = None,
) -> None:
    """Write an artifact: whole or not at all; an older one in its place is replaced."""
    import torch
    from safetensors.torch import save_file

    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    config = {
        "metric": metric,
        "version": __version__,
        "backbone": {"name": backbone, "sha256": backbone_sha256},
        "options": dict(options),
        "training": dict(training),
    }
    (temporary / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (temporary / "card.md").write_text(card, encoding="utf-8")
    halves = {k: t.detach().to(torch.float16).contiguous() for k, t in network.items()}
    floats = {k: t.detach().to(torch.float32).contiguous() for k, t in statistics.items()}
    save_file(halves, temporary / "network.safetensors")
    save_file(floats, temporary / "statistics.safetensors")
    if adapter:
        shutil.copytree(adapter, temporary / "adapter")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)


def _hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.safetensors")):
        digest.update(path.read_bytes())
    digest.update((folder / "config.json").read_bytes())
    return digest.hexdigest()
