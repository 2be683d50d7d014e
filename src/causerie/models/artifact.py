"""Artifacts: trained metrics on disk, as a folder of JSON, safetensors and a card.

config.json             metric, version, hyper-parameters, seed, backbone with its digest, the
                        digest of all that determines scores (so that it is known without reading
                        the weights), and the licence of each source of training data
network.safetensors     trained weights, float16; if a shipped artifact has the same encoder,
                        config.json names it and the encoder's weights are left out
statistics.safetensors  means, covariances, calibration: float32
card.md                 data, licence, recipe, results, limits
LICENSE                 licences of the training data, which apply to the weights
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie._version import __version__
from causerie.errors import CauserieError
from causerie.io.atomic import atomic_folder
from causerie.io.shipped import shipped_folder, shipped_names
from causerie.io.verified import read_content
from causerie.licences import Licence, parse_licences

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, NETWORK, STATISTICS = "config.json", "network.safetensors", "statistics.safetensors"
CARD, LICENCE = "card.md", "LICENSE"
_LONGEST_REASON = 200


@dataclass(frozen=True)
class ArtifactInfo:
    """The contents of an artifact's config.json: enough to identify it without its weights."""

    folder: Path
    metric: str
    sha256: str
    backbone: str
    backbone_sha256: str
    options: Mapping[str, Any]
    licences: tuple[Licence, ...]
    """Licences of its training data; empty if an earlier version did not write them."""

    @property
    def free(self) -> bool:
        """Whether all its licences are known to allow commercial use."""
        return bool(self.licences) and all(one.free for one in self.licences)

    @classmethod
    def read(cls, folder: Path, metric: str | None = None) -> ArtifactInfo:
        """Read the artifact in a folder; refuse one of another metric than `metric`."""
        files = [folder / name for name in (CONFIG, NETWORK, STATISTICS)]
        states = [file.stat() if file.is_file() else None for file in files]
        if metric is not None and (other := metric_of(folder)) != metric:
            raise CauserieError(f"{folder.name} is an artifact of {other}, not of {metric}")
        return _read_info(folder, tuple(s and (s.st_mtime_ns, s.st_size) for s in states))

    @classmethod
    def find(cls, name: str, metric: str | None = None) -> ArtifactInfo:
        """Find a shipped artifact by its name, or any artifact by its folder."""
        return cls.read(find_artifact(name), metric)

    def load(self) -> Artifact:
        """Load the artifact, which must not have changed since this was read."""
        artifact = load_artifact(str(self.folder), self.metric)
        self.check_same(artifact.sha256)
        return artifact

    def check_same(self, sha256: str) -> None:
        """Check that scores come from the artifact that their signature names."""
        if sha256 != self.sha256:
            raise CauserieError(
                f"the artifact {self.folder} changed after it was first read: start again"
            )


@lru_cache(64)
def _read_info(folder: Path, states: tuple[tuple[int, int] | None, ...]) -> ArtifactInfo:
    """Read a config.json, once as long as the files do not change."""
    config = _whole_config(folder)
    return ArtifactInfo(
        folder,
        config["metric"],
        config["sha256"],
        config["backbone"]["name"],
        config["backbone"]["sha256"],
        config["options"],
        tuple(Licence(one["source"], one["terms"]) for one in config.get("licences", ())),
    )


