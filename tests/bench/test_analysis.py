"""One set against many metrics: every number against an oracle, every gap with its reason."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from numpy.typing import NDArray
from scipy import stats

from causerie.bench.analysis import ScoredColumn, analyse
from causerie.bench.results import (
    MetricFacts,
    MetricRow,
    RunOptions,
    RunResult,
    SetResult,
    from_json,
    to_json,
)
from causerie.bench.sets.judged import JudgedItem, JudgedPair, JudgedSet, read_judged
from causerie.bench.sets.units import sampled, units_of
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.metrics.base import Column
from causerie.stats import soft_pairwise_accuracy

FAST = RunOptions(resamples=100, permutations=1000)


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    """Degenerate data must not make numpy complain."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def facts(name: str) -> MetricFacts:
    return MetricFacts(name, "for tests", name, (), False)


def column(name: str, values: Sequence[float], higher: bool = True) -> ScoredColumn:
    array = np.array(values, dtype=np.float64)
    missing = int(np.isnan(array).sum())
    about = Column(better="higher" if higher else "lower")
    return ScoredColumn(name, name, about, array, {"no reference": missing} if missing else {})


def judged_set(
    ratings: Sequence[Sequence[float | None]],
    contexts: Sequence[int],
    systems: Sequence[str] | None = None,
    name: str = "mine",
) -> JudgedSet:
    systems = systems or ["bot"] * len(ratings)
    items = []
    for i, (row, context, system) in enumerate(zip(ratings, contexts, systems, strict=True)):
        turns = (Turn("a", f"context {context}"), Turn("b", f"response {i}"))
        item = Exchange(Dialogue(f"i{i}", turns), 1)
        human = system == "human"
        items.append(
            JudgedItem(f"i{i}", item, {"overall": tuple(row)}, system, human, f"c{context}")
        )
    return JudgedSet(name, "turn", tuple(items), (), ("overall",), (), "0" * 64)


class Example:
    """40 contexts, 4 systems each, one of them people; three annotators."""

    def __init__(self) -> None:
        generator = np.random.default_rng(8)
        n = 160
        self.truth = generator.normal(size=n)
        self.length = generator.integers(3, 30, n).astype(float)
        rounded = np.clip(np.round(3 + self.truth[:, None] + generator.normal(size=(n, 3))), 1, 5)
        self.mean = rounded.mean(axis=1)
        self.contexts = np.repeat(np.arange(40), 4)
        self.systems = ["human", "x", "y", "z"] * 40
        self.judged = judged_set(rounded.tolist(), self.contexts.tolist(), self.systems)
        self.good = self.truth + 0.3 * generator.normal(size=n)
        self.poor = generator.normal(size=n)
        self.columns = [
            column("poor", self.poor),
            column("distance", -self.good, higher=False),
            column("length", self.length),
        ]


@pytest.fixture(scope="module")
def example() -> Example:
    return Example()


@pytest.fixture(scope="module")
def result(example: Example) -> SetResult:
    return analyse(example.judged, example.columns, FAST)


def value(result: SetResult, name: str, statistic: str) -> float:
    row = result.row(name)
    assert row is not None
    found = row.statistics[statistic].value
    assert found is not None, row.statistics[statistic].reason
    return found


def test_correlations_equal_scipy(example: Example, result: SetResult) -> None:
    oracles = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    for statistic, oracle in oracles.items():
        for name, scores in (("poor", example.poor), ("length", example.length)):
            expected = oracle(scores, example.mean).statistic
            assert value(result, name, statistic) == pytest.approx(expected, abs=1e-9)


def test_lower_is_better_reads_like_higher(example: Example, result: SetResult) -> None:
    expected = stats.spearmanr(example.good, example.mean).statistic
    assert value(result, "distance", "spearman") == pytest.approx(expected)
    assert any("lower is better for distance" in note for note in result.notes)
    row = result.row("distance")
    assert row is not None
    assert not row.higher_is_better
    shown = result.sample.scores["distance"]
    np.testing.assert_allclose(np.array(shown, float), -example.good)


def test_within_context(example: Example, result: SetResult) -> None:
    groups = [np.flatnonzero(example.contexts == c) for c in range(40)]
    expected = np.mean(
        [
            stats.spearmanr(example.poor[g], example.mean[g]).statistic
            for g in groups
            if np.ptp(example.mean[g])
        ]
    )
    assert value(result, "poor", "within-context") == pytest.approx(expected)


