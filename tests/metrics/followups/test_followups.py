"""The follow-up metrics against the papers' formulas, one sequence at a time (see `naive`)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from causerie import metrics
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings, counted_cuts
from causerie.errors import CauserieError
from causerie.metrics.followups import Cpmi, CpmiSym, Fed, hypotheses
from causerie.metrics.followups import metrics as followups
from causerie.metrics.followups.sequences import likelihoods
from metrics.followups.naive import Naive, Sequences

METRICS = (Fed, Cpmi, CpmiSym)
ASKED = {
    "turn": {
        "both": {"positive": ["Really?", "I see."], "negative": ["Hm.", "Sorry, what?", "No."]},
        "negative-only": {"negative": ["Hm.", "Are you a bot?"]},
        "positive-only": {"positive": ["שלום!"]},
    },
    "dialogue": {"whole": {"positive": ["Thanks."], "negative": ["Hm.", "Bye."]}},
}
# Forty-one turns have histories of 1 to 40 turns; some speaker talks twice in a row.
LONG = Dialogue(
    "long",
    tuple(
        Turn("ab"[(i * i // 3) % 2], tiny.CORPUS[(i * 5) % len(tiny.CORPUS)][: 4 + i % 9])
        for i in range(41)
    ),
)
ROLES = Dialogue(
    "roles",
    (
        Turn("x", "Do you like music?", "user"),
        Turn("y", "I don't know.", "system"),
        Turn("y", "日本語?", "system"),
        Turn("x", "What do you mean?", "user"),
    ),
)
EXCHANGES = [*LONG.exchanges()[::7], *ROLES.exchanges()]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A few short hypotheses in place of the shipped ones."""
    path = tmp_path_factory.mktemp("hypotheses") / "few.json"
    path.write_text(json.dumps(ASKED))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hypotheses, "SHIPPED", path)
        followups._read_dimensions.cache_clear()
        yield path
    followups._read_dimensions.cache_clear()


