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
    research_variant,
    shipped,
)

if TYPE_CHECKING:
    from causerie.engines.settings import Settings

LM = "lm"
"""What artifacts of language models call themselves, and the name of the shipped one."""
STOCK = "default-lm"
"""The default network as it was published, whatever it was tuned to since."""
RESEARCH = "lm-research"
"""The one that takes its place with `Settings.research`."""


def load_language_model(store: Store, settings: Settings) -> tuple[Backbone, Artifact | None]:
    """The network that `settings.lm` names, and the artifact if it is a tuned one."""
    info = tuned_language_model(settings)
    artifact = info.load() if info else None
    if artifact is not None:
        name = artifact.backbone
        way = f"score something with --lm {name} first, which fetches it"
        store = store.consented(name, "language model", way)
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


def tuned_language_model(settings: Settings) -> ArtifactInfo | None:
    """The artifact that `settings.lm` stands for; None if it is a stock model.

    The default language model is the shipped artifact, if there is one.
    """
    if settings.lm != "default":
        folder = artifact_folder(settings.lm)
    else:
        folder = research_variant(RESEARCH) if settings.research else shipped(LM)
    if folder is None or not is_artifact(folder):
        return None
    return ArtifactInfo.read(folder, LM)
