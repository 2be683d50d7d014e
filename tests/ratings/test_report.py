"""The report of effects, on a log whose signals have a known cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from causerie import CauserieError, Dialogue, Turn
from causerie.metrics.odes import CLASSES, SIGNALS
from causerie.ratings.effect import ANY, ASSUMED, EXPECTED, effects_of
from causerie.ratings.features import Extractor, Feature, Floats, Group, MeasuredLog
from causerie.ratings.log import RatedDialogue
from causerie.ratings.pairs import TurnPair
from causerie.ratings.report import BARS, effect_markdown, overlap_svg

COST = -1.0


class Given(Group):
    """Signals, and one number that makes users both swear and rate higher."""

    name = "given"
    features = (*(Feature(f"odes.{name}", "odes") for name in CLASSES), Feature("mood", "given"))

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        raise AssertionError("values are given")


def log(count: int) -> MeasuredLog:
    """Glad users insult more and rate better; half of them greet in a pair of their own first."""
    rng = np.random.default_rng(0)
    dialogues, raw = [], []
    for number in range(count):
        mood = rng.standard_normal()
        rows = np.zeros((4, len(Given.features)), dtype=np.float32)
        rows[:, -1] = mood
        if number % 2:
            rows[0, : len(CLASSES)] = np.nan
        insulted = rng.random() < 1 / (1 + np.exp(-mood))
        if insulted:
            rows[2, CLASSES.index("insult")] = 0.9
            rows[3, CLASSES.index("compliment")] = 0.9
        rating = 3 + 0.8 * mood + COST * insulted + 0.3 * rng.standard_normal()
        pairs = (TurnPair(None, None),) * 4
        talk = Dialogue(str(number), (Turn("user", "hi"),))
        dialogues.append(RatedDialogue(talk, pairs, rating, None, "bot", f"user{number // 2}"))
        raw.append(rows)
    return MeasuredLog(tuple(dialogues), tuple(raw), Extractor([Given()]))


def test_the_cost_of_a_signal_is_found_where_the_plain_difference_errs() -> None:
    measured = log(400)
    assert measured.extractor.covariates == [len(CLASSES)]
    report = effects_of(measured)
    assert set(report.effects) == set(report.refutations) == {ANY, "insult"}
    assert set(report.too_few) == set(SIGNALS) - {"insult"}
    found = report.effects[ANY]
    assert found.low <= COST <= found.high
    assert found.naive > found.high
    assert found.estimate == report.effects["insult"].estimate  # compliments come after it
    insulted = sum(bool((rows > 0.5)[:, : len(SIGNALS)].any()) for rows in measured.raw)
    assert (found.signalled, found.dialogues) == (insulted, 400)
    assert len(found.treated) == 4 * 400 - insulted - 200  # the last pair, and greetings
    assert all(one.passed for tries in report.refutations.values() for one in tries)
    text = effect_markdown(report)
    assert ASSUMED in text
    assert text.count("stands") == 2 * len(EXPECTED)
    assert "| stop_request | no dialogue has the signal" in text
    least, most = found.propensities[found.treated].min(), found.propensities[found.treated].max()
    assert f"| {least:.3f} to {most:.3f} |" in text
    columns = {line.count("|") for line in text.split("\n\n")[0].splitlines()}
    assert len(columns) == 1
    assert overlap_svg(found).count("<rect") == 2 * BARS + 1


def test_what_falls_is_shown() -> None:
    report = effects_of(log(100))
    tries = [replace(one, passed=False) for one in report.refutations[ANY]]
    text = effect_markdown(replace(report, refutations={ANY: tries}))
    assert text.count(" falls**") == len(EXPECTED)


def test_effects_need_ratings() -> None:
    measured = log(2)
    unrated = tuple(replace(one, rating=None) for one in measured.dialogues)
    with pytest.raises(CauserieError, match="leave out the dialogues without one"):
        effects_of(replace(measured, dialogues=unrated))
