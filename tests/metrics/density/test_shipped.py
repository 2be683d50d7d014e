"""The shipped artifact."""

from __future__ import annotations

import pytest

from causerie.dialogue import Dialogue, Turn
from causerie.engines import Engines
from causerie.metrics.density import Density
from causerie.models import Store
from causerie.models.artifact import shipped
from causerie.scoring.scorer import load

TALKS = (
    ("My sourdough came out flat again.", "How long did you let the dough rise?"),
    ("I lost my wallet on the bus this morning.", "Oh no! Have you called the bus company?"),
    ("Do you want to see a film tonight?", "Sure, what is on at the cinema?"),
    ("I have an exam tomorrow and I can't sleep.", "Try to relax, you have studied so hard."),
    ("What would you like to drink, sir?", "A glass of white wine, please."),
    ("How much is this jacket?", "It's eighty dollars, but there is a discount today."),
    ("I'm looking for a flat near the university.", "How many rooms do you need?"),
    ("Excuse me, how do I get to the station?", "Go straight on and turn left at the bank."),
)


def test_licence_and_card_go_with_it() -> None:
    folder = shipped("density")
    assert folder is not None
    assert "BSD-3-Clause" in (folder / "LICENSE").read_text()
    card = (folder / "card.md").read_text()
    for part in ("## Data", "chitchat: MIT", "## Recipe", "R@1 of 16", "seed", "## Limits"):
        assert part in card
    assert sum(file.stat().st_size for file in folder.iterdir()) < 25_000_000


def test_the_card_says_what_was_asked_of_it() -> None:
    folder = shipped("density")
    assert folder is not None
    rows = dict(
        line.strip("| ").split(" | ")
        for line in (folder / "card.md").read_text().splitlines()
        if line.startswith("| ")
    )
    assert float(rows["R@1 of 16"].split()[0]) >= 0.70
    assert rows["verdict"].startswith("density better than the untrained cosine")
    (random,) = (value for key, value in rows.items() if key.startswith("true above random"))
    assert float(random.split()[0]) >= 0.90
    (echo,) = (value for key, value in rows.items() if key.startswith("true above the last turn"))
    assert float(echo.split()[0]) >= 0.85


@pytest.mark.default_models
def test_true_responses_score_above_those_of_other_talks(default_models: Store) -> None:
    metric = load("density")
    wins = rounds = 0
    for asked, answered in TALKS:
        scores = {}
        for _, response in TALKS:
            turns = (Turn("A", asked), Turn("B", response))
            score = metric.score(Dialogue("d", turns))[0]["density"]
            assert score.value is not None
            assert score.value < 0
            assert score.percentile is not None
            assert 0 <= score.percentile <= 100
            scores[response] = score.value
        wins += sum(scores[answered] > value for r, value in scores.items() if r != answered)
        rounds += len(TALKS) - 1
    assert wins / rounds > 0.85


@pytest.mark.default_models
def test_score_does_not_depend_on_what_else_is_scored(default_models: Store) -> None:
    talks = [Dialogue(str(n), (Turn("A", a), Turn("B", b))) for n, (a, b) in enumerate(TALKS)]
    together = [row[0].value for row in Density().score_dialogues(talks, Engines())]
    alone = [Density().score_dialogues([talk], Engines())[0][0].value for talk in talks[:2]]
    assert together[:2] == pytest.approx(alone, rel=1e-5)
