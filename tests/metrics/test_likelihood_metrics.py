"""Perplexity and relevance against a plain model on the rendered chat."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings, counted_cuts
from causerie.engines.attention import NAME
from causerie.metrics.likelihood import Perplexity, Relevance
from causerie.scoring import Plan, Scorer

DIALOGUES = (
    Dialogue(
        "two",
        (
            Turn("anna", "Hello! How are you doing today?"),
            Turn("bot", "I am fine, thanks. And you?"),
            Turn("anna", "שלום! I went hiking."),
            Turn("bot", "Which trail did you take?"),
        ),
    ),
    Dialogue(
        "roles",
        (
            Turn("x", "Do you like music?", "user"),
            Turn("y", "I don't know.", "system"),
            Turn("x", "What do you mean?", "user"),
        ),
    ),
    Dialogue("same", (Turn("a", "Hm."), Turn("a", "Hm."), Turn("b", "Hm."))),
)
EXCHANGES = [exchange for dialogue in DIALOGUES for exchange in dialogue.exchanges()]


@pytest.fixture(scope="module")
def engines(tiny_llama) -> Engines:
    return Engines(Settings(lm=str(tiny_llama)))


def expected(engines: Engines, exchange: Exchange, context: tuple[Turn, ...]) -> float:
    """Return the mean log-likelihood of response and end of turn, by one plain forward pass."""
    backbone = engines.likelihood.backbone

    def chat(turns):
        roles = {"user": "user", "system": "assistant"}
        messages = [{"role": roles[exchange.role_of(t)], "content": t.text} for t in turns]
        rendered = backbone.tokenizer.apply_chat_template(messages, tokenize=False)
        return backbone.tokenizer(rendered, add_special_tokens=False)["input_ids"]

    role = "user" if exchange.role_of(exchange.response) == "user" else "assistant"
    header = backbone.tokenizer(f"<|im_start|>{role}\n", add_special_tokens=False)["input_ids"]
    start = (len(chat(context)) if context else 0) + len(header)
    tokens = chat((*context, exchange.response))[:-1]  # without the line break after the end
    with torch.inference_mode():
        log_probs = backbone.model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    scored = [float(log_probs[i - 1, tokens[i]]) for i in range(start, len(tokens))]
    return sum(scored) / len(scored)


def test_perplexity(engines):
    for exchange, (score,) in zip(
        EXCHANGES, Perplexity().score_exchanges(EXCHANGES, engines), strict=True
    ):
        wanted = math.exp(-expected(engines, exchange, exchange.context))
        assert score.value == pytest.approx(wanted, rel=1e-3)


def test_relevance(engines):
    metric = Relevance()
    assert [column.name for column in metric.columns("turn")] == ["likelihood", "gain"]
    for exchange, (likelihood, gain) in zip(
        EXCHANGES, metric.score_exchanges(EXCHANGES, engines), strict=True
    ):
        given = expected(engines, exchange, exchange.context)
        assert likelihood.value == pytest.approx(given, rel=1e-4)
        alone = expected(engines, exchange, ())
        assert gain.value == pytest.approx(given - alone, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("metric", [Perplexity, Relevance])
def test_scores_do_not_depend_on_the_batch(tiny_llama, metric):
    whole = metric().score_exchanges(EXCHANGES, Engines(Settings(lm=str(tiny_llama))))
    fresh = Engines(Settings(lm=str(tiny_llama)))
    for exchange, row in reversed(list(zip(EXCHANGES, whole, strict=True))):
        [by_itself] = metric().score_exchanges([exchange], fresh)
        for one, other in zip(by_itself, row, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-4, abs=1e-5)


def test_a_response_without_context_gains_nothing(engines):
    opening = Exchange(DIALOGUES[0], 0)
    [(likelihood, gain)] = Relevance().score_exchanges([opening], engines)
    assert likelihood.value == pytest.approx(expected(engines, opening, ()), rel=1e-4)
    assert gain.value == 0.0
    [(perplexity,)] = Perplexity().score_exchanges([opening], engines)
    assert perplexity.value == pytest.approx(math.exp(-likelihood.value))


def test_no_exchanges(engines):
    assert Perplexity().score_exchanges([], engines) == []
    assert Relevance().score_exchanges([], engines) == []


def test_nothing_to_score_is_unscored(tiny_gpt2):
    engines = Engines(Settings(lm=str(tiny_gpt2)))
    # The prefix gone and the turn one token long: nothing comes before it.
    exchange = Exchange(Dialogue("d", (Turn("a", ""),)), 0)
    engines.likelihood.format = replace(engines.likelihood.format, prefix=())
    for metric in (Perplexity(), Relevance()):
        [scores] = metric.score_exchanges([exchange], engines)
        assert all(score.value is None and "no token" in score.reason for score in scores)


def test_a_dialogue_far_longer_than_the_window(tiny_llama):
    engines = Engines(Settings(lm=str(tiny_llama)))
    turns = tuple(Turn("ab"[i % 2], f"That is number {i}.") for i in range(300))
    with counted_cuts() as cuts:
        scores = Perplexity().score_exchanges(Dialogue("d", turns).exchanges(), engines)
    assert all(score.value is not None for (score,) in scores)
    cut, seen = cuts["language model"]
    assert seen == 299
    assert 200 < cut < 299


def test_no_gain_where_the_history_takes_the_response_its_end(tiny_llama):
    """Both averages must be over the same tokens."""
    metric, engines = Relevance(), Engines(Settings(lm=str(tiny_llama)))
    history = Turn("a", "hello " * 20)
    words = (10, 60, 400)  # fits; only by itself; in no case
    exchanges = [
        Exchange(Dialogue("d", (history, Turn("b", "how are you " * count))), 1) for count in words
    ]
    fits, only_alone, never = metric.score_exchanges(exchanges, engines)
    assert all(score.value is not None for score in fits)
    for likelihood, gain in (only_alone, never):
        assert likelihood.value is not None
        assert gain.value is None
        assert "exceeds the language model's window" in gain.reason
    # By itself, a response has nothing before it that could take room.
    [(_, gain)] = metric.score_exchanges([Exchange(exchanges[2].dialogue, 0)], engines)
    assert gain.value == 0.0


@pytest.mark.parametrize("metric", [Perplexity, Relevance])
def test_background_is_not_shown(engines, metric):
    dialogue = DIALOGUES[0]
    informed = replace(dialogue, background=("You are a pirate.",))
    bare, given = (metric().score_exchanges(d.exchanges(), engines) for d in (dialogue, informed))
    assert given == bare
    assert "background" in metric.summary


@pytest.mark.default_models
def test_the_default_model_knows_what_fits(default_models):
    """A sensible answer is more likely than a wrong one, and its history makes it more so."""
    engines = Engines(Settings())
    question = Turn("a", "What is the capital of France?")
    fits, does_not = (
        Exchange(Dialogue("d", (question, Turn("b", text))), 1)
        for text in ("The capital of France is Paris.", "I usually feed my cat twice a day.")
    )
    good, bad = Relevance().score_exchanges([fits, does_not], engines)
    assert good[0].value > bad[0].value
    assert good[1].value > bad[1].value
    [(low,), (high,)] = Perplexity().score_exchanges([fits, does_not], engines)
    assert low.value < high.value


TEXTS = (
    "Do you like music? I have been learning the guitar since January.",
    "Really? Tell me more about it!",
    "The weather was cold and wet, so we stayed at home and watched a film.",
    "I don't know. What do you mean?",
    "My favourite food is pizza.",
    "Café, naïve, 12:30, 100%, e-mail, (yes), quoted; 日本語, שלום and 🙂.",
)


@pytest.mark.parametrize("lm", ["tiny_llama", "tiny_gpt2"])
def test_a_score_depends_neither_on_its_company_nor_on_threads(lm, request):
    """Scores are the same bytes whole, halved, one by one and with more threads."""
    folder = str(request.getfixturevalue(lm))
    together = list(Dialogue.from_texts(TEXTS * 2).exchanges())
    whole = [together]
    halves = [together[::2], together[1::2]]
    single = [[exchange] for exchange in together]

    def written(parts, threads):
        plan = Plan.of("perplexity,fed", settings=Settings(lm=folder, threads=threads))
        scorer = Scorer(plan)
        rows = {}
        for part in parts:
            for item, row in scorer.score_items(part).rows():
                rows[item.turn] = {name: score.value for name, score in row.items()}
        assert scorer.engines.likelihood.backbone.model.config._attn_implementation == NAME
        return json.dumps(sorted(rows.items()))

    expected = written(whole, 1)
    assert len(json.loads(expected)) == 2 * len(TEXTS) - 1
    for parts, threads in ((whole, 2), (halves, 1), (halves, 2), (single, 1)):
        assert written(parts, threads) == expected
