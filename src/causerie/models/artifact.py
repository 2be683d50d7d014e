"""Artifacts: trained metrics on disk, as a folder of JSON, safetensors and a card.

config.json             metric, version, hyper-parameters, backbone with its hash, seed, and the
                        digest of all that decides scores, so that it can be told without weights;
                        and what each source of its data is licensed under
network.safetensors     trained weights, float16; without the encoder's where another artifact,
                        which comes with causerie, has the same: config.json names it
statistics.safetensors  means, covariances, calibration: float32
card.md                 data, licence, recipe, results, limits
LICENSE                 of the data it was trained on, which goes with the weights
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
    """What an artifact's config.json says: enough to name it without reading its weights."""

    folder: Path
    metric: str
    sha256: str
    backbone: str
    backbone_sha256: str
    options: Mapping[str, Any]
    licences: tuple[Licence, ...]
    """Of the data that it was trained on; none where an earlier version did not write them."""

    @property
    def free(self) -> bool:
        """Whether it is known that commercial use is allowed."""
        return bool(self.licences) and all(one.free for one in self.licences)

    @classmethod
    def read(cls, folder: Path, metric: str | None = None) -> ArtifactInfo:
        """The artifact in a folder; one of `metric` where that is given."""
        files = [folder / name for name in (CONFIG, NETWORK, STATISTICS)]
        states = [file.stat() if file.is_file() else None for file in files]
        if metric is not None and (other := metric_of(folder)) != metric:
            raise CauserieError(f"{folder.name} is an artifact of {other}, not of {metric}")
        return _read_info(folder, tuple(s and (s.st_mtime_ns, s.st_size) for s in states))

    @classmethod
    def find(cls, name: str, metric: str | None = None) -> ArtifactInfo:
        """A shipped artifact by its name, or any by its folder."""
        return cls.read(find_artifact(name), metric)

    def load(self) -> Artifact:
        """The artifact itself, which must still be the one that was read about."""
        artifact = load_artifact(str(self.folder), self.metric)
        self.check_same(artifact.sha256)
        return artifact

    def check_same(self, sha256: str) -> None:
        """Scores must come from the artifact that their signature names."""
        if sha256 != self.sha256:
            raise CauserieError(
                f"the artifact {self.folder} changed after it was first read: start again"
            )


@lru_cache(64)
def _read_info(folder: Path, states: tuple[tuple[int, int] | None, ...]) -> ArtifactInfo:
    """What a config.json says, read once as long as the files stay as they are."""
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
    """A trained metric: all that scoring needs besides the backbone."""

    metric: str
    backbone: str
    """Registry name, folder or hub name of the network it was trained on."""
    backbone_sha256: str
    options: Mapping[str, Any]
    """The metric's hyper-parameters, seed included."""
    network: Mapping[str, Tensor]
    """Trained weights, in float16; those of the backbone begin with `encoder.`."""
    statistics: Mapping[str, Tensor]
    """What was measured on human exchanges, in float32."""
    card: str
    licence: str
    """Under which the weights may be used: that of the data they were trained on, by source."""
    encoder_of: str | None = None
    """A shipped artifact that has the same encoder, so that its weights are not written again."""
    version: str = __version__
    """Of causerie when it was trained."""

    def __post_init__(self) -> None:
        """Scores right after training are those after saving and loading."""
        import torch

        for name, dtype in (("network", torch.float16), ("statistics", torch.float32)):
            tensors = {k: t.detach().cpu().to(dtype) for k, t in getattr(self, name).items()}
            object.__setattr__(self, name, tensors)

    @cached_property
    def sha256(self) -> str:
        """The digest of everything that decides a score."""
        return _hash(_json(self._config()), {**self.network, **self.statistics})

    def encoder_sha256(self, part: str = "encoder") -> str:
        """Of all that makes its encoder: artifacts with the same one share it."""
        return _hash(self.backbone_sha256, self.part(part))

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The weights whose names begin with `prefix` and a dot, without it, in float32."""
        start = f"{prefix}."
        return {
            name.removeprefix(start): tensor.float()
            for name, tensor in self.network.items()
            if name.startswith(start)
        }

    def save(self, folder: Path) -> None:
        """Write it: whole or not at all; an older artifact in its place is replaced."""
        from safetensors.torch import save

        from causerie.models.weights import check_finite

        folder = folder.resolve()
        check_place(folder)
        try:
            check_finite({**self.network, **self.statistics})
        except ValueError as error:
            raise CauserieError(
                f"the training of {self.metric} came to nothing ({error}): train again with a "
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
                # safetensors' own writer would let nobody else read them
                weights = save({k: t.contiguous() for k, t in tensors.items()})
                (temporary / name).write_bytes(weights)

    def _shares(self, name: str) -> bool:
        """Whether a weight stands in another artifact."""
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
    """An artifact can be written there: nothing is, or another artifact that may be replaced."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() and not is_artifact(folder):
        raise CauserieError(f"{folder} exists and is no artifact: choose another place")
    if folder.exists() and not replace:
        raise CauserieError(
            f"{folder} holds an artifact: choose another place, or add --force to replace it"
        )


