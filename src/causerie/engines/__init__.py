"""All heavy compute: encoders and language models behind two batch-first interfaces.

A metric is handed one `Engines` when it scores and asks it for the networks that it needs, so
that several metrics share one loaded network. What networks there are and what decides their
numbers can be told before any of them is loaded (`signature`).
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from causerie.engines.cache import Cuts, counted_cuts
from causerie.engines.language import STOCK, tuned_language_model
from causerie.engines.settings import Settings
from causerie.models import Kind, Store
from causerie.models.artifact import ArtifactInfo

if TYPE_CHECKING:
    from causerie.engines.chat import Chat, Endpoint
    from causerie.engines.encoder import Encoder
    from causerie.engines.likelihood import Likelihood
    from causerie.engines.ranker import Ranker
    from causerie.engines.tuning import Tuning
    from causerie.models.artifact import Artifact

__all__ = ["Cuts", "Engines", "Settings", "counted_cuts"]

Made = TypeVar("Made")

SETTLING = 0.05
"""Seconds that threads which have just ended get before a fork."""


@contextmanager
def used_threads(count: int | None) -> Iterator[None]:
    """Compute with so many threads meanwhile; None leaves it to torch."""
    if count is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def settle_memory() -> None:
    """Wait, before a fork, until no thread holds the lock of MKL's memory.

    Threads that have just ended give their buffers back for a moment longer. A process that is
    forked meanwhile would wait for that lock for ever.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    time.sleep(SETTLING)
    for release in _mkl("mkl_serv_free_buffers", Path(str(torch.__file__)).with_name("lib")):
        release()


@lru_cache(1)
def _mkl(name: str, folder: Path) -> list[Any]:
    """A function of MKL's, where torch has it."""
    libraries = [ctypes.CDLL(str(one)) for one in folder.glob("libtorch_cpu.*")]
    return [getattr(one, name) for one in libraries if hasattr(one, name)]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=settle_memory)


