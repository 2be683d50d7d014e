"""The text of the results: what a reader must find in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from causerie.bench.analysis import ScoredColumn, analyse
from causerie.bench.files import to_markdown
from causerie.bench.results import MetricFacts, RunOptions, RunResult
from causerie.bench.sets.judged import JudgedItem, JudgedSet
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.metrics.base import Column
from causerie.stats import Estimate

OPTIONS = RunOptions(resamples=50, permutations=200)


@pytest.fixture(scope="module")
def result() -> RunResult:
    generator = np.random.default_rng(1)
    truth = generator.normal(size=60)
    items = tuple(
        JudgedItem(
            f"i{i}",
            Exchange(Dialogue(f"i{i}", (Turn("a", f"q{i // 3}"), Turn("b", f"r{i}"))), 1),
            {"overall": (round(truth[i] + 3, 1), round(truth[i] + 3.2, 1)), "wit": (1.0, 2.0)},
            "xyz"[i % 3],
            False,
            f"c{i // 3}",
        )
        for i in range(60)
    )
    judged = JudgedSet(
        "my_set", "turn", items, (), ("overall", "wit"), ("line 3: <b>odd</b> | text",), "0" * 64
    )
    metrics = {
        "good": (MetricFacts("good", "g", "good-1", (), False), truth),
        "none": (MetricFacts("none", "n", "none-1", (), False), np.full(60, np.nan)),
        "length": (MetricFacts("length", "l", "length", (), True), generator.normal(size=60)),
    }
    columns = [
        ScoredColumn(
            name,
            name,
            Column(sentinel=facts.sentinel),
            values,
            {"no reference": 60} if name == "none" else {},
            12.34,
            0.5,
        )
        for name, (facts, values) in metrics.items()
    ]
    found = analyse(judged, columns, OPTIONS)
    facts = tuple(facts for facts, _ in metrics.values())
    return RunResult(
        "causerie 1 | x", "1", "2030-01-02T03:04:05+00:00", "m", OPTIONS, facts, (found,)
    )


def lines(text: str, start: str) -> list[list[str]]:
    """The cells of every table line whose first filled cells hold `start`."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if start in row[:2]]


def test_the_summary_has_every_metric_the_ceiling_and_the_limit(result: RunResult) -> None:
    text = to_markdown(result).split("## my")[0]
    good = result.sets[0].rows[0].statistics["spearman"].value
    assert lines(text, "good") == [["good", f"**{good:.3f}**"]]
    assert lines(text, "none") == [["none", "–"]]
    assert len(lines(text, "*length*")) == len(lines(text, "*human*")) == 1
    assert len(lines(text, "*limit*")) == 1


def test_a_set_has_numbers_with_interval_rank_and_cost(result: RunResult) -> None:
    text = to_markdown(result)
    estimate = result.sets[0].rows[0].statistics["spearman"]
    row = next(row for row in lines(text, "good") if row[0] == "1")
    assert row[2] == f"{estimate.value:.3f} [{estimate.low:.2f}, {estimate.high:.2f}]"
    assert row[-2:] == ["12.3", "50.0%"]
    assert "2030-01-02" in text
    assert "causerie 1 | x" in text


def test_every_row_has_as_many_cells_as_its_heading(result: RunResult) -> None:
    tables = [
        [line for line in block.splitlines() if line.startswith("|")]
        for block in to_markdown(result).split("\n\n")
    ]
    for table in filter(None, tables):
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_missing_numbers_have_their_reason(result: RunResult) -> None:
    text = to_markdown(result)
    assert "- No number for any statistic (none): unscored: no reference." in text
    assert "without humans (good, length): no response is known to be written" in text


def test_dimensions(result: RunResult) -> None:
    text = to_markdown(result).split("by dimension:")[1]
    assert lines(text, "good")[0][1] != "–"
    assert lines(text, "good")[0][2] == "–"


def test_text_of_others_is_text(result: RunResult) -> None:
    bad = "a | b\n# *c* <script>`x`</script> [l](u)"
    judged = replace(result.sets[0], title=bad, licence=bad, notes=(bad,), name="x`|y")
    text = to_markdown(replace(result, sets=(judged,)))
    assert "<script>" not in text.replace("\\<", "")
    assert "\n# *c*" not in text
    assert "line 3: \\<b\\>odd\\</b\\> \\| text" in text
    assert "](u)" not in text.replace("\\]", "")


def test_no_ceiling_has_its_reason(result: RunResult) -> None:
    none = Estimate(None, 0, reason="no item has two ratings")
    judged = replace(result.sets[0], ceiling={"spearman": none})
    text = to_markdown(replace(result, sets=(judged,)))
    assert "- No human ceiling of Spearman: no item has two ratings." in text


def test_the_floor_has_a_row_and_an_agreement_of_1_a_mark(result: RunResult) -> None:
    assert not lines(to_markdown(result), "*floor*")
    assert "(see the notes)" not in to_markdown(result)
    (found,) = result.sets
    sure = replace(found, floor={found.main: Estimate(0.123, 60)}, alpha=Estimate(1.0, 60))
    sure = replace(sure, ceiling={found.main: Estimate(1.0, 60)})
    text = to_markdown(replace(result, sets=(sure,)))
    assert "0.123" in lines(text, "*floor*")[0]
    assert "Krippendorff's alpha: 1.000 (see the notes)." in text
    assert all("1.000 (see the notes)" in row for row in lines(text, "*human*"))
