"""What the backends of the encoder engine gain, and how far their scores are from torch's.

    python benchmarks/backends.py [--texts N] [--parts N] [--no-sentence-transformers]
        [--processor-time]
    python benchmarks/backends.py --scores FILE... [--limit N]

The first encodes the same texts of mixed length with sentence-transformers' `encode`, with every
backend, and with the bound that no batching can beat: as many tokens of which none is padding,
through the layers alone. Texts come in parts, which all ways encode in turn. The second scores
the replies of files with every backend and compares scores and percentiles with torch's. Exit
status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import causerie
from causerie.engines import Settings
from causerie.engines.encoder import Encoder, Row, pool
from causerie.engines.onednn import usable
from causerie.engines.settings import BACKENDS
from causerie.models import Store

CLOCK = time.process_time if "--processor-time" in sys.argv else time.perf_counter
FLOAT32_BAR, QUICKEST_BAR, BOUND_BAR = 1.5, 3.5, 0.9
RANKS_BAR = 0.995
METRICS = "density,grade,causalscore,quality"
OTHERS = "faults,cosine,odes,bertscore"
ROWS, PASSES = 2048, 4
WORDS = """
the a to i you it and that of in is for my on with have do was are not so but what we this be like
they at just me about know can had your good get one he she there really think time music dog
garden winter train kitchen brother doctor summer guitar river holiday teacher coffee window
"""


def texts_of(count: int, rng: random.Random) -> list[str]:
    """Of 3 to 60 words, short ones more often than long ones."""
    lengths = [round(rng.triangular(3, 60, 8)) for _ in range(count)]
    return [" ".join(rng.choices(WORDS.split(), k=length)) for length in lengths]


def seconds(work: Callable[[], object]) -> float:
    """Of the clock, or of processors with `--processor-time`."""
    start = CLOCK()
    work()
    return CLOCK() - start


def sentence_transformer(folder: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, device="cpu")


def bound(encoder: Encoder, tokens: int) -> float:
    """Seconds for that many tokens without any padding, at the better of two lengths of text.

    Measured on a few passes.
    """
    taken = []
    for length in (16, 32):
        row = Row(np.arange(length, dtype=np.int32) + 2000, np.zeros(length, bool), 0)
        rows = [row] * (ROWS // length)
        backend: Any = encoder._quicker or encoder

        def through(rows: list[Row] = rows, backend: Any = backend) -> None:
            for _, hidden, mask in backend.passes(rows, ROWS):
                pool(hidden, mask, "mean").numpy()

        through()
        start = CLOCK()
        for _ in range(PASSES):
            through()
        taken.append((CLOCK() - start) / PASSES)
    return min(taken) * tokens / ROWS


def throughput(count: int, parts: int, sentence_transformers: bool) -> bool:
    """Print a line for every way; whether all bars are reached."""
    store, texts = Store(), texts_of(count, random.Random(0))
    plain = Encoder.load(store, Settings())
    encoders = {name: plain.as_now() for name in _here()}
    for name, encoder in encoders.items():
        encoder.compute_with(name)
    ways: dict[str, Callable[[Sequence[str]], Any]] = {
        name: lambda part, encoder=encoder: encoder.encode([((text,),) for text in part])
        for name, encoder in encoders.items()
    }
    if sentence_transformers:
        folder = str(store.path(plain.name))
        ways["sentence-transformers"] = sentence_transformer(folder).encode
    lengths = [len(row) for row in plain.input.rows([((text,),) for text in texts])]
    print(f"{count:,} texts, {sum(lengths):,} tokens, {min(lengths)} to {max(lengths)} each")
    taken = dict.fromkeys(ways, 0.0)
    least = dict.fromkeys(encoders, 0.0)
    for way in ways.values():
        way(texts[:64])
    for start in range(parts):
        part = texts[start::parts]
        for name, way in ways.items():
            taken[name] += seconds(lambda way=way, part=part: way(part))
        tokens = sum(lengths[start::parts])
        for name, encoder in encoders.items():
            least[name] += bound(encoder, tokens)
    for name, spent in taken.items():
        line = f"{name:22} {sum(lengths) / spent:8,.0f} tokens/s"
        if name in least:
            line += f", {least[name] / spent:.2f} of the bound without padding"
        if sentence_transformers and name in least:
            gain = taken["sentence-transformers"] / spent
            line += f", {gain:.2f} times sentence-transformers"
        print(line)
    reached = "onednn" not in taken or least["onednn"] >= BOUND_BAR * taken["onednn"]
    if sentence_transformers:
        theirs = taken["sentence-transformers"]
        ours = min(taken[name] for name in encoders)
        reached &= theirs >= FLOAT32_BAR * taken.get("onednn", taken["torch"])
        reached &= theirs >= QUICKEST_BAR * ours
    return reached


def drift(files: list[str], limit: int) -> bool:
    """Print how far scores and percentiles of every backend are from torch's; see the bar."""
    dialogues = [one for file in files for one in _first(file, limit)]
    found = {name: _table(dialogues, name) for name in _here()}
    reference = found.pop("torch")
    reached = True
    for name, table in found.items():
        print(f"\n{name}, {len(reference['turn']):,} replies")
        for column, values in table.items():
            expected = reference[column]
            both = [
                (a, b)
                for a, b in zip(values, expected, strict=True)
                if isinstance(a, float) and isinstance(b, float)
            ]
            if column == "turn" or len({b for _, b in both}) < 2:
                continue
            ours, theirs = np.array(both).T
            apart = np.abs(ours - theirs)
            if column.endswith(".percentile"):
                near = f"99% within {np.quantile(apart, 0.99):.1f}, all within {apart.max():.1f}"
                print(f"  {column:28} {near} of 100; mean {(ours - theirs).mean():+.2f}")
            else:
                rank = float(spearmanr(ours, theirs).statistic)
                spread = apart.max() / theirs.std()
                print(f"  {column:28} Spearman {rank:.5f}, all within {spread:.4f} deviations")
                reached &= column not in METRICS.split(",") or rank >= RANKS_BAR
    return reached


def _here() -> list[str]:
    """The backends that this machine has."""
    import torch

    kinds = {"onednn": torch.float32, "onednn-bf16": torch.bfloat16}
    return [name for name in BACKENDS if name == "torch" or usable(kinds[name])]


def _first(file: str, limit: int) -> list[Any]:
    from itertools import islice

    from causerie.dialogue import Dialogue
    from causerie.io import read

    return list(islice((one for one in read(file) if isinstance(one, Dialogue)), limit))


def _table(dialogues: list[Any], backend: str) -> dict[str, list[Any]]:
    result = causerie.evaluate(
        dialogues,
        f"{METRICS},{OTHERS}",
        settings=Settings(backend=backend),
        speaker="all",
        percentiles=True,
    )
    return {name: result.table[name].to_pylist() for name in result.table.column_names}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--no-sentence-transformers", action="store_true")
    parser.add_argument("--processor-time", action="store_true", help="for busy machines")
    parser.add_argument("--scores", nargs="+", metavar="FILE")
    parser.add_argument("--limit", type=int, default=100, help="dialogues of each file")
    options = parser.parse_args()
    if options.scores:
        return int(not drift(options.scores, options.limit))
    theirs = not options.no_sentence_transformers
    return int(not throughput(options.texts, options.parts, theirs))


if __name__ == "__main__":
    sys.exit(main())
