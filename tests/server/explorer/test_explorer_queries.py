"""Every query on a table, checked against plain Python over the same rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.metrics.base import Column
from causerie.quality import Faults
from causerie.server.explorer import comparison, findings, overview, replies
from causerie.server.explorer.filters import ANY, Filter
from causerie.server.explorer.runs import ScoredRun, open_run
from causerie.server.explorer.tables import Tables
from causerie.stats import ClusterMoments, difference
from pages import HOSTILE
from scored import row, write_scores

COLUMNS = {
    "density": Column(calibrated=True),
    'wit"; DROP TABLE r; --/~': Column(better="lower", range=(0.0, None)),
}
ODD = list(COLUMNS)[1]
SYSTEMS = (None, "", "aria", "'; DROP TABLE r; --", *HOSTILE[:2])
WORDS = ("Hello there", "the STAR", "über allen", "", " \u2003\n", "100% _sure_ 'quoted'", *HOSTILE)


def made(count: int = 400) -> list[dict[str, Any]]:
    """Rows with every oddity that files may have: nulls, repeats, blanks, equal values."""
    rows = []
    for n in range(count):
        value = None if n % 7 == 0 else round(math.sin(n) * 3, 1)
        text = WORDS[n % len(WORDS)]
        reason = {"unscored": 'too "long" <b>'} if n % 14 == 0 else {}
        rows.append(
            row(
                f"d{n // 5}" if n % 31 else HOSTILE[0],
                2 * (n % 5) + 1,
                text,
                SYSTEMS[(n // 5) % len(SYSTEMS)],
                **{
                    "speaker": "bot" if n % 3 else None,
                    "density": value,
                    "density.percentile": None if value is None else 50 + 10 * value,
                    ODD: None if not text.strip() else n % 11,
                    "explanation": {"density": reason} if reason else {},
                },
            )
        )
    return rows


ROWS = made()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ScoredRun:
    path = write_scores(tmp_path_factory.mktemp("runs") / "a.parquet", ROWS, COLUMNS)
    return open_run("a.parquet", path)


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    tables = Tables()
    yield tables
    tables.close()


def counted(given: dict[str, Any], name: str) -> float | None:
    """Return the value of a row; an empty reply has the worst possible, or seen, value."""
    if given[name] is None and not given["text"].strip():
        known = [r[name] for r in ROWS if r[name] is not None]
        return min(known) if name == "density" else max(known)
    value: float | None = given[name]
    return value


def reason_of(given: dict[str, Any], name: str) -> str:
    if not given["text"].strip():
        return "empty response"
    return str(given["explanation"].get(name, {}).get("unscored", "no reason told"))


def fulfils(wanted: Filter, given: dict[str, Any]) -> bool:
    metric = wanted.metric or "density"
    value, percentile = given[metric], given.get(f"{metric}.percentile")

    def inside(number: float | None, low: float | None, high: float | None) -> bool:
        if low is None and high is None:
            return True
        if number is None:
            return False
        return (low is None or number >= low) and (high is None or number <= high)

    return (
        (wanted.system is None or (given["system"] or "") == wanted.system)
        and (wanted.speaker is None or (given["speaker"] or "") == wanted.speaker)
        and (wanted.dialogue is None or given["dialogue_id"] == wanted.dialogue)
        and (not wanted.text or wanted.text.lower() in given["text"].lower())
        and inside(value, wanted.least, wanted.most)
        and inside(percentile, wanted.percentile_least, wanted.percentile_most)
        and (
            wanted.unscored is None
            or (value is None and wanted.unscored in (ANY, reason_of(given, metric)))
        )
    )


def expected(wanted: Filter) -> list[int]:
    found = [n for n, given in enumerate(ROWS) if fulfils(wanted, given)]
    if wanted.order != "given":
        sign = 1 if wanted.order == "lowest" else -1

        def key(n: int) -> tuple[bool, float, int]:
            value = counted(ROWS[n], wanted.metric or "density")
            return value is None, sign * (value or 0.0), n

        found.sort(key=key)
    return found


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@given(
    wanted=st.builds(
        Filter,
        system=maybe(st.sampled_from([s or "" for s in SYSTEMS] + ["nobody"])),
        speaker=maybe(st.sampled_from(["bot", ""])),
        dialogue=maybe(st.sampled_from(["d3", HOSTILE[0], "x' OR '1'='1"])),
        text=maybe(st.sampled_from(["hello", "ÜBER", "%", "_", "'", "<script>", "star"])),
        metric=st.sampled_from([None, *COLUMNS]),
        least=maybe(st.integers(-3, 8)),
        most=maybe(st.integers(-3, 8)),
        percentile_least=maybe(st.integers(0, 100)),
        unscored=maybe(
            st.sampled_from([ANY, "empty response", "no reason told", 'too "long" <b>'])
        ),
        order=st.sampled_from(["given", "lowest", "highest"]),
    )
)
def test_filters_and_orders(run: ScoredRun, tables: Tables, wanted: Filter) -> None:
    rows = expected(wanted)
    assert replies.count(tables, run, wanted) == len(rows)
    for number in (0, 1):
        found = replies.page(tables, run, wanted, number)
        part = rows[number * replies.PAGE : (number + 1) * replies.PAGE]
        assert [r["row"] for r in found] == part
        for one in found[:5]:
            given = ROWS[one["row"]]
            assert (one["text"], one["system"], one["scores"]["density"]) == (
                given["text"],
                given["system"],
                given["density"],
            )
            assert one["reasons"] == {
                name: reason_of(given, name) for name in COLUMNS if given[name] is None
            }


def test_marked_rows_are_found_by_name(run: ScoredRun, tables: Tables) -> None:
    chosen = [ROWS[8], ROWS[120]]
    keys = [(r["dialogue_id"], r["system"] or "", r["turn"]) for r in chosen]
    found = replies.page(tables, run, Filter(tag="x"), 0, keys)
    expected = [
        n for n, r in enumerate(ROWS) if (r["dialogue_id"], r["system"] or "", r["turn"]) in keys
    ]
    assert [r["row"] for r in found] == expected
    assert replies.page(tables, run, Filter(tag="x")) == []


@pytest.mark.parametrize("name", COLUMNS)
def test_means_of_systems_are_clustered_by_dialogue(
    run: ScoredRun, tables: Tables, name: str
) -> None:
    found = {system.name: system for system in overview.systems(tables, run)}
    by_system: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for one in ROWS:
        by_system[one["system"]].append(one)
    assert found.keys() == by_system.keys()
    for system, rows in by_system.items():
        known = [r for r in rows if counted(r, name) is not None]
        naive = ClusterMoments.of(
            [counted(r, name) for r in known], [(r["dialogue_id"], r["file"]) for r in known]
        ).estimate()
        told = found[system].moments[name].estimate()
        assert (told.value, told.low, told.high) == pytest.approx(
            (naive.value, naive.low, naive.high)
        )
        assert told.n == naive.n
        assert found[system].rows == len(rows)
        assert found[system].unscored[name] == sum(r[name] is None for r in rows)
    whole = overview.whole(tables, run, run.scores[name])
    values = [v for r in ROWS if (v := counted(r, name)) is not None]
    assert whole.mean == pytest.approx(fmean(values))


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_faults_are_found_above_their_limits(tmp_path: Path, tables: Tables, suffix: str) -> None:
    """Faults count as in a report's verdict; without a limit in the file, the metric's applies."""
    own = {c.name: c for c in Faults().columns("turn")}["echo"].limit
    assert own is not None
    given = {"faults.echo": Column("echo", better="lower", range=(0.0, 1.0), limit=0.2),
             "faults.odd": Column("odd", better="lower", range=(0.0, 1.0))}  # fmt: skip
    values = [0.1, 0.2, 0.3, own, own + 0.01, 0.5, 0.6, None]
    rows = [row(f"d{n}", 1, "x", **dict.fromkeys(given, value)) for n, value in enumerate(values)]
    run = open_run("r", write_scores(tmp_path / f"r.{suffix}", rows, given), tmp_path / "cache")
    (system,) = overview.systems(tables, run)
    limits = {"faults.echo": 0.2 if suffix == "parquet" else own, "faults.odd": 0.5}
    known = [value for value in values if value is not None]
    for name, limit in limits.items():
        assert system.faults[name] == sum(value > limit for value in known) / len(known)


def test_distributions_hold_every_value_once(run: ScoredRun, tables: Tables) -> None:
    found = overview.distribution(tables, run, run.scores["density"])
    assert found is not None
    for system, shares in found.systems:
        values = [r["density"] for r in ROWS if r["system"] == system and r["density"] is not None]
        assert sum(shares) == pytest.approx(1)
        naive = [0] * found.axis.bars
        for value in values:
            naive[found.axis.bar_of(value)] += 1
        assert shares == pytest.approx([count / len(values) for count in naive])


def test_along_the_conversation(run: ScoredRun, tables: Tables) -> None:
    found = overview.along(tables, run, run.scores["density"])
    naive: dict[tuple[Any, int], list[float]] = defaultdict(list)
    for one in ROWS:
        if (value := counted(one, "density")) is not None:
            naive[one["system"], one["turn"]].append(value)
    assert {(s, t): (pytest.approx(m), n) for s, t, m, n in found} == {
        key: (fmean(values), len(values)) for key, values in naive.items()
    }


def test_reasons_are_counted(run: ScoredRun, tables: Tables) -> None:
    found = overview.reasons(tables, run, run.scores["density"])
    naive: dict[str, int] = defaultdict(int)
    for one in ROWS:
        if one["density"] is None:
            naive[reason_of(one, "density")] += 1
    assert found == naive


def test_steps_part_the_run_into_equal_shares(run: ScoredRun, tables: Tables) -> None:
    cuts = overview.steps(tables, run, run.scores["density"])
    values = [r["density"] for r in ROWS if r["density"] is not None]
    for place, cut in enumerate(cuts, 1):
        assert sum(v <= cut for v in values) / len(values) == pytest.approx(place / 7, abs=0.05)


def test_a_conversation_is_whole(tmp_path: Path, tables: Tables) -> None:
    """Unscored turns come from the cells of scored rows; without those cells there is a gap."""
    said = {"speaker": "ann", "side": "user", "text": "hm?"}
    hostile = [*HOSTILE, {"text": 5}, None]
    rows = [
        row("t", 1, "a", density=1.0, conversation={"side": "system", "before": [said]}),
        row("other", 1, "z", density=1.0),
        row("t", 3, "b", density=2.0,
            conversation={"side": "system", "before": [said], "after": [said]}),
        row("t", 1, "again", density=3.0, conversation={"before": hostile, "side": 7}),
        row("gap", 4, "late", density=1.0),
    ]  # fmt: skip
    path = write_scores(tmp_path / "t.parquet", rows, {"density": Column()})
    run = open_run("t", path)
    first, second = replies.conversation(tables, run, "t")
    assert [(t["turn"], t["text"], "scores" in t) for t in first] == [
        (0, "hm?", False),
        (1, "a", True),
        (2, "hm?", False),
        (3, "b", True),
        (4, "hm?", False),
    ]
    assert [t["text"] for t in second] == ["5", "again"]
    assert [t.get("gap") for t in replies.conversation(tables, run, "gap")[0]] == [4, None]
    assert replies.conversation(tables, run, "nobody' OR '1'='1") == []


SCORES = {"density": Column()}


def two(tmp_path: Path, change: Callable[[int], float | None]) -> tuple[ScoredRun, ScoredRun]:
    """Two runs over the same turns, in another order."""
    old = [row(f"d{n // 4}", n % 4, "x", density=math.cos(n), file="old.jsonl") for n in range(80)]
    new = [{**r, "density": change(n), "file": "new.jsonl"} for n, r in reversed([*enumerate(old)])]
    paths = [
        write_scores(tmp_path / f"{name}.parquet", rows, SCORES, whole=False)
        for name, rows in (("old", old), ("new", new))
    ]
    a, b = (open_run(path.name, path) for path in paths)
    return a, b


def test_two_runs_are_compared_in_pairs(tmp_path: Path, tables: Tables) -> None:
    def change(n: int) -> float | None:
        return None if n == 7 else math.cos(n) + 0.2 + (5 if n == 33 else 0) + 0.1 * math.sin(9 * n)

    a, b = two(tmp_path, change)
    found = comparison.versus(tables, comparison.Side(a), comparison.Side(b))
    kept = [n for n in range(80) if n != 7]
    gaps = [change(n) - math.cos(n) for n in kept]  # type: ignore[operator]
    naive = ClusterMoments.of(gaps, [n // 4 for n in kept])
    told = found.difference
    assert found.pairs == 80
    assert told.n == 79
    assert (told.value, told.low, told.high) == pytest.approx(
        (naive.mean, naive.estimate().low, naive.estimate().high)
    )
    assert found.p == pytest.approx(naive.p())
    (row_a, row_b, before, after), *_ = found.changed
    assert (row_a, row_b) == (33, 79 - 33)
    assert after - before == pytest.approx(max(gaps))
    sizes = [abs(y - x) for _, _, x, y in found.changed]
    assert sizes == sorted(sizes, reverse=True)
    second = comparison.versus(tables, comparison.Side(a), comparison.Side(b), page=1)
    assert len(second.changed) == 79 - replies.PAGE


def test_different_conversations_are_compared_as_they_are(tmp_path: Path, tables: Tables) -> None:
    rows = [row(f"{s}{n // 3}", n % 3, "x", s, density=math.sin(n * (2 + i)) + i / 5)
            for i, s in enumerate("ab") for n in range(60)]  # fmt: skip
    run = open_run("x", write_scores(tmp_path / "x.parquet", rows, SCORES, whole=False))
    sides = [comparison.Side(run, s) for s in "ab"]
    found = comparison.versus(tables, *sides)
    a, b = (
        ClusterMoments.of(
            [r["density"] for r in rows if r["system"] == s],
            [r["dialogue_id"] for r in rows if r["system"] == s],
        )
        for s in "ab"
    )
    gap, p = difference(a, b)
    assert found.pairs is None
    assert found.changed == []
    assert (found.difference.value, found.difference.low, found.p) == pytest.approx(
        (gap.value, gap.low, p)
    )
    with pytest.raises(CauserieError, match="the same replies"):
        comparison.versus(tables, sides[0], sides[0])


def test_sentences_say_who_leads_and_whether_that_is_certain(
    tmp_path: Path, tables: Tables
) -> None:
    rows = [
        row(f"{s}{n // 2}", n % 2, "x", s, density=math.sin(n) + gap)
        for s, gap in (("low", -9.0), ("top", 0.05), ("near", 0.0))
        for n in range(100)
    ]
    run = open_run("x", write_scores(tmp_path / "x.parquet", rows, SCORES, whole=False))
    scores = run.main
    ranking = overview.ranking(overview.systems(tables, run), scores)
    assert [s.name for s in ranking.systems] == ["top", "near", "low"]
    said = findings.which_is_better(scores, ranking)
    assert said.startswith("top scores best, 0.05 ahead of near")
    assert said.endswith("certain over low, but not over near.")
    good = findings.how_good(scores, overview.whole(tables, run, scores).estimate(),
                             tables.profile(run))  # fmt: skip
    assert good.startswith("density (higher is better) is")
    assert "300 replies in 150 conversations" in good
