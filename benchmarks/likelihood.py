"""What packing is worth: the likelihood engine against scoring one sequence at a time.

    python benchmarks/likelihood.py [--lm NAME] [--conversations N] [--threads N]

Conversations of 20 turns of 15 tokens, with 32 follow-up hypotheses of 6 to 10 tokens at every
turn. The bars: at least 15 times as fast as one sequence per forward pass, with the same scores,
and at least 60% of the tokens per second of plain forward passes of 512 tokens with logits at as
many positions. The three take turns, so that what else the machine does hits all of them; one
sequence at a time is measured on a part and scaled by tokens. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from causerie.dialogue import Role
from causerie.engines import Engines, Settings
from causerie.engines.likelihood import Likelihood
from causerie.engines.tree import Segment, Tree

TURNS, TURN_TOKENS = 20, 15
PLAIN_LENGTH = 512
PART = 40  # one in so many sequences is scored by itself
FASTER, SHARE, AGREEMENT = 15.0, 0.60, 1e-4

SENTENCES = (
    "I finally finished painting the kitchen this weekend and my back is killing me now.",
    "Oh nice, which colour did you go for in the end, the pale green or the yellow one?",
    "The green one, although it looks rather grey in the evening when the lamps are on.",
    "You could try warmer bulbs, that made a big difference in our hall last winter.",
    "Good idea. By the way, are you still coming to the market with us on Saturday?",
    "Yes, but I have to leave before noon because my brother needs help with his van.",
    "Is it broken again? I thought he had bought a new one only a few months ago.",
    "He did, and it has been to the garage four times since then, poor fellow.",
    "I would ask for my money back. There must be some kind of guarantee on it.",
    "There is, but the seller keeps telling him that the noise is perfectly normal.",
    "That reminds me of our washing machine, which used to walk across the whole bathroom.",
    "Ours sings a little song when it is done, and I cannot find out how to stop it.",
    "Look under the settings, there is usually a picture of a bell or a loudspeaker.",
)
HYPOTHESES = (
    "That is really great news!",
    "Wow, I had no idea!",
    "I do not get it.",
    "Can you tell me more?",
    "You are really so funny!",
    "This is rather boring now.",
    "Let us talk about something else.",
    "You already told me exactly that a minute ago.",
    "That is not what I asked.",
    "Where on earth did you get that idea from?",
    "I would love to hear more.",
    "Sorry, could you say that again?",
    "You really seem to understand what my problem is.",
    "Why do you keep changing the subject?",
    "That is a very kind thing to say.",
    "I do not believe a word of it.",
    "Haha, you made me laugh!",
    "What does that have to do with me?",
    "Great, so what should we do next?",
    "Your answers are too short for me.",
    "That is exactly what I was looking for.",
    "Are you even listening to me?",
    "I learned something new from you today.",
    "No, that is simply not true.",
    "It was nice talking to you today.",
    "Stop it, you are being quite rude.",
    "How did you come to know all of that?",
    "Everybody I know says the same thing about it.",
    "You contradict what you said before.",
    "Thanks for asking, I am very well.",
    "I think that we should better stop here now.",
    "That makes no sense to me at all.",
)


@dataclass
class Seconds:
    """What one of the contestants took, and for how many tokens."""

    spent: float = 0.0
    tokens: int = 0

    @contextmanager
    def clock(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.spent += time.perf_counter() - start


def conversation(engine: Likelihood, number: int) -> tuple[Tree, list[int]]:
    """A tree of 20 turns, and the nodes of the hypotheses after each of them."""

    def turn(role: Role, text: str, length: slice) -> Segment:
        scaffold = engine.format.scaffolds[role]
        whole = engine.format.segment(role, text)
        words = whole.tokens[whole.start : len(whole.tokens) - len(scaffold.footer)][length]
        start = len(scaffold.header)
        tokens = scaffold.header + words + scaffold.footer
        return Segment(tokens, start, start + len(words) + scaffold.end)

    tree = Tree(engine.format.prefix)
    node, nodes = tree.ROOT, []
    for i in range(TURNS):
        # Sentences that begin in another place each time: conversations share no history.
        place = number * 7 + i
        text = " ".join(SENTENCES[(place + j) % len(SENTENCES)] for j in (0, 3))
        first = number % 5
        role: Role = "system" if i % 2 else "user"
        node = tree.add(node, turn(role, text, slice(first, first + TURN_TOKENS)))
        for hypothesis in HYPOTHESES:
            nodes.append(tree.add(node, turn("user", hypothesis, slice(10))))
    return tree, nodes


@torch.inference_mode()
def one_sequence(engine: Likelihood, tree: Tree, node: int) -> tuple[float, int]:
    """The node's mean log-likelihood from a forward pass of its own, and the pass's length."""
    path = [tree.segment(n) for n in tree.path(node)]
    tokens = [*tree.prefix, *(token for segment in path for token in segment.tokens)]
    last = path[-1]
    low = len(tokens) - len(last.tokens)
    scored = torch.arange(low + last.start, low + last.stop)
    tokens = tokens[: low + last.stop]
    device = engine.backbone.model.device
    ids = torch.tensor([tokens[:-1]], device=device)
    logits = engine.backbone.model(
        input_ids=ids, use_cache=False, logits_to_keep=(scored - 1).to(device)
    ).logits[0]
    wanted = torch.tensor(tokens)[scored].to(device)
    log_probs = logits.float().log_softmax(-1).gather(1, wanted[:, None])
    return float(log_probs.double().mean()), len(tokens) - 1


@torch.inference_mode()
def plain_passes(engine: Likelihood, tokens: int, positions: int) -> None:
    """Ordinary causal passes over that many tokens, with logits at that many positions."""
    model = engine.backbone.model
    ids = torch.arange(tokens, device=model.device)[None] % 1000 + 100
    for start in range(0, tokens, PLAIN_LENGTH):
        part = ids[:, start : start + PLAIN_LENGTH]
        keep = torch.arange(round(part.shape[1] * positions / tokens), device=model.device)
        model(input_ids=part, use_cache=False, logits_to_keep=keep)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lm", default="default", help="language model (default: %(default)s)")
    parser.add_argument("--conversations", type=int, default=3)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    engines = Engines(Settings(lm=options.lm, threads=options.threads))
    engine = engines.likelihood

    positions = 0

    def count(_module: object, _inputs: object, logits: torch.Tensor) -> None:
        nonlocal positions
        positions += logits.shape[-2]

    head = engine.backbone.model.get_output_embeddings()
    packed, naive, plain = Seconds(), Seconds(), Seconds()
    naive_tokens, worst = 0, 0.0
    plain_passes(engine, PLAIN_LENGTH, 1)  # warm up
    for number in range(options.conversations):
        tree, nodes = conversation(engine, number)
        part = nodes[number % PART :: PART]
        before, positions = engine.tokens_computed, 0
        counting = head.register_forward_hook(count)
        with packed.clock():
            scores = engine.score(tree, segments=nodes)
        counting.remove()
        computed = engine.tokens_computed - before
        packed.tokens += computed
        with naive.clock():
            alone = [one_sequence(engine, tree, node) for node in part]
        naive.tokens += sum(length for _, length in alone)
        with plain.clock():
            plain_passes(engine, computed, positions)
        plain.tokens += computed
        for node, (mean, _) in zip(part, alone, strict=True):
            worst = max(worst, abs(scores.segment(node).mean / mean - 1))
        for node in nodes:
            path = sum(len(tree.segment(n).tokens) for n in tree.path(node))
            unread = len(tree.segment(node).tokens) - tree.segment(node).stop + 1
            naive_tokens += len(tree.prefix) + path - unread

    whole_naive = naive.spent * naive_tokens / naive.tokens
    faster = whole_naive / packed.spent
    share = (packed.tokens / packed.spent) / (plain.tokens / plain.spent)
    print(f"{options.conversations} conversations, {engines.signature('language model')}")
    print(f"{'':28}{'tokens':>10}{'seconds':>10}{'tokens/s':>10}")
    for name, tokens, seconds in (
        ("packed", packed.tokens, packed.spent),
        ("one sequence at a time", naive_tokens, whole_naive),
        (f"plain passes of {PLAIN_LENGTH}", plain.tokens, plain.spent),
    ):
        print(f"{name:28}{tokens:>10}{seconds:>10.1f}{tokens / seconds:>10.0f}")
    print(f"(one sequence at a time: {naive.tokens} tokens measured, the rest scaled)")
    bars = (
        (f"{faster:.1f} times as fast as one sequence at a time", faster >= FASTER, FASTER),
        (f"{share:.0%} of the tokens/s of plain passes", share >= SHARE, f"{SHARE:.0%}"),
        (f"largest relative difference {worst:.1e}", worst <= AGREEMENT, AGREEMENT),
    )
    for text, held, bar in bars:
        print(f"{'ok  ' if held else 'MISS'} {text} (bar: {bar})")
    return 0 if all(held for _, held, _ in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
