"""The artifact that comes with causerie."""

from __future__ import annotations

import re

import pytest

from causerie.dialogue import Dialogue, Turn
from causerie.models import Store
from causerie.models.artifact import shipped
from causerie.scoring.scorer import load

TALKS = (
    ("My sourdough came out flat again.", "How long did you let the dough rise?"),
    ("I lost my wallet on the bus this morning.", "Oh no! Have you called the bus company?"),
    ("Do you want to see a film tonight?", "Sure, what is on at the cinema?"),
    ("I have an exam tomorrow and I can't sleep.", "Try to relax, you have studied so hard."),
    ("How much is this jacket?", "It's eighty dollars, but there is a discount today."),
    ("Excuse me, how do I get to the station?", "Go straight on and turn left at the bank."),
)


def test_licence_and_card_go_with_it() -> None:
    folder = shipped("grade")
    assert folder is not None
    assert (
        folder / "LICENSE"
    ).read_text().strip() == "chitchat: MIT; self-dialogue corpus: BSD-3-Clause"
    card = (folder / "card.md").read_text()
    for part in ("## Data", "BSD-3-Clause", "## Recipe", "commonsense graph", "seed", "## Limits"):
        assert part in card
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000_000


@pytest.mark.parametrize("kind", ["lexical", "embedding"])
def test_the_card_says_what_was_asked_of_it(kind: str) -> None:
    folder = shipped("grade")
    assert folder is not None
    found = re.findall(
        rf"\| {kind} negatives .*?: (.*?) \| ([\d.]+)", (folder / "card.md").read_text()
    )
    shares = {name: float(value) for name, value in found}
    own = shares.pop("grade")
    assert own >= 0.70
    assert len(shares) == 2
    assert own > max(shares.values())


@pytest.mark.default_models
def test_true_responses_score_above_those_of_other_talks(default_models: Store) -> None:
    metric = load("grade")
    wins = rounds = 0
    for asked, answered in TALKS:
        scores = {}
        for _, response in TALKS:
            score = metric.score(Dialogue("d", (Turn("A", asked), Turn("B", response))))[0]["grade"]
            assert score.value is not None
            assert 0 <= score.value <= 1
            scores[response] = score.value
        wins += sum(scores[answered] > value for r, value in scores.items() if r != answered)
        rounds += len(TALKS) - 1
    assert wins / rounds > 0.8
