"""Protocols: the filters do what the papers did, and the data names only what exists."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.bench.papers import protocols as module
from causerie.bench.papers.protocols import (
    FILTERS,
    STATISTICS,
    Protocol,
    apply,
    protocol,
    protocols,
)
from causerie.bench.sets.catalogue import catalogue
from causerie.bench.sets.judged import JudgedItem, JudgedSet
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError


def judged_item(
    number: int,
    system: str = "bot",
    ratings: Sequence[float | None] = (3.0,),
    background: tuple[str, ...] = (),
) -> JudgedItem:
    turns = (Turn("A", "hello"), Turn("B", f"answer {number}"))
    talk = Dialogue(str(number), turns, background=background)
    rated = {"overall": tuple(ratings), "Overall": tuple(ratings)}
    return JudgedItem(str(number), Exchange(talk, 1), rated, system, False, str(number))


def judged_set(name: str, items: Sequence[JudgedItem]) -> JudgedSet:
    dimensions = ("overall", "Overall")
    return JudgedSet(name, "turn", tuple(items), (), dimensions, (), "0" * 64)


def test_the_data_names_only_what_exists() -> None:
    for entry in protocols().values():
        known = catalogue()[entry.set]
        assert entry.dimension in known.dimensions
        assert set(entry.statistics) <= set(STATISTICS)
        assert entry.items <= known.items
        assert (known.level == "pair") == ("cont2cat.alpha" in entry.statistics)
        for step in entry.filters:
            assert step["filter"] in FILTERS
    assert len(protocols()) == 36


def test_counts_of_the_papers() -> None:
    assert protocol("density/dailydialog-zhao").items == 640
    assert protocol("density/convai2-usr").items == 240
    assert {p.items for p in protocols().values() if p.paper == "grade"} == {150}
    assert sum(p.items for p in protocols().values() if p.name.endswith("/relevance")) == 1800


def test_density_on_zhao_leaves_640_of_900() -> None:
    systems = ["ground-truth", *(f"bot{i}" for i in range(7)), "negative-sample"]
    items = [judged_item(n, systems[n % 9], (1, 3, 3, 3)) for n in range(900)]
    view = apply(protocol("density/dailydialog-zhao"), judged_set("dailydialog_zhao", items))
    assert len(view) == 640
    assert view.items[0].id == "181"
    assert "ground-truth" not in {item.system for item in view.items}
    assert {item.ratings["overall"] for item in view.items} == {(3.0, 3.0, 3.0)}
    assert view.dimensions == ("overall",)


def test_density_on_usr_leaves_240_with_the_persona_in_front() -> None:
    systems = ["Original Ground Truth", "KV-MemNN", "Seq2Seq", "LM", "New Human Generated"]
    items = [judged_item(n, systems[n % 5], background=("i sing", "i ski")) for n in range(300)]
    view = apply(protocol("density/convai2-usr"), judged_set("usr_personachat", items))
    assert len(view) == 240
    exchange = view.items[0].item
    assert isinstance(exchange, Exchange)
    assert [t.text for t in exchange.context] == ["i sing", "i ski", "hello"]
    assert [t.speaker for t in exchange.context] == ["B", "B", "A"]
    assert exchange.response.text == "answer 1"
    assert exchange.background == ()


def test_grade_is_cut_by_system() -> None:
    items = [
        dataclasses.replace(judged_item(n, system), ratings={"coherence": (1.0,)})
        for n, system in enumerate(["bert_ranker", "dialogGPT"] * 3)
    ]
    whole = dataclasses.replace(judged_set("grade_convai2", items), dimensions=("coherence",))
    view = apply(protocol("grade/convai2/dialoggpt"), whole)
    assert [item.system for item in view.items] == ["dialogGPT"] * 3


@given(st.lists(st.integers(1, 5), min_size=1, max_size=9), st.sampled_from([1.0, 2.0, 3.0]))
def test_outliers_by_median_deviation(ratings: list[int], deviations: float) -> None:
    """Against numpy, written from the definition (Leys et al. 2013)."""
    (item,) = FILTERS["without-outlying-ratings"](
        [judged_item(0, ratings=[float(r) for r in ratings])], "overall", deviations
    )
    values = np.array(ratings, dtype=float)
    distance = np.abs(values - np.median(values))
    expected = values[distance <= deviations * 1.4826 * np.median(distance)]
    assert list(item.ratings["overall"]) == list(expected)
    # Half of the ratings lie within the median deviation, so no item loses all of them.
    assert 2 * len(item.ratings["overall"]) >= len(ratings)


def test_items_without_a_rating_go_with_the_outliers() -> None:
    items = [judged_item(0, ratings=(None, None)), judged_item(1, ratings=(None, 2.0))]
    (left,) = FILTERS["without-outlying-ratings"](items, "overall", 1)
    assert left.id == "1"
    assert left.ratings["overall"] == (2.0,)


def test_what_does_not_fit_is_told() -> None:
    zhao = protocol("density/dailydialog-zhao")
    with pytest.raises(CauserieError, match="uses the set 'dailydialog_zhao'"):
        apply(zhao, judged_set("fed_turn", [judged_item(0)]))
    bare = dataclasses.replace(judged_set("dailydialog_zhao", [judged_item(0)]), dimensions=())
    with pytest.raises(CauserieError, match="has no ratings of 'overall'"):
        apply(zhao, bare)
    with pytest.raises(CauserieError, match=re.escape("no protocol 'density/zhao'")):
        protocol("density/zhao")


def test_no_filter_is_without_a_user() -> None:
    used = {step["filter"] for entry in protocols().values() for step in entry.filters}
    assert used == set(FILTERS)


def test_a_protocol_without_filters_keeps_the_pairs() -> None:
    whole = judged_set("dailydialog_zhao", [judged_item(0)])
    plain = Protocol("x", "x", "dailydialog_zhao", "overall", ("pearson",), 1)
    assert module.apply(plain, whole).items == whole.items
