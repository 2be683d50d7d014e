"""The shipped predictor: it loads, and rates a good dialogue above a bad one."""

from __future__ import annotations

import pytest

from causerie import Dialogue, Engines, Turn
from causerie.models.artifact import ArtifactInfo, shipped
from causerie.ratings.features import Extractor
from causerie.ratings.pairs import turn_pairs
from causerie.ratings.predictor import NAME, RatingPredictor, digest_of

GOOD = (
    ("hi there, how are you?", "I am great, thanks! I just came back from a hike. Do you hike?"),
    ("wow that is cool, i love hiking", "Me too! My favourite trail goes around a mountain lake."),
    ("that sounds lovely, tell me more", "We saw two deer and a fox. What do you do for fun?"),
    ("i play the guitar, you are fun to talk to", "Thank you! Which songs do you like to play?"),
)
BAD = (
    ("hi", "i have two cats. i have two cats."),
    ("you said that already", "what is your job? i have two cats."),
    ("you make no sense, this is boring", "i do not know. what is your job?"),
    ("stop it, you are a stupid bot", "that is nice. i have two cats."),
)


@pytest.mark.default_models
def test_a_bad_talk_is_rated_lower_than_a_good_one(default_models: object) -> None:
    predictor = RatingPredictor.load(NAME, Engines())
    talks = [
        Dialogue(
            "d",
            tuple(
                Turn(*turn)
                for user, bot in talk
                for turn in (("user", user, "user"), ("bot", bot, "system"))
            ),
        )
        for talk in (GOOD, BAD)
    ]
    good, bad = predictor.predict([turn_pairs(talk) for talk in talks])
    assert good.rating > bad.rating
    assert good.low < bad.low
    assert {"critique", "insult", "calls_out_repetition"} <= set(bad.signals)
    assert not {"critique", "insult"} & set(good.signals)


def test_licence_and_card_go_with_it() -> None:
    folder = shipped(NAME)
    assert folder is not None
    assert (folder / "LICENSE").read_text().strip() == "Ji et al. (2022): MIT"
    card = (folder / "card.md").read_text()
    for part in (
        "2,925 rated dialogues",
        "causerie ratings fit",
        "Cross-validated",
        "| length |",
        "| cf-lstm |",
    ):
        assert part in card


def test_it_was_fitted_on_the_features_that_this_version_measures() -> None:
    """The names in order and what determines their values are known without weights."""
    info = ArtifactInfo.find(NAME, NAME)
    extractor = Extractor.of(info.options["features"], columns=info.options["columns"])
    assert [feature.name for feature in extractor.features] == info.options["names"]
    assert digest_of(extractor) == info.backbone_sha256
