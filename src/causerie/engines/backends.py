"""Which backend computes an encoder where the user leaves it to us: the quickest that is right.

A few texts go through torch and through the others, once for a machine, an encoder and the
versions of what computes; the answer is kept in the model store.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causerie._version import __version__
from causerie.engines.settings import BACKENDS
from causerie.errors import CauserieError
from causerie.io.atomic import write_whole
from causerie.progress import Progress, announced, print_note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.encoder import Encoder, EncoderInput
    from causerie.engines.settings import Settings
    from causerie.models import Store

KEPT = "backends.json"
"""The file of the model store that has the answers."""
NEAREST = {"onednn": 0.999999, "onednn-bf16": 0.999}
"""The cosine that every vector must have at least with torch's."""
IN_FLOAT32 = ("torch", "onednn")
WORTHWHILE = 1.1
"""Times as quick as torch that another backend must be."""
_ROUNDS = 2

_SENTENCES = (
    "Hello!",
    "How are you doing today?",
    "I went hiking in the mountains with my sister last weekend, and it rained all day.",
    "That sounds great! Which trail did you take, and how long was it?",
    "I don't know. What do you mean?",
    "My favourite food is pizza, but I can't cook it as well as my mother does at home.",
    "The train was late again, so I missed the beginning of the film and had to guess the rest.",
)
_TEXTS = [
    *_SENTENCES,
    *(f"{one} {other}" for one in _SENTENCES for other in _SENTENCES[2:] if one != other),
    " ".join(_SENTENCES),
]


def settled(store: Store, settings: Settings) -> tuple[str, str]:
    """The backend for the encoder of the settings, and the one in float32: kept or found now."""
    file = store.folder / KEPT
    key = _key(store, settings)
    kept = _kept(file).get(key)
    if isinstance(kept, list) and len(kept) == 2 and all(one in BACKENDS for one in kept):
        return kept[0], kept[1]
    with announced(f"trying the backends of {settings.encoder}"):
        chosen, why = _chosen(store, settings)
    with suppress(CauserieError):  # a store that cannot be written is asked again each time
        write_whole(file, json.dumps({**_kept(file), key: chosen}, indent=1, sort_keys=True))
    print_note(Progress("choosing a backend", note=f"--backend auto: {chosen[0]} ({why})"))
    return chosen


def _chosen(store: Store, settings: Settings) -> tuple[tuple[str, str], str]:
    """The quickest backend, and the quickest in float32; and in words how that is known."""
    from causerie.engines.encoder import Encoder

    encoder = Encoder.load(store, settings)
    expected, taken = _tried(encoder)
    gains, cosines = {"torch": 1.0}, {"torch": 1.0}
    for backend in BACKENDS[1:]:
        other = encoder.as_now()
        try:
            other.compute_with(backend)
            found, seconds = _tried(other)
        except (CauserieError, RuntimeError):  # this machine or this network is not for it
            continue
        near, gain = _least_cosine(found, expected), taken / seconds
        if near >= NEAREST[backend] and gain >= WORTHWHILE and _is_steady(other, found):
            gains[backend], cosines[backend] = gain, near
    best = max(gains, key=gains.__getitem__)
    exact = max((one for one in gains if one in IN_FLOAT32), key=gains.__getitem__)
    why = f"nothing quicker is right for {encoder.name} here"
    if best != "torch":
        why = (
            f"{gains[best]:.1f} times as quick as torch for {encoder.name}; vectors have a cosine "
            f"of at least {cosines[best]:.5f} with torch's"
        )
    return (best, exact), why


def _tried(encoder: Encoder) -> tuple[NDArray[Any], float]:
    """Its vectors of some texts, and the seconds they took."""
    inputs: list[EncoderInput] = [((text,),) for text in _TEXTS]
    encoder.encode(inputs[:2])  # whatever is made on first use
    taken = []
    for _ in range(_ROUNDS):
        encoder.forget()
        start = time.perf_counter()
        vectors = encoder.encode(inputs)
        taken.append(time.perf_counter() - start)
    return vectors, min(taken)


def _least_cosine(found: NDArray[Any], expected: NDArray[Any]) -> float:
    import numpy as np

    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    least = float(((found * expected).sum(1) / lengths).min())
    return least if np.isfinite(least) else 0.0


def _is_steady(encoder: Encoder, together: NDArray[Any]) -> bool:
    """Whether a text's numbers are the same to the last bit when it is alone."""
    import numpy as np

    encoder.forget()
    alone: Sequence[NDArray[Any]] = [encoder.encode([((text,),)])[0] for text in _TEXTS[::5]]
    return np.array_equal(np.stack(alone), together[::5])


def _key(store: Store, settings: Settings) -> str:
    """Everything that an answer holds for."""
    encoder = store.identify(settings.encoder, "encoder")
    known = [
        f"causerie {__version__}, torch {version('torch')}",
        f"{platform.machine()} {_processor()}",
        f"{encoder.label}@{encoder.digest[:12]}",
        f"{settings.device} {settings.dtype}",
    ]
    return "; ".join(known)


def _processor() -> str:
    """What the processor is called."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _kept(file: Path) -> dict[str, Any]:
    try:
        kept = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