@dataclass(frozen=True, eq=False)
class Artifact:
    """A trained metric: everything that scoring needs besides the backbone."""

    metric: str
    backbone: str
    """Registry name, folder or hub name of the network it was trained on."""
    backbone_sha256: str
    options: Mapping[str, Any]
    """The metric's hyper-parameters, seed included."""
    network: Mapping[str, Tensor]
    """Trained weights, in float16; those of the backbone begin with `encoder.`."""
    statistics: Mapping[str, Tensor]
    """Statistics measured on human exchanges, in float32."""
    card: str
    licence: str
    """Licence of the weights: that of the training data, by source."""
    encoder_of: str | None = None
    """Shipped artifact with the same encoder, whose weights are not written again."""
    version: str = __version__
    """Version of causerie that trained it."""

    def __post_init__(self) -> None:
        """Round the weights, so that scores after training equal those after saving and loading."""
        import torch

        for name, dtype in (("network", torch.float16), ("statistics", torch.float32)):
            tensors = {k: t.detach().cpu().to(dtype) for k, t in getattr(self, name).items()}
            object.__setattr__(self, name, tensors)

    @cached_property
    def sha256(self) -> str:
        """Digest of everything that determines a score."""
        return _hash(_json(self._config()), {**self.network, **self.statistics})

    def encoder_sha256(self, part: str = "encoder") -> str:
        """Return the digest of its encoder: artifacts with the same one share it."""
        return _hash(self.backbone_sha256, self.part(part))

    def part(self, prefix: str) -> dict[str, Tensor]:
        """Return the weights named `prefix.*` in float32, with the prefix removed."""
        start = f"{prefix}."
        return {
            name.removeprefix(start): tensor.float()
            for name, tensor in self.network.items()
            if name.startswith(start)
        }

    def save(self, folder: Path) -> None:
        """Write the artifact atomically, replacing an artifact that is already there."""
        from safetensors.torch import save

        from causerie.models.weights import check_finite

        folder = folder.resolve()
        check_place(folder)
        try:
            check_finite({**self.network, **self.statistics})
        except ValueError as error:
            raise CauserieError(
                f"the training of {self.metric} diverged ({error}): train again with a "
                "lower learning rate"
            ) from error
        with atomic_folder(folder) as temporary:
            licences = [asdict(one) for one in parse_licences(self.licence)]
            config = _json({**self._config(), "sha256": self.sha256, "licences": licences})
            (temporary / CONFIG).write_text(config, encoding="utf-8")
            (temporary / CARD).write_text(self.card, encoding="utf-8")
            (temporary / LICENCE).write_text(self.licence + "\n", encoding="utf-8")
            own = {k: t for k, t in self.network.items() if not self._shares(k)}
            for name, tensors in ((NETWORK, own), (STATISTICS, self.statistics)):
                # safetensors' own writer would make the files private
                weights = save({k: t.contiguous() for k, t in tensors.items()})
                (temporary / name).write_bytes(weights)

    def _shares(self, name: str) -> bool:
        """Whether a weight is stored in another artifact."""
        return self.encoder_of is not None and name.startswith("encoder.")

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = {
            "metric": self.metric,
            "version": self.version,
            "backbone": {"name": self.backbone, "sha256": self.backbone_sha256},
            "options": dict(self.options),
        }
        if self.encoder_of is not None:
            config["encoder"] = {"of": self.encoder_of, "sha256": self.encoder_sha256()}
        return config


def _json(config: Mapping[str, Any]) -> str:
    return json.dumps(config, indent=2) + "\n"


