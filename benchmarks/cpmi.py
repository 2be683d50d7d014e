"""What the tree is worth to `cpmi`: against the published procedure, one sequence at a time.

    python benchmarks/cpmi.py [--lm NAME] [--conversations N] [--turns N] [--tokens N]
                              [--sample N] [--threads N]

All turn-level dimensions of `cpmi` with the shipped hypotheses, in two cases: every response of
conversations of 20 turns of 15 tokens (bar: at least 20 times as fast), and one response after 9
turns (at least 10 times). The published procedure gives each of the four sequences of every
hypothesis of every dimension a forward pass of its own. It is measured on a sample of the
dimensions and scaled by tokens; both take turns, so that what else the machine does hits both.
The sampled scores must be the same. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import torch

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.engines.likelihood import Likelihood
from causerie.metrics.followups import Cpmi
from causerie.metrics.followups.hypotheses import Dimension, dimensions

AGREEMENT = 1e-3  # of the mean absolute score: a score is a small difference of likelihoods
WORDS = (
    "I you we they it he she a the and but so or not is was are do did have had can will would "
    "like love hate know think want need see go come make take tell ask say work play read eat "
    "music book film food tea dog cat house car town day night week year time thing way job "
    "friend mother brother game team rain sun good bad new old long short happy tired really very "
    "quite today tomorrow never always sometimes here there why how what when who"
)


@dataclass(frozen=True)
class Case:
    title: str
    turns: int
    every: bool
    """Whether every response is scored, or only the last."""
    faster: float
    """The bar."""


@dataclass
class Spent:
    """What one of the contestants took, and for how many tokens."""

    seconds: float = 0.0
    tokens: int = 0

    @contextmanager
    def clock(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start


@dataclass
class Published:
    """C-PMI with one forward pass, batch size 1, for each sequence."""

    engine: Likelihood
    tokens: int = 0
    """How many went through the network."""

    def score(self, exchange: Exchange, dimension: Dimension) -> float:
        def mean(hypotheses: Sequence[str]) -> float:
            return fmean([self.cpmi(exchange, h) for h in hypotheses]) if hypotheses else 0.0

        return mean(dimension.negative) - mean(dimension.positive)

    def cpmi(self, exchange: Exchange, hypothesis: str) -> float:
        crh, h, ch, rh = (self.likelihood(*s) for s in self.sequences(exchange, hypothesis))
        return crh + h - ch - rh

    def cost(self, exchange: Exchange, dimension: Dimension) -> int:
        """How many tokens a score takes."""
        return sum(
            len(tokens)
            for hypothesis in dimension.hypotheses
            for tokens, _ in self.sequences(exchange, hypothesis)
        )

    def sequences(
        self, exchange: Exchange, hypothesis: str
    ) -> Iterator[tuple[list[int], list[int]]]:
        """The tokens of the four sequences, and the places that are scored."""
        role = exchange.role_of(exchange.response)
        c = [(exchange.role_of(turn), turn.text) for turn in exchange.context]
        r = [(role, exchange.response.text)]
        h = [("user" if role == "system" else "system", hypothesis)]
        for said in (c + r + h, h, c + h, r + h):
            tokens, scored = list(self.engine.format.prefix), []
            roles = [None, *(role for role, _ in said), None]
            for (role, text), after, then in zip(said, roles, roles[2:], strict=False):
                turn = self.engine.format.segment(role, text, after=after, then=then)
                scored.extend(range(len(tokens) + turn.start, len(tokens) + turn.stop))
                tokens.extend(turn.tokens)
            yield tokens, [place for place in scored if place > 0]

    @torch.inference_mode()
    def likelihood(self, tokens: list[int], scored: list[int]) -> float:
        self.tokens += len(tokens)
        model = self.engine.backbone.model
        ids = torch.tensor([tokens], device=model.device)
        logits = model(input_ids=ids, use_cache=False).logits[0, :-1].float()
        log_probs = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0].double()
        return float(log_probs[torch.tensor(scored, device=model.device) - 1].mean())


def conversation(engine: Likelihood, seed: str, turns: int, tokens: int) -> Dialogue:
    """Random words, so that no two conversations share a turn."""
    draw = random.Random(seed)
    encode = engine.backbone.tokenizer.encode

    def text() -> str:
        said = ""
        for word in draw.choices(WORDS.split(), k=10 * tokens):
            if len(encode(f"{said} {word}".strip(), add_special_tokens=False)) <= tokens:
                said = f"{said} {word}".strip()
        return said

    return Dialogue(
        seed,
        tuple(
            Turn("bot", text(), "system") if i % 2 else Turn("human", text(), "user")
            for i in range(turns)
        ),
    )


def run(case: Case, engines: Engines, options: argparse.Namespace) -> bool:
    engine = engines.likelihood
    published, asked = Published(engine), dimensions()["turn"]
    ours, theirs = Spent(), Spent()
    differences, sizes = [], []
    for number in range(options.conversations):
        dialogue = conversation(engine, f"{case.title} {number}", case.turns, options.tokens)
        exchanges = dialogue.exchanges() if case.every else dialogue.exchanges()[-1:]
        before = engine.tokens_computed
        with ours.clock():
            rows = Cpmi().score_exchanges(exchanges, engines)
        ours.tokens += engine.tokens_computed - before
        uses = list(product(range(len(exchanges)), range(len(asked))))
        theirs.tokens += sum(published.cost(exchanges[i], asked[j]) for i, j in uses)
        for i, j in random.Random(number).sample(uses, min(options.sample, len(uses))):
            with theirs.clock():
                alone = published.score(exchanges[i], asked[j])
            found = rows[i][j].value
            assert found is not None
            differences.append(abs(found - alone))
            sizes.append(abs(alone))
    measured = published.tokens
    theirs.seconds *= theirs.tokens / measured
    faster, apart = theirs.seconds / ours.seconds, max(differences) / fmean(sizes)
    print(f"\n{options.conversations} x {case.title}")
    print(f"{'':24}{'tokens':>12}{'seconds':>10}{'tokens/s':>10}")
    for name, spent in (("one tree", ours), ("published procedure", theirs)):
        rate = spent.tokens / spent.seconds
        print(f"{name:24}{spent.tokens:>12}{spent.seconds:>10.1f}{rate:>10.0f}")
    print(f"(published procedure: {measured} tokens measured, the rest scaled)")
    print(f"{theirs.tokens / ours.tokens:.1f} times fewer tokens")
    bars = (
        (f"{faster:.1f} times as fast (bar: {case.faster:g})", faster >= case.faster),
        (
            f"scores differ by at most {apart:.1e} of their size (bar: {AGREEMENT})",
            apart <= AGREEMENT,
        ),
    )
    for text, held in bars:
        print(f"{'ok  ' if held else 'MISS'} {text}")
    return all(held for _, held in bars)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lm", default="default", help="language model (default: %(default)s)")
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=15, help="per turn")
    parser.add_argument(
        "--sample", type=int, default=4, help="scores per conversation by the published procedure"
    )
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    engines = Engines(Settings(lm=options.lm, threads=options.threads))
    print(engines.signature("language model"))
    warm_up = conversation(engines.likelihood, "warm-up", 2, options.tokens).exchanges()[0]
    Published(engines.likelihood).cpmi(warm_up, "Hello.")
    cases = (
        Case(f"every response of {options.turns} turns", options.turns, True, 20.0),
        Case("one response after 9 turns", 10, False, 10.0),
    )
    held = [run(case, engines, options) for case in cases]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
