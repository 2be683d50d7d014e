"""Features, the fitted predictor, the monitor and the commands, with a tiny encoder."""

from __future__ import annotations

import inspect
import io
import json
import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from causerie import CauserieError, Dialogue, Engines, Turn
from causerie.cli import app
from causerie.cli.ratings import ratings_app, watch
from causerie.metrics.base import Scores
from causerie.metrics.odes import CLASSES, SIGNALS, TREATMENTS, Odes, Utterance
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.ranker import Ranker
from causerie.metrics.sentinels import Overlap
from causerie.models.artifact import load_artifact
from causerie.ratings import fitting as fitting_room
from causerie.ratings.evaluate import evaluate, pairs_seen, quality_of
from causerie.ratings.examples import Standardizer, Treatments
from causerie.ratings.features import (
    ALL,
    FAST,
    Columns,
    Extractor,
    Feature,
    MeasuredLog,
    Scored,
    Specificity,
    Valence,
    Words,
    groups_of,
    parse_feature_names,
)
from causerie.ratings.fitting import (
    FitOptions,
    OutOfFold,
    fitting,
    folds_of,
    predict_out_of_fold,
)
from causerie.ratings.log import RatedLog, read_log
from causerie.ratings.models import ModelConfig
from causerie.ratings.monitor import RatingMonitor, Switchboard
from causerie.ratings.pairs import TurnPair, turn_pairs
from causerie.ratings.predictor import RatingPredictor, fit_predictor
from causerie.ratings.report import _within, evaluation_markdown
from causerie.scoring.store import ScoreStore

SMALL = ModelConfig(width=4, head=4, epochs=2, batch=16)


def pairs_of(*said: str, columns: dict[str, float] | None = None) -> tuple[TurnPair, ...]:
    names = ("user", "bot")
    turns = [Turn(names[n % 2], text, features=columns or {}) for n, text in enumerate(said)]
    return turn_pairs(Dialogue("d", tuple(turns)))


@pytest.fixture(scope="module")
def log(log_file: Path) -> RatedLog:
    return read_log([log_file])


@pytest.fixture(scope="module")
def names(odes_folder: Path) -> tuple[str, ...]:
    return str(odes_folder), "valence", "words"


@pytest.fixture(scope="module")
def measured(log: RatedLog, engines: Engines, names: tuple[str, ...]) -> MeasuredLog:
    return Extractor.of(names, engines).measured(log.dialogues)


@pytest.fixture(scope="module")
def fitted(measured: MeasuredLog) -> RatingPredictor:
    predictor, _ = fit_predictor(measured, FitOptions(config=SMALL))
    return predictor


def test_groups_by_hand() -> None:
    pairs = pairs_of("i love it", "cats sleep", "this is terrible", "the of", "so")
    assert Words().measure(pairs)[0] == pytest.approx(np.log1p([3, 2]))
    assert Words().measure(pairs)[2] == pytest.approx(np.log1p([1, 0]))
    happy, sad, _ = Valence().measure(pairs)[:, 0]
    assert happy > 0 > sad
    specific, common, nothing = Specificity().measure(pairs)[:, 0]
    assert 0 < specific <= 1
    assert common == 0
    assert math.isnan(nothing)


def test_numbers_of_the_caller_are_features() -> None:
    pairs = pairs_of("hi", "hello", columns={"asr": 0.25})
    known, unknown = Columns(["user.asr", "pitch"]).measure(pairs)[0].tolist()
    assert known == 0.25
    assert math.isnan(unknown)


def test_numbers_of_both_sides_are_kept_apart_and_averaged_over_a_side() -> None:
    turns = [
        Turn("user", "hi", features={"asr": 0.2, "pitch": 5}),
        Turn("user", "you", features={"asr": 0.6}),
        Turn("bot", "hello", features={"asr": 0.9, "pause": 2}),
    ]
    (pair,) = turn_pairs(Dialogue("d", tuple(turns)))
    sides = {"user.asr": 0.4, "user.pitch": 5, "system.asr": 0.9, "system.pause": 2}
    assert pair.columns == pytest.approx({**sides, "pitch": 5, "pause": 2})


def test_a_number_that_no_turn_has_is_one_line() -> None:
    group = Columns(["asr"])
    with pytest.raises(CauserieError, match=r"no turn has a number 'asr': .* user.asr"):
        Standardizer.of(group.features, [group.measure(pairs_of("hi", "hello"))])


def probabilities(odes_folder: Path, engines: Engines, *said: Utterance) -> np.ndarray:
    _, classifier = Odes(str(odes_folder)).restored(engines)
    return np.asarray(classifier.probabilities(said))