def _hash(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def check_place(folder: Path, *, replace: bool = True) -> None:
    """Check that the folder does not exist, is empty or holds an artifact to replace."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() and not is_artifact(folder):
        raise CauserieError(f"{folder} exists and is not an artifact: choose another folder")
    if folder.exists() and not replace:
        raise CauserieError(
            f"{folder} holds an artifact: choose another folder, or add --force to replace it"
        )


def shipped(name: str) -> Path | None:
    """Return the folder of an artifact shipped with causerie or with a package that extends it."""
    return shipped_folder("artifacts", name, CONFIG)


def shipped_artifacts(metric: str | None = None) -> list[str]:
    """Return the sorted names of all shipped artifacts, or of those of a metric."""
    names = shipped_names("artifacts", CONFIG)
    return [name for name in names if metric in (None, metric_of(find_artifact(name)))]


def research_variant(name: str) -> Path:
    """Return the folder of an artifact trained on research-only data."""
    folder = shipped(name)
    if folder is None:
        raise CauserieError(
            f"{name} is not installed: artifacts trained on research-only data come in a separate "
            "package, so run `pip install causerie-research` (in the repository: `./research`), or "
            "omit --research"
        )
    return folder


def artifact_folder(name: str) -> Path | None:
    """Return the folder of a shipped artifact or of a path; None if it is not an artifact."""
    folder = shipped(name) or Path(name)
    return folder if (folder / CONFIG).is_file() else None


def find_artifact(name: str) -> Path:
    """Return the folder of an artifact, or raise an error that says what to do."""
    folder = artifact_folder(name)
    if folder is None:
        raise CauserieError(
            f"{name} is not an artifact: give the name of a shipped one or a folder that "
            "`causerie train` wrote"
        )
    return folder


def metric_of(folder: Path) -> str:
    """Return the metric to which the artifact in a folder belongs."""
    metric = _read_config(folder)["metric"]
    return str(metric)


def load_artifact(name: str, metric: str | None = None) -> Artifact:
    """Load a shipped artifact by its name, or any by its folder; check that it is of `metric`.

    Its weights must match the digest in its config.json.
    """
    from causerie.models.weights import check_finite, tensors_of

    folder = find_artifact(name)
    other = metric_of(folder)
    if metric not in (None, other):
        raise CauserieError(f"{name} is an artifact of {other}, not of {metric}")
    config = _whole_config(folder)
    try:
        encoder = config.get("encoder")
        shared = _shared_encoder(encoder) if encoder else {}
        artifact = Artifact(
            metric=config["metric"],
            backbone=config["backbone"]["name"],
            backbone_sha256=config["backbone"]["sha256"],
            options=config["options"],
            network={**tensors_of(read_content(folder / NETWORK)), **shared},
            encoder_of=encoder["of"] if encoder else None,
            statistics=tensors_of(read_content(folder / STATISTICS)),
            card=(folder / CARD).read_text(encoding="utf-8"),
            licence=(folder / LICENCE).read_text(encoding="utf-8").removesuffix("\n"),
            version=config["version"],
        )
        check_finite({**artifact.network, **artifact.statistics})  # after rounding to float16, too
        if config["sha256"] != artifact.sha256:
            raise ValueError("its weights do not match the digest in its config.json")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(str(folder), error) from error
    return artifact


def _shared_encoder(encoder: Mapping[str, str]) -> dict[str, Tensor]:
    """Return the weights of the encoder that an artifact shares with a shipped one."""
    folder = shipped(encoder["of"])
    if folder is None or "encoder" in _read_config(folder):
        raise ValueError(f"{encoder['of']} is not a shipped artifact with an encoder of its own")
    keeper = load_artifact(encoder["of"])
    if keeper.encoder_sha256() != encoder["sha256"]:
        raise ValueError(f"this version of causerie has another encoder in {encoder['of']}")
    return {k: t for k, t in keeper.network.items() if k.startswith("encoder.")}


def damaged(where: str, error: Exception) -> CauserieError:
    why = " ".join(str(error).split())[:_LONGEST_REASON]
    return CauserieError(
        f"the artifact {where} is damaged or of another version: train it again or reinstall "
        f"causerie ({type(error).__name__}: {why})"
    )


def is_artifact(folder: Path) -> bool:
    """Whether a folder with a config.json is an artifact: pretrained networks have one too."""
    try:
        _read_config(folder)
    except CauserieError:
        return False
    return True


def _read_config(folder: Path) -> dict[str, Any]:
    """Read a config.json that names a metric; nothing else in it is checked."""
    try:
        config = read_content(folder / CONFIG).json()
    except (OSError, ValueError) as error:
        raise damaged(str(folder), error) from error
    metric = config.get("metric")
    if not (isinstance(metric, str) and metric.isprintable()):
        raise CauserieError(f"{folder / CONFIG} is not the configuration of a causerie artifact")
    return config


def _whole_config(folder: Path) -> dict[str, Any]:
    """Read a config.json and check that it has all that an artifact needs, of the right types."""
    config = _read_config(folder)
    try:
        texts = {key: config[key] for key in ("version", "sha256")}
        texts |= {f"backbone.{key}": config["backbone"][key] for key in ("name", "sha256")}
        if config.get("encoder") is not None:
            texts |= {f"encoder.{key}": config["encoder"][key] for key in ("of", "sha256")}
        for number, one in enumerate(config.get("licences", ())):
            texts |= {f"licences.{number}.{key}": one[key] for key in ("source", "terms")}
        for key, text in texts.items():
            if not (isinstance(text, str) and text.isprintable()):
                raise TypeError(f"{key} is not a text")
        if not isinstance(config["options"], dict):
            raise TypeError("options are not an object")
    except (KeyError, TypeError) as error:
        raise damaged(str(folder), error) from error
    return config