@pytest.fixture(scope="module")
def wide_llama(tmp_path_factory):
    """The tiny Llama with a window that has room for 41 turns."""
    folder = tiny.make_llama(tmp_path_factory.mktemp("models") / "wide")
    for file, key in (
        ("config.json", "max_position_embeddings"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        content = json.loads((folder / file).read_text())
        content[key] = 4096
        (folder / file).write_text(json.dumps(content))
    return folder


def engines_of(folder, turns: str | None = None) -> Engines:
    """In double precision, so that differences of likelihoods can be compared closely."""
    engines = Engines(Settings(lm=str(folder), turn_format=turns))
    engines.likelihood.backbone.model.double()
    return engines


@pytest.fixture(scope="module", params=["eos", "chat", "plain", "published"])
def engines(few, wide_llama, request) -> Engines:
    return engines_of(wide_llama, request.param)


@pytest.fixture(scope="module")
def sequences(engines) -> Sequences:
    backbone = engines.likelihood.backbone
    return Sequences(backbone.model, backbone.tokenizer, engines.likelihood.format.name)


def agree(found, expected: float) -> None:
    assert found.value == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("average", ["sequence", "hypothesis"])
@pytest.mark.parametrize("metric", METRICS)
def test_histories_of_1_to_40_turns(engines, sequences, metric, average):
    scored = metric(average=average)
    names = [column.name for column in scored.columns("turn")]
    assert names == ["both", "negative-only", "positive-only", "overall"]
    oracle = Naive(sequences, average)
    lengths = []
    with counted_cuts() as cuts:
        rows = scored.score_exchanges(LONG.exchanges(), engines)
    for exchange, scores in zip(LONG.exchanges(), rows, strict=True):
        row = dict(zip(names, scores, strict=True))
        lengths.append(len(exchange.context))
        for name, sides in ASKED["turn"].items():
            agree(row[name], oracle.score(metric.name, exchange, sides))
        # Of the three dimensions only one has both sides.
        assert row["overall"].value == row["both"].value
    assert lengths == [*range(1, 41)]
    assert cuts["language model"][0] == 0


@pytest.mark.parametrize("metric", METRICS)
def test_known_roles(engines, sequences, metric):
    """Roles are kept, and the other role reacts to the response."""
    oracle = Naive(sequences)
    for exchange, scores in zip(
        ROLES.exchanges(), metric().score_exchanges(ROLES.exchanges(), engines), strict=True
    ):
        for score, sides in zip(scores, ASKED["turn"].values(), strict=False):
            agree(score, oracle.score(metric.name, exchange, sides))


@pytest.mark.parametrize("history", [1, 3])
@pytest.mark.parametrize("metric", METRICS)
def test_history_window(engines, sequences, metric, history):
    oracle = Naive(sequences, history=history)
    for exchange, scores in zip(
        EXCHANGES, metric(history=history).score_exchanges(EXCHANGES, engines), strict=True
    ):
        agree(scores[0], oracle.score(metric.name, exchange, ASKED["turn"]["both"]))


texts = st.text(min_size=1, max_size=12)


@settings(max_examples=20)
@given(said=st.lists(st.tuples(st.sampled_from("ab"), texts), min_size=1, max_size=5))
def test_any_text_of_any_speakers(engines, sequences, said):
    dialogue = Dialogue("d", tuple(Turn(*turn) for turn in said))
    exchange, oracle = Exchange(dialogue, len(said) - 1), Naive(sequences)
    for metric in METRICS:
        [scores] = metric().score_exchanges([exchange], engines)
        for score, sides in zip(scores, ASKED["turn"].values(), strict=False):
            agree(score, oracle.score(metric.name, exchange, sides))


@pytest.mark.parametrize("metric", METRICS)
def test_explanation(engines, sequences, metric):
    oracle = Naive(sequences)
    rows = metric().score_exchanges(EXCHANGES, engines, explain=True)
    for exchange, (both, negative, _, overall) in zip(EXCHANGES, rows, strict=True):
        for side in ("positive", "negative"):
            found = both.explanation[side]
            assert found == pytest.approx(
                {h: oracle.change(exchange, h) for h in ASKED["turn"]["both"][side]}, abs=1e-4
            )
            assert list(found.values()) == sorted(found.values(), reverse=True)
        assert negative.explanation["positive"] == {}
        assert overall.explanation is None
        assert json.loads(json.dumps(both.explanation)) == both.explanation


def test_explanations_cost_nothing_unless_wanted(few, tiny_gpt2):
    tokens = []
    for explain in (True, False):
        engines = Engines(Settings(lm=str(tiny_gpt2)))
        scores = Fed().score_exchanges([Exchange(ROLES, 3)], engines, explain=explain)
        assert (scores[0][0].explanation is not None) == explain
        tokens.append(engines.likelihood.tokens_computed)
    assert tokens[0] > tokens[1]


@pytest.mark.parametrize("metric", METRICS)
def test_scores_do_not_depend_on_the_batch(few, tiny_llama, metric):
    whole = metric().score_exchanges(EXCHANGES, Engines(Settings(lm=str(tiny_llama))))
    fresh = Engines(Settings(lm=str(tiny_llama)))
    for exchange, row in reversed(list(zip(EXCHANGES, whole, strict=True))):
        [by_itself] = metric().score_exchanges([exchange], fresh)
        for one, other in zip(by_itself, row, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-4, abs=1e-5)


def test_metrics_share_their_work(few, tiny_llama):
    engines = Engines(Settings(lm=str(tiny_llama)))
    Cpmi().score_exchanges(EXCHANGES, engines)
    first = engines.likelihood.tokens_computed
    Fed().score_exchanges(EXCHANGES, engines)
    assert engines.likelihood.tokens_computed == first
    CpmiSym().score_exchanges(EXCHANGES, engines)
    swapped = engines.likelihood.tokens_computed - first
    assert swapped > 0
    alone = Engines(Settings(lm=str(tiny_llama)))
    CpmiSym().score_exchanges(EXCHANGES, alone)
    assert alone.likelihood.tokens_computed > swapped


def test_a_dialogue_is_one_tree(few, tiny_llama):
    """The network reads every turn of the history once, not once per response."""
    engines = Engines(Settings(lm=str(tiny_llama), turn_format="eos"))
    metric = Fed(average="hypothesis")
    ends = {text for sides in ASKED["turn"].values() for side in sides.values() for text in side}
    form = engines.likelihood.format
    dialogue = Dialogue("d", LONG.turns[:10])
    metric.score_exchanges(dialogue.exchanges(), engines)
    once = 1 + sum(len(form.segment("user", turn.text).tokens) for turn in dialogue.turns)
    branches = sum(len(form.segment("user", text).tokens) - 1 for text in ends)
    assert engines.likelihood.tokens_computed <= once + 9 * branches


def test_empty_history(engines, sequences):
    """A response shares no information with an empty history."""
    exchange, oracle = Exchange(LONG, 0), Naive(sequences)
    for metric in (Cpmi, CpmiSym):
        [scores] = metric().score_exchanges([exchange], engines)
        assert [score.value for score in scores] == pytest.approx([0.0] * 4, abs=1e-12)
    [scores] = Fed().score_exchanges([exchange], engines)
    agree(scores[0], oracle.score("fed", exchange, ASKED["turn"]["both"]))
    assert scores[0].value != 0


@pytest.mark.parametrize("metric", METRICS)
def test_dialogue_level(engines, sequences, metric):
    """The last turn of the system, or the last turn without roles, with all turns before it."""
    oracle, scored = Naive(sequences), metric()
    assert [column.name for column in scored.columns("dialogue")] == ["whole", "overall"]
    one_turn = Dialogue("one", LONG.turns[:1])
    users = Dialogue("users", (*ROLES.turns[:1], *ROLES.turns[3:]))
    wanted = [
        (ROLES, None, Exchange(ROLES, 2)),
        (ROLES, "x", Exchange(ROLES, 3)),
        (ROLES, "user", Exchange(ROLES, 3)),
        (LONG, None, Exchange(LONG, 40)),
        (one_turn, None, Exchange(one_turn, 0)),
        (users, None, Exchange(users, 1)),
    ]
    for dialogue, speaker, exchange in wanted:
        [(whole, overall)] = scored.score_dialogues([dialogue], engines, speaker=speaker)
        agree(whole, oracle.score(metric.name, exchange, ASKED["dialogue"]["whole"]))
        assert overall.value == whole.value
    together = scored.score_dialogues([LONG, Dialogue("empty", ()), ROLES], engines)
    assert [row[0].value is None for row in together] == [False, True, False]
    [row] = scored.score_dialogues([LONG], engines, speaker="nobody")
    assert all(score.reason == "no turn to score" for score in row)


@pytest.mark.parametrize("metric", METRICS)
def test_far_longer_than_the_window(few, tiny_llama, metric):
    engines = Engines(Settings(lm=str(tiny_llama)))
    turns = tuple(Turn("ab"[i % 2], f"Nummer {i}, 数字?") for i in range(300))
    dialogue = Dialogue("d", turns)
    scored = metric()
    exchanges = dialogue.exchanges()
    if metric is CpmiSym:  # a context pass for each of them
        exchanges = exchanges[::30]
    with counted_cuts() as cuts:
        rows = scored.score_exchanges(exchanges, engines)
    assert all(score.value is not None for row in rows for score in row)
    cut, seen = cuts["language model"]
    assert 0 < cut < seen
    [row] = scored.score_dialogues([dialogue], engines)
    assert all(score.value is not None for score in row)


def long_history(said: str) -> Exchange:
    history = tuple(Turn("ab"[i % 2], f"Nummer {i}, 数字?") for i in range(300))
    return Exchange(Dialogue("d", (*history, Turn("a", said))), 300)


def test_a_long_history_does_not_push_out_the_response_before_it(few, tiny_llama):
    engines = Engines(Settings(lm=str(tiny_llama)))
    exchanges = [long_history("Oh yes."), long_history("Hm no.")]
    with counted_cuts() as cuts:
        one, other = likelihoods(engines.likelihood, exchanges, ["rch"], ["Why?"], "hypothesis")
    assert one.of("rch", "Why?") != pytest.approx(other.of("rch", "Why?"), rel=1e-6)
    assert cuts["language model"] == (2, 2)


@pytest.mark.parametrize("times", [1, 3])
def test_what_is_cut_is_counted_once(few, tiny_llama, times):
    engines = Engines(Settings(lm=str(tiny_llama)))
    exchanges = [long_history("Oh yes.") for _ in range(times)]
    orders = ("crh", "rch", "ch", "rh", "h")
    with counted_cuts() as cuts:
        likelihoods(engines.likelihood, exchanges, orders, ["Why?", "No."], "sequence")
    assert cuts["language model"] == (6, 10), "all that have a history"


@pytest.mark.parametrize("metric", [Cpmi, CpmiSym])
def test_all_sequences_of_an_exchange_see_the_same_turns(few, tiny_llama, metric):
    engines = engines_of(tiny_llama)
    scored = metric()
    dialogue = Dialogue("d", tuple(Turn("ab"[i % 2], "Hm, 数字? I see.") for i in range(40)))
    exchanges = dialogue.exchanges()[-12:]
    with counted_cuts() as cuts:
        shorter = [
            scored.score_exchanges([e.recent(k) for k in range(1, 8)], engines) for e in exchanges
        ]
    assert cuts["language model"][0] == 0
    rows = scored.score_exchanges(exchanges, engines)
    for row, candidates in zip(rows, shorter, strict=True):
        # As if the conversation had begun later, at one of these turns.
        values = [score.value for score in row]
        assert any(values == pytest.approx([s.value for s in other]) for other in candidates)


def test_no_exchanges(engines):
    for metric in METRICS:
        assert metric().score_exchanges([], engines) == []
        assert metric().score_dialogues([], engines) == []


def test_a_follow_up_without_a_token_leaves_its_dimension_alone_unscored(few, tiny_gpt2):
    engines = Engines(Settings(lm=str(tiny_gpt2)))
    form = engines.likelihood.format
    # No prefix, no end of turn, one token: nothing comes before it.
    bare = {role: replace(scaffold, footer=(), end=0) for role, scaffold in form.scaffolds.items()}
    engines.likelihood.format = replace(form, prefix=(), scaffolds=bare)
    few.with_name("one.json").write_text(json.dumps({"turn": {"x": {"positive": ["H"]}}}))
    exchanges = [Exchange(LONG, 1)]
    metric = Cpmi(hypotheses=str(few.with_name("one.json")), average="hypothesis")
    [(*rest, x, overall)] = metric.score_exchanges(exchanges, engines)
    assert "no token" in x.reason
    [expected] = Cpmi(average="hypothesis").score_exchanges(exchanges, engines)
    assert [s.value for s in (*rest, overall)] == pytest.approx([s.value for s in expected])
    only = {"turn": {name: {"positive": ["H"]} for name in ASKED["turn"]}}
    few.with_name("one.json").write_text(json.dumps(only))
    metric = Cpmi(hypotheses=str(few.with_name("one.json")), average="hypothesis")
    [scores] = metric.score_exchanges(exchanges, engines)
    assert all("no token" in score.reason for score in scores)


def test_options(few, tiny_gpt2, tmp_path):
    engines = Engines(Settings(lm=str(tiny_gpt2)))
    own = tmp_path / "own.json"
    signatures = set()
    for sentence in ("Hm.", "Oh."):
        own.write_text(json.dumps({"turn": {"own": {"negative": [sentence]}}}))
        metric = metrics.load_metric("fed", hypotheses=str(own), history=2)
        assert [c.name for c in metric.columns("turn")][-2:] == ["own", "overall"]
        assert [c.name for c in metric.columns("dialogue")] == ["whole", "overall"]
        signatures.add(metric.signature(engines))
    assert len(signatures) == 2, "other hypotheses under the same name are other numbers"
    assert all("fed(history=2)|" in s and str(tmp_path) not in s for s in signatures)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(own.read_text())
    again = metrics.load_metric("fed", hypotheses=str(elsewhere), history=2)
    assert again.signature(engines) == metric.signature(engines), "the same file elsewhere"
    with pytest.raises(CauserieError, match="average is sequence or hypothesis, not 'token'"):
        metrics.load_metric("cpmi", average="token")
    for history in (0, -1, 1.5, True, "all"):
        said = "at least 1" if type(history) is int else "a whole number or null"
        with pytest.raises(CauserieError, match=f"history is {said}, not"):
            metrics.load_metric("cpmi-sym", history=history)


def test_statistics_put_all_dimensions_on_one_scale(engines, tmp_path):
    human = {"mean": -0.5, "deviation": 0.25}
    content = {"cpmi": {"turn": {"both": human, "negative-only": human}, "dialogue": {}}}
    path = tmp_path / "human.json"
    path.write_text(json.dumps(content))
    metric = Cpmi(statistics=str(path))
    assert metric.signature(engines) != Cpmi().signature(engines)
    [(both, negative, _, overall)] = metric.score_exchanges([Exchange(LONG, 5)], engines)
    assert overall.value == pytest.approx(((both.value + negative.value) / 2 + 0.5) / 0.25)
    [(_, overall)] = metric.score_dialogues([LONG], engines)
    assert overall.reason == "no dimension has statistics"


def test_no_dimension_with_both_sides(engines, tmp_path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"turn": {"both": {"negative": ["Hm."]}}}))
    [(*rest, overall)] = Fed(hypotheses=str(path)).score_exchanges([Exchange(LONG, 5)], engines)
    assert all(score.value is not None for score in rest)
    assert overall.reason == "no dimension has positive and negative follow-ups"
