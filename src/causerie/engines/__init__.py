"""All heavy compute: encoders and language models behind two batch-first interfaces.

Metrics are handed one `Engines` and ask it for what they need, so that several metrics
share one loaded network.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from causerie.engines.settings import Settings
from causerie.models import Store

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder
    from causerie.engines.likelihood import Likelihood

__all__ = ["Engines", "Settings"]


class Engines:
    """The engines of one run, loaded on first use and shared by all its metrics."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.models_dir, offline=self.settings.offline)

    @cached_property
    def encoder(self) -> Encoder:
        from causerie.engines.encoder import Encoder

        return Encoder.load(self.store, self.settings)

    @cached_property
    def likelihood(self) -> Likelihood:
        from causerie.engines.likelihood import Likelihood

        return Likelihood.load(self.store, self.settings)

    def truncation(self) -> dict[str, tuple[int, int]]:
        """Of each engine in use: how many inputs were cut to its window, and how many it saw."""
        loaded = {
            "encoder": self.__dict__.get("encoder"),
            "language model": self.__dict__.get("likelihood"),
        }
        return {
            name: (engine.truncation.truncated, engine.truncation.inputs)
            for name, engine in loaded.items()
            if engine is not None
        }
