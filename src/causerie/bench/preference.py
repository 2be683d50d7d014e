"""A judge in a comparison: which of two replies to the same turn is better?"""

from __future__ import annotations

from collections.abc import Sequence

from causerie.bench.pairing import Response
from causerie.dialogue import Exchange
from causerie.engines import Engines
from causerie.metrics.base import EMPTY, Column, Score
from causerie.metrics.judge import Judge
from causerie.progress import Progress, Watch

NAME = "preference"
COLUMN = Column(NAME, "how likely a judge is to prefer the reply to the other's", range=(0.0, 1.0))
_AT_ONCE = 64
"""Pairs per step, after each of which progress is reported."""
_DIFFERENT = Score.unscored("the two reply to different conversations")


def preferences(
    a: Sequence[Response], b: Sequence[Response], judge: Judge, engines: Engines, watch: Watch
) -> tuple[Score, ...]:
    """Return the judge's probability of preferring each reply (of a, then b) to its partner."""
    pairs = [(one.exchange, other.exchange) for one, other in zip(a, b, strict=True)]
    comparable = [i for i, (x, y) in enumerate(pairs) if _said(x) == _said(y) and _both(x, y)]
    chances: dict[int, tuple[Score, Score]] = {}
    agreed = judged = 0
    for start in range(0, len(comparable), _AT_ONCE):
        watch(Progress("judging", start, len(comparable), "pairs"))
        chosen = comparable[start : start + _AT_ONCE]
        with engines.computing():
            found = judge.preferences(
                [(pairs[i][0], pairs[i][1].response.text) for i in chosen], engines
            )
        for i, one in zip(chosen, found, strict=True):
            if isinstance(one, str):
                chances[i] = Score.unscored(one), Score.unscored(one)
                continue
            of_b = sum(one) / 2
            chances[i] = Score.of(1 - of_b), Score.of(of_b)
            judged += 1
            agreed += (one[0] - 0.5) * (one[1] - 0.5) > 0
    if judged:
        share = f"{agreed / judged:.0%} of {judged:,}"
        note = f"the judge prefers the same reply in both orders in {share} pairs"
        watch(Progress("judging", note=note))
    rows = [chances.get(i) or _without_asking(*pair) for i, pair in enumerate(pairs)]
    return (*(of_a for of_a, _ in rows), *(of_b for _, of_b in rows))


def _without_asking(a: Exchange, b: Exchange) -> tuple[Score, Score]:
    """Score pairs that need no judge: an empty reply loses, incomparable ones are unscored."""
    if _both(a, b):
        return _DIFFERENT, _DIFFERENT
    return (
        Score.of(1.0) if a.response.text.strip() else EMPTY,
        Score.of(1.0) if b.response.text.strip() else EMPTY,
    )


def _both(a: Exchange, b: Exchange) -> bool:
    return bool(a.response.text.strip() and b.response.text.strip())


def _said(exchange: Exchange) -> list[tuple[str, str]]:
    return [(exchange.role_of(turn), turn.text) for turn in exchange.context]
