"""All heavy compute: encoders and language models behind two batch-first interfaces.

Metrics are handed one `Engines` and ask it for what they need, so that several metrics
share one loaded network.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from causerie.engines.settings import Settings
from causerie.models import Store

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder
    from causerie.engines.likelihood import Likelihood
    from causerie.engines.ranker import Ranker
    from causerie.engines.tuning import Tuning
    from causerie.models.artifact import Artifact

__all__ = ["Engines", "Settings"]


class Engines:
    """The engines of one run, loaded on first use and shared by all its metrics."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.models_dir, offline=self.settings.offline)
        self._tuned: dict[str, Encoder] = {}
        self._rankers: dict[str, Ranker] = {}

    @cached_property
    def encoder(self) -> Encoder:
        return self.new_encoder()

    def new_encoder(self, name: str | None = None) -> Encoder:
        """An encoder of its own, to be tuned; the shared one is `encoder`."""
        from causerie.engines.encoder import Encoder

        settings = replace(self.settings, encoder=name) if name else self.settings
        return Encoder.load(self.store, settings)

    def tuned_encoder(
        self,
        artifact: Artifact,
        tuning: Tuning,
        window: int | None = None,
        part: str = "encoder",
    ) -> Encoder:
        """The encoder as an artifact's training left it, shared by all who use the artifact.

        `window` is how many tokens it may see at most; `part` says which it is where an
        artifact has several.
        """
        key = f"{artifact.encoder_sha256(part)} {tuning} {window}"
        if key not in self._tuned:
            from causerie.engines.tuning import tuned

            encoder = self.new_encoder(self._backbone(artifact))
            encoder.input.window = min(encoder.input.window, window or encoder.input.window)
            encoder.model = tuned(encoder.model, encoder.sha256, artifact, part, tuning)
            self._tuned[key] = encoder
        return self._tuned[key]

    def _backbone(self, artifact: Artifact) -> str:
        """Where it is now: folders move, so `--encoder` may say another place for it."""
        given = self.settings.encoder != Settings().encoder
        moved = given and all(artifact.backbone != entry.name for entry in self.store.entries())
        return self.settings.encoder if moved else artifact.backbone

    @cached_property
    def likelihood(self) -> Likelihood:
        from causerie.engines.likelihood import Likelihood

        return Likelihood.load(self.store, self.settings)

    def ranker(self, name: str) -> Ranker:
        """A network with one output for a response, such as DialogRPT; there is no default."""
        if name not in self._rankers:
            from causerie.engines.ranker import Ranker

            self._rankers[name] = Ranker.load(self.store, self.settings, name)
        return self._rankers[name]

    def truncation(self) -> dict[str, tuple[int, int]]:
        """Of each engine in use: how many inputs were cut to its window, and how many it saw."""
        loaded: dict[str, list[Encoder | Likelihood | Ranker | None]] = {
            "encoder": [self.__dict__.get("encoder"), *self._tuned.values()],
            "language model": [self.__dict__.get("likelihood")],
            "ranker": [*self._rankers.values()],
        }
        return {
            name: (
                sum(engine.truncation.truncated for engine in engines if engine),
                sum(engine.truncation.inputs for engine in engines if engine),
            )
            for name, engines in loaded.items()
            if any(engines)
        }
