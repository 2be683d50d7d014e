"""The shipped artifacts."""

from __future__ import annotations

import pytest

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines
from causerie.metrics.causalscore import CausalScore
from causerie.models import Store
from causerie.models.artifact import load_artifact, shipped

VARIANTS = ("cgdialog", "dream", "esconv", "msc")
SMALL_TALK = ("Hello, how are you?", "Fine, thanks.", "Lovely weather today.", "Yes, so warm!")
TALKS = (
    ("My dog ran away in the park last night.", "Did you find the dog again?"),
    ("I have an exam tomorrow and I can't sleep.", "You studied hard, the exam will go well."),
    ("My boss wants me to work on Sunday.", "Can't your boss ask somebody else for Sunday?"),
    ("We could go to the cinema tonight.", "Which film is on at the cinema?"),
    ("I broke up with my girlfriend.", "I am so sorry. Do you miss your girlfriend?"),
    ("This soup needs more salt.", "Here is the salt, but the soup is fine."),
)


def asked(said: str, response: str) -> Exchange:
    texts = (*SMALL_TALK, said, response)
    turns = tuple(Turn("AB"[n % 2], text) for n, text in enumerate(texts))
    return Exchange(Dialogue("d", turns), len(turns) - 1)


@pytest.mark.parametrize("name", ["causalscore", *(f"causalscore-{one}" for one in VARIANTS)])
def test_licence_and_card_go_with_it(name: str) -> None:
    folder = shipped(name)
    assert folder is not None
    card, licence = (folder / "card.md").read_text(), (folder / "LICENSE").read_text()
    research = name != "causalscore"
    assert ("Research-Only" in licence) == research
    assert ("annotations: `" in card) == research
    for part in ("## Data", "## Recipe", "C_cond: AUC", "seed", "## Limits"):
        assert part in card
    assert "than their place alone" in card  # what it cannot do is said
    assert sum(file.stat().st_size for file in folder.iterdir()) < 3_000_000
    assert load_artifact(name).encoder_of == ("density-dailydialog" if research else "density")


@pytest.mark.default_models
def test_responses_depend_on_what_they_are_about(default_models: Store) -> None:
    metric, engines = CausalScore(), Engines()
    wins = rounds = 0
    for said, answer in TALKS:
        values = {}
        for _, response in TALKS:
            score = metric.score_exchanges([asked(said, response)], engines)[0][0]
            assert score.value is not None
            assert 0 <= score.value <= 1
            assert score.percentile is not None
            values[response] = score.value
        wins += sum(values[answer] > value for r, value in values.items() if r != answer)
        rounds += len(TALKS) - 1
        (graph,) = metric.graphs([asked(said, answer)], engines)
        assert max(range(5), key=lambda i: graph.unconditional[i]) == 4  # the turn it is about
    assert wins / rounds > 0.75  # the card: 0.86 of random responses