def test_given_length_is_the_correlation_of_residuals(example: Example, result: SetResult) -> None:
    ranked = [stats.rankdata(v) for v in (example.good, example.mean, example.length)]
    design = np.column_stack([np.ones(160), ranked[2]])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in ranked[:2]]
    expected = np.corrcoef(*left)[0, 1]
    assert value(result, "distance", "partial") == pytest.approx(expected)
    row = result.row("length")
    assert row is not None
    assert "determine" in (row.statistics["partial"].reason or "")


def test_without_humans(example: Example, result: SetResult) -> None:
    keep = np.array(example.systems) != "human"
    expected = stats.spearmanr(example.good[keep], example.mean[keep]).statistic
    assert value(result, "distance", "without-humans") == pytest.approx(expected)
    assert result.human_written == 40


def test_systems(example: Example, result: SetResult) -> None:
    spa = soft_pairwise_accuracy(
        example.good, example.mean, example.systems, example.contexts, seed=FAST.seed
    )
    assert value(result, "distance", "system") == pytest.approx(spa[0].value)
    names = sorted(set(example.systems))
    where = [np.array(example.systems) == name for name in names]
    means = [[v[w].mean() for w in where] for v in (example.good, example.mean)]
    expected = stats.spearmanr(*means).statistic
    assert value(result, "distance", "system-means") == pytest.approx(expected)


def test_intervals_hold_the_value_and_narrow(example: Example, result: SetResult) -> None:
    for statistic in ("spearman", "pearson", "kendall", "accuracy", "partial", "without-humans"):
        row = result.row("distance")
        assert row is not None
        estimate = row.statistics[statistic]
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.value is not None
        assert estimate.low < estimate.value < estimate.high
        assert estimate.high - estimate.low < 0.5


def test_ranks_and_wins(result: SetResult) -> None:
    assert result.rows[0].column == "distance"
    ranks = {row.column: row.cluster for row in result.rows}
    assert ranks["distance"] == 1
    assert ranks["poor"] == ranks["length"] == 2
    order = result.significance.columns
    wins = np.array(result.significance.wins)
    best = order.index("distance")
    assert wins[best].sum() == 2
    assert wins.sum() == 2
    p = result.significance.p
    assert p[best][best] is None
    assert p[0][1] == p[1][0]


def test_people(example: Example, result: SetResult) -> None:
    assert result.annotators == "3"
    ceiling, limit = result.ceiling["spearman"].value, result.limit["spearman"].value
    assert ceiling is not None
    assert limit is not None
    assert 0 < ceiling < limit < 1
    assert (result.items, result.clusters, result.systems) == (160, 40, 4)


def test_histograms_count_everything(result: SetResult) -> None:
    for histogram in (result.judgement_histogram, *result.histograms.values()):
        assert sum(histogram.counts) == 160
        assert len(histogram.edges) == len(histogram.counts) + 1


def reasons(result: SetResult, name: str) -> set[str]:
    row = result.row(name)
    assert row is not None
    assert all(e.value is None for e in row.statistics.values())
    assert row.cluster is None
    return {e.reason or "" for e in row.statistics.values()}


def test_an_unscored_metric_says_why(example: Example) -> None:
    columns = [*example.columns, column("bleu", [np.nan] * 160)]
    assert reasons(analyse(example.judged, columns, FAST), "bleu") == {"unscored: no reference"}


def test_a_constant_metric_says_why(example: Example) -> None:
    result = analyse(example.judged, [column("constant", [1.0] * 160)], FAST)
    row = result.row("constant")
    assert row is not None
    assert "same score" in (row.statistics["spearman"].reason or "")


def test_a_missing_dimension_says_why(example: Example) -> None:
    result = analyse(example.judged, example.columns, FAST, "humour")
    assert reasons(result, "poor") == {"the set has no dimension 'humour' (it has overall)"}


def test_equal_ratings_say_why(example: Example) -> None:
    judged = judged_set([[3, 3]] * 160, example.contexts.tolist(), example.systems)
    result = analyse(judged, example.columns, FAST)
    row = result.row("poor")
    assert row is not None
    for statistic in ("spearman", "pearson", "kendall", "accuracy", "within-context-accuracy"):
        assert "all equal" in (row.statistics[statistic].reason or "")
    assert result.alpha.reason == "all ratings are equal"
    assert result.ceiling["spearman"].reason == "the ratings are all equal"


def test_one_item_has_no_ceiling_and_no_agreement() -> None:
    result = analyse(judged_set([[1, 5, 3]], [0]), [column("m", [1.0])], FAST)
    for people in (result.alpha, result.kappa, *result.ceiling.values(), *result.limit.values()):
        assert people.value is None
        assert "one" in (people.reason or "") or "only 1" in (people.reason or "")


