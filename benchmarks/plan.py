"""Several metrics in one plan against passing their distinct texts once through each encoder.

    python benchmarks/plan.py [--exchanges N] [--rounds N] [--metrics LIST] [--processor-time]

The plan is carried out by a scorer whose networks are loaded and which remembers no text. The
bound is what the encoders alone take for the distinct inputs that the metrics asked of them, in
the same batches. Rounds are interleaved and the fastest of each counts. Exit status 1 if the plan
takes more than 1.4 times the bound. On a busy machine, processor time with one thread says more
than the clock.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from causerie.dialogue import Dialogue, Turn
from causerie.engines import Engines
from causerie.engines.encoder import Encoder, EncoderInput
from causerie.quality.judging import Judge
from causerie.scoring import Plan, Scorer

CLOCK = time.process_time if "--processor-time" in sys.argv else time.perf_counter
BAR = 1.4
METRICS = "density,causalscore,grade,cosine,odes,quality"
WORDS = """
the a to i you it and that of in is for my on with have do was are not so but what we this be
like they at just me about know can had your good get one he she there really think time music
dog garden winter train kitchen brother doctor summer guitar river holiday teacher coffee window
"""


def dialogues(exchanges: int, rng: random.Random) -> list[Dialogue]:
    """Dialogues of 2 to 11 turns, a turn of 4 to 30 words."""
    found: list[Dialogue] = []
    total = 0
    while total < exchanges:
        texts = [
            " ".join(rng.choices(WORDS.split(), k=round(rng.triangular(4, 30, 10))))
            for _ in range(rng.randint(2, 11))
        ]
        turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
        found.append(Dialogue(str(len(found)), turns))
        total += len(turns) - 1
    return found


def record(encoders: list[Encoder], work: Callable[[], object]) -> list[list[EncoderInput]]:
    """The distinct inputs that each encoder is asked for while work is done."""
    asked: list[dict[EncoderInput, None]] = [{} for _ in encoders]
    for encoder, seen in zip(encoders, asked, strict=True):
        for name in ("encode", "tokens"):
            original = getattr(encoder, name)

            def noted(
                inputs: Any, *rest: Any, _original: Any = original, _seen: Any = seen, **named: Any
            ) -> Any:
                _seen.update(dict.fromkeys(inputs))
                return _original(inputs, *rest, **named)

            setattr(encoder, name, noted)
    work()
    for encoder in encoders:
        for name in ("encode", "tokens"):
            delattr(encoder, name)
    return [list(seen) for seen in asked]


def seconds(engines: Engines, work: Callable[[], object]) -> float:
    made = [part for one in engines.loaded() for part in (one if isinstance(one, tuple) else [one])]
    for one in made:
        if isinstance(one, Encoder):
            one.forget()
        elif isinstance(one, Judge):
            one.parts.forget()
    start = CLOCK()
    work()
    return CLOCK() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exchanges", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--processor-time", action="store_true", help="for busy machines")
    options = parser.parse_args()
    talks = dialogues(options.exchanges, random.Random(0))
    scorer = Scorer(Plan.of(options.metrics, speaker="all"))
    alone = Scorer(Plan.of("density", speaker="all"), engines=scorer.engines)

    def score(with_scorer: Scorer) -> None:
        for _ in with_scorer.batches(talks):
            pass

    list(scorer.batches(talks[:3]))
    encoders = [one for one in scorer.engines.loaded() if isinstance(one, Encoder)]
    inputs = record(encoders, lambda: score(scorer))

    def bound() -> None:
        for encoder, own in zip(encoders, inputs, strict=True):
            for start in range(0, len(own), 2048):
                encoder.encode(own[start : start + 2048])

    works: dict[str, Callable[[], None]] = {
        "plan": lambda: score(scorer),
        "bound": bound,
        "density": lambda: score(alone),
    }
    best = dict.fromkeys(works, float("inf"))
    for _ in range(options.rounds):
        for name, work in works.items():
            best[name] = min(best[name], seconds(scorer.engines, work))
    for encoder, own in zip(encoders, inputs, strict=True):
        print(f"{encoder.name}: {len(own):,} distinct inputs")
    ratio = best["plan"] / best["bound"]
    print(
        f"{options.metrics}: {ratio:.2f} times the encoders alone (at most {BAR}), "
        f"{best['plan'] / best['density']:.2f} times density alone"
    )
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
