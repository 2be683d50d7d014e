"""The metric end to end: trained on a small corpus, saved, loaded, scoring."""

from __future__ import annotations

import json
import math
import signal
import sys
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics import load_metric
from causerie.metrics.base import Score
from causerie.metrics.density import Density, HumanDensity
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import EXTRACTORS
from causerie.metrics.density.selection import SELECTIONS
from causerie.metrics.density.train import fit_gaussian, measure
from causerie.metrics.trained import calibrated_score
from causerie.metrics.verdict import verdict
from causerie.models.artifact import Artifact, load_artifact
from causerie.stats import rank_of_true
from causerie.training.corpus import Corpus
from causerie.training.negatives import corpus_items, ranking_items
from causerie.training.trainable import Start, TrainingRun
from terminal import ended_by, run_causerie

sys.path.insert(0, str(Path(__file__).parent))
from talks import write_talks

TOWERS = DensityConfig(
    interaction="towers", tuning="adapter", rank=4, pooling="mean", width=32, attacks=0.5,
    batch=16, epochs=6, learning_rate=3e-3, warmup_steps=10, validate_every=30,
)  # fmt: skip
UNIT = replace(TOWERS, unit=True)
COSINE = replace(TOWERS, interaction="cosine", contrastive=0.0)
CROSS = DensityConfig(
    pooling="mean", negatives=7, attacks=0.5, batch=16, epochs=1, learning_rate=2e-3,
    warmup_steps=10, validate_every=30, contrastive=0.2,
)  # fmt: skip
VIEWS = replace(TOWERS, interaction="views", unit=True, contrastive=0.3)
WEIGHT = "encoder.layer.0.attention.self.query.weight"
CONFIGS = {"views": VIEWS, "towers": TOWERS, "unit": UNIT, "cosine": COSINE, "cross": CROSS}


@pytest.fixture(scope="module")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))


