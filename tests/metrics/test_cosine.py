"""Sentence-embedding cosine between context and response."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.metrics.cosine import Cosine
from causerie.models import Store
from causerie.scoring.scorer import load


def dialogue(*texts: str) -> Dialogue:
    return Dialogue("d", tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts)))


def mean_vector(model, tokenizer, text: str) -> torch.Tensor:
    """Encode as sentence-transformers does: the mean over all tokens, special ones included."""
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0)


def test_last_two_turns_against_the_response(tiny_bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        AutoModel.from_pretrained(tiny_bert),
        AutoTokenizer.from_pretrained(tiny_bert),
    )
    model.eval()
    talk = dialogue("Hello!", "Do you like music?", "I like pizza.", "Pizza!")
    settings = Settings(encoder=str(tiny_bert), device="cpu")
    found = [row["cosine"].value for row in load("cosine", settings).score(talk)]
    contexts = ["Hello!", "Hello! Do you like music?", "Do you like music? I like pizza."]
    expected = [
        torch.cosine_similarity(
            mean_vector(model, tokenizer, context), mean_vector(model, tokenizer, turn.text), dim=0
        ).item()
        for context, turn in zip(contexts, talk.turns[1:], strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-4)
    alone = Exchange(talk, 0)
    ((score,),) = Cosine().score_exchanges([alone], Engines(settings))
    assert score.reason == "no context"


@pytest.mark.default_models
@pytest.mark.parametrize(
    ("context", "relevant", "irrelevant"),
    [
        ("What did you eat in Italy?", "Mostly pizza and pasta.", "The engine needs new oil."),
        ("My dog is ill.", "Did you take him to the vet?", "I prefer the blue curtains."),
        ("Do you play any instrument?", "Yes, the guitar.", "The train leaves at nine."),
    ],
)
def test_relevant_responses_score_higher(
    default_models: Store, context: str, relevant: str, irrelevant: str
) -> None:
    metric = load("cosine", Settings(models_dir=default_models.folder))
    talks = [dialogue(context, relevant), dialogue(context, irrelevant)]
    good, bad = (metric.score(talk)[0]["cosine"].value for talk in talks)
    assert good > bad + 0.1
