"""Language models by name: pretrained ones, and those that were tuned on dialogues."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from causerie.engines.tuning import Tuning, tuned
from causerie.models import Backbone, Store, load_backbone
from causerie.models.artifact import (
    Artifact,
    ArtifactInfo,
    artifact_folder,
    damaged,
    is_artifact,
    shipped,
)

if TYPE_CHECKING:
    from causerie.engines.settings import Settings

LM = "lm"
"""What artifacts of language models call themselves, and the name of the shipped one."""


def load_language_model(store: Store, settings: Settings) -> tuple[Backbone, Artifact | None]:
    """The network that `settings.lm` names, and the artifact if it is a tuned one."""
    info = tuned_language_model(settings.lm)
    artifact = info.load() if info else None
    if artifact is not None:
        name = artifact.backbone
        store.check_consent(name, f"score something with --lm {name} first, which fetches it")
    backbone = load_backbone(
        store,
        artifact.backbone if artifact else settings.lm,
        "language model",
        dtype=settings.torch_dtype(),
        device=settings.torch_device(),
    )
    if artifact is None:
        return backbone, None
    try:
        tuning = Tuning("adapter", artifact.options["rank"], artifact.options["layers"])
    except (KeyError, TypeError) as error:
        raise damaged(f"of {LM}", error) from error
    model = tuned(backbone.model, backbone.sha256, artifact, LM, tuning)
    return replace(
        backbone, name=f"{backbone.name}+{LM}", sha256=artifact.sha256, model=model
    ), artifact


def tuned_language_model(name: str) -> ArtifactInfo | None:
    """The artifact that a language model's name stands for; None if it is a stock model.

    The default language model is the shipped artifact, if there is one.
    """
    folder = shipped(LM) if name == "default" else artifact_folder(name)
    if folder is None or not is_artifact(folder):
        return None
    return ArtifactInfo.read(folder, LM)
