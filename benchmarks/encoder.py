"""How much the encoder engine gains by batching, and how much is left to gain.

    python benchmarks/encoder.py [--encoder NAME] [--exchanges N] [--rounds N]

Encodes exchanges with the lengths of everyday conversation in four ways: the engine; one input
per forward pass; fixed-order batches of 32, padded to the longest; and, as a bound that no
batching can beat, the same number of tokens in batches without any padding, at the fastest of
several batch shapes. Rounds are interleaved and the fastest of each counts, since other work
on the machine only ever slows one down. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence

import torch

from causerie.engines import Settings
from causerie.engines.encoder import Encoder, EncoderInput, pool
from causerie.models import Store, load_backbone

BARS = {"batch of one": 1.5, "fixed batches of 32": 1.3, "padding-free bound": 0.8}

WORDS = """
the a to i you it and that of in is for my on with have do was are not so but what we this
be like they at just me about know can had your good get one he she there really think time
would going well how been weekend work friend music film dinner morning coffee sister brother
holiday mountains beach train ticket weather raining sunny cooking pasta recipe guitar lesson
teacher exam office meeting boss project late tired happy sorry thanks please maybe never
always sometimes yesterday tomorrow tonight favourite expensive cheap beautiful interesting
restaurant hospital doctor appointment football match team game watching reading book author
"""


def conversation_exchanges(count: int, rng: random.Random) -> list[EncoderInput]:
    """(context, response) pairs: every exchange of dialogues of 2 to 11 turns.

    A turn has 4 to 30 words (a response 3 to 25), short ones more often than long ones.
    """

    def turn(shortest: int, longest: int) -> str:
        length = round(rng.triangular(shortest, longest, shortest + (longest - shortest) / 4))
        return " ".join(rng.choices(WORDS.split(), k=length)).capitalize() + rng.choice(".?!")

    exchanges: list[EncoderInput] = []
    while len(exchanges) < count:
        turns = tuple(turn(4, 30) for _ in range(rng.randint(2, 11)))
        exchanges += [(turns[:end], (turn(3, 25),)) for end in range(1, len(turns))]
    return exchanges[:count]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run_batch(encoder: Encoder, batch: dict[str, torch.Tensor]) -> None:
    with torch.inference_mode():
        pool(encoder.forward(batch), batch["attention_mask"], encoder.pooling).cpu().numpy()


def run_fixed(encoder: Encoder, inputs: Sequence[EncoderInput], size: int) -> None:
    for start in range(0, len(inputs), size):
        rows = encoder.input.rows(inputs[start : start + size])
        run_batch(encoder, encoder.input.collate(rows))


def padding_free(encoder: Encoder, rows: int, length: int, tokens: int) -> float:
    """Seconds for that many tokens in batches of one shape, nothing padded."""
    shape = (rows, length)
    batch = {
        "input_ids": torch.randint(1000, 20000, shape),
        "attention_mask": torch.ones(shape, dtype=torch.long),
    }
    batches = max(1, tokens // (rows * length))
    taken = seconds(lambda: [run_batch(encoder, batch) for _ in range(batches)])
    return taken * tokens / (batches * rows * length)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--exchanges", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    settings = Settings(encoder=arguments.encoder)
    backbone = load_backbone(
        Store(),
        settings.encoder,
        "encoder",
        dtype=settings.torch_dtype(),
        device=settings.torch_device(),
    )
    inputs = conversation_exchanges(arguments.exchanges, random.Random(0))
    encoder = Encoder(backbone)
    lengths = [len(row) for row in encoder.input.rows(inputs)]
    tokens, typical = sum(lengths), sorted(lengths)[len(lengths) // 2]
    print(f"{len(inputs)} exchanges, {tokens} tokens: median {typical}, longest {max(lengths)}")

    encoder.encode(inputs[:64])  # warm up
    shapes = [
        (max(1, budget // length), length)
        for budget in (1024, 2048, 4096, 8192)
        for length in (typical // 2, typical, typical * 2)
    ]
    best = min(shapes, key=lambda shape: padding_free(encoder, *shape, tokens // 4))
    ways: dict[str, Callable[[], float]] = {
        # A new engine each time: it would remember the vectors.
        "engine": lambda: seconds(lambda: Encoder(backbone).encode(inputs)),
        "batch of one": lambda: seconds(lambda: run_fixed(encoder, inputs, 1)),
        "fixed batches of 32": lambda: seconds(lambda: run_fixed(encoder, inputs, 32)),
        "padding-free bound": lambda: padding_free(encoder, *best, tokens),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(arguments.rounds):
        for way, measure in ways.items():
            times[way].append(measure())

    fastest = {way: min(taken) for way, taken in times.items()}
    missed = False
    for way, taken in fastest.items():
        shape = f" (batches of {best[0]} x {best[1]})" if way == "padding-free bound" else ""
        line = f"{way:20} {tokens / taken:8.0f} tokens/s"
        if way in BARS:
            ratio = taken / fastest["engine"]
            missed = missed or ratio < BARS[way]
            line += f"   engine is {ratio:.2f} times as fast (bar {BARS[way]}){shape}"
        print(line)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