def test_the_best_of_many_metrics_wins() -> None:
    """34 columns are 561 pairs: 10,000 permutations could not make any of them significant."""
    generator = np.random.default_rng(0)
    truth = generator.normal(size=120)
    columns = [column("best", truth + 0.2 * generator.normal(size=120))]
    columns += [column(f"m{i}", generator.normal(size=120)) for i in range(33)]
    judged = judged_set([[t] for t in truth], range(120))
    result = analyse(judged, columns, RunOptions(resamples=20, permutations=1000))
    assert [row.column for row in result.rows if row.cluster == 1] == ["best"]
    best = result.significance.columns.index("best")
    assert sum(result.significance.wins[best]) == 33


def test_a_metric_that_scored_half_of_the_items_takes_no_rank_from_one_that_beats_it() -> None:
    """On the easy half both are good and the whole one is better; its other half is noise."""
    generator = np.random.default_rng(1)
    truth = generator.normal(size=400)
    easy = np.arange(400) < 200
    half = np.where(easy, truth + 0.7 * generator.normal(size=400), np.nan)
    whole = np.where(easy, truth + 0.2 * generator.normal(size=400), generator.normal(size=400))
    columns = [column("half", half), column("whole", whole)]
    result = analyse(judged_set([[t] for t in truth], range(400)), columns, FAST)
    assert value(result, "half", "spearman") > value(result, "whole", "spearman")
    order = result.significance.columns
    assert result.significance.wins[order.index("whole")][order.index("half")]
    assert {row.cluster for row in result.rows} == {1}


def test_one_annotator_has_no_ceiling(example: Example) -> None:
    judged = judged_set([[m] for m in example.mean], example.contexts.tolist(), example.systems)
    result = analyse(judged, example.columns, FAST)
    assert result.ceiling["spearman"].reason == "no item has two ratings"
    assert result.limit["spearman"].reason == "no item has two ratings"
    assert result.alpha.value is None
    assert value(result, "distance", "spearman") > 0.5


def test_few_systems_and_contexts_say_why() -> None:
    judged = judged_set([[i % 5, i % 3] for i in range(20)], range(20), ["x", "y"] * 10)
    row = analyse(judged, [column("poor", range(20))], FAST).row("poor")
    assert row is not None
    assert row.statistics["system"].reason == "2 of the 3 systems it takes"
    assert "contexts with several responses" in (row.statistics["within-context"].reason or "")
    assert "written by a person" in (row.statistics["without-humans"].reason or "")


@pytest.mark.parametrize(
    "ratings",
    [
        '["good", "bad"]',
        "[null, null]",
        "{}",
        "4",
        "[true, false]",
        "[1e308, 1e308]",
        "[-1e200, 1e999]",
        f"[1{'0' * 400}]",
    ],
)
def test_ratings_of_a_file_that_are_no_numbers(tmp_path: Path, ratings: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "".join(
            f'{{"id": "{i}", "context": [{{"speaker": "A", "text": "{i}"}}], '
            f'"response": "x {i}", "ratings": {{"overall": {ratings}}}}}\n'
            for i in range(5)
        )
    )
    judged = read_judged(path)
    assert ratings == "4" or any("rating" in problem for problem in judged.problems)
    result = analyse(judged, [column("poor", range(5))], FAST)
    row = result.row("poor")
    assert row is not None
    assert row.statistics["spearman"].value is None
    assert row.statistics["spearman"].reason


def sound(row: MetricRow) -> bool:
    every: list[Mapping[str, object]] = [row.statistics, *row.dimensions.values()]
    estimates = [e for some in every for e in some.values()]
    return all((e.value is None) <= bool(e.reason) for e in estimates)  # type: ignore[attr-defined]


rating = st.one_of(st.none(), st.integers(1, 5).map(float))
number = st.one_of(
    st.just(np.nan), st.floats(-1e6, 1e6), st.just(0.0), st.sampled_from([1e200, -1e308, 1e308])
)


