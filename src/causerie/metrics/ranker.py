"""Rankers as a metric: how likely a response is to be answered, by a network such as DialogRPT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Column, Level, Metric, Score, Scores
from causerie.options import option

if TYPE_CHECKING:
    from causerie.engines import Engines


@dataclass(frozen=True)
class Ranker(Metric):
    """The score from 0 to 1 that a ranker gives a response after its context.

    DialogRPT has networks that predict how many replies a response gets (width), how long the
    conversation continues (depth) and how well the response is liked. None is the default.
    """

    model: str | None = option(None, "hub name or folder of a network such as DialogRPT")

    name = "ranker"
    summary = "how likely a response is to be answered or liked, by a ranker such as DialogRPT"
    needs = frozenset({"ranker"})

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(0.0, 1.0)),)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        scores = engines.ranker(self._model).score(exchanges)
        return [(Score.of(float(score)),) for score in scores]

    def signature(self, engines: Engines) -> str:
        return f"{super().signature(engines)}|{engines.signature('ranker', self._model)}"

    @property
    def _model(self) -> str:
        if self.model is None:
            raise CauserieError(
                "ranker has no default network: name one, as in "
                "ranker:model=microsoft/DialogRPT-width"
            )
        return self.model

    @property
    def _told_elsewhere(self) -> frozenset[str]:
        return frozenset({"model"})