def shipped(name: str) -> Path | None:
    """Folder of an artifact that comes with causerie, or with a package that adds to it."""
    return shipped_folder("artifacts", name, CONFIG)


def shipped_artifacts(metric: str | None = None) -> list[str]:
    """The names of those artifacts, sorted: all, or those of a metric."""
    names = shipped_names("artifacts", CONFIG)
    return [name for name in names if metric in (None, metric_of(find_artifact(name)))]


def research_variant(name: str) -> Path:
    """Folder of an artifact that learned from data for research only."""
    folder = shipped(name)
    if folder is None:
        raise CauserieError(
            f"{name} is not here: what learned from data for research only comes in a package of "
            "its own, so run `pip install causerie-research` (in the repository: `./research`), or "
            "leave --research out"
        )
    return folder


def artifact_folder(name: str) -> Path | None:
    """Folder of a shipped artifact by its name, or of any by its path; None if there is none."""
    folder = shipped(name) or Path(name)
    return folder if (folder / CONFIG).is_file() else None


def find_artifact(name: str) -> Path:
    """The same, or an error that says what to do."""
    folder = artifact_folder(name)
    if folder is None:
        raise CauserieError(
            f"{name} is no artifact: give the name of a shipped one or a folder that "
            "`causerie train` wrote"
        )
    return folder


def metric_of(folder: Path) -> str:
    """Which metric the artifact in a folder belongs to."""
    metric = _read_config(folder)["metric"]
    return str(metric)


def load_artifact(name: str, metric: str | None = None) -> Artifact:
    """A shipped artifact by its name, or any by its folder; one of `metric` where that is given.

    Its weights are those that its config.json has the digest of.
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
        check_finite({**artifact.network, **artifact.statistics})  # as halves, too
        if config["sha256"] != artifact.sha256:
            raise ValueError("its weights are not those that its config.json names")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(str(folder), error) from error
    return artifact


def _shared_encoder(encoder: Mapping[str, str]) -> dict[str, Tensor]:
    """The weights of the encoder that an artifact has in common with a shipped one."""
    folder = shipped(encoder["of"])
    if folder is None or "encoder" in _read_config(folder):
        raise ValueError(f"{encoder['of']} is not an artifact that has an encoder to share")
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
    """Whether a folder with a config.json is one of causerie: pretrained networks have one too."""
    try:
        _read_config(folder)
    except CauserieError:
        return False
    return True


def _read_config(folder: Path) -> dict[str, Any]:
    """A config.json that names a metric; nothing else about it is known to be right."""
    try:
        config = read_content(folder / CONFIG).json()
    except (OSError, ValueError) as error:
        raise damaged(str(folder), error) from error
    metric = config.get("metric")
    if not (isinstance(metric, str) and metric.isprintable()):
        raise CauserieError(f"{folder / CONFIG} is not the configuration of a causerie artifact")
    return config


def _whole_config(folder: Path) -> dict[str, Any]:
    """A config.json that has all that an artifact needs, of the right types."""
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
