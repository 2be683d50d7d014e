"""The artifact that comes with causerie, on the examples of the paper's table 1 and their like."""

from __future__ import annotations

import re

import numpy as np
import pytest

from causerie.engines import Engines
from causerie.metrics.odes import (
    CLASSES,
    OTHER,
    PRECISION,
    SIGNALS,
    THRESHOLD,
    TREATMENTS,
    Odes,
    Utterance,
)
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import fingerprint
from causerie.metrics.odes.train import examples, measure
from causerie.models.artifact import load_artifact

SAID = {
    "disinterest": ("I really couldn't care less.", "Did you know that otters sleep?"),
    "critique": ("You are really a very stupid bot.", "Who do you think will win?"),
    "not_understand": ("I don't know what genre means.", "What is your favorite genre?"),
    "topic_switch_request": ("Can we talk about something else?", "Who is your favorite actor?"),
    "topic_switch_rejection": ("No, I want to keep talking about music.", "Do you like sports?"),
    "repeat_request": ("Could you say that again?", "Would you rather climb the tower?"),
    "stop_request": ("Please stop I need to go to bed.", "I just love talking about music."),
    "insult": ("you are so ugly and i hate you", "Wow, that's a lot!"),
    "compliment": ("That's really interesting.", "Did you know that he is only 12 years old?"),
    "calls_out_repetition": ("You already asked me that question twice.", "Your favorite team?"),
    "calls_out_contradiction": ("You just said you had a cat.", "I don't have any pets."),
    "system_not_understand": ("That's not what I said.", "I like BB King too."),
    OTHER: ("Yes, I often listen to Blackpink and BTS.", "Do you like K-Pop music?"),
}
NO_SIGNAL = ("my boss is so stupid", "i stopped smoking last year", "i have two dogs")


@pytest.fixture(scope="module")
def classifier(default_models: object) -> Classifier:
    return Odes().restored(Engines())[1]  # type: ignore[no-any-return]


def test_the_card_names_the_templates_that_are_here() -> None:
    assert f"| templates (SHA-256) | {fingerprint()[:12]} |" in load_artifact("odes").card


@pytest.mark.default_models
def test_held_out_templates_are_recognised_as_well_as_the_card_says(
    classifier: Classifier,
) -> None:
    artifact = load_artifact("odes")
    config = OdesConfig(**artifact.options)
    macro = np.nanmean(measure(classifier, examples(config)[1]))
    assert macro >= 0.85
    said = re.search(r"macro F1 on held-out templates \| ([\d.]+)", artifact.card)
    assert said is not None
    assert macro == pytest.approx(float(said[1]), abs=0.002)


@pytest.mark.default_models
def test_the_examples_of_the_paper(classifier: Classifier) -> None:
    rows = classifier.probabilities([Utterance(*said) for said in SAID.values()])
    for name, row in zip(SAID, rows, strict=True):
        assert row[CLASSES.index(name)] > THRESHOLD, name
    for text in NO_SIGNAL:
        (row,) = classifier.probabilities([Utterance(text, "How are you?")])
        assert max(row[: len(SIGNALS)]) < THRESHOLD, text


def test_signals_are_trusted_as_far_as_their_precision_with_real_users_goes() -> None:
    """What counts as a treatment goes by what the card says of the artifact."""
    card = load_artifact("odes").card
    rows = re.findall(r"^\| (\w+) \| \d+ \| \d+ \| ([\d.]+) \(", card, re.MULTILINE)
    assert {name: float(precision) for name, precision in rows} == PRECISION
    assert set(TREATMENTS) == {name for name, precision in rows if float(precision) >= 0.8}
