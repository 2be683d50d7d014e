"""Research variants: artifacts and graphs that ship with another package."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from causerie.engines import Engines, Settings
from causerie.engines.language import RESEARCH, tuned_language_model
from causerie.errors import CauserieError
from causerie.graph import Graph
from causerie.graph.graph import shipped_graphs
from causerie.io.shipped import GROUP
from causerie.metrics import find, names
from causerie.metrics.density import Density
from causerie.metrics.trained import TrainedMetric
from causerie.models.artifact import (
    ArtifactInfo,
    load_artifact,
    metric_of,
    shipped,
    shipped_artifacts,
)
from causerie.scoring.plan import Plan
from terminal import run_causerie

SOURCE = Path(__file__).parents[2] / "research" / "src" / "causerie_research"
VARIANTS = {"density-dailydialog", "grade-dailydialog", "causalscore-cgdialog", "lm-research"}
TRAINED = [one for name in names() if issubclass(one := find(name), TrainedMetric)]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which only causerie is installed."""
    monkeypatch.setattr("causerie.io.shipped.entry_points", lambda **_: ())


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The research package of this repository as pip would install it, and no other copy."""
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    (tmp_path / "causerie_research").symlink_to(SOURCE)
    info = tmp_path / "causerie_research-0.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: causerie-research\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nresearch = causerie_research\n")
    return tmp_path


@pytest.mark.usefixtures("bare")
def test_without_the_package_one_sentence_says_how_to_get_it() -> None:
    for action in (
        lambda: Plan.of("density", settings=Settings(research=True)),
        lambda: Plan.of("perplexity", settings=Settings(research=True)).signature,
    ):
        with pytest.raises(CauserieError, match="run `pip install causerie-research`") as caught:
            action()
        assert "\n" not in str(caught.value)
    Plan.of("cosine", settings=Settings(research=True))  # there is nothing to choose
    own = Plan.of(Density(artifact="density"), settings=Settings(research=True))
    assert own.metrics["density"].artifact == "density"
    assert "density-dailydialog" not in shipped_artifacts()


@pytest.mark.usefixtures("bare")
def test_the_command_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("A: Hello there.\nB: Hello to you.\n")
    done = run_causerie("score", tmp_path / "chat.txt", "--metrics", "density", "--research")
    assert done.returncode == 2
    assert "pip install causerie-research" in done.stderr


@pytest.mark.usefixtures("installed")
def test_every_variant_is_whole_and_of_its_metric() -> None:
    assert set(shipped_artifacts()) >= VARIANTS
    for name in VARIANTS:
        folder = shipped(name)
        assert folder is not None
        assert folder.resolve().is_relative_to(SOURCE)
        artifact = load_artifact(name)
        info = ArtifactInfo.find(name)
        assert not info.free
        assert all(one.source for one in info.licences)
        if artifact.encoder_of:
            assert artifact.encoder_of == "density-dailydialog"
    for kind in TRAINED:
        if kind.research:
            assert metric_of(shipped(kind.research)) == kind().info.metric
    graph = load_artifact("grade-dailydialog").options
    assert Graph.open(graph["graph"]).sha256 == graph["graph_sha256"]
    assert set(shipped_graphs()) >= {"everyday", "everyday-research"}


@pytest.mark.usefixtures("installed")
def test_what_has_the_name_of_a_default_stands_on_its_own_too(tmp_path: Path) -> None:
    for domain in ("dream", "esconv", "msc"):
        artifact = load_artifact(str(SOURCE / "artifacts" / f"causalscore-{domain}"))
        assert artifact.encoder_of == "density-dailydialog"


@pytest.mark.usefixtures("installed")
def test_settings_choose_them_wherever_there_are_any() -> None:
    settings = Settings(research=True)
    plan = Plan.of(
        "density,grade,causalscore,cosine,mine=density:artifact=density", settings=settings
    )
    chosen = {alias: getattr(metric, "artifact", None) for alias, metric in plan.metrics.items()}
    assert chosen == {
        "density": "density-dailydialog",
        "grade": "grade-dailydialog",
        "causalscore": "causalscore-cgdialog",
        "cosine": None,
        "mine": "density",
    }
    assert Plan.from_json(plan.to_json()) == plan
    digest = ArtifactInfo.find("density-dailydialog").sha256[:12]
    assert digest in plan.signatures["density"]
    assert tuned_language_model(settings).folder.name == RESEARCH
    assert tuned_language_model(Settings()) is None
    assert tuned_language_model(Settings(research=True, lm="SmolLM2-135M-Instruct")) is None
    tuned = ArtifactInfo.find(RESEARCH).sha256[:12]
    assert tuned in Engines(settings).signature("language model")


@pytest.mark.usefixtures("installed")
def test_commands_show_and_verify_them(tmp_path: Path) -> None:
    shown = run_causerie("metrics", "density").stdout
    (row,) = [line for line in shown.splitlines() if line.startswith("density-dailydialog")]
    assert "not known to be free" in row
    assert "--research" in row
    done = run_causerie("models", "verify", "--models-dir", tmp_path / "store")
    for name in VARIANTS:
        assert f"artifact {name}: all files are as expected" in done.stdout
    assert "graph everyday-research: all files are as expected" in done.stdout


def test_a_package_takes_no_name_of_causerie(installed: Path) -> None:
    (installed / "causerie_research").unlink()
    other = installed / "causerie_research" / "artifacts"
    shutil.copytree(SOURCE / "artifacts" / "density-dailydialog", other / "density")
    shutil.copytree(SOURCE / "artifacts" / "lm-research", other / "lm-research")
    code = installed / "causerie_research" / "__init__.py"
    code.write_text(f"open({str(installed / 'ran')!r}, 'w')")
    assert not shipped("density").is_relative_to(installed)
    assert shipped("lm-research") == other / "lm-research"
    assert not (installed / "ran").exists()
    config = other / "lm-research" / "config.json"
    content = json.loads(config.read_text())
    config.write_text(json.dumps(content | {"sha256": "0" * 64}))
    os.utime(config, (1, 1))
    with pytest.raises(CauserieError, match="damaged"):
        load_artifact("lm-research")
