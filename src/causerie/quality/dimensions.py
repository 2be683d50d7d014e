"""What judged sets call the qualities of a reply, and what `quality` calls them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

DIMENSIONS: Final = {
    "relevant": "how well the reply fits what was said",
    "coherent": "how coherently it follows",
    "engaging": "how engaging it is",
    "specific": "how much it says, and how specifically",
    "fluent": "how fluent it is",
}
"""The qualities that enough sets judge."""

_CALLED: Final = {
    "relevant": ("relevance", "relevant"),
    "coherent": ("coherence", "appropriateness", "semantically appropriate", "maintains context"),
    "engaging": ("engagement", "engaging", "engaging_majority", "interesting"),
    "specific": ("specific", "informativeness", "content"),
    "fluent": ("grammar", "fluent", "natural", "understandable"),
}


def dimension_of(quality: str, judged: Iterable[str]) -> str | None:
    """The dimension among those of a judged set that means that quality, if any."""
    known = {name.lower(): name for name in judged}
    return next((known[name] for name in _CALLED[quality] if name in known), None)
