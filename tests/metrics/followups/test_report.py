"""The report of the follow-up metrics: correlations, their means and differences."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from causerie.bench.sets.units import Units
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.render.tables import Marked

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from followups_report import Judged, change, printed, tables

KEYS = [
    *(
        (metric, model, whose)
        for model in ("tuned", "stock")
        for whose in ("ours", "published")
        for metric in ("fed", "cpmi", "cpmi-sym")
    ),
    ("length",),
]
SIZE = 60


@pytest.fixture(scope="module")
def judged() -> Judged:
    rng = np.random.default_rng(0)
    exchange = Exchange(Dialogue("d", (Turn("a", "Hi."), Turn("b", "Hi."))), 1)
    ids = tuple(map(str, range(SIZE)))
    units = Units(
        items=(exchange,) * SIZE,
        ids=ids,
        clusters=tuple(str(i // 3) for i in range(SIZE)),
        contexts=ids,
        systems=("",) * SIZE,
        human_written=(False,) * SIZE,
        first=np.array([], np.int64),
        second=np.array([], np.int64),
    )
    names = ("specific", "fluent", "overall")
    return Judged(units, {name: rng.normal(size=SIZE) for name in names})


def scores(judged: Judged) -> dict[tuple[str, ...], dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return {key: {n: rng.normal(size=SIZE) + h for n, h in judged.human.items()} for key in KEYS}


def rows(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    return {first: rest for first, *rest in cells}


def test_correlations_and_their_mean(judged):
    given = scores(judged)
    found = rows(tables(judged, given, [])["Spearman's rho"])
    assert list(found) == [*(", ".join(key) for key in KEYS[:-1]), "*length*"]
    for key, row in zip(KEYS, found.values(), strict=True):
        rho = [stats.spearmanr(given[key][n], judged.human[n]).statistic for n in judged.human]
        *each, mean = row
        assert [float(cell) for cell in each] == pytest.approx(rho, abs=5e-4)
        value, low, high = (float(part.strip("[],")) for part in mean.split())
        assert value == pytest.approx((rho[0] + rho[1]) / 2, abs=5e-4), "without overall"
        assert low < value < high


def test_what_makes_a_difference(judged):
    given = scores(judged)
    for key in KEYS:  # tuned says what stock says, and published hypotheses say the opposite
        if "stock" in key:
            given[key] = given["fed", "tuned", "ours"]
        if "tuned" in key:
            given[key] = given["fed", "tuned", "ours"]
        if "published" in key:
            given[key] = {name: -row for name, row in given[key].items()}
    found = tables(judged, given, [])
    mean = float(rows(found["Spearman's rho"])["fed, tuned, ours"][-1].split()[0])
    gains = rows(found["what makes a difference"])
    gained = {title: float(cell.split()[0]) for title, (cell,) in gains.items()}
    assert gained == pytest.approx(
        {
            "cpmi instead of fed": 0,
            "cpmi-sym instead of cpmi": 0,
            "tuned instead of stock": 0,
            "ours instead of published": 2 * mean,
        },
        abs=2e-3,
    )


def test_weights_of_a_change():
    weights = dict(zip(KEYS, change(KEYS, "stock", "tuned"), strict=True))
    assert weights["length",] == 0
    assert weights["cpmi", "tuned", "ours"] == pytest.approx(1 / 6)
    assert weights["cpmi", "stock", "ours"] == pytest.approx(-1 / 6)
    assert sum(weights.values()) == pytest.approx(0)


def test_a_row_without_a_correlation_leaves_the_others_alone(judged):
    given = scores(judged)
    before = tables(judged, given, [])
    given["length",] = dict.fromkeys(judged.human, np.zeros(SIZE))
    after = tables(judged, given, [])
    assert after["what makes a difference"] == before["what makes a difference"]
    one, other = (rows(each["Spearman's rho"]) for each in (before, after))
    assert other.pop("*length*")[-1] == "–"
    one.pop("*length*")
    assert one == other


def test_the_paper_s_own_rows():
    lines = {line.title: line for line in printed()}
    assert lines[Marked("FED*, printed", "emphasis")].of["interesting"] == pytest.approx(0.325)
    means = [line.mean.value for line in lines.values()]
    assert means == pytest.approx([0.119, 0.147, 0.228, 0.236], abs=1e-3), "as the paper prints"
