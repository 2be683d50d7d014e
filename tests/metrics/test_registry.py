"""Metrics by name, including those of other packages: real distributions on the path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from causerie import metrics
from causerie.dialogue import Dialogue, Turn
from causerie.errors import CauserieError
from causerie.scoring.scorer import load

SHOUT = """
from dataclasses import dataclass
from causerie.metrics.base import Metric

@dataclass(frozen=True)
class Shout(Metric):
    mark: str = "!"

    name = "shout"
    summary = "number of exclamation marks"

    def score_one(self, exchange):
        return exchange.response.text.count(self.mark)
"""

OWN = {
    "bertscore": {"encoder", "token vectors", "references"},
    "bleu": {"references"},
    "causalscore": {"encoder"},
    "cosine": {"encoder"},
    "cosine-ref": {"encoder", "references"},
    "cpmi": {"language model"},
    "cpmi-sym": {"language model"},
    "density": {"encoder"},
    "embedding": {"encoder", "references"},
    "fed": {"language model"},
    "grade": {"encoder"},
    "judge": {"language model"},
    "length": set(),
    "meteor": {"references"},
    "odes": {"encoder", "token vectors"},
    "overlap": set(),
    "rouge": {"references"},
    "turns": set(),
}


def install(folder: Path, package: str, code: str, **points: str) -> None:
    """Write what pip would install: a module and its metadata."""
    (folder / f"{package}.py").write_text(code)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[causerie.metrics]", *lines]) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_own_metrics() -> None:
    assert list(metrics.names()) == sorted(metrics.names())
    for name, needs in OWN.items():
        metric = metrics.find(name)
        assert metric.name == name
        assert metric.summary
        assert metric.needs == needs
        sentinels = {column.sentinel for column in metric().columns("turn")}
        assert sentinels == {name in ("length", "turns", "overlap")}


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from causerie import metrics\n"
        "for name in metrics.names(): metrics.find(name).summary\n"
        "print([m for m in ('torch', 'transformers', 'nltk', 'sacrebleu') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_unknown_metric() -> None:
    with pytest.raises(CauserieError) as error:
        metrics.find("blue")
    assert str(error.value) == (
        "unknown metric 'blue': did you mean bleu? `causerie metrics` lists all of them"
    )
    with pytest.raises(
        CauserieError, match=r"^unknown metric 'zzz': `causerie metrics` lists all of them$"
    ):
        metrics.find("zzz")


def test_unknown_option() -> None:
    with pytest.raises(CauserieError, match="'length' has no option 'order': it has none"):
        metrics.load_metric("length", order=2)
    with pytest.raises(CauserieError, match="'bleu' has no option 'max': its options are order"):
        metrics.load_metric("bleu", max=2)


def test_metric_of_another_package(site: Path) -> None:
    install(site, "shouting", SHOUT, shout="shouting:Shout")
    assert "shout" in metrics.names()
    talk = Dialogue("d", (Turn("A", "Hi"), Turn("B", "Hi!!?")))
    assert load("shout").score(talk)[0]["shout"].value == 2
    assert load("shout", mark="?").score(talk)[0]["shout"].value == 1
    with pytest.raises(CauserieError, match="no option 'marks': did you mean mark"):
        load("shout", marks="?")


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("import surely_not_installed", "ModuleNotFoundError: No module named 'surely_not_inst"),
        ("1 / 0", "ZeroDivisionError"),
        ("", "AttributeError"),
        ("Shout = 3", "not a subclass of causerie.Metric"),
        (SHOUT.replace("@dataclass(frozen=True)", ""), "is not decorated with @dataclass"),
        (SHOUT.replace("score_one", "score_two"), "has neither score_one nor score_exchanges"),
    ],
)
def test_broken_package(site: Path, code: str, complaint: str) -> None:
    module = f"broken{abs(hash(code))}"
    install(site, module, code, broken=f"{module}:Shout")
    assert "broken" in metrics.names()
    with pytest.raises(CauserieError, match=f"'broken' of package {module} ") as error:
        metrics.find("broken")
    assert complaint in str(error.value)
    assert metrics.find("length").name == "length"


def test_no_package_can_take_the_place_of_another(site: Path) -> None:
    install(site, "hijack", SHOUT, length="hijack:Shout")
    with pytest.raises(CauserieError, match="'length' is defined by causerie and hijack: uninst"):
        metrics.find("length")
    assert metrics.names().count("length") == 1
