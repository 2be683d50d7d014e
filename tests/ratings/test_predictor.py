"""Features, the fitted predictor, the monitor and the commands, on a tiny encoder."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from causerie import CauserieError, Dialogue, Engines, Turn, load
from causerie.cli import app
from causerie.metrics.odes import CLASSES, Odes, Utterance
from causerie.models.artifact import load_artifact
from causerie.ratings.evaluate import folds_of
from causerie.ratings.features import (
    ALL,
    FAST,
    Columns,
    Extractor,
    Feature,
    Kept,
    Scored,
    Specificity,
    Standard,
    Valence,
    Words,
    chosen,
    groups_of,
)  # fmt: skip
from causerie.ratings.log import RatedLog, read_log
from causerie.ratings.models import ModelConfig
from causerie.ratings.monitor import RatingMonitor
from causerie.ratings.pairs import turn_pairs
from causerie.ratings.predictor import FitOptions, RatingPredictor, fit_predictor
from causerie.ratings.treatments import Treatments

SMALL = ModelConfig(width=4, head=4, epochs=2, batch=16)


def pairs_of(*said: str, columns: dict[str, float] | None = None):  # type: ignore[no-untyped-def]
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
def fitted(log: RatedLog, engines: Engines, names: tuple[str, ...]) -> RatingPredictor:
    predictor, _ = fit_predictor(log.dialogues, engines, FitOptions(features=names, config=SMALL))
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
    assert Columns(["asr", "pitch"]).measure(pairs)[0].tolist()[0] == 0.25
    assert math.isnan(Columns(["asr", "pitch"]).measure(pairs)[0, 1])


def test_odes_and_any_metric_are_groups(engines: Engines, odes_folder: Path) -> None:
    signals, overlap = groups_of([str(odes_folder), "overlap"], engines)
    assert isinstance(overlap, Scored)
    assert [f.name for f in signals.features] == [f"odes.{name}" for name in CLASSES]
    pairs = pairs_of("stop", "okay", "hi", "hi you")
    odes = load(str(odes_folder), engines)
    assert isinstance(odes, Odes)
    expected = odes.probabilities([Utterance("stop", None), Utterance("hi", "okay")])
    np.testing.assert_allclose(signals.measure(pairs), expected, rtol=1e-5)
    assert overlap.measure(pairs)[:, 0].tolist() == [0.0, 0.5]
    with pytest.raises(CauserieError, match="add odes, which treatments need"):
        groups_of(["valence"], engines)
    assert (chosen("fast"), chosen("all"), chosen("odes, words")) == (FAST, ALL, ("odes", "words"))
    assert chosen("fast,odes,width=some/model") == (*FAST, "width=some/model")


def test_width_and_depth_are_groups_when_a_ranker_is_given(
    engines: Engines, odes_folder: Path, tiny_ranker: Path
) -> None:
    names = [str(odes_folder), f"width={tiny_ranker}", f"depth={tiny_ranker}"]
    _, width, depth = groups_of(names, engines)
    assert [group.features[0].name for group in (width, depth)] == ["width", "depth"]
    assert width.signature != depth.signature
    pairs = pairs_of("hi", "hello", "tell me more", "no", "so")
    answered = [pair.response for pair in pairs if pair.response]
    found = width.measure(pairs)[:, 0]
    np.testing.assert_allclose(found[:2], engines.ranker(str(tiny_ranker)).score(answered))
    assert math.isnan(found[2])
    with pytest.raises(CauserieError, match="depth needs a DialogRPT model: write depth=MODEL"):
        groups_of([str(odes_folder), "depth"], engines)


def test_z_scores_and_rules_for_missing_values() -> None:
    features = [Feature("a", "x"), Feature("b", "x", missing=0.0), Feature("c", "x")]
    nan = np.nan
    rows = np.array([[1, nan, 7], [3, 4, 7], [nan, 2, 7]], dtype=np.float32)
    standard = Standard.of(features, [rows[:2], rows[2:]])
    z = standard(rows)
    assert z[:, 0].tolist() == [-1, 1, 0]  # mean 2, deviation 1, a missing one is the mean
    b = np.array([0, 4, 2.0])
    np.testing.assert_allclose(z[:, 1], (b - b.mean()) / b.std(), rtol=1e-6)
    assert z[:, 2].tolist() == [0, 0, 0]  # a constant


def test_features_are_measured_once(tmp_path: Path) -> None:
    class Counting(Words):
        calls = 0

        def measure(self, pairs):  # type: ignore[no-untyped-def]
            Counting.calls += len(pairs)
            return super().measure(pairs)

    one, two = pairs_of("a", "b", "c", "d"), pairs_of("a", "b", "c", "e")
    kept = Kept(tmp_path / "new" / "kept.sqlite")
    first = Extractor([Counting()], kept)([one, two, one])
    assert Counting.calls == 4
    again = Extractor([Counting()], Kept(tmp_path / "new" / "kept.sqlite"))([two, one])
    assert Counting.calls == 4
    np.testing.assert_array_equal(again[1], first[0])
    Extractor([Counting()], kept)([pairs_of("a", "b", "c!", "d")])
    assert Counting.calls == 6


def test_treatments_by_hand() -> None:
    rows = np.zeros((4, len(CLASSES)), dtype=np.float32)
    rows[1, CLASSES.index("compliment")] = 0.9
    rows[2, CLASSES.index("other")] = 0.9
    rows[3, [CLASSES.index("insult"), CLASSES.index("compliment")]] = 0.8, 0.7
    assert Treatments().of_pairs(rows).tolist() == [0, 1, 0, 1]
    two = Treatments((("insult", "critique"), ("compliment",)))
    assert two.of_pairs(rows).tolist() == [0, 2, 0, 1]
    with pytest.raises(CauserieError, match="unknown signal 'joy'"):
        Treatments((("joy",),))
    with pytest.raises(CauserieError, match="in one treatment"):
        Treatments((("insult",), ("insult",)))


def test_a_saved_predictor_predicts_the_same(
    log: RatedLog, engines: Engines, names: tuple[str, ...], tmp_path: Path
) -> None:
    predictor, artifact = fit_predictor(
        log.dialogues, engines, FitOptions(features=names, config=SMALL)
    )
    artifact.save(tmp_path / "ratings")
    again = RatingPredictor.load(str(tmp_path / "ratings"), engines)
    pairs = [one.pairs for one in log.dialogues]
    assert again.predict(pairs) == predictor.predict(pairs)
    alone = again.predict(pairs[3:4])[0]
    assert alone.rating == pytest.approx(predictor.predict(pairs)[3].rating, rel=1e-5)
    assert len(alone.under) == 2
    assert alone.rating == pytest.approx(alone.under[alone.treatment])


def test_the_monitor_says_what_the_whole_dialogue_would(fitted: RatingPredictor) -> None:
    said = ["hello", "hi there", "i hate this", "why", "stop", "really", "okay"]
    turns = [Turn(("bot", "user")[n % 2], text) for n, text in enumerate(said)]
    monitor = RatingMonitor(fitted)
    for count, turn in enumerate(turns, start=1):
        reading = monitor.update(turn)
        pairs = turn_pairs(Dialogue("d", tuple(turns[:count])))
        (whole,) = fitted.predict([pairs])
        assert reading.rating == pytest.approx(whole.rating, rel=1e-4)
        assert reading.low == pytest.approx(whole.low, rel=1e-4)
        assert set(reading.signals) <= set(whole.signals)
        assert reading.alarm == (reading.low > 0.5)
        assert 0 < reading.feature_seconds <= reading.seconds
        if turn.speaker == "bot":
            assert reading.signals == ()
    with pytest.raises(CauserieError, match="a probability between 0 and 1"):
        RatingMonitor(fitted, limit=2.0)


def test_folds_keep_bots_together(log: RatedLog) -> None:
    fold = folds_of(log.dialogues, 0, by_bot=True)
    by_bot = {one.bot: set() for one in log.dialogues}
    for one, number in zip(log.dialogues, fold, strict=True):
        by_bot[one.bot].add(int(number))
    assert sorted(map(len, by_bot.values())) == [1, 1, 1]
    assert len(set(folds_of(log.dialogues, 0).tolist())) == 5
    assert (folds_of(log.dialogues, 0) != folds_of(log.dialogues, 1)).any()


def test_a_cross_validation_goes_on_where_it_was_stopped(
    log: RatedLog, engines: Engines, names: tuple[str, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from causerie.ratings import evaluate as room

    fits: list[str] = []
    fit = room.fit_models

    def counted(models, examples, seed):  # type: ignore[no-untyped-def]
        fits.append(models["rating"].name)
        fit(models, examples, seed)

    monkeypatch.setattr(room, "fit_models", counted)
    kept = Kept(tmp_path / "kept.sqlite")
    options = FitOptions(features=names, config=SMALL)

    def run(*models: str, by_bot: bool = False) -> room.Evaluation:
        extractor = Extractor(groups_of(names, engines), kept)
        return room.evaluate(
            log.dialogues, extractor, engines, options, models, seeds=1, by_bot=by_bot, kept=kept
        )

    first = run("mean", "cf-lstm")
    assert fits == ["mean"] * 5 + ["cf-lstm"] * 5
    again = run("cf-lstm", "length")
    assert fits[10:] == ["length"] * 5
    assert again.models["cf-lstm"] == first.models["cf-lstm"]
    assert again.models["cf-lstm"][0].heads is not None
    assert again.models["length"][0].heads is None
    run("cf-lstm", by_bot=True)
    assert fits[15:] == ["cf-lstm"] * 3


def test_the_commands(
    log_file: Path, tiny_bert: Path, names: tuple[str, ...], tmp_path: Path
) -> None:
    kept = ["--kept", str(tmp_path / "kept.sqlite"), "--encoder", str(tiny_bert)]
    small = ["--set", "epochs=2", "--set", "width=4"]

    def run(*arguments: str, stdin: str | None = None) -> str:
        result = CliRunner().invoke(app, ["ratings", *arguments], input=stdin)
        assert result.exit_code == 0, result.output
        return result.output

    features = ["--features", ",".join(names)]
    model = str(tmp_path / "ratings")
    run("fit", str(log_file), "--out", model, *features, *small, *kept)
    assert "| cf-lstm | original treatments | inverted |" in load_artifact(model).card
    out = tmp_path / "predicted.jsonl"
    run("predict", str(log_file), "--model", model, "--out", str(out), *kept)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 60
    assert all(1 <= row["predicted"] <= 5 and 0 <= row["low"] <= 1 for row in rows)
    table = run(
        "evaluate", str(log_file), "--models", "mean,mlp,cf-lstm", "--seeds", "1",
        *features, *small, *kept,
    )  # fmt: skip
    assert "| mean | – |" in table
    assert "| cf-lstm | original treatments | inverted |" in table
    assert "too few days" not in table.split("| mlp |")[1].split("|")[2]
    effects = run("effect", str(log_file), "--out", str(tmp_path / "effects"), *features, *kept)
    assert "| signal | placebo signals |" in effects
    assert "difference of the heads" not in effects
    both = run("effect", str(log_file), "--model", model, *features, *kept)
    assert both.endswith(effects.split("wrote")[0])
    assert "| difference of the heads |" in both
    assert "causal only if" in (tmp_path / "effects" / "effect.md").read_text()
    assert "<svg" in (tmp_path / "effects" / "effect.svg").read_text()
    days = run("trend", str(log_file), "--model", model, "--out", str(tmp_path / "t"), *kept)
    assert "| 2026-03-12 | 5 | " in days
    assert "Pearson: L1d" in (tmp_path / "t" / "trend.md").read_text()
    assert "<polyline" in (tmp_path / "t" / "trend.svg").read_text()
    turns = [{"speaker": "user", "text": "hi"}, {"speaker": "bot", "text": "hello"}]
    said = "\n".join(map(json.dumps, turns))
    watched = run("watch", "--model", model, "--encoder", str(tiny_bert), stdin=said)
    assert [json.loads(line)["turn"] for line in watched.splitlines() if line[0] == "{"] == [0, 1]


@pytest.mark.parametrize(
    ("sides", "fields", "line"),
    [
        ("u", {}, "has no turn of the system"),
        ("uuu", {}, "has no turn of the system"),
        ("ss", {}, "has no turn of the user"),
        ("us", {"rating": 7}, "rating 7 is outside its scale, 1 to 5"),
        ("us", {"rating": 2, "rating_scale": "stars"}, "rating_scale is [low, high], not 'stars'"),
        ("us", {"rating": 2, "rating_scale": [5, 1]}, "a scale goes from low to high"),
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
    options += ["--kept", str(tmp_path / "kept.sqlite")]
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
    assert "line 1: no turn: text is missing" in result.output
    assert "line 2: no turn: not valid JSON" in result.output
    assert '"turn": 0' in result.output
