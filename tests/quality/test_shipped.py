"""What comes with causerie: quality and faults with the default networks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from causerie import CauserieError, Dialogue, Engines
from causerie.dialogue import Exchange
from causerie.io import read
from causerie.metrics import load_metric
from causerie.models import Store
from causerie.models.artifact import ArtifactInfo, shipped
from causerie.quality import DIMENSIONS, FAULTS, Faults, Quality
from causerie.quality.features import descriptions
from causerie.scoring import Plan, Scorer

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
EXAMPLES = Path(__file__).parents[2] / "examples" / "conversations.jsonl"
GIBBERISH = "dkfj wlek qpa zzxk vbn trwq"


def talks(replies: list[str]) -> list[Dialogue]:
    pairs = zip(TALKS, replies, strict=True)
    return [Dialogue.from_texts([said, reply], id=reply) for (said, _), reply in pairs]


GOOD = [reply for _, reply in TALKS]


@pytest.fixture(scope="module")
def scorer(default_models: Store) -> Scorer:
    return Scorer(Plan.of("quality,faults", speaker="all"))


def column(scorer: Scorer, replies: list[str], name: str) -> list[float]:
    batch = scorer.score_items([d.exchanges()[0] for d in talks(replies)])
    return [float(value) for value in batch.values(name)]


@pytest.mark.default_models
def test_good_replies_are_better_than_what_is_wrong(scorer: Scorer) -> None:
    good = column(scorer, GOOD, "quality")
    assert all(0 <= value <= 100 for value in good)
    others = random.Random(1).sample(GOOD, len(GOOD))
    for worse in ([GIBBERISH] * len(GOOD), [said for said, _ in TALKS], others):
        wrong = column(scorer, worse, "quality")
        pairs = [
            (a, b)
            for a, b, reply, other in zip(good, wrong, GOOD, worse, strict=True)
            if reply != other
        ]
        assert sum(a > b for a, b in pairs) >= 0.85 * len(pairs)


@pytest.mark.default_models
@pytest.mark.parametrize(
    ("fault", "replies"),
    [
        ("gibberish", [GIBBERISH] * len(TALKS)),
        ("echo", [said for said, _ in TALKS]),
        ("self_repetition", [f"{reply} {reply} {reply}" for reply in GOOD]),
    ],
)
def test_plain_faults_are_found(scorer: Scorer, fault: str, replies: list[str]) -> None:
    limit = scorer.plan.columns[f"faults.{fault}"].limit
    assert limit is not None
    assert sum(p > limit for p in column(scorer, replies, f"faults.{fault}")) >= 7
    assert sum(p > limit for p in column(scorer, GOOD, f"faults.{fault}")) <= 1


@pytest.mark.default_models
def test_a_spoiled_reply_is_worth_little(scorer: Scorer) -> None:
    """However well the rest of it is liked."""
    good = column(scorer, GOOD, "quality")
    echoes = [f"{said} {reply}" for said, reply in TALKS]
    for spoiled in ([GIBBERISH] * len(GOOD), [said for said, _ in TALKS], echoes):
        found = column(scorer, spoiled, "quality")
        assert sum(b < a for a, b in zip(good, found, strict=True)) >= len(GOOD) - 1


def said_by_aria() -> list[Exchange]:
    """The replies of the better example system, and those that people gave it."""
    records = [r for r in read(EXAMPLES) if isinstance(r, Dialogue) and r.system == "aria"]
    return [exchange for dialogue in records for exchange in dialogue.exchanges()]


SPOILED: dict[str, tuple[Callable[[Exchange, random.Random], str], float]] = {
    "gibberish": (lambda e, rng: f"{e.response.text} {GIBBERISH}", 0.05),
    "last turn": (lambda e, rng: f"{e.response.text} {e.context[-1].text}", 0.05),
    "random": (lambda e, rng: rng.choice(GOOD), 0.12),
}
"""What is done to a reply, and on what share of replies it may raise the quality."""


@pytest.mark.default_models
@pytest.mark.parametrize("name", SPOILED)
def test_a_reply_is_seldom_better_for_being_spoiled(scorer: Scorer, name: str) -> None:
    spoil, most = SPOILED[name]
    rng = random.Random(0)
    exchanges = said_by_aria()
    worse = [e.with_response(spoil(e, rng)) for e in exchanges]
    before, after = (scorer.score_items(some).values("quality") for some in (exchanges, worse))
    raised = sum(b > a for a, b in zip(before, after, strict=True))
    assert raised <= most * len(exchanges), f"{raised} of {len(exchanges)}"


@pytest.mark.default_models
def test_company_changes_nothing(scorer: Scorer) -> None:
    exchanges = [d.exchanges()[0] for d in talks(GOOD)]
    together = scorer.score_items(exchanges)
    alone = Scorer(scorer.plan)
    for place, exchange in enumerate(exchanges):
        one = alone.score_items([exchange])
        for name in scorer.plan.columns:
            assert one.scores[name][0].value == together.scores[name][place].value, name


@pytest.mark.default_models
def test_ratings_follow_the_share_and_explanations_add_up(scorer: Scorer) -> None:
    rows = [scorer.score(d.exchanges()[0]) for d in talks([*GOOD[:4], *[GIBBERISH] * 4])]
    rows.sort(key=lambda row: row["quality"].value or 0.0)
    ratings = [row["quality.rating"].value or 0.0 for row in rows]
    assert ratings == sorted(ratings)
    assert all(1 <= rating <= 5 for rating in ratings)
    for row in rows:
        why = row["quality"].explanation
        assert why is not None
        assert why["tier"] == "fast"
        assert all(-100 <= added <= 100 for added in why["adds"].values())
        assert set(DIMENSIONS) == {name.partition(".")[2] for name in row if "quality." in name} - {
            "rating",
            "uncertainty",
        }


def test_a_first_turn_is_unscored() -> None:
    opening = Dialogue.from_texts(["Hello!"])
    scores = Quality().score_exchanges([Exchange(opening, 0)], Engines())
    assert {score.reason for score in scores[0]} == {"no context"}


def test_a_bench_gets_the_learner_that_has_not_seen_its_set() -> None:
    info = ArtifactInfo.find("quality")
    corpora = info.options["corpora"]
    assert corpora
    for name, corpus in corpora.items():
        assert Quality().unseen({name}) == Quality(without=corpus)
    assert Quality().unseen({"fed_dialog", "fed"}) == Quality(without="fed")
    assert Quality().unseen({"mine"}) == Quality()
    assert load_metric("density").unseen({"fed_turn"}) == load_metric("density")


def test_the_default_learned_from_nothing_that_forbids_it() -> None:
    info = ArtifactInfo.find("quality")
    assert info.options["terms"] == "default"
    assert not {"dailydialog_zhao", "grade_empatheticdialogues"} & set(info.options["corpora"])
    assert ArtifactInfo.find("quality-strict").options["corpora"] == {"dbdc3_en": "dbdc"}


def test_every_feature_has_a_sentence() -> None:
    for tier in ("fast", "standard"):
        assert all(text for text in descriptions(tier).values())
    assert len(descriptions("standard")) > len(descriptions("fast"))


def test_cards_name_every_set_with_its_licence() -> None:
    folder = shipped("quality")
    assert folder is not None
    card = (folder / "card.md").read_text()
    for name in ArtifactInfo.find("quality").options["corpora"]:
        assert f"learned from {name}" in card
    assert "judged sets, each unseen" in card


def test_limits_are_of_turns_only() -> None:
    assert all(column.limit is not None for column in Faults().columns("turn"))
    assert all(column.limit is None for column in Faults().columns("dialogue"))
    assert [column.name for column in Faults().columns("turn")] == list(FAULTS)


def test_other_parts_are_refused(monkeypatch: pytest.MonkeyPatch, default_models: Store) -> None:
    from causerie.quality import judging

    class Others(judging.Parts):
        def __init__(self, engines: Engines) -> None:
            super().__init__(engines)
            self.digests = {**self.digests, "density": "another"}

    monkeypatch.setattr(judging, "Parts", Others)
    with pytest.raises(CauserieError, match="learned with another density"):
        Quality().restored(Engines())
