"""Facts about the published sets, checked where they are: CAUSERIE_JUDGED names their folder."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pytest

from causerie.bench.analysis import ScoredColumn, analyse
from causerie.bench.papers.protocols import apply, protocols
from causerie.bench.results import RunOptions
from causerie.bench.sets.catalogue import find_set
from causerie.bench.sets.judged import JudgedSet, read_judged
from causerie.bench.sets.units import units_of
from causerie.errors import CauserieError
from causerie.metrics.base import Column
from causerie.stats import krippendorff_alpha, vote_codes

FOLDER = os.environ.get("CAUSERIE_JUDGED")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="CAUSERIE_JUDGED does not name a folder with the published judged sets"
)
PAIRWISE = ("pairwise_dream", "pairwise_esconv", "pairwise_msc")
GRADE = ("grade_convai2", "grade_dailydialog", "grade_empatheticdialogues")


def judged(name: str) -> JudgedSet:
    try:
        return read_judged(find_set(name, FOLDER or ""))
    except CauserieError as absent:
        pytest.skip(str(absent))


def votes(name: str, dimension: str) -> list[list[str | None]]:
    return [[one.get(dimension) for one in pair.judgements] for pair in judged(name).pairs]


def test_pooled_alpha_of_the_pairwise_sets_is_the_papers() -> None:
    every = [row for name in PAIRWISE for d in judged(name).dimensions for row in votes(name, d)]
    assert len(every) == 9000
    assert krippendorff_alpha(vote_codes(every)).value == pytest.approx(0.6708, abs=0.0002)


@pytest.mark.parametrize("name", PAIRWISE)
def test_the_three_overall_votes_always_agree_and_the_results_say_so(name: str) -> None:
    overall = votes(name, "overall")
    assert {len(row) for row in overall} == {3}
    assert all(len(set(row)) == 1 for row in overall)
    units = units_of(judged(name))
    lengths = [float(len(item.response.text)) for item in units.items]  # type: ignore[union-attr]
    about = Column(better=None, sentinel=True)
    column = ScoredColumn("length", "length", about, np.array(lengths), {})
    result = analyse(judged(name), [column], RunOptions(resamples=10, permutations=10))
    assert result.alpha.value == 1
    assert any("over all 5 dimensions together is 0.671" in note for note in result.notes)
    agreeing = [note for note in result.notes if "agree on every pair" in note]
    assert len(agreeing) == 1
    assert "'overall'" in agreeing[0]


@pytest.mark.parametrize("name", GRADE)
def test_grades_released_means_are_those_of_its_annotators(name: str) -> None:
    path = find_set(name, FOLDER or "")
    open_ = gzip.open if path.suffix == ".gz" else open
    with open_(path, "rt", encoding="utf-8") as file:
        released = {r["id"]: r.get("released_mean") for r in map(json.loads, file)}
    if set(released.values()) == {None}:
        pytest.skip(f"{path.name} does not have the released means")
    for item in judged(name).items:
        assert item.mean("coherence") == pytest.approx(released[item.id], abs=0.51e-4)


@pytest.mark.parametrize("name", protocols())
def test_protocols_keep_as_many_items_as_they_say(name: str) -> None:
    recipe = protocols()[name]
    assert len(apply(recipe, judged(recipe.set))) == recipe.items


def test_the_protocols_of_density_keep_640_and_240() -> None:
    assert protocols()["density/dailydialog-zhao"].items == 640
    assert protocols()["density/convai2-usr"].items == 240