def test_odes_and_any_metric_are_groups(engines: Engines, odes_folder: Path) -> None:
    extractor = Extractor.of([str(odes_folder), "overlap"], engines)
    names = [*(f"odes.{name}" for name in CLASSES), "overlap"]
    assert [feature.name for feature in extractor.features] == names
    (raw,) = extractor([pairs_of("stop", "okay", "hi", "hi you")])
    expected = probabilities(odes_folder, engines, Utterance("stop", None), Utterance("hi", "okay"))
    np.testing.assert_allclose(extractor.signals(raw), expected, rtol=1e-5)
    assert raw[:, -1].tolist() == [0.0, 0.5]
    assert extractor.covariates == [len(CLASSES)]
    assert extractor([]) == []
    with pytest.raises(CauserieError, match="lack odes, which treatments need: add it"):
        Extractor.of(["valence"], engines)
    with pytest.raises(CauserieError, match=r"two groups have a feature words\.system"):
        Extractor([*groups_of([str(odes_folder)]), Words(), Words()], engines)


def test_names_of_features() -> None:
    parse = parse_feature_names
    assert (parse("fast"), parse("all"), parse("odes, words")) == (FAST, ALL, ("odes", "words"))
    assert parse("fast,odes,width=some/model") == (*FAST, "width=some/model")
    (scored,) = groups_of(["b2=bleu:order=2"])
    assert isinstance(scored, Scored)
    assert [feature.name for feature in scored.features] == ["b2"]
    assert scored.metric.signature(Engines()).startswith("bleu(order=2)")


def test_metrics_see_turns_as_ratings_pair_them(engines: Engines, odes_folder: Path) -> None:
    """Consecutive turns of one side count as one, for odes and for metrics of the response."""
    turns = [
        *(Turn("user", "i like"), Turn("user", "green tea")),
        *(Turn("bot", "so do i"), Turn("bot", "green tea is good")),
        Turn("user", "stop"),
    ]
    extractor = Extractor.of([str(odes_folder), "overlap", "length"], engines)
    (raw,) = extractor([turn_pairs(Dialogue("d", tuple(turns)))])
    said = Utterance("i like green tea", None), Utterance("stop", "so do i green tea is good")
    expected = probabilities(odes_folder, engines, *said)
    np.testing.assert_allclose(extractor.signals(raw), expected, rtol=1e-5)
    joined = Dialogue(
        "d", (Turn("user", "i like green tea"), Turn("bot", "so do i green tea is good"))
    )
    overlap = Overlap().score_exchanges(joined.exchanges("all"), engines)[0][0].value
    assert raw[0, -2:].tolist() == [pytest.approx(overlap), 7.0]
    assert np.isnan(raw[1, -2:]).all()  # nobody answered


def test_width_and_depth_are_groups_when_a_ranker_is_given(
    engines: Engines, odes_folder: Path, tiny_ranker: Path
) -> None:
    names = [str(odes_folder), f"width={tiny_ranker}", f"depth={tiny_ranker}"]
    extractor = Extractor.of(names, engines)
    assert [feature.name for feature in extractor.features[-2:]] == ["width", "depth"]
    assert extractor.names == tuple(names)
    pairs = pairs_of("hi", "hello", "tell me more", "no", "so")
    answered = [pair.response for pair in pairs if pair.response]
    (raw,) = extractor([pairs])
    np.testing.assert_allclose(raw[:2, -2], engines.ranker(str(tiny_ranker)).score(answered))
    assert math.isnan(raw[2, -2])
    with pytest.raises(CauserieError, match="depth needs a DialogRPT model: write depth=MODEL"):
        Extractor.of([str(odes_folder), "depth"], engines)


def test_the_ranker_is_a_metric(engines: Engines, tiny_ranker: Path) -> None:
    metric = Ranker(str(tiny_ranker))
    exchanges = Dialogue("d", (Turn("a", "hi"), Turn("b", "hello"), Turn("a", "so"))).exchanges()
    rows = metric.score_exchanges(exchanges, engines)
    expected = engines.ranker(str(tiny_ranker)).score(exchanges)
    assert [score.value for (score,) in rows] == pytest.approx(expected.tolist())
    assert metric.signature(engines) == f"ranker|{engines.signature('ranker', str(tiny_ranker))}"
    assert str(tiny_ranker.parent) not in metric.signature(engines)
    with pytest.raises(CauserieError, match="ranker has no default network: name one, as in"):
        Ranker().signature(engines)


def test_z_scores_and_rules_for_missing_values() -> None:
    features = [Feature("a", "x"), Feature("b", "x", missing=0.0), Feature("c", "x")]
    nan = np.nan
    rows = np.array([[1, nan, 7], [3, 4, 7], [nan, 2, 7]], dtype=np.float32)
    z = Standardizer.of(features, [rows[:2], rows[2:]])(rows)
    assert z[:, 0].tolist() == [-1, 1, 0]  # mean 2, deviation 1, a missing one is the mean
    b = np.array([0, 4, 2.0])
    np.testing.assert_allclose(z[:, 1], (b - b.mean()) / b.std(), rtol=1e-6)
    assert z[:, 2].tolist() == [0, 0, 0]  # a constant


