"""Pretrained and trained weights: a registry of known models, a verifying store, a loader."""

from __future__ import annotations

from causerie.models.folder import Pooling
from causerie.models.loading import Backbone, load_backbone
from causerie.models.registry import Entry, Kind
from causerie.models.store import Resolved, Store

__all__ = ["Backbone", "Entry", "Kind", "Pooling", "Resolved", "Store", "load_backbone"]