@settings(max_examples=30)
@given(st.data())
def test_anything_gives_numbers_or_reasons(data: st.DataObject) -> None:
    """No exception, no warning, no NaN; and the whole result goes to JSON and back."""
    n = data.draw(st.integers(1, 12))
    rows = data.draw(st.lists(st.lists(rating, max_size=3), min_size=n, max_size=n))
    contexts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    systems = data.draw(
        st.lists(st.sampled_from(["human", "x", "y", "z", ""]), min_size=n, max_size=n)
    )
    columns = [
        column(name, data.draw(st.lists(number, min_size=n, max_size=n)), higher)
        for name, higher in (("one", True), ("other", False), ("length", True))
    ]
    options = RunOptions(resamples=20, permutations=50)
    result = analyse(judged_set(rows, contexts, systems), columns, options)
    assert all(map(sound, result.rows))
    run = RunResult(
        "s", "0", "now", "m", options, tuple(facts(c.metric) for c in columns), (result,)
    )
    text = to_json(run)
    assert "NaN" not in text
    assert from_json(text) == run


def pair(
    number: int, first: str, second: str, votes: Sequence[str], relevance: str = "A"
) -> JudgedPair:
    def side(system: str) -> Exchange:
        turns = (Turn("a", f"context {number}"), Turn("b", f"{system} says"))
        return Exchange(Dialogue(f"p{number}-{first}-{second}-{system}", turns), 1)

    judgements = tuple({"overall": vote, "relevance": relevance} for vote in votes)
    systems = (first, second)
    humans = (first == "human", second == "human")
    name = f"p{number}-{first}-{second}"
    return JudgedPair(name, side(first), side(second), systems, humans, judgements, f"c{number}")


@pytest.fixture(scope="module")
def pairs() -> JudgedSet:
    votes = ["A", "B", "both good", "both bad"]
    generator = np.random.default_rng(3)
    every = [
        pair(n, first, second, [votes[v] for v in generator.integers(0, 4, 3)])
        for n in range(12)
        for first, second in (("x", "y"), ("y", "human"), ("x", "human"), ("z", "x"))
    ]
    return JudgedSet("mine", "pair", (), tuple(every), ("overall", "relevance"), (), "0" * 64)


def test_pairs(pairs: JudgedSet) -> None:
    """Voting and IgnoreEqual, counted one by one."""
    units = units_of(pairs)
    assert len(units) == 12 * 4
    scores = np.random.default_rng(5).normal(size=len(units))
    by_response = {(u, s): v for u, s, v in zip(units.clusters, units.systems, scores, strict=True)}
    points, cast = dict.fromkeys(by_response, 0), dict.fromkeys(by_response, 0)
    difference, preferred = [], []
    for p in pairs.pairs:
        a, b = ((p.cluster, system) for system in p.systems)
        for judgement in p.judgements:
            vote = judgement["overall"]
            points[a] += vote in ("A", "both good")
            points[b] += vote in ("B", "both good")
            cast[a] += 1
            cast[b] += 1
            if vote in ("A", "B"):
                difference.append(by_response[a] - by_response[b])
                preferred.append(vote == "A")
    result = analyse(pairs, [column("m", scores)], FAST)
    shares = [points[key] / cast[key] for key in by_response]
    expected = stats.spearmanr(list(by_response.values()), shares).statistic
    assert value(result, "m", "voting.spearman") == pytest.approx(expected)
    biserial = stats.pointbiserialr(preferred, difference).statistic
    assert value(result, "m", "ignore-equal.point-biserial") == pytest.approx(biserial)
    assert value(result, "m", "cont2cat.alpha") < 1
    assert (result.items, result.pairs, result.clusters) == (48, 48, 12)
    row = result.rows[0]
    assert set(row.dimensions) == {"overall", "relevance"}
    for name in ("voting.spearman", "ignore-equal.point-biserial", "cont2cat.alpha"):
        assert row.dimensions["overall"][name].value == row.statistics[name].value
    assert row.dimensions["relevance"]["ignore-equal.point-biserial"].value is None


def test_agreement_within_contexts_as_accuracy(example: Example, result: SetResult) -> None:
    """Mean over contexts of the share of pairs ordered as people do, at the best threshold."""
    groups = [np.flatnonzero(example.contexts == c) for c in range(40)]

    def accuracy(epsilon: float) -> float:
        shares = []
        for group in groups:
            right = [
                np.sign(d := example.good[i] - example.good[j]) * (abs(d) > epsilon)
                == np.sign(example.mean[i] - example.mean[j])
                for i, j in combinations(group, 2)
            ]
            shares.append(np.mean(right))
        return float(np.mean(shares))

    gaps = [abs(example.good[i] - example.good[j]) for g in groups for i, j in combinations(g, 2)]
    expected = max(map(accuracy, [0.0, *gaps]))
    assert value(result, "distance", "within-context-accuracy") == pytest.approx(expected)


