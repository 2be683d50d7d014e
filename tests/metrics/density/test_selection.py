"""The candidates of a training step."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from causerie.dialogue import Dialogue, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import EXTRACTORS, Extractor
from causerie.metrics.density.selection import SELECTIONS, Row, Selection, in_a_row
from causerie.training.corpus import Corpus
from causerie.training.negatives import ranking_items


def dialogue(name: str, *texts: str) -> Dialogue:
    return Dialogue(name, tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts)))


DIALOGUES = [
    dialogue("a", "Do you like music?", "I do.", "Which?", "The guitar."),
    dialogue("b", "Where do you work?", "At a book shop.", "Really?"),
    dialogue("c", "How was the film?", "I do."),
]


ROWS = [d.exchanges() for d in DIALOGUES]


def task(tiny_bert: Path, **settings: object) -> tuple[Selection, Extractor]:
    config = DensityConfig(width=16, pooling="mean", batch=3, **settings)  # type: ignore[arg-type]
    encoder = Engines(Settings(encoder=str(tiny_bert), offline=True)).new_encoder()
    encoder.model = config.encoder_tuning.prepare(encoder.model)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    corpus = Corpus((tuple(DIALOGUES),))
    made = SELECTIONS[config.interaction](
        extractor, config, corpus, ranking_items(corpus.exchanges, 0)
    )
    made.module.eval()
    return made, extractor


@pytest.mark.parametrize(
    ("interaction", "tuning"), [("towers", "frozen"), ("towers", "adapter"), ("views", "frozen")]
)
def test_towers_compare_every_context_with_every_response(
    tiny_bert: Path, interaction: str, tuning: str
) -> None:
    made, extractor = task(tiny_bert, interaction=interaction, tuning=tuning, exchanges=9)
    with torch.no_grad():
        found = made.candidates(ROWS, random.Random(4))  # type: ignore[attr-defined]
    exchanges = [e for d in DIALOGUES for e in d.exchanges()]
    count = len(exchanges)
    assert found.features.shape[:2] == (count, count)
    for i, exchange in enumerate(exchanges):
        others = [exchanges[(i + j) % count].response.text for j in range(count)]
        naive = extractor.features([exchange.with_response(text) for text in others])
        np.testing.assert_allclose(found.features[i].numpy(), naive, rtol=1e-4, atol=1e-5)
        owners = [exchanges[(i + j) % count].dialogue for j in range(count)]
        neither = [
            j > 0 and (text == exchange.response.text or owner is exchange.dialogue)
            for j, (text, owner) in enumerate(zip(others, owners, strict=True))
        ]
        assert found.same[i].tolist() == neither
    assert found.same.sum() == 2 + 6 + 2  # "I do." twice; pairs of the first and second dialogue


def test_attacks_add_candidates_for_all(tiny_bert: Path) -> None:
    made, _ = task(tiny_bert, interaction="towers", tuning="frozen", exchanges=9, attacks=1.0)
    found = made.candidates(ROWS, random.Random(0))  # type: ignore[attr-defined]
    assert found.features.shape[:2] == (6, 12)
    one = Corpus((tuple(DIALOGUES[:1]),))
    with pytest.raises(CauserieError, match="single dialogue has no negatives"):
        type(made)(made.extractor, made.config, one, [])


@pytest.mark.parametrize(
    ("settings", "lengths"),
    [
        ({"interaction": "towers", "exchanges": 2}, [1, 1, 2, 2]),
        ({"interaction": "cross"}, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_an_epoch_has_every_exchange_once(
    tiny_bert: Path, settings: dict[str, object], lengths: list[int]
) -> None:
    """Return as many consecutive exchanges of a dialogue as a step takes: one for cross."""
    made, _ = task(tiny_bert, tuning="frozen", **settings)
    for epoch in range(2):
        batches = range(epoch * len(made.batches), (epoch + 1) * len(made.batches))
        rows: list[Row] = [row for index in batches for row in made.batch(index)[0]]
        assert sorted(map(len, rows)) == lengths
        seen = [(e.dialogue.id, e.turn) for row in rows for e in row]
        assert sorted(seen) == [(d.id, e.turn) for d in DIALOGUES for e in d.exchanges()]
        for row in rows:
            assert [e.turn for e in row] == list(range(row[0].turn, row[0].turn + len(row)))


def test_what_was_said_before_is_a_false_response_for_towers(tiny_bert: Path) -> None:
    made, extractor = task(tiny_bert, interaction="towers", tuning="frozen", said=True)
    rows = [*in_a_row(DIALOGUES[0], 2), *in_a_row(DIALOGUES[1], 2)]
    with torch.no_grad():
        found = made.candidates(rows, random.Random(0))  # type: ignore[attr-defined]
    exchanges = [e for row in rows for e in row]
    said = [DIALOGUES[0].turns[0], DIALOGUES[0].turns[2], DIALOGUES[1].turns[0]]
    texts = [e.response.text for e in exchanges] + [turn.text for turn in said]
    for i, exchange in enumerate(exchanges):
        order = texts[i:] + texts[:i]
        naive = extractor.features([exchange.with_response(text) for text in order])
        np.testing.assert_allclose(found.features[i].numpy(), naive, rtol=1e-4, atol=1e-5)
        false = {text for text, same in zip(order[1:], found.same[i, 1:], strict=True) if not same}
        before = {turn.text for turn in exchange.context}
        others = {t.text for d in DIALOGUES[:2] if d is not exchange.dialogue for t in d.turns}
        assert exchange.last(1)[0].text in false
        assert false == (before | others) & set(texts)


def test_what_was_said_before_is_a_false_response_for_cross(tiny_bert: Path) -> None:
    made, extractor = task(tiny_bert, interaction="cross", tuning="frozen", negatives=2, said=True)
    exchange = DIALOGUES[0].exchanges()[1]
    said = extractor.features([exchange.with_response(turn.text) for turn in exchange.context])
    first = set()
    for seed in range(9):
        found = made.candidates([[exchange]], random.Random(seed))  # type: ignore[attr-defined]
        near = np.abs(said - found.features[0, 1].numpy()).max(axis=1) < 1e-5
        first.add(near.tolist().index(True))
    assert first == {0, 1}


def topical(count: int) -> Corpus:
    """Dialogues on one of two topics; within a dialogue, all responses are similar."""
    texts = {0: ("Do you like music?", "The guitar."), 1: ("Where do you work?", "A book shop.")}
    talks = [
        dialogue(str(n), texts[n % 2][0], f"{texts[n % 2][1]} {'!' * (n // 2 + 1)}")
        for n in range(count)
    ]
    return Corpus((tuple(talks),))


def test_mined_rows_of_a_batch_are_near_each_other(tiny_bert: Path) -> None:
    made, extractor = task(tiny_bert, interaction="towers", tuning="frozen")
    corpus = topical(32)
    alike = {}
    for mined in (0.0, 1.0):
        config = replace(made.config, mined=mined, batch=4)
        near = type(made)(extractor, config, corpus, [])
        count = len(near.batches)
        batches = [near.batch(index)[0] for index in range(5 * count)]  # five epochs
        for start in range(0, len(batches), count):
            epoch = [row for batch in batches[start : start + count] for row in batch]
            assert sorted(int(row[0].dialogue.id) for row in epoch) == list(range(32))
        topics = [{int(row[0].dialogue.id) % 2 for row in batch} for batch in batches]
        alike[mined] = sum(len(topic) == 1 for topic in topics) / len(topics)
        again = type(made)(extractor, config, corpus, [])
        assert [row[0].dialogue.id for row in again.batch(3)[0]] == [
            row[0].dialogue.id for row in near.batch(3)[0]
        ]
    assert alike[0.0] < 0.25 < 0.35 < alike[1.0]  # by chance 0.1


def test_mined_responses_are_near_the_true_one(tiny_bert: Path) -> None:
    made, extractor = task(tiny_bert, interaction="cross", tuning="frozen")
    corpus = topical(60)
    exchange = corpus.exchanges[0]
    alike = {}
    for mined in (0.0, 1.0):
        config = replace(made.config, mined=mined, negatives=3)
        near = type(made)(extractor, config, corpus, [])
        drawn = [near._negatives(exchange, random.Random(seed)) for seed in range(40)]  # type: ignore[attr-defined]
        assert len({tuple(negatives) for negatives in drawn}) > 1
        texts = [text for negatives in drawn for text in negatives]
        alike[mined] = sum(text.startswith("The guitar.") for text in texts) / len(texts)
    assert alike[0.0] < 0.65  # by chance 0.5
    assert alike[1.0] > 0.8


@pytest.mark.parametrize("interaction", ["towers", "cross"])
def test_a_corrupted_response_is_the_same_in_every_epoch(tiny_bert: Path, interaction: str) -> None:
    """A share of the exchanges has one, the same in every epoch, to be encoded once."""
    made, _ = task(tiny_bert, interaction=interaction, tuning="frozen", attacks=0.5)
    many = [Dialogue(str(n), DIALOGUES[0].turns) for n in range(99)]
    made.train = Corpus((tuple(many),))
    exchanges = [dialogue.exchanges()[0] for dialogue in many]
    first = [made.corrupted(exchange) for exchange in exchanges]
    assert first == [made.corrupted(exchange) for exchange in exchanges]
    assert 25 < sum(text is not None for text in first) < 75


def test_cosine_is_that_of_the_turns_weighted_by_recency(tiny_bert: Path) -> None:
    _, extractor = task(
        tiny_bert, interaction="cosine", tuning="adapter", history=2, contrastive=0.0
    )
    exchange = DIALOGUES[0].exchanges()[2]
    vectors = extractor.encoder.encode([((turn.text,),) for turn in DIALOGUES[0].turns], "mean")
    _, second, last, response = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    context = last + 0.75 * second
    naive = context @ response / np.linalg.norm(context)
    (logit,) = extractor.logits(extractor.features([exchange]))
    assert logit == pytest.approx(20 * naive, rel=1e-4)


def test_towers_begin_as_the_similarity_of_recent_turns(tiny_bert: Path) -> None:
    _, extractor = task(tiny_bert, interaction="towers", tuning="frozen", history=2)
    features = extractor.features([DIALOGUES[0].exchanges()[2], DIALOGUES[0].exchanges()[0]])
    vectors = extractor.encoder.encode([((turn.text,),) for turn in DIALOGUES[0].turns], "mean")
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = [[5 * units[3] @ units[2], 5 * units[3] @ units[1]], [5 * units[1] @ units[0], 0]]
    np.testing.assert_allclose(features[:, -2:], expected, rtol=1e-4, atol=1e-5)
    weights = extractor.head.classifier.weight[0, -2:].tolist()
    assert weights == pytest.approx([5 / 1.75, 5 * 0.75 / 1.75])


def test_views_begin_as_the_similarity_of_recent_turns_and_against_echoes(tiny_bert: Path) -> None:
    _, extractor = task(tiny_bert, interaction="views", tuning="frozen", history=2)
    exchange = DIALOGUES[0].exchanges()[2]
    vectors = extractor.encoder.encode([((turn.text,),) for turn in DIALOGUES[0].turns], "mean")
    _, second, last, response = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    head = extractor.head
    head.out.weight.data.zero_()
    head.out.bias.data.zero_()

    def first(answer: np.ndarray) -> float:
        cosines = np.array([last @ answer, second @ answer])
        return 5 * cosines @ [1, 0.75] / 1.75 - 10 * max(cosines.max(), 0) ** 8

    echo = exchange.with_response(exchange.last(1)[0].text)
    found = extractor.features([exchange, echo])[:, 0]
    np.testing.assert_allclose(found, [first(response), first(last)], rtol=1e-4, atol=1e-5)
    assert head.classifier.weight[0, 0] == 5


def test_cross_puts_the_true_response_first(tiny_bert: Path) -> None:
    made, extractor = task(tiny_bert, interaction="cross", tuning="frozen", negatives=4)
    rows = in_a_row(DIALOGUES[0], 1)
    found = made.candidates(rows, random.Random(1))  # type: ignore[attr-defined]
    assert found.features.shape[:2] == (3, 5)
    true = extractor.features([exchange for (exchange,) in rows])
    np.testing.assert_allclose(found.features[:, 0].numpy(), true, rtol=1e-4, atol=1e-5)


def test_ranking_items_have_other_responses_of_other_dialogues() -> None:
    exchanges = [e for d in DIALOGUES for e in d.exchanges()]
    items = ranking_items(exchanges, 0)
    assert [item[0] for item in items] == exchanges
    for true, *drawn in items:
        theirs = {e.response.text for e in exchanges if e.dialogue is not true.dialogue}
        assert all(e.context == true.context for e in drawn)
        # No more than there are, each once.
        texts = [e.response.text for e in drawn]
        assert sorted(texts) == sorted(theirs - {true.response.text})
    assert ranking_items(exchanges, 0) == items
    many = [
        Dialogue(str(n), (Turn("A", "Hi."), Turn("B", f"I am number {n}."))).exchanges()[0]
        for n in range(40)
    ]
    for true, *drawn in ranking_items(many, 0):
        assert len({e.response.text for e in drawn} - {true.response.text}) == len(drawn) == 15