def test_scores_are_kept_and_nothing_else(
    engines: Engines, odes_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []
    score = Odes.score_exchanges

    def counted(self, exchanges, engines, *, explain=False):  # type: ignore[no-untyped-def]
        asked.append((len(exchanges), explain))
        rows: list[Scores] = score(self, exchanges, engines, explain=explain)
        return rows

    monkeypatch.setattr(Odes, "score_exchanges", counted)
    one, two = pairs_of("a", "b", "c", "d"), pairs_of("a", "b", "c e", "d")
    names = [str(odes_folder), "valence", "words", "length"]
    path = tmp_path / "new" / "scores.sqlite"
    with ScoreStore(path) as store:
        first = Extractor.of(names, engines, store)([one, two, one])
        # the same turn after the same turns is scored once, and explanations are never computed
        assert asked == [(3, False)]
        (kept,) = store.counts().items()
        assert kept[0].split()[1].startswith("odes@")
        assert kept[1] == 3
    with ScoreStore(path) as store:
        again = Extractor.of(names, engines, store)([two, one])
        assert len(asked) == 1
        np.testing.assert_array_equal(again[1], first[0])
        Extractor.of(names, engines, store, refresh=True)([two])
        assert asked[1:] == [(2, False)]


def test_what_decides_a_predictor_says_no_precision_and_no_places(
    engines: Engines, odes_folder: Path, tmp_path: Path
) -> None:
    names = [str(odes_folder), "valence", "words"]
    signature = Extractor.of(names, engines).signature
    rough = Engines(replace(engines.settings, dtype="bfloat16"))
    assert Extractor.of(names, rough).signature == signature
    assert str(odes_folder.parent) not in signature
    assert all(version in signature for version in ("valence/1", "words/1"))


def test_groups_that_read_a_file_sign_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [Valence().signature, Specificity().signature]
    monkeypatch.setattr("causerie.ratings.features._hash", lambda *path: "other")
    assert not set(before) & {Valence().signature, Specificity().signature}


def test_treatments_by_hand() -> None:
    rows = np.zeros((4, len(CLASSES)), dtype=np.float32)
    rows[1, CLASSES.index("compliment")] = 0.9
    rows[2, CLASSES.index("other")] = 0.9
    rows[3, [CLASSES.index("insult"), CLASSES.index("compliment")]] = 0.8, 0.7
    assert Treatments().of_pairs(rows).tolist() == [0, 0, 0, 0]  # insults are not trusted
    rows[3, CLASSES.index("calls_out_repetition")] = 0.6
    assert Treatments().of_pairs(rows).tolist() == [0, 0, 0, 1]
    assert Treatments.parse("paper").of_pairs(rows).tolist() == [0, 1, 0, 1]
    assert Treatments.parse("negative") == Treatments()
    parted = Treatments.parse("negative,insult+not_understand")
    assert parted.groups[1] == ("insult", "not_understand")
    assert set(parted.groups[0]) == set(TREATMENTS) - {"not_understand", "compliment"}
    two = Treatments((("insult", "critique"), ("compliment",)))
    assert two.of_pairs(rows).tolist() == [0, 2, 0, 1]
    with pytest.raises(CauserieError, match="unknown signal 'joy'"):
        Treatments((("joy",),))
    with pytest.raises(CauserieError, match="in only one treatment"):
        Treatments((("insult",), ("insult",)))


def test_a_saved_predictor_predicts_the_same(
    log: RatedLog, measured: MeasuredLog, engines: Engines, tmp_path: Path
) -> None:
    predictor, artifact = fit_predictor(measured, FitOptions(config=SMALL))
    artifact.save(tmp_path / "ratings")
    again = RatingPredictor.load(str(tmp_path / "ratings"), engines)
    pairs = [one.pairs for one in log.dialogues]
    assert again.predict(pairs) == predictor.predict(pairs)
    alone = again.predict(pairs[3:4])[0]
    assert alone.rating == pytest.approx(predictor.predict(pairs)[3].rating, rel=1e-5)
    assert len(alone.under) == 2
    assert alone.rating == pytest.approx(alone.under[alone.treatment])


def test_a_log_of_any_length_is_predicted_some_at_a_time(
    log: RatedLog, fitted: RatingPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causerie.ratings.predictor.AT_ONCE", 4)
    read = 0

    def stream():  # type: ignore[no-untyped-def]
        nonlocal read
        for one in log.dialogues[:10]:
            read += 1
            yield one

    expected = fitted.predict([one.pairs for one in log.dialogues[:10]])
    found = fitted.predict_log(stream())
    first = next(found)
    assert read == 4
    for (one, p), dialogue, whole in zip([first, *found], log.dialogues, expected, strict=False):
        assert one is dialogue
        assert p.rating == pytest.approx(whole.rating, rel=1e-5)
    assert read == 10


def test_a_predictor_is_transferred_to_more_treatments(
    log: RatedLog, engines: Engines, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"awful": "insult", "bad": "critique"}

    def by_word(self: Classifier, some: Sequence[Utterance]) -> np.ndarray:
        return np.array([[told.get(u.text.split()[0]) == name for name in CLASSES] for u in some])

    monkeypatch.setattr(Classifier, "probabilities", by_word)
    measured = Extractor.of(names, engines).measured(log.dialogues)
    one = Treatments((("insult", "stop_request"),))
    options = FitOptions(treatments=one, config=SMALL)
    small, _ = fit_predictor(measured, options)
    two = Treatments((*one.groups, ("critique",)))
    larger = small.extended(two, measured)
    artifact = larger.artifact("", "")
    pairs = [one.pairs for one in log.dialogues]
    again = RatingPredictor.of(artifact, measured.extractor).predict(pairs)
    assert {len(p.under) for p in again} == {3}
    assert {p.treatment for p in again} == {0, 1, 2}
    whole = replace(options, treatments=Treatments((("insult", "critique"),)))
    taken = Treatments((("insult",), ("critique",)))  # a signal gets a treatment of its own
    parted = fit_predictor(measured, whole)[0].extended(taken, measured)
    assert {p.treatment for p in parted.predict(pairs)} == {0, 1, 2}
    fewer, swapped = (("insult",), ("critique",)), (("critique",), *one.groups)
    for changed in (Treatments(fewer), Treatments(swapped), one):
        with pytest.raises(CauserieError, match="1 known groups of signals must come first"):
            small.extended(changed, measured)


def test_a_predictor_of_other_features_is_refused(fitted: RatingPredictor) -> None:
    artifact, extractor = fitted.artifact("", ""), fitted.preparation.extractor
    short = {name: tensor[:-1] for name, tensor in artifact.statistics.items()}
    with pytest.raises(CauserieError, match="its statistics belong to other features"):
        RatingPredictor.of(replace(artifact, statistics=short), extractor)
    renamed = {**artifact.options, "names": ["odes.insult"]}
    with pytest.raises(CauserieError, match="its features are different ones"):
        RatingPredictor.of(replace(artifact, options=renamed), extractor)
    with pytest.raises(CauserieError, match="was fitted on features of other models"):
        RatingPredictor.of(replace(artifact, backbone_sha256="0" * 64), extractor)


def test_folders_are_features_by_their_full_path(
    odes_folder: Path, tiny_ranker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(odes_folder.parent)
    (odes_folder.parent / "words").mkdir(exist_ok=True)
    assert odes_folder.name == "odes"
    assert parse_feature_names("./odes,words") == (str(odes_folder.resolve()), "words")
    assert parse_feature_names("odes") == ("odes",)  # the metric
    assert parse_feature_names(f"width={tiny_ranker.name}") == (f"width={tiny_ranker.name}",)
    monkeypatch.chdir(tiny_ranker.parent)
    assert parse_feature_names(f"width={tiny_ranker.name}") == (f"width={tiny_ranker.resolve()}",)


def test_the_monitor_says_what_the_whole_dialogue_would(fitted: RatingPredictor) -> None:
    said = ["hello", "hi there", "i hate this", "why", "stop", "really", "okay"]
    turns = [Turn(("bot", "user")[n % 2], text) for n, text in enumerate(said)]
    monitor = RatingMonitor(fitted)
    for count, turn in enumerate(turns, start=1):
        reading = monitor.update(turn)
        pairs = turn_pairs(Dialogue("d", tuple(turns[:count])))
        (whole,) = fitted.predict([pairs], running=True)
        assert reading.rating == pytest.approx(whole.rating, rel=1e-4)
        assert reading.low == pytest.approx(whole.low, rel=1e-4)
        assert 0 < reading.feature_seconds <= reading.seconds
        if turn.speaker == "bot":
            assert reading.signals == ()
    with pytest.raises(CauserieError, match="false alarms must be from 1% to 50%"):
        RatingMonitor(fitted, false_alarms=2.0)


def test_a_conversation_has_one_alarm_and_only_after_an_answer(fitted: RatingPredictor) -> None:
    always = replace(fitted.calibration, limits=np.zeros_like(fitted.calibration.limits))
    eager = RatingPredictor(fitted.preparation, fitted.model, always, fitted.options)
    turns = [Turn(("user", "bot")[n % 2], f"hi {n}") for n in range(6)]
    monitor = RatingMonitor(eager)
    assert [monitor.update(turn).alarm for turn in turns] == [False, True, *[False] * 4]
    board = Switchboard(eager, most=2)
    rows = [(name, board.next(name, turn)) for turn in turns[:2] for name in "ab"]
    assert [(name, row.turn, row.alarm) for name, row in rows] == [
        ("a", 0, False), ("b", 0, False), ("a", 1, True), ("b", 1, True),
    ]  # fmt: skip
    assert [row.turn for row in board.so_far("a", turns[:4])] == [2, 3]
    assert [row.turn for row in board.so_far("a", turns[1:3])] == [0, 1]  # others begin anew
    board.next("c", turns[0])  # and who was silent longest is forgotten
    assert board.next("b", turns[0]).turn == 0


@pytest.mark.parametrize("speaker", ["user", "bot"])
def test_the_monitor_bears_one_side_alone(fitted: RatingPredictor, speaker: str) -> None:
    monitor = RatingMonitor(fitted)
    readings = [monitor.update(Turn(speaker, text)) for text in ("hi", "hello?", "anybody there")]
    assert [one.turn for one in readings] == [0, 1, 2]
    assert all(1 <= one.rating <= 5 and 0 <= one.low <= 1 for one in readings)


def test_the_monitor_names_the_signals_of_the_turn_that_fires_them(
    log: RatedLog, fitted: RatingPredictor
) -> None:
    named = 0
    for one in log.dialogues[:20]:
        monitor = RatingMonitor(fitted)
        extractor = fitted.preparation.extractor
        rows = extractor.signals(extractor([one.pairs])[0])
        expected = [
            tuple(name for name, p in zip(SIGNALS, row, strict=False) if p > 0.5) for row in rows
        ]
        readings = [monitor.update(turn) for turn in one.dialogue.turns]
        assert [reading.signals for reading in readings[::2]] == expected
        assert all(reading.signals == () for reading in readings[1::2])
        named += sum(map(bool, expected))
    assert named


@pytest.mark.parametrize("by", ["bot", "user"])
def test_folds_keep_bots_and_users_together(log: RatedLog, by: str) -> None:
    names = [f"{index % 3}" for index in range(len(log.dialogues))]
    dialogues = [
        replace(one, **{"bot": None, "user": None, by: name})
        for one, name in zip(log.dialogues, names, strict=True)
    ]
    folds: dict[str, set[int]] = {name: set() for name in names}
    for name, number in zip(names, folds_of(dialogues, 0, by), strict=True):
        folds[name].add(int(number))
    assert sorted(map(len, folds.values())) == [1, 1, 1]
    other = "user" if by == "bot" else "bot"
    with pytest.raises(CauserieError, match=f"folds by {other} need the {other}"):
        folds_of(dialogues, 0, other)


def test_folds_of_dialogues_differ_by_seed(log: RatedLog) -> None:
    assert len(set(folds_of(log.dialogues, 0).tolist())) == 5
    assert (folds_of(log.dialogues, 0) != folds_of(log.dialogues, 1)).any()


def test_a_fold_is_not_seen_by_what_predicts_it(
    measured: MeasuredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = folds_of(measured.dialogues, 0)
    means: list[np.ndarray] = []
    of = Standardizer.of

    def seen(*arguments):  # type: ignore[no-untyped-def]
        means.append(of(*arguments).mean)
        return of(*arguments)

    monkeypatch.setattr(Standardizer, "of", seen)
    options = FitOptions(model="mlp", config=SMALL)

    def run(log: MeasuredLog) -> np.ndarray:
        predicted = predict_out_of_fold(log, fold, fitting(log, options))
        return np.array(
            [[a, b[0]] for a, b in zip(predicted.whole, predicted.running, strict=True)]
        )

    first = run(measured)
    inside = fold == 0
    told = [
        replace(one, rating=6 - (one.rating or 0)) if here else one
        for one, here in zip(measured.dialogues, inside, strict=True)
    ]
    changed = run(replace(measured, dialogues=tuple(told)))
    np.testing.assert_array_equal(changed[inside], first[inside])
    assert not np.allclose(changed[~inside], first[~inside])
    means.clear()
    raw = [9 * one if here else one for one, here in zip(measured.raw, inside, strict=True)]
    run(replace(measured, raw=tuple(raw)))
    scaled = means.copy()
    means.clear()
    run(measured)
    np.testing.assert_array_equal(scaled[0], means[0])
    assert not np.allclose(scaled[1], means[1])


def test_quality_by_hand(measured: MeasuredLog) -> None:
    some = measured.dialogues[:40]
    log = replace(measured, dialogues=some, raw=measured.raw[:40])
    ratings = np.array([one.rating for one in some], dtype=np.float64)
    fold = np.arange(40) % 4
    rng = np.random.default_rng(0)
    had = rng.integers(2, size=40)
    under = np.clip(ratings[:, None] + rng.standard_normal((40, 2)), 1, 5)
    running = tuple(np.clip(3 + rng.standard_normal(len(one.pairs)), 1, 5) for one in some)
    predicted = OutOfFold(fold, had, under, running)
    found = quality_of(predicted, log)
    low = ratings < 3
    correct, caught, false = [], [], []
    for n in range(4):
        out = np.flatnonzero(fold == n)
        meant = predicted.calibration(ratings, np.flatnonzero(fold != n).tolist())
        rated = meant.whole.rating(predicted.whole[out])
        expected = float(np.corrcoef(rated, ratings[out])[0, 1])
        assert found.correlations.individual[n] == pytest.approx(expected)
        correct += ((meant.whole.low(predicted.whole[out]) > 0.5) == low[out]).tolist()
        for row in out:
            values = meant.running.low(running[row])
            raised = any(v > meant.limit(k + 1, 0.2) for k, v in enumerate(values))
            (caught if low[row] else false).append(raised)
    assert found.binary == pytest.approx(np.mean(correct))
    assert found.inverted is not None
    alarms = found.alarms[2]
    assert (alarms.budget, alarms.caught) == (0.2, pytest.approx(np.mean(caught)))
    assert alarms.false == pytest.approx(np.mean(false))
    after = found.foretold[1]
    rows = np.array([len(one) > 2 for one in running])
    assert (after.after, after.dialogues) == (2, int(rows.sum()))
    areas = []
    for n in range(4):
        inside = rows & (fold == n)
        pairs = [
            (running[i][1], running[j][1])
            for i in np.flatnonzero(low & inside)
            for j in np.flatnonzero(~low & inside)
        ]
        areas.append(np.mean([a < b for a, b in pairs]))
    assert after.auc == pytest.approx(areas)
    assert (pairs_seen(1, 0.25), pairs_seen(3, 0.75), pairs_seen(8, 0.25)) == (1, 2, 2)


def test_folds_without_a_correlation_are_counted() -> None:
    nan = math.nan
    assert _within([(nan, nan), (nan, nan)]) == "–"
    assert _within([(None, None)]) == "too few days"
    assert _within([(0.2, nan, 0.4), (0.5, 0.7, 0.6)]) == "0.450 ± 0.150 (1 of 6 folds left out)"


def test_models_are_compared_on_what_is_measured_once(
    measured: MeasuredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[str] = []
    fit = fitting_room.fit_model

    def counted(model, examples):  # type: ignore[no-untyped-def]
        fits.append(model.name)
        fit(model, examples)

    def never(*arguments):  # type: ignore[no-untyped-def]
        raise AssertionError("features have been measured")

    monkeypatch.setattr(fitting_room, "fit_model", counted)
    monkeypatch.setattr(Extractor, "__call__", never)
    options = FitOptions(config=SMALL)
    told: list[str] = []
    first = evaluate(
        measured, options, ("mean", "cf-lstm"), seeds=1, watch=lambda p: told.append(p.task)
    )
    assert fits == ["mean"] * 5 + ["cf-lstm"] * 5
    assert told == ["fitting mean, seed 0", "fitting cf-lstm, seed 0"]
    assert first.models["cf-lstm"][0].heads is not None
    assert first.models["mean"][0].heads is None
    again = evaluate(measured, options, ("cf-lstm",), seeds=1)
    assert again.models["cf-lstm"] == first.models["cf-lstm"]
    evaluate(measured, options, ("cf-lstm",), seeds=1, by="bot")
    assert fits[15:] == ["cf-lstm"] * 3
    fit_predictor(measured, options)


def test_the_commands(
    log_file: Path,
    tiny_bert: Path,
    names: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = ["--scores", str(tmp_path / "scores.sqlite"), "--encoder", str(tiny_bert)]
    small = ["--set", "epochs=2", "--set", "width=4"]

    def run(*arguments: str, stdin: str | None = None) -> str:
        result = CliRunner().invoke(app, ["ratings", *arguments], input=stdin)
        assert result.exit_code == 0, result.output
        return result.output

    features = ["--features", ",".join(names)]
    model = str(tmp_path / "ratings")
    told = run("fit", str(log_file), "--out", model, "--model", "cf-lstm", *features, *small, *kept)
    assert "cf-lstm: correlation with single ratings" in told
    assert "early AUC of low ratings" in told
    more = ["--treatments", "negative,compliment", "--out", str(tmp_path / "more")]
    refused = CliRunner().invoke(app, ["ratings", "extend", model, str(log_file), *more, *kept])
    assert refused.exit_code == 0 or "there is no training dialogue" in str(refused.exception)
    auto = run("fit", str(log_file), "--out", str(tmp_path / "auto"), *features, *small, *kept)
    assert re.search(r"fitted (mlp|lstm|cf-lstm) on 60 dialogues", auto)
    card = load_artifact(model).card
    assert "| cf-lstm | original treatments | inverted |" in card
    assert "(λ): 0.1" in card
    assert f"--encoder={tiny_bert}" in card
    assert "SHA-256 " in card
    out = tmp_path / "predicted.jsonl"
    run("predict", str(log_file), "--model", model, "--out", str(out), *kept)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 60
    assert all(1 <= row["predicted"] <= 5 and 0 <= row["low"] <= 1 for row in rows)
    table = run(
        "evaluate", str(log_file), "--models", "mean,mlp,cf-lstm", "--seeds", "1",
        *features, *small, *kept, "--out", str(tmp_path / "models.json"),
    )  # fmt: skip
    written = json.loads((tmp_path / "models.json").read_text())
    assert [row[0] for row in written[0]["rows"]] == ["mean", "mlp", "cf-lstm"]
    assert "| mean | – | – | – |" in table
    assert "| mean | 25% | 60 | 0.500" in table
    assert "features: " in table
    assert "| cf-lstm | original treatments | inverted |" in table
    assert "too few days" not in table.split("| mlp |")[1].split("|")[2]

    def sometimes(self: Classifier, some: Sequence[Utterance]) -> np.ndarray:
        """Fire a signal after one letter in eight, which nearly half of the dialogues have."""
        fired = [one.text.endswith("a") for one in some]
        return np.array(
            [[name == "not_understand" and x for name in CLASSES] for x in fired], float
        )

    with monkeypatch.context() as patched:
        patched.setattr(Classifier, "probabilities", sometimes)
        anew = ["--scores", str(tmp_path / "anew.sqlite"), "--encoder", str(tiny_bert)]
        effects = run("effect", str(log_file), "--out", str(tmp_path / "effects"), *features, *anew)
    assert "| signal | placebo signals |" in effects
    assert "causal only if" in (tmp_path / "effects" / "effect.md").read_text()
    assert "Difference of the heads (the paper's effect): " in effects
    names_there = {path.name for path in (tmp_path / "effects").iterdir()}
    assert {"effect.md", "effect.html", "effect.csv", "effect.json"} <= names_there
    again = CliRunner().invoke(
        app, ["ratings", "effect", str(log_file), "--out", str(tmp_path / "effects")]
    )
    assert "already exists: choose another path" in str(again.exception)
    days = run("trend", str(log_file), "--model", model, "--out", str(tmp_path / "t"), *kept)
    assert "| 2026-03-12 | 5 | " in days
    assert "Pearson: L1d" in (tmp_path / "t" / "trend.md").read_text()
    assert "<polyline" in (tmp_path / "t" / "trend.svg").read_text()
    turns = [{"speaker": "user", "text": "hi"}, {"speaker": "bot", "text": "hello"}]
    said = "\n".join(map(json.dumps, turns))
    watched = run("watch", "--model", model, "--encoder", str(tiny_bert), stdin=said)
    assert [json.loads(line)["turn"] for line in watched.splitlines() if line[0] == "{"] == [0, 1]
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    lines = [{"id": "x", "messages": chat[:1]}, {"conversation": "y", **chat[0]}]
    lines += [{"id": "x", "messages": chat}]
    said = "\n".join(map(json.dumps, lines))
    watched = run("watch", "--model", model, "--encoder", str(tiny_bert), stdin=said)
    rows = [json.loads(line) for line in watched.splitlines() if line[0] == "{"]
    assert [(r["conversation"], r["turn"]) for r in rows] == [("x", 0), ("y", 0), ("x", 1)]


@pytest.mark.parametrize(
    ("sides", "fields", "line"),
    [
        ("u", {}, "has no turn of the system"),
        ("uuu", {}, "has no turn of the system"),
        ("ss", {}, "has no turn of the user"),
        ("us", {"rating": 7}, "rating 7 is outside its scale, 1 to 5"),
        (
            "us",
            {"rating": 2, "rating_scale": "stars"},
            "rating_scale must be [low, high], not 'stars'",
        ),
        ("us", {"rating": 2, "rating_scale": [5, 1]}, "a scale must go from low to high"),
        ("us", {"rating": "good"}, "rating must be a number"),
        ("xy", {}, "speaker 'x' may be the user or the system: give roles, or --system SPEAKER"),
    ],
)
def test_what_cannot_be_predicted_is_one_line(
    fitted: RatingPredictor, tiny_bert: Path, tmp_path: Path,
    sides: str, fields: dict[str, object], line: str,
) -> None:  # fmt: skip
    fitted.artifact("", "").save(tmp_path / "ratings")
    names = {"u": "user", "s": "bot"}
    turns = [{"speaker": names.get(side, side), "text": "hi"} for side in sides]
    good = {"id": "good", "turns": [{"speaker": n, "text": "hi"} for n in ("user", "bot")] * 230}
    log, alone = tmp_path / "log.jsonl", tmp_path / "alone.jsonl"
    bad = json.dumps({"id": "bad", "turns": turns, **fields})
    log.write_text(f"{bad}\n{json.dumps(good)}")
    alone.write_text(bad)
    options = ["-m", str(tmp_path / "ratings"), "--encoder", str(tiny_bert)]
    options += ["--scores", str(tmp_path / "scores.sqlite")]
    result = CliRunner().invoke(app, ["ratings", "predict", str(log), *options])
    assert result.exit_code == 1
    (told,) = [row for row in result.output.splitlines() if row.startswith("left out")]
    assert line in told
    (row,) = [json.loads(row) for row in result.output.splitlines() if row[0] == "{"]
    assert row["dialogue_id"] == "good"
    assert 1 <= row["predicted"] <= 5
    nothing = CliRunner().invoke(app, ["ratings", "predict", str(alone), *options])
    assert str(nothing.exception).startswith("no dialogue can be used: ")
    assert line in str(nothing.exception)


def test_a_bad_turn_does_not_end_the_watch(
    fitted: RatingPredictor, tiny_bert: Path, tmp_path: Path
) -> None:
    fitted.artifact("", "").save(tmp_path / "ratings")
    said = '{"speaker": "user"}\nnonsense\n{"speaker": "user", "text": "hi"}\n'
    arguments = ["ratings", "watch", "-m", str(tmp_path / "ratings"), "--encoder", str(tiny_bert)]
    result = CliRunner().invoke(app, arguments, input=said)
    assert result.exit_code == 1
    assert "line 1: not a turn: text is missing" in result.output
    assert "line 2: not a turn: not valid JSON" in result.output
    assert '"turn": 0' in result.output


def test_what_cannot_be_fitted_does_not_hide_the_rest(
    log: RatedLog,
    log_file: Path,
    engines: Engines,
    tiny_bert: Path,
    names: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a signal in every dialogue, a cf-lstm has no examples without signals."""

    def always(self: Classifier, some: Sequence[Utterance]) -> np.ndarray:
        return np.array([[name == "not_understand" for name in CLASSES] for _ in some], dtype=float)

    monkeypatch.setattr(Classifier, "probabilities", always)
    measured = Extractor.of(names, engines).measured(log.dialogues)
    found = evaluate(measured, FitOptions(config=SMALL), ("mean", "cf-lstm"), seeds=1)
    assert found.models.keys() == {"mean"}
    assert found.days == 12
    text = evaluation_markdown("x", found)
    assert "60 dialogues of 12 days" in text
    assert "| cf-lstm | there is no training dialogue in which no signal fired" in text
    out = tmp_path / "effects"
    words = ["ratings", "effect", str(log_file), "--features", ",".join(names), "--out", str(out)]
    words += ["--scores", str(tmp_path / "scores.sqlite"), "--encoder", str(tiny_bert)]
    done = CliRunner().invoke(app, [*words, "--offline"])
    assert done.exit_code == 0, done.output
    assert "there is no training dialogue" in (out / "effect.md").read_text()


def test_watching_says_its_times_when_it_is_interrupted(
    fitted: RatingPredictor, tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.artifact("", "").save(tmp_path / "ratings")

    class Turns(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            if line := super().readline(size):
                return line
            raise KeyboardInterrupt

    said = Turns(json.dumps({"speaker": "user", "text": "fine day"}).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(said))
    told: list[str] = []
    monkeypatch.setattr("causerie.cli.console.say", told.append)
    defaults = {name: p.default for name, p in inspect.signature(watch).parameters.items()}
    with pytest.raises(KeyboardInterrupt):
        watch(**{**defaults, "model": str(tmp_path / "ratings"), "encoder": str(tiny_bert)})
    assert re.fullmatch(r"1 turns, p95 \d+ ms each, of which features \d+ ms", told[-1])


def test_two_ratings_are_compared(tmp_path: Path) -> None:
    turns = [{"speaker": who, "text": "hi"} for who in ("user", "bot")] * 3
    pairs = [(1, 0), (2, 40), (4, 60), (5, 100), (3, None)]
    log = tmp_path / "log.jsonl"
    log.write_text(
        "\n".join(json.dumps({"turns": turns, "rating": a, "by": {"expert": b}}) for a, b in pairs)
    )
    words = ["ratings", "agreement", str(log), "--other", "by.expert", "--other-scale", "0,100"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (row,) = [line.split(" | ") for line in done.output.splitlines() if "by.expert" in line]
    expected = np.corrcoef([1, 2, 4, 5], [0, 40, 60, 100])[0, 1]
    assert row[1:3] == ["4", pytest.approx(row[2])]
    assert row[2].startswith(f"{expected:.3f} [")
    assert row[4].startswith("0.000")  # 1, 2.6, 3.4 and 5 against 1, 2, 4 and 5
    assert row[5].startswith("1.000")


def test_every_command_has_all_engine_options() -> None:
    wanted = {"encoder", "lm", "turn_format", "device", "dtype", "threads", "models_dir", "offline"}
    wanted |= {"backend"}
    for command in ratings_app.registered_commands:
        assert command.callback is not None
        if command.callback.__name__ == "agreement":  # which runs no network
            continue
        assert wanted <= set(inspect.signature(command.callback).parameters), command.callback


def test_a_predictor_is_replaced_only_if_asked(
    log_file: Path, tiny_bert: Path, names: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "ratings"
    words = ["ratings", "fit", str(log_file), "--out", str(out), "--features", ",".join(names)]
    words += ["--model", "mean", "--encoder", str(tiny_bert)]
    scores = ["--scores", str(tmp_path / "scores.sqlite")]
    before = os.umask(0o022)
    try:
        assert CliRunner().invoke(app, [*words, *scores]).exit_code == 0
    finally:
        os.umask(before)
    for file in out.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o644, file.name
    card = (out / "card.md").stat().st_mtime_ns
    refused = CliRunner().invoke(app, [*words, *scores])
    assert isinstance(refused.exception, CauserieError)
    assert "holds an artifact: choose another folder, or add --force" in str(refused.exception)
    assert (out / "card.md").stat().st_mtime_ns == card
    (tmp_path / "file").write_text("mine")
    other = CliRunner().invoke(app, [*words, *scores, "--force", "--out", str(tmp_path / "file")])
    assert "exists and is not an artifact" in str(other.exception)
    # The former name of --scores is still understood, and says so.
    replaced = CliRunner().invoke(app, [*words, "--kept", scores[1], "--force"])
    assert replaced.exit_code == 0, replaced.output
    assert "--kept is now --scores" in replaced.output
    assert (out / "card.md").stat().st_mtime_ns > card


def test_a_network_that_nothing_uses_is_refused(
    log_file: Path, tiny_bert: Path, names: tuple[str, ...], tmp_path: Path
) -> None:
    words = ["ratings", "evaluate", str(log_file), "--features", ",".join(names)]
    words += ["--encoder", str(tiny_bert), "--scores", str(tmp_path / "scores.sqlite")]
    result = CliRunner().invoke(app, [*words, "--turn-format", "plain"])
    assert "--turn-format plain has no effect on odes" in str(result.exception)
