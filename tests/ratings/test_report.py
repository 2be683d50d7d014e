"""The report of effects, on a log whose signals have a known cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from causerie import CauserieError, Dialogue, Turn
from causerie.metrics.odes import CLASSES, SIGNALS
from causerie.ratings.effect import ANY, ANY_NEGATIVE, ASSUMED, EXPECTED, effects_of
from causerie.ratings.effectreport import (
    BARS,
    counts_table,
    effect_markdown,
    effect_tables,
    effects_svg,
    overlap_svg,
    verdict,
)
from causerie.ratings.features import Extractor, Feature, Floats, Group, MeasuredLog
from causerie.ratings.log import RatedDialogue
from causerie.ratings.pairs import TurnPair

COST = -1.0


class Given(Group):
    """An extractor of signals and of one number that makes users both swear and rate higher."""

    name = "given"
    features = (*(Feature(f"odes.{name}", "odes") for name in CLASSES), Feature("mood", "given"))

    def measure(self, pairs: Sequence[TurnPair]) -> Floats:
        raise AssertionError("values are given")


def log(count: int) -> MeasuredLog:
    """Happy users complain more and rate better; half of them start with a greeting of its own."""
    rng = np.random.default_rng(0)
    dialogues, raw = [], []
    for number in range(count):
        mood = rng.standard_normal()
        rows = np.zeros((4, len(Given.features)), dtype=np.float32)
        rows[:, -1] = mood
        if number % 2:
            rows[0, : len(CLASSES)] = np.nan
        complained = rng.random() < 1 / (1 + np.exp(-mood))
        if complained:
            rows[2, CLASSES.index("calls_out_repetition")] = 0.9
            rows[3, CLASSES.index("compliment")] = 0.9
        rating = 3 + 0.8 * mood + COST * complained + 0.3 * rng.standard_normal()
        pairs = (TurnPair(None, None),) * 4
        talk = Dialogue(str(number), (Turn("user", "hi"),))
        dialogues.append(RatedDialogue(talk, pairs, rating, None, "bot", f"user{number // 2}"))
        raw.append(rows)
    return MeasuredLog(tuple(dialogues), tuple(raw), Extractor([Given()]))


def test_the_cost_of_a_signal_is_found_where_the_plain_difference_errs() -> None:
    measured = log(400)
    assert measured.extractor.covariates == [len(CLASSES)]
    report = effects_of(measured, pooled=True, by="bot")
    together = {ANY, ANY_NEGATIVE, f"{ANY_NEGATIVE}, bot bot"}
    assert set(report.effects) == set(report.refutations) == {*together, "calls_out_repetition"}
    assert set(report.refused) == set(SIGNALS) - {"calls_out_repetition"}
    apart = effects_of(log(60))  # compliments are not pooled with complaints unless asked
    assert ANY not in {**apart.effects, **apart.refused}
    found = report.effects[ANY_NEGATIVE]
    assert report.effects[f"{ANY_NEGATIVE}, bot bot"].estimate == pytest.approx(
        found.estimate, abs=0.1
    )
    assert found.low <= COST <= found.high
    assert found.naive > found.high
    assert (
        found.estimate == report.effects["calls_out_repetition"].estimate
    )  # compliments come after it
    complained = sum(bool((rows > 0.5)[:, : len(SIGNALS)].any()) for rows in measured.raw)
    assert (found.signalled, found.dialogues) == (complained, 400)
    assert len(found.treated) == 4 * 400 - complained - 200  # the last pair, and greetings
    assert all(one.passed for tries in report.refutations.values() for one in tries)
    counts = counts_table(measured)
    assert [row[1] for row in counts.rows if row[0] == "calls_out_repetition"] == [complained]
    assert [row[4:] for row in counts.rows if row[0] == "stop_request"] == [[78_504, "2.96%"]]
    text = effect_markdown(counts, report)
    assert ASSUMED in text
    assert "points of the scale from 1 to 5" in text
    assert verdict(report, "calls_out_repetition") == "stands"
    assert "| not_understand |  | – | refused: no dialogue has the signal" in text
    assert effects_svg(report).count("<circle") == len(report.effects)
    effects, _ = effect_tables(report)
    assert effects.rows[2][2].low == found.low or effects.rows[1][2].low == found.low  # type: ignore[union-attr]
    assert overlap_svg(found).count("<rect") == 2 * BARS + 1


def test_what_falls_is_shown() -> None:
    measured = log(400)
    report = effects_of(measured)
    tries = [replace(one, passed=False) for one in report.refutations[ANY_NEGATIVE]]
    fallen = replace(report, refutations={**report.refutations, ANY_NEGATIVE: tries})
    assert verdict(fallen, ANY_NEGATIVE) == f"falls: {', '.join(EXPECTED)}"
    assert effect_markdown(counts_table(measured), fallen).count(" falls |") == len(EXPECTED)
    assert "a hollow point" in effects_svg(fallen)


def test_effects_need_ratings() -> None:
    measured = log(2)
    unrated = tuple(replace(one, rating=None) for one in measured.dialogues)
    with pytest.raises(CauserieError, match="omit the dialogues without one"):
        effects_of(replace(measured, dialogues=unrated))
