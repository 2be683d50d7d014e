"""The report of effects, on a log whose signals have a known cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from causerie.metrics.odes import CLASSES, SIGNALS
from causerie.ratings.effect import ASSUMED
from causerie.ratings.examples import Example
from causerie.ratings.features import Extractor, Feature, Floats, Group, Standard
from causerie.ratings.pairs import TurnPair
from causerie.ratings.predictor import Preparation
from causerie.ratings.report import ANY, BARS, effect_markdown, effects_of, overlap_svg
from causerie.ratings.treatments import Treatments

COST = -1.0


class Given(Group):
    """Signals, and one number that makes users both swear and rate higher."""

    name = "given"
    features = (*(Feature(f"odes.{name}", "odes") for name in CLASSES), Feature("mood", "given"))

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        raise AssertionError("values are given")


@pytest.fixture(scope="module")
def preparation() -> Preparation:
    width = len(Given.features)
    nothing, one = np.zeros(width, np.float32), np.ones(width, np.float32)
    return Preparation(Extractor([Given()]), Standard(nothing, one, nothing), Treatments())


def log(preparation: Preparation, count: int) -> tuple[list[Example], list[Floats]]:
    rng = np.random.default_rng(0)
    examples, raw = [], []
    for _ in range(count):
        mood = rng.standard_normal()
        rows = np.zeros((4, len(Given.features)), dtype=np.float32)
        rows[:, -1] = mood
        insulted = rng.random() < 1 / (1 + np.exp(-mood))
        if insulted:
            rows[2, CLASSES.index("insult")] = 0.9
        rating = 3 + 0.8 * mood + COST * insulted + 0.3 * rng.standard_normal()
        pairs = [TurnPair("hi", None, None)] * 4
        examples.append(preparation.example(pairs, rows, rating))
        raw.append(rows)
    return examples, raw


def test_the_cost_of_a_signal_is_found_where_the_plain_difference_errs(
    preparation: Preparation,
) -> None:
    examples, raw = log(preparation, 400)
    assert preparation.covariates == [len(CLASSES)]
    report = effects_of(examples, raw, preparation)
    assert set(report.effects) == {ANY, "insult"}
    assert set(report.too_few) == set(SIGNALS) - {"insult"}
    found = report.effects[ANY]
    assert found.low <= COST <= found.high
    assert found.naive > found.high
    assert found.estimate == report.effects["insult"].estimate
    assert all(one.passed for one in report.refutations)
    text = effect_markdown(report)
    assert ASSUMED in text
    assert text.count("stands") == 3
    assert "| compliment | | | | | no dialogue has the signal" in text
    assert overlap_svg(found).count("<rect") == 2 * BARS + 1