def test_what_pairs_say_about_their_annotators(pairs: JudgedSet) -> None:
    result = analyse(pairs, [column("m", range(48))], FAST)
    rows = [
        [judgement[d] for judgement in p.judgements]
        for d in ("overall", "relevance")
        for p in pairs.pairs
    ]
    task = [(k, i, v) for i, row in enumerate(rows) for k, v in enumerate(row)]
    pooled = f"over all 2 dimensions together is {AnnotationTask(task).alpha():.3f}"
    assert any(pooled in note for note in result.notes)
    assert [note for note in result.notes if "agree on every pair" in note] == [
        note for note in result.notes if "'relevance'" in note
    ]
    assert any(f"{result.kappa.value:.3f}" in note for note in result.notes if "kappa" in note)
    assert any("always prefers B" in note for note in result.notes)
    floor = result.floor["cont2cat.alpha"].value
    ceiling = result.ceiling["cont2cat.alpha"].value
    assert floor is not None
    assert ceiling is not None
    constant = analyse(pairs, [column("m", [1.0] * 48)], FAST).row("m")
    assert constant is not None
    assert constant.statistics["cont2cat.alpha"].value is None


def test_pairs_without_a_usable_vote_say_so(pairs: JudgedSet) -> None:
    bare = tuple(replace(p, judgements=({}, {})) for p in pairs.pairs)
    result = analyse(replace(pairs, pairs=bare, dimensions=()), [column("m", range(48))], FAST)
    assert reasons(result, "m") == {"no vote can be used"}


def test_pairs_without_humans(pairs: JudgedSet) -> None:
    """The result is that of the set without the pairs that contain a human response."""
    units = units_of(pairs)
    scores = np.random.default_rng(5).normal(size=len(units))
    by_response = {(u, s): v for u, s, v in zip(units.clusters, units.systems, scores, strict=True)}
    result = analyse(pairs, [column("m", scores)], FAST)
    rest = replace(pairs, pairs=tuple(p for p in pairs.pairs if not any(p.humans)))
    left = units_of(rest)
    own = [by_response[key] for key in zip(left.clusters, left.systems, strict=True)]
    expected = value(analyse(rest, [column("m", own)], FAST), "m", "voting.spearman")
    assert value(result, "m", "without-humans") == pytest.approx(expected)


def test_unscored_pairs_say_why(pairs: JudgedSet) -> None:
    nothing: NDArray[np.float64] = np.full(len(units_of(pairs)), np.nan)
    result = analyse(pairs, [column("m", nothing)], FAST)
    assert reasons(result, "m") == {"unscored: no reference"}


def test_dialogues() -> None:
    items = tuple(
        JudgedItem(
            f"d{i}",
            Dialogue(f"d{i}", (Turn("u", "hi"), Turn("s", f"{i}"))),
            {"overall": (float(i % 4), float(i % 3))},
            "xyz"[i % 3],
            False,
            f"d{i}",
        )
        for i in range(30)
    )
    judged = JudgedSet("mine", "dialogue", items, (), ("overall",), (), "0" * 64)
    row = analyse(judged, [column("m", range(30))], FAST).rows[0]
    assert row.statistics["spearman"].value is not None
    assert row.statistics["system"].reason == (
        "no two systems have judged responses to the same item"
    )
    assert row.statistics["system-means"].n == 3


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=40),
    st.integers(1, 30),
    st.integers(0, 3),
)
def test_a_sample_has_whole_clusters(contexts: list[int], most: int, seed: int) -> None:
    judged = judged_set([[1.0]] * len(contexts), contexts)
    part = sampled(judged, most, seed)
    assert part == sampled(judged, most, seed)
    kept = {item.cluster for item in part.items}
    assert part.items == tuple(item for item in judged.items if item.cluster in kept)
    assert len(part) <= most or len(kept) == 1
    smaller = sampled(judged, max(1, most // 2), seed)
    assert {item.cluster for item in smaller.items} <= kept


def test_a_sample_is_noted(example: Example) -> None:
    part = sampled(example.judged, 40, seed=0)
    assert len(part) == 40
    columns = [column("m", range(40))]
    result = analyse(part, columns, FAST, whole=example.judged)
    assert result.notes[0] == "a fixed sample: 40 of 160 items, whole clusters, seed 0"
    assert sampled(example.judged, 40, seed=1) != part


def test_other_json_is_refused() -> None:
    from causerie.errors import CauserieError

    for text in ("[]", "{", json.dumps({"signature": "x"})):
        with pytest.raises(CauserieError, match=r"results\.json"):
            from_json(text)
