"""The default language model and its research variant: an adapter and statistics of humans."""

from __future__ import annotations

import re

import pytest

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.metrics.followups import Fed
from causerie.metrics.followups.hypotheses import dimensions
from causerie.metrics.followups.language import METRICS
from causerie.metrics.likelihood import Relevance
from causerie.models import Store
from causerie.models.artifact import Artifact, load_artifact, shipped

REACTIONS = (
    ("You are so boring, go away.", "That is rude!", "Thank you so much!"),
    ("I just got engaged to my boyfriend!", "Congratulations!", "I am sorry to hear that."),
    ("Do you have any pets?", "Yes, I have two cats.", "It was about ten dollars."),
    ("My grandmother died last night.", "I am so sorry for your loss.", "Sounds like fun!"),
    ("What do you do for a living?", "I am a teacher.", "Turn left at the bank."),
)
"""Contexts, each with a human answer and an answer from elsewhere."""


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return load_artifact("lm-research", "lm")


def test_licence_and_card_go_with_it(artifact: Artifact) -> None:
    assert "CC-BY-NC-SA" in artifact.licence
    for part in ("## Data", "## Recipe", "seed", "## Limits"):
        assert part in artifact.card
    folder = shipped("lm-research")
    assert folder is not None
    assert sum(file.stat().st_size for file in folder.iterdir()) < 12_000_000


@pytest.mark.parametrize(("what", "sign"), [("nats per character", -1), ("true reaction", 1)])
def test_the_card_says_that_it_is_better_than_before(
    artifact: Artifact, what: str, sign: int
) -> None:
    (line,) = (x for x in artifact.card.splitlines() if what in x and "tuned minus stock" in x)
    value, low, high = map(float, re.findall(r"[+-]\d\.\d+", line))
    assert low < value < high
    assert min(sign * low, sign * high) > 0, "the interval is on the better side"


def test_every_dimension_has_its_statistics(artifact: Artifact) -> None:
    expected = {
        f"{metric.name}.{level}.{dimension.name}"
        for metric in METRICS
        for level, asked in dimensions().items()
        for dimension in asked
    }
    assert artifact.statistics.keys() == expected
    assert all(float(deviation) > 0 for _, deviation in artifact.statistics.values())


@pytest.mark.default_models
def test_the_default_is_the_network_as_it_was_published(default_models: Store) -> None:
    assert shipped("lm") is None
    assert Engines(Settings()).likelihood.backbone.name == "SmolLM2-135M-Instruct"


@pytest.mark.default_models
def test_the_tuned_one_knows_how_people_react(default_models: Store) -> None:
    engines = Engines(Settings(research=True))
    assert engines.likelihood.backbone.name.endswith("+lm")
    assert engines.likelihood.format.name == "chat"
    relevance = Relevance()
    wins = 0
    for said, fits, does_not in REACTIONS:
        good, bad = (
            relevance.score_exchanges(
                [Exchange(Dialogue("d", (Turn("A", said), Turn("B", answer))), 1)], engines
            )[0][1].value
            for answer in (fits, does_not)
        )
        assert good is not None
        assert bad is not None
        wins += good > bad
    assert wins == len(REACTIONS)


@pytest.mark.default_models
def test_overall_is_a_mean_of_z_scores(default_models: Store, artifact: Artifact) -> None:
    talk = Dialogue("d", (Turn("A", "Do you like tea?"), Turn("B", "Yes, green tea most of all.")))
    metric = Fed()
    (row,) = metric.score_exchanges([Exchange(talk, 1)], Engines(Settings(research=True)))
    names = [column.name for column in metric.columns("turn")]
    scores = dict(zip(names, row, strict=True))
    overall = scores.pop("overall").value
    zs = []
    for name, score in scores.items():
        mean, deviation = artifact.statistics[f"fed.turn.{name}"].tolist()
        assert score.value is not None
        zs.append((score.value - mean) / deviation)
    assert overall == pytest.approx(sum(zs) / len(zs), rel=1e-3)