class Engines:
    """The engines of one scorer, loaded on first use and shared by all its metrics.

    Whoever computes with them does it while `computing`: networks are not made for several
    threads at once. A process that was forked makes its own and computes with one thread, since
    of the threads that the others share out their work to, none survives a fork.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.models_dir, offline=self.settings.offline)
        self.loading_seconds = 0.0
        """Spent on loading networks so far, so that scoring can be timed without it."""
        self._forked = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = RLock()
        self._shared: dict[Hashable, Any] = {}
        self._making = 0

    @contextmanager
    def _held(self) -> Iterator[None]:
        if self._process != os.getpid():
            self._forked = True
            self._begin()
        with self._lock:
            yield

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Hold the networks, with the number of threads that the settings ask for."""
        with self._held(), used_threads(1 if self._forked else self.settings.threads):
            yield

    def shared(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made under that key before, or what `make` makes now."""
        with self._held():
            if key not in self._shared:
                start, self._making = time.perf_counter(), self._making + 1
                try:
                    self._shared[key] = make()
                finally:
                    self._making -= 1
                    if not self._making:  # what was made on the way is part of it
                        self.loading_seconds += time.perf_counter() - start
            return cast(Made, self._shared[key])

    def loaded(self) -> list[Any]:
        """Everything that has been made so far: networks, artifacts, signatures."""
        with self._held():
            return list(self._shared.values())

    @property
    def encoder(self) -> Encoder:
        return self.shared("encoder", lambda: self.new_encoder(trainable=False))

    def named_encoder(self, name: str) -> Encoder:
        """An encoder by name, shared by all who ask for it, whatever the settings' own is."""
        return self.shared(("encoder", name), lambda: self.new_encoder(name, trainable=False))

    def new_encoder(self, name: str | None = None, *, trainable: bool = True) -> Encoder:
        """An encoder of its own, to be tuned; the shared one is `encoder`."""
        from causerie.engines.encoder import Encoder

        settings = replace(self.settings, encoder=name) if name else self.settings
        encoder = Encoder.load(self.store, settings, trainable=trainable)
        if not trainable:
            encoder.compute_with(self.backend(name))
        return encoder

    def backend(self, name: str | None = None, *, exact: bool = False) -> str:
        """What computes an encoder, in float32 if it is to be `exact`.

        `auto` is settled once for a machine and an encoder.
        """
        chosen = self.settings.backend
        if chosen == "auto":
            settings = replace(self.settings, encoder=name or self.settings.encoder)

            def settle() -> tuple[str, str]:
                from causerie.engines.backends import settled

                with used_threads(settings.threads):
                    return settled(self.store, settings)

            return self.shared(("backend", settings.encoder), settle)[exact]
        return "onednn" if exact and chosen == "onednn-bf16" else chosen

    def backend_of(self, backbone: str, *, exact: bool = False) -> str:
        """The same for the encoder that an artifact was trained on."""
        if self.settings.backend != "auto":
            return self.backend(exact=exact)  # wherever that encoder is
        return self.backend(self._backbone(backbone)[0], exact=exact)

    def steady(self, info: ArtifactInfo) -> ArtifactInfo:
        """What is known of an artifact, which stays the same as long as these engines are used."""
        first = self.shared(("steady", info.folder), lambda: info)
        first.check_same(info.sha256)
        return first

    def artifact(self, info: ArtifactInfo) -> Artifact:
        """A trained metric's weights, read once."""
        return self.shared(("artifact", info.sha256), info.load)

    def tuned_encoder(
        self,
        artifact: Artifact,
        tuning: Tuning,
        window: int | None = None,
        part: str = "encoder",
        *,
        exact: bool = False,
    ) -> Encoder:
        """The encoder as an artifact's training left it, shared by all who use the artifact.

        `window` is how many tokens it may see at most; `part` says which it is where an
        artifact has several. Where training left the encoder as it was, it is the stock one.
        `exact` is for metrics whose scores another precision would change too much.
        """
        backend = self.backend_of(artifact.backbone, exact=exact)
        untouched = tuning.kind == "frozen" and window is None and self._is_stock(artifact)
        if untouched and backend == self.backend():
            return self.encoder
        return self.shared(
            ("encoder", artifact.encoder_sha256(part), tuning, window, backend),
            lambda: self._restored(artifact, tuning, window, part, backend),
        )

    def _restored(
        self, artifact: Artifact, tuning: Tuning, window: int | None, part: str, backend: str
    ) -> Encoder:
        from causerie.engines.encoder import Encoder
        from causerie.engines.tuning import tuned

        name, store = self._backbone(artifact.backbone)
        settings = replace(self.settings, encoder=name)
        # An adapter is merged by the library that trained it; other weights take their places.
        encoder = Encoder.load(store, settings, trainable=tuning.kind == "adapter")
        encoder.input.window = min(encoder.input.window, window or encoder.input.window)
        encoder.model = tuned(encoder.model, encoder.sha256, artifact, part, tuning)
        encoder.compute_with(backend)
        return encoder

    def _is_stock(self, artifact: Artifact) -> bool:
        """Whether the encoder of these settings is what the artifact was trained on."""
        stock = self.store.identify(self.settings.encoder, "encoder")
        return stock.sha256 == artifact.backbone_sha256

    def _backbone(self, name: str) -> tuple[str, Store]:
        """An artifact's, and where it is: folders move, so `--encoder` may say another place."""
        given = self.settings.encoder != Settings().encoder
        if given and all(name != entry.name for entry in self.store.entries()):
            return self.settings.encoder, self.store
        return name, self.store.consented(name, "encoder", f"add --encoder {name}")

    @property
    def likelihood(self) -> Likelihood:
        return self.named_likelihood(None)

    def named_likelihood(self, name: str | None) -> Likelihood:
        """A language model by name, shared by all who ask for it; None is the settings' own."""
        settings = self._with_lm(name)

        def load() -> Likelihood:
            from causerie.engines.likelihood import Likelihood

            tuned = self._tuned_language_model(settings)
            engine = Likelihood.load(self.store, settings)
            if tuned:
                tuned.check_same(engine.backbone.sha256)
            return engine

        return self.shared(("likelihood", self.signature("language model", name)), load)

    def _with_lm(self, name: str | None) -> Settings:
        """The stock network is read in its own format, as what learned from it did."""
        if name is None:
            return self.settings
        form = None if name == STOCK else self.settings.turn_format
        return replace(self.settings, lm=name, turn_format=form)

    def _tuned_language_model(self, settings: Settings) -> ArtifactInfo | None:
        info = tuned_language_model(settings)
        return self.steady(info) if info else None

    def chat(self, endpoint: Endpoint) -> Chat:
        """Whoever answers at an endpoint, so that all who ask it share one budget."""

        def connect() -> Chat:
            from causerie.engines.chat import Chat

            return Chat(endpoint)

        return self.shared(("chat", endpoint), connect)

    def ranker(self, name: str) -> Ranker:
        """A network with one output for a response, such as DialogRPT; there is no default."""

        def load() -> Ranker:
            from causerie.engines.ranker import Ranker

            return Ranker.load(self.store, self.settings, name)

        return self.shared(("ranker", name), load)

    def signature(self, kind: Kind, name: str | None = None) -> str:
        """What decides the numbers of a network, told without loading it."""
        return self.shared(("signature", kind, name), lambda: self._signature(kind, name))

    def _signature(self, kind: Kind, name: str | None) -> str:
        if kind == "language model":
            settings = self._with_lm(name)
            tuned = self._tuned_language_model(settings)
            form = settings.turn_format or (tuned.options.get("turn_format") if tuned else None)
            if tuned:
                model = f"lm@{tuned.sha256[:12]}"
            else:
                stock = self.store.identify(settings.lm, kind)
                model = f"lm:{stock.label}@{stock.digest[:12]}"
            return ",".join([model, form or "own format", settings.dtype])
        found = self.store.identify(name or self.settings.encoder, kind)
        model = f"{kind}:{found.label}@{found.digest[:12]}"
        backend = self.backend(name) if kind == "encoder" else "torch"
        return f"{model},{self.precision(backend)}"

    def precision(self, backend: str) -> str:
        """How exactly numbers are made, for signatures."""
        return self.settings.dtype if backend == "torch" else backend