@pytest.fixture(scope="module", params=CONFIGS)
def training(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of checkpoints and the log of a training."""
    return tmp_path_factory.mktemp(request.param)


@pytest.fixture(scope="module")
def artifact(training: Path, engines: Engines) -> Artifact:
    """Artifacts trained on conversations about twenty things."""
    run = TrainingRun(
        config=CONFIGS[training.name.rstrip("0123456789")],
        data=(write_talks(training / "train.jsonl", 160, seed=1),),
        valid=(write_talks(training / "valid.jsonl", 60, seed=2),),
        folder=training,
        licence="public domain",
        recipe="causerie train density",
    )
    made, _ = Density.train(engines, run)
    return made


@pytest.fixture(scope="module")
def metric(training: Path, artifact: Artifact) -> Density:
    artifact.save(training / "artifact")
    return Density(artifact=str(training / "artifact"))


@pytest.fixture
def human(metric: Density, engines: Engines) -> HumanDensity:
    """Restore the metric from its artifact."""
    return metric.restored(engines)[1]


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Held-out conversations."""
    return Corpus.read([write_talks(tmp_path_factory.mktemp("test") / "t.jsonl", 60, seed=3)])


def values(metric: Density, exchanges: list[Exchange], engines: Engines) -> np.ndarray:
    return np.array([row[0].value for row in metric.score_exchanges(exchanges, engines)])


def test_learns_to_rank(
    metric: Density, human: HumanDensity, engines: Engines, held_out: Corpus
) -> None:
    """One random response in twenty is on the same topic, so perfect is about 0.6."""
    if metric.info.options["interaction"] == "cross":
        pytest.skip("weights drawn at random learn to read both together in hours, not seconds")
    items = ranking_items(held_out.exchanges, 0)
    ranks = rank_of_true(human.extractor.selection(items))
    config = DensityConfig(**metric.info.options)
    torch.manual_seed(0)
    untrained = EXTRACTORS[config.interaction](engines.new_encoder(), config)
    before = rank_of_true(untrained.selection(items))
    assert (ranks == 1).mean() > (before == 1).mean() + 0.1
    assert ranks.mean() < before.mean() - 1
    if metric.info.options["interaction"] == "cosine":
        return  # its features, one product per dimension, are no place for a density
    random_ones = values(metric, [item[1] for item in items], engines)
    assert (values(metric, held_out.exchanges, engines) > random_ones).mean() > 0.6


@pytest.mark.parametrize("interaction", CONFIGS)
def test_a_batch_can_be_learned(interaction: str, engines: Engines, held_out: Corpus) -> None:
    config = replace(CONFIGS[interaction], attacks=0.5)
    encoder = engines.new_encoder()
    torch.manual_seed(0)
    encoder.model = config.encoder_tuning.prepare(encoder.model)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    task = SELECTIONS[config.interaction](
        extractor, config, held_out, ranking_items(held_out.exchanges[:9], 0)
    )
    optimizer = torch.optim.AdamW(task.module.parameters(), lr=2e-3)
    losses = []
    for _ in range(25):
        loss = task.loss(task.batch(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1


def test_the_measures_are_beside_the_untrained_cosine(
    metric: Density, human: HumanDensity, engines: Engines, held_out: Corpus
) -> None:
    items = ranking_items(held_out.exchanges, 0)
    results = measure(human.extractor, human.gaussian, engines.encoder, items, 0)
    cosine = load_metric("cosine")
    baseline = [[row[0].value for row in cosine.score_exchanges(i, engines)] for i in items]
    ours = [values(metric, item, engines) for item in items]
    shares = [(rank_of_true(scores) == 1).mean() for scores in (ours, baseline)]
    assert results["R@1 of 16 by density"].startswith(f"{shares[0]:.4f} [")
    assert results["R@1 of 16 by the untrained cosine"].startswith(f"{shares[1]:.4f} [")


def test_the_verdict_is_against_the_shipped_one_and_the_untrained_cosine(
    metric: Density,
    artifact: Artifact,
    engines: Engines,
    held_out: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = TrainingRun(DensityConfig(), (), (), tmp_path / "run")
    alone = verdict(Density, engines, run, artifact, held_out)
    assert "comes with" not in "".join(alone)  # it stands on another encoder
    moved = {**artifact.statistics, "mean": artifact.statistics["mean"] + 3}
    replace(artifact, statistics=moved).save(tmp_path / "other")
    monkeypatch.setattr("causerie.metrics.verdict.shipped", lambda name: tmp_path / "other")
    found = verdict(Density, engines, run, artifact, held_out)
    items = corpus_items(held_out, 500, 0)
    cosine = load_metric("cosine")
    shares = {}
    for name, scored in (
        ("density", metric),
        ("the untrained cosine", cosine),
        ("the density that comes with causerie", Density(str(tmp_path / "other"))),
    ):
        ranks = [rank_of_true([values(scored, item, engines)])[0] for item in items]
        shares[name] = float(np.mean(np.array(ranks) == 1))
        assert found[f"R@1 of 16 on {len(items)} held-out exchanges, {name}"].startswith(
            f"{shares[name]:.3f} ["
        )
    own, *others = shares.items()
    said = found["verdict"].removeprefix("density ").split("; ")
    for (name, share), text in zip(others, said, strict=True):
        word, gain = text.split(f" {name}: R@1 ")
        low, high = map(float, gain.split("[")[1].strip("]").split(","))
        assert float(gain.split()[0]) == pytest.approx(own[1] - share, abs=6e-4)
        true = {  # an end that is printed as nought may be on either side of it
            "better than": low >= 0,
            "worse than": high <= 0,
            "cannot be told apart from": low <= 0 <= high,
        }
        assert true[word]
    assert set(alone) < set(found)
    assert not list((tmp_path / "run").iterdir())


def test_scores_are_the_formula(
    metric: Density,
    human: HumanDensity,
    artifact: Artifact,
    engines: Engines,
    held_out: Corpus,
) -> None:
    exchanges = held_out.exchanges[:20]
    h = human.extractor.features(exchanges).astype(np.float64)
    if artifact.options["unit"]:
        h = np.array([x / math.sqrt(sum(x * x)) for x in h])
    mean = artifact.statistics["mean"].double().numpy()
    white = artifact.statistics["whitening"].double().numpy()
    inverse = white @ white.T
    naive = [-math.sqrt((x - mean) @ inverse @ (x - mean)) for x in h]
    np.testing.assert_allclose(values(metric, exchanges, engines), naive, rtol=1e-4)


def test_the_gaussian_is_of_all_training_exchanges(
    training: Path, artifact: Artifact, human: HumanDensity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores do not depend on how many exchanges are encoded at a time."""
    exchanges = Corpus.read([training / "train.jsonl"]).without(
        Corpus.read([training / "valid.jsonl"])
    )
    features = human.extractor.seen(human.extractor.features(exchanges.exchanges))
    mean = features.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(artifact.statistics["mean"].numpy(), mean, rtol=1e-3, atol=1e-4)
    monkeypatch.setattr("causerie.metrics.density.train.CHUNK", 7)
    streamed = fit_gaussian(human.extractor, exchanges.exchanges)
    np.testing.assert_allclose(streamed.mean, mean, rtol=1e-3, atol=1e-4)


def test_options(
    metric: Density,
    human: HumanDensity,
    artifact: Artifact,
    engines: Engines,
    held_out: Corpus,
) -> None:
    exchanges = held_out.exchanges[:9]
    h = human.extractor.features(exchanges)
    euclidean = replace(metric, distance="euclidean")
    mean = artifact.statistics["mean"].numpy()
    unit = artifact.options["unit"]
    naive = [-math.dist(x / np.linalg.norm(x) if unit else x, mean) for x in h]
    np.testing.assert_allclose(values(euclidean, exchanges, engines), naive, rtol=1e-4)
    classifier = replace(metric, distance="classifier")
    head = artifact.part("head")
    logits = h @ head["classifier.weight"][0].numpy() + head["classifier.bias"].item()
    np.testing.assert_allclose(values(classifier, exchanges, engines), logits, rtol=1e-4, atol=1e-5)


def test_wrong_options_are_said() -> None:
    with pytest.raises(CauserieError, match="distance is mahalanobis"):
        Density(distance="manhattan")  # type: ignore[arg-type]
    with pytest.raises(CauserieError, match="mean or rms"):
        Density(dialogue="max")  # type: ignore[arg-type]
    with pytest.raises(CauserieError, match="has a sign"):
        Density(distance="classifier", dialogue="rms")


def test_dialogue_level(metric: Density, engines: Engines, held_out: Corpus) -> None:
    dialogue = max(held_out.dialogues, key=lambda d: len(d.turns))
    turns = values(metric, dialogue.exchanges(), engines)
    (score,) = metric.score_dialogues([dialogue], engines)[0]
    assert score.value == pytest.approx(turns.mean())
    assert score.percentile is not None
    rms = replace(metric, dialogue="rms")
    (score,) = rms.score_dialogues([dialogue], engines)[0]
    assert score.value == pytest.approx(-math.sqrt((turns**2).mean()))
    assert score.percentile is not None
    (nothing,) = metric.score_dialogues([Dialogue("d", (Turn("A", "Hello"),))], engines)[0]
    assert nothing.value is None


def test_percentiles_are_shares_of_held_out_human_responses(
    metric: Density, artifact: Artifact, engines: Engines, held_out: Corpus
) -> None:
    rows = metric.score_exchanges(held_out.exchanges, engines)
    percentiles = np.array([row[0].percentile for row in rows])
    assert 35 < percentiles.mean() < 65
    order = np.argsort([row[0].value for row in rows])
    assert (np.diff(percentiles[order]) >= 0).all()
    table = artifact.statistics["calibration.turn.mahalanobis"].numpy()
    highest, lowest = float(table[-1]), float(table[0])
    assert calibrated_score(artifact, highest + 1, "turn.mahalanobis").percentile == 100
    assert calibrated_score(artifact, lowest - 1, "turn.mahalanobis").percentile == 0


def test_explanation_is_a_probability(metric: Density, engines: Engines, held_out: Corpus) -> None:
    learned = metric.info.options["interaction"] == "towers"
    items = ranking_items(held_out.exchanges, 0)

    def probabilities(exchanges: list[Exchange]) -> np.ndarray:
        rows = metric.score_exchanges(exchanges, engines, explain=True)
        found = [row[0].explanation["classifier probability"] for row in rows]  # type: ignore[index]
        return np.array(found)

    true, false = probabilities(held_out.exchanges), probabilities([item[1] for item in items])
    assert ((true >= 0) & (true <= 1)).all()
    assert true.mean() > false.mean() or not learned


def test_saved_and_loaded_scores_the_same(
    metric: Density,
    artifact: Artifact,
    engines: Engines,
    held_out: Corpus,
    tmp_path: Path,
    tiny_bert: Path,
) -> None:
    load_artifact(str(metric.artifact)).save(tmp_path / "mine")
    fresh = Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))
    loaded = load_metric(str(tmp_path / "mine"))
    assert isinstance(loaded, Density)
    ours = values(metric, held_out.exchanges, engines)
    theirs = values(loaded, held_out.exchanges, fresh)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert loaded.signature(fresh) == metric.signature(engines)
    assert artifact.sha256[:12] in metric.signature(engines)
    card = (tmp_path / "mine" / "card.md").read_text()
    for expected in (
        "train.jsonl", "public domain", "causerie train density", "R@1 of 16", "by density",
        "the untrained cosine: R@1 ", "true above the last turn",
    ):  # fmt: skip
        assert expected in card


def test_order_and_company_do_not_matter(
    metric: Density, human: HumanDensity, engines: Engines, held_out: Corpus
) -> None:
    exchanges = held_out.exchanges[:30]
    together = values(metric, exchanges, engines)
    human.extractor.encoder.forget()
    backwards = values(metric, exchanges[::-1], engines)[::-1]
    human.extractor.encoder.forget()
    alone = np.array([values(metric, [exchange], engines)[0] for exchange in exchanges])
    # whitening makes float32's rounding larger in directions that hardly vary
    np.testing.assert_allclose(together, backwards, rtol=1e-4)
    np.testing.assert_allclose(together, alone, rtol=1e-4)


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1).filter(lambda t: t.strip() != ""), min_size=2, max_size=9))
def test_any_text_has_a_score(metric: Density, engines: Engines, texts: list[str]) -> None:
    dialogue = Dialogue("d", tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts)))
    assert np.isfinite(values(metric, dialogue.exchanges(), engines)).all()


def test_odd_exchanges(metric: Density, engines: Engines) -> None:
    def score(*texts: str) -> Score:
        turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
        exchange = Exchange(Dialogue("d", turns), len(turns) - 1)
        return metric.score_exchanges([exchange], engines)[0][0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        no_context = score("Hello.")
        assert (no_context.value, no_context.reason) == (None, "no context")
        assert score("How are you?", "Fine").value is not None
        assert score("How are you?", "fine " * 2000).value is not None
        assert score(*["How are you?"] * 300).value is not None
    assert metric.score_exchanges([], engines) == []


def test_an_artifact_of_other_weights_is_refused(
    engines: Engines, artifact: Artifact, tmp_path: Path
) -> None:
    replace(artifact, backbone_sha256="0" * 64).save(tmp_path / "other")
    with pytest.raises(CauserieError, match="trained on other weights"):
        Density(artifact=str(tmp_path / "other")).restored(engines)


def test_weights_of_another_shape_are_said(
    engines: Engines, artifact: Artifact, tmp_path: Path
) -> None:
    statistics = {**artifact.statistics, "mean": torch.zeros(3)}
    replace(artifact, statistics=statistics).save(tmp_path / "harmed")
    with pytest.raises(CauserieError, match="damaged"):
        Density(artifact=str(tmp_path / "harmed")).restored(engines)


def test_the_signature_tells_the_precision(metric: Density, tiny_bert: Path) -> None:
    signatures = {
        metric.signature(Engines(Settings(encoder=str(tiny_bert), offline=True, dtype=dtype)))
        for dtype in ("float32", "bfloat16")
    }
    assert len(signatures) == 2


def test_missing_parts_are_said(engines: Engines, artifact: Artifact, tmp_path: Path) -> None:
    statistics = {k: t for k, t in artifact.statistics.items() if k != "whitening"}
    network = {k: t for k, t in artifact.network.items() if "classifier" not in k}
    options = {**artifact.options, "colour": "red"}
    for part, harm in (("statistics", statistics), ("network", network), ("options", options)):
        replace(artifact, **{part: harm}).save(tmp_path / part)  # type: ignore[arg-type]
        with pytest.raises(CauserieError, match="damaged"):
            Density(artifact=str(tmp_path / part)).restored(engines)


def test_options_of_older_artifacts_still_load(artifact: Artifact) -> None:
    """Version 0.1.0 had no `fixed` and another order of options."""
    old = {k: v for k, v in sorted(artifact.options.items(), reverse=True) if k != "fixed"}
    assert DensityConfig(**old) == DensityConfig(**artifact.options)


def test_training_goes_on_from_an_artifact(
    engines: Engines, artifact: Artifact, tmp_path: Path
) -> None:
    artifact.save(tmp_path / "start")
    config = DensityConfig(**{**artifact.options, "epochs": 0.1, "learning_rate": 1e-9})

    def go_on(name: str, config: DensityConfig) -> Artifact:
        run = TrainingRun(
            config=config,
            data=(write_talks(tmp_path / "more.jsonl", 40, seed=5),),
            valid=(),
            folder=tmp_path / name,
            start=Start.load(str(tmp_path / "start")),
        )
        return Density.train(engines, run)[0]

    more = go_on("same", config)
    for name, weight in artifact.network.items():
        torch.testing.assert_close(more.network[name], weight, rtol=1e-2, atol=1e-4)
    assert "went on from `start`" in more.card
    with pytest.raises(CauserieError, match=f"trained with width={config.width}, pooling=mean"):
        go_on("other", replace(config, pooling="first", width=8))


def test_cross_starts_from_the_encoder_of_towers(
    engines: Engines, tmp_path: Path, tiny_bert: Path
) -> None:
    """Only the encoder is used, because the head is another network."""
    data = write_talks(tmp_path / "talks.jsonl", 40, seed=5)
    said: list[str] = []

    def train(name: str, config: DensityConfig, start: Start | None = None) -> Artifact:
        run = TrainingRun(
            config=config, data=(data,), valid=(), folder=tmp_path / name, start=start,
            watch=lambda progress: said.append(progress.note or ""),
        )  # fmt: skip
        return Density.train(engines, run)[0]

    towers = train("towers", replace(TOWERS, tuning="full", rank=16, epochs=1))
    towers.save(tmp_path / "start")
    still = replace(CROSS, tuning="full", epochs=0.1, learning_rate=1e-9)
    cross = train("cross", still, Start.load(str(tmp_path / "start")))
    for name, weight in towers.part("encoder").items():
        torch.testing.assert_close(cross.part("encoder")[name], weight, rtol=1e-2, atol=1e-4)
    assert "--init lacks interaction=cross: only its encoder is used" in said


@pytest.mark.parametrize("tuning", ["full", "adapter"])
def test_the_encoder_is_averaged_with_the_untuned_one(
    engines: Engines, tmp_path: Path, tuning: str
) -> None:
    """A finished training is averaged again with another share, without further steps."""
    options = {"tuning": tuning, "epochs": 1.0, "stock": 0.0, "seed": 3}
    vectors = []
    data = write_talks(tmp_path / "talks.jsonl", 40, seed=5)
    for share in (0.0, 0.25):
        config = DensityConfig(**{**asdict(VIEWS), **options, "stock": share})
        run = TrainingRun(config, (data,), (), tmp_path / "run", resume=True)
        artifact, _ = Density.train(engines, run)
        encoder = engines.tuned_encoder(artifact, config.encoder_tuning, config.window)
        vectors.append(encoder.model.get_parameter(WEIGHT).detach())
    tuned, averaged = vectors
    stock = engines.new_encoder().model.get_parameter(WEIGHT).detach()
    assert (tuned - stock).abs().max() > 1e-3
    torch.testing.assert_close(averaged, 0.75 * tuned + 0.25 * stock, rtol=1e-2, atol=2e-4)


def test_with_response_keeps_the_context(held_out: Corpus) -> None:
    exchange = max(held_out.exchanges, key=lambda e: e.turn)
    other = exchange.with_response("Something else.")
    assert other.context == exchange.context
    assert other.response.text == "Something else."
    assert other.response.speaker == exchange.response.speaker


def command(folder: Path, tiny_bert: Path, *more: str) -> list[str]:
    settings = "interaction=towers tuning=adapter rank=2 pooling=mean width=16 attacks=0.5 batch=8"
    settings += " epochs=2 learning_rate=5e-3 warmup_steps=3 validate_every=10"
    sets = [word for setting in settings.split() for word in ("--set", setting)]
    words = ["train", "density", "--offline", "--threads", "1"]
    words += ["--encoder", str(tiny_bert), "--data", str(folder / "talks.jsonl"), *sets, *more]
    return words


def test_the_command_trains_and_resumes_to_the_same_weights(
    tmp_path: Path, tiny_bert: Path
) -> None:
    """A run that is killed at a checkpoint and resumed ends like an uninterrupted one."""
    write_talks(tmp_path / "talks.jsonl", 120, seed=1)
    whole = command(tmp_path, tiny_bert, "--out", str(tmp_path / "whole"))
    done = run_causerie(*whole)
    assert done.returncode == 0, done.stderr
    assert "R@1 of 16" in done.stderr
    assert (tmp_path / "whole.training" / "curve.svg").exists()

    broken = command(tmp_path, tiny_bert, "--out", str(tmp_path / "broken"))
    checkpoint = tmp_path / "broken.training" / "checkpoint.safetensors"
    killed = ended_by(signal.SIGKILL, broken, checkpoint, times=2)
    assert killed.returncode == -9, killed.stderr
    assert not (tmp_path / "broken").exists()
    refused = run_causerie(*broken)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    assert "--force" in refused.stderr
    resumed = run_causerie(*broken, "--resume")
    assert resumed.returncode == 0, resumed.stderr

    one, other = (load_artifact(str(tmp_path / n), "density") for n in ("whole", "broken"))
    assert one.network.keys() == other.network.keys()
    assert all(torch.equal(one.network[k], other.network[k]) for k in one.network)
    logs = [(tmp_path / f"{n}.training" / "metrics.jsonl").read_text() for n in ("whole", "broken")]
    assert logs[0] == logs[1]
    assert {"step", "r@1", "mrr"} in [set(json.loads(line)) for line in logs[0].splitlines()]


def test_an_artifact_is_replaced_only_when_told(tmp_path: Path, tiny_bert: Path) -> None:
    write_talks(tmp_path / "talks.jsonl", 40, seed=1)
    out = tmp_path / "out"
    again = [*command(tmp_path, tiny_bert, "--out", str(out)), "--set", "epochs=0.2"]
    assert run_causerie(*again).returncode == 0
    before = (out / "config.json").read_text()
    refused = run_causerie(*again)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    both = run_causerie(*again, "--force", "--resume")
    assert both.returncode == 2
    assert "give only one" in both.stderr
    assert (out / "config.json").read_text() == before
    # The same training, whole again: it ends with the same artifact.
    anew = run_causerie(*again, "--force")
    assert anew.returncode == 0, anew.stderr
    assert (out / "config.json").read_text() == before
    other = run_causerie(*again, "--set", "seed=5", "--force")
    assert other.returncode == 0, other.stderr
    assert (out / "config.json").read_text() != before


def test_a_network_that_is_not_trained_on_is_refused(tmp_path: Path, tiny_bert: Path) -> None:
    write_talks(tmp_path / "talks.jsonl", 8, seed=1)
    words = command(tmp_path, tiny_bert, "--out", str(tmp_path / "out"))
    done = run_causerie(*words, "--lm", "some-model")
    assert done.returncode == 2
    assert "--lm has no effect on the training of density" in done.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "colour=red"], "density has no option 'colour': its options are batch, epochs"),
        (["--set", "epoch=3"], "did you mean epochs?"),
        (["--set", "epochs"], "write KEY=VALUE"),
        (["--set", "epochs=many"], "epochs is a number"),
        (["--set", "gaussian=all"], "gaussian is a whole number or null"),
        (["--set", "batch=0"], "batch is at least 2, not 0"),
        (["--set", "pooling=max"], "pooling is mean or first"),
        (["--set", "interaction=none"], "interaction is cross or towers or views or cosine"),
        (["--set", "history=16"], "width must be above history (16), not 16"),
        (["--set", "interaction=cosine"], "a cosine has no features to contrast"),
        (
            ["--set", "interaction=cosine", "--set", "contrastive=0", "--set", "said=true"],
            "the cosine of a turn with itself is always 1: set said=false",
        ),
        (["--set", "attacks=5"], "attacks and mined must be shares, from 0 to 1"),
        (["--set", "tuning=half"], "tuning is full or adapter or frozen"),
        (["--data", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_wrong_commands_are_one_sentence(
    tmp_path: Path, tiny_bert: Path, more: list[str], message: str
) -> None:
    write_talks(tmp_path / "talks.jsonl", 8, seed=1)
    done = run_causerie(*command(tmp_path, tiny_bert, "--out", str(tmp_path / "out")), *more)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_metrics_without_training_say_so(tmp_path: Path) -> None:
    write_talks(tmp_path / "talks.jsonl", 8, seed=1)
    talks = tmp_path / "talks.jsonl"
    done = run_causerie("train", "bleu", "--out", tmp_path / "out", "--data", talks)
    assert done.returncode == 2
    assert "metric bleu has nothing to train" in done.stderr
