"""Encoders with the weights of an artifact: an adapter merged in, or tuned as a whole."""

from __future__ import annotations

from causerie.engines.encoder import Encoder
from causerie.errors import CauserieError
from causerie.models.artifact import Artifact


def tune(encoder: Encoder, artifact: Artifact) -> None:
    """Give a freshly loaded encoder the artifact's weights."""
    if encoder.sha256 != artifact.backbone_sha256:
        raise CauserieError(
            f"the artifact in {artifact.folder} was trained on other weights of "
            f"{artifact.backbone}: run `causerie models verify`, or train it again"
        )
    if artifact.adapter:
        from peft import PeftModel

        adapted = PeftModel.from_pretrained(encoder.model, str(artifact.adapter))
        encoder.model = adapted.merge_and_unload().eval()
    tuned = {
        key.removeprefix("encoder."): tensor
        for key, tensor in artifact.network.items()
        if key.startswith("encoder.")
    }
    if tuned:
        encoder.model.load_state_dict(tuned)
