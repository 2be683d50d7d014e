"""Two files of responses compared: who is whose partner, and hand-worked differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.bench.compare import CompareResult, compare, compare_responses
from causerie.bench.pairing import EXAMPLES, Responses, partners, responses_of
from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.io import read
from causerie.metrics.base import Column, Level, Metric, Score
from causerie.metrics.sentinels import Length
from causerie.scoring.gates import parse_condition
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Scorer


@dataclass(frozen=True)
class Cost(Metric):
    """Characters of the response: the fewer the better; "?" cannot be scored."""

    name: ClassVar[str] = "cost"
    summary: ClassVar[str] = "characters"

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(better="lower", range=(0, None)),)

    def score_one(self, exchange: Exchange) -> float | Score:
        text = exchange.response.text
        return Score.unscored("a question") if text == "?" else len(text)


@dataclass(frozen=True)
class Words(Metric):
    """Words of the response: the more the better."""

    name: ClassVar[str] = "words"
    summary: ClassVar[str] = "words"
    least: float | None = None

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(range=(self.least, None)),)

    def score_one(self, exchange: Exchange) -> float:
        return len(exchange.response.text.split())


def dialogue(name: str | None, *turns: tuple[str, str], **fields: Any) -> dict[str, Any]:
    spoken = [{"speaker": speaker, "text": text} for speaker, text in turns]
    return {**({"id": name} if name else {}), "turns": spoken, **fields}


def row(context: str, response: str, **fields: Any) -> dict[str, Any]:
    return {"context": [context], "response": response, **fields}


def write(path: Path, records: Sequence[Any]) -> str:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def read_responses(path: str, speaker: str | None = None) -> Responses:
    return responses_of(read(path), path, speaker)


def result_of(
    tmp_path: Path, a: list[Any], b: list[Any], metric: type[Metric] = Length, **options: Any
) -> CompareResult:
    speaker = options.pop("speaker", None)
    old, new = (
        read_responses(write(tmp_path / f"{name}.jsonl", records), speaker)
        for name, records in (("a", a), ("b", b))
    )
    return compare_responses(old, new, Scorer(Plan.of(metric())), **options)


def pairs_of(tmp_path: Path, a: list[Any], b: list[Any], speaker: str | None = None):
    """Return the texts of the responses that are partners."""
    one, other = (
        read_responses(write(tmp_path / f"{name}.jsonl", records), speaker).items
        for name, records in (("a", a), ("b", b))
    )
    return [
        (one[i].exchange.response.text, other[j].exchange.response.text)
        for i, j in partners(one, other)
    ]


def test_partners_answer_the_same_user_whatever_the_systems_said(tmp_path: Path) -> None:
    a = [dialogue("d", ("user", "Hi"), ("old", "Yes?"), ("user", "Tea"), ("old", "No"))]
    b = [dialogue("d", ("user", "Hi"), ("new", "Hello"), ("user", "Tea"), ("new", "Sure"))]
    # The user's second turn answers another system turn, so it has no partner.
    assert pairs_of(tmp_path, a, b) == [("Yes?", "Hello"), ("No", "Sure")]


def test_partners_end_where_the_user_says_something_else(tmp_path: Path) -> None:
    a = [dialogue("d", ("u", "Hi"), ("s", "A1"), ("u", "Tea"), ("s", "A2"))]
    b = [dialogue("d", ("u", "Hi"), ("s", "B1"), ("u", "Milk"), ("s", "B2"))]
    assert pairs_of(tmp_path, a, b, speaker="s") == [("A1", "B1")]


def test_roles_decide_who_the_user_is(tmp_path: Path) -> None:
    def messages(*replies: str) -> dict[str, Any]:
        said = [("user", "Hi"), ("assistant", replies[0]), ("assistant", replies[1])]
        return {"id": "d", "messages": [{"role": r, "content": text} for r, text in said]}

    a, b = [messages("A1", "A2")], [messages("B1", "B2")]
    assert pairs_of(tmp_path, a, b, speaker="system") == [("A1", "B1"), ("A2", "B2")]


def test_names_tell_dialogues_apart_in_which_the_user_said_the_same(tmp_path: Path) -> None:
    a = [dialogue(f"d{i}", ("u", "Hi"), ("s", f"A{i}")) for i in range(3)]
    b = [dialogue(f"d{i}", ("u", "Hi"), ("s", f"B{i}")) for i in (2, 1, 7)]
    assert pairs_of(tmp_path, a, b) == [("A1", "B1"), ("A2", "B2")]


def test_other_names_leave_what_the_user_said(tmp_path: Path) -> None:
    a = [dialogue(f"a{i}", ("u", f"Hi {i}"), ("s", f"A{i}"), ("u", "So?")) for i in range(3)]
    b = [dialogue(f"b{i}", ("u", f"Hi {i}"), ("s", f"B{i}"), ("u", "So!")) for i in (2, 9, 0)]
    assert pairs_of(tmp_path, a, b, "s") == [("A0", "B0"), ("A2", "B2")]
    silent = [dialogue("x", ("s", "Welcome."), ("s", "Hello?"))]
    other = [dialogue("y", ("s", "Good day."), ("s", "Anyone?"))]
    assert pairs_of(tmp_path, silent, other) == []


def test_dialogues_without_ids_are_told_by_their_line(tmp_path: Path) -> None:
    def records(name: str) -> list[Any]:
        return [dialogue(None, ("u", "Hi"), ("s", f"{name}{i}")) for i in range(3)]

    assert pairs_of(tmp_path, records("A"), records("B")) == [
        ("A0", "B0"), ("A1", "B1"), ("A2", "B2"),
    ]  # fmt: skip


def test_rows_pair_by_context_in_order_of_occurrence(tmp_path: Path) -> None:
    a = [row("Hi", "A1"), row("Bye", "A2"), row("Hi", "A3"), row("Hi", "A4")]
    b = [row("Bye", "B1"), row("Hi", "B2", id="x"), row("Hi", "B3"), row("So?", "B4")]
    assert pairs_of(tmp_path, a, b) == [("A1", "B2"), ("A2", "B1"), ("A3", "B3")]


def test_rows_of_one_context_or_one_id_are_one_cluster(tmp_path: Path) -> None:
    records = [
        row("Hi", "1", id="x"), row("Bye", "2", id="x"), row("Bye", "3", id="y"), row("So?", "4"),
    ]  # fmt: skip
    responses = read_responses(write(tmp_path / "a.jsonl", records))
    first, second, third, fourth = (item.cluster for item in responses.items)
    assert first == second == third != fourth
    assert responses.clusters == 2


def test_a_file_is_its_own_partner_even_if_very_long(tmp_path: Path) -> None:
    turns = [("us"[i % 2], f"turn {i % 7}") for i in range(3000)]
    path = write(tmp_path / "a.jsonl", [dialogue("d", *turns)])
    items = read_responses(path).items
    assert partners(items, items) == [(i, i) for i in range(2999)]


def test_paired_by_hand(tmp_path: Path) -> None:
    # words of a: 1, 2, 3, 1; of b: 3, 2, 4, 5; b - a: 2, 0, 1, 4
    a = [row("1", "x"), row("2", "x x"), row("3", "x x x"), row("4", "x")]
    b = [row("1", "x x x"), row("2", "y y"), row("3", "x x x x"), row("4", "x x x x x")]
    result = result_of(tmp_path, a, b)
    (column,) = result.columns
    assert result.pairs == 4
    assert (column.mean_a, column.mean_b) == (1.75, 3.5)
    assert column.difference.value == 1.75
    assert column.difference.low < 1.75 < column.difference.high
    assert column.win_rate.value == 3.5 / 4
    # Of the 16 ways to swap four pairs, those that swap the three that differ, or none of
    # them, reach the observed sum: 4 of 16.
    assert column.p == pytest.approx(0.25, abs=0.02)
    assert [(e.a, e.b, e.context) for e in column.examples] == [
        ("x", "x x x x x", "4"), ("x", "x x x", "1"), ("x x x", "x x x x", "3"),
    ]  # fmt: skip


def test_where_less_is_better_the_difference_keeps_its_sign_and_wins_turn(tmp_path: Path) -> None:
    a = [row(str(i), "xxxx") for i in range(6)] + [row("q", "?")]
    b = [row(str(i), "x" * (i % 2 + 1)) for i in range(6)] + [row("q", "x")]
    (column,) = result_of(tmp_path, a, b, Cost).columns
    assert column.difference.value == -2.5
    assert -3 <= column.difference.low < -2.5 < column.difference.high <= -2
    assert column.difference.n == 6
    assert (column.mean_a, column.mean_b) == (4, 1.5)  # the pair with "?" does not count
    assert column.win_rate.value == 1
    assert column.unscored == {"a question": 1}


def test_responses_without_a_partner_are_left_out_of_a_paired_comparison(tmp_path: Path) -> None:
    a = [row(str(i), "x") for i in range(5)]
    b = [row(str(i), "x x") for i in range(4)] + [row("else", "x " * 50)]
    result = result_of(tmp_path, a, b)
    assert (result.pairs, result.a.responses, result.b.responses) == (4, 5, 5)
    assert result.columns[0].difference.value == 1


@pytest.mark.parametrize(("shared", "pairs"), [(2, None), (3, 3)])
def test_few_partners_make_no_paired_comparison(
    tmp_path: Path, shared: int, pairs: int | None
) -> None:
    a = [row(str(i), "x") for i in range(3)]
    b = [row(str(i) if i < shared else f"b{i}", "x x") for i in range(5)]
    assert result_of(tmp_path, a, b).pairs == pairs


def test_unpaired_by_hand(tmp_path: Path) -> None:
    a = [row(f"a{i}", "x " * n) for i, n in enumerate([1, 2, 3])]
    b = [row(f"b{i}", "x " * n) for i, n in enumerate([2, 4, 6, 8])]
    result = result_of(tmp_path, a, b)
    (column,) = result.columns
    assert result.pairs is None
    assert (column.mean_a, column.mean_b, column.difference.value) == (2, 5, 3)
    # b above a in 2: (1), 4: (1,2,3), 6 and 8 likewise: 10 of 12; 2 ties with 2: half.
    assert column.win_rate.value == pytest.approx(10.5 / 12)
    shown = [(e.score_a, e.score_b) for e in column.examples]
    assert shown == [(1, None), (2, None), (3, None), (None, 2), (None, 4), (None, 6), (None, 8)]


def test_worst_of_each_where_less_is_better(tmp_path: Path) -> None:
    a = [row(f"a{i}", "x" * (i + 1)) for i in range(8)]
    b = [row(f"b{i}", "x" * (i + 1)) for i in range(8)]
    (column,) = result_of(tmp_path, a, b, Cost).columns
    assert [e.score_a for e in column.examples[:EXAMPLES]] == [8, 7, 6, 5, 4]
    assert [e.score_b for e in column.examples[EXAMPLES:]] == [8, 7, 6, 5, 4]


def test_interval_and_p_respect_dialogues(tmp_path: Path) -> None:
    """Twenty responses in two dialogues say much less than in twenty."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 9, 20)

    def records(per_dialogue: int, more: int) -> list[Any]:
        return [
            row(f"c{i}", "x " * int(n + more * (1 + i % 2)), id=f"d{i // per_dialogue}")
            for i, n in enumerate(words)
        ]

    alone = result_of(tmp_path, records(1, 0), records(1, 1)).columns[0]
    together = result_of(tmp_path, records(10, 0), records(10, 1)).columns[0]
    assert alone.difference.value == together.difference.value == 1.5
    assert alone.p < 0.001
    assert together.p == pytest.approx(0.5, abs=0.03)  # two dialogues can be swapped in 4 ways


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=12))
def test_swapping_the_files_turns_the_answer(counts: list[tuple[int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        a = [row(str(i), "x " * n) for i, (n, _) in enumerate(counts)]
        b = [row(str(i), "x " * n) for i, (_, n) in enumerate(counts)]
        (there,) = result_of(Path(folder), a, b).columns
        (back,) = result_of(Path(folder), b, a).columns
    differences = [second - first for first, second in counts]
    assert there.difference.value == pytest.approx(np.mean(differences), abs=1e-12)
    assert back.difference.value == pytest.approx(-np.mean(differences), abs=1e-12)
    assert there.win_rate.value == pytest.approx(1 - back.win_rate.value)
    assert there.p == back.p


def test_same_seed_same_result(tmp_path: Path) -> None:
    a = [row(str(i), "x " * (i % 5 + 1)) for i in range(20)]
    b = [row(str(i), "x " * (i % 3 + 1)) for i in range(20)]
    assert result_of(tmp_path, a, b, seed=3) == result_of(tmp_path, a, b, seed=3)
    assert result_of(tmp_path, a, b, seed=3).columns[0].p != pytest.approx(
        result_of(tmp_path, a, b, seed=4).columns[0].p, abs=1e-9
    )


def test_bad_records_are_counted_and_nothing_to_compare_is_an_error(tmp_path: Path) -> None:
    result = result_of(tmp_path, [row("1", "x"), "{bad", row("2", "y")], [row("1", "x")])
    assert (result.a.records, result.a.rejected, result.b.rejected) == (3, 1, 0)
    with pytest.raises(CauserieError, match=r"b\.jsonl has no response .*--speaker"):
        result_of(tmp_path, [row("1", "x")], ["{bad"])


def test_one_dialogue_has_a_difference_and_no_interval(tmp_path: Path) -> None:
    (column,) = result_of(tmp_path, [row("1", "x")], [row("1", "x x")]).columns
    assert (column.difference.value, column.difference.low) == (1, None)
    assert "two dialogues" in (column.difference.reason or "")


def test_everything_goes_to_json(tmp_path: Path) -> None:
    result = result_of(tmp_path, [row("1", "?")], [row("1", "?")], Cost)
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert data["columns"][0]["difference"]["value"] is None
    assert data["a"]["responses"] == 1


def gate(result: CompareResult, condition: str, **options: bool) -> bool | None:
    columns = {column.column: Column(calibrated=True) for column in result.columns}
    return result.judge(parse_condition(condition, columns, "difference"), **options).holds


def test_conditions_on_a_comparison(tmp_path: Path) -> None:
    # words of b minus words of a: 1, 2, 1, 2, ...: 1.5 on average
    a = [row(str(i), "x") for i in range(12)]
    b = [row(str(i), "x x" + " x" * (i % 2)) for i in range(12)]
    result = result_of(tmp_path, a, [*b, "{bad"])
    assert gate(result, "length > 1.4") is True
    assert gate(result, "length > 1.6") is False
    assert gate(result, "length < 1.6") is True
    assert gate(result, "length > 1.4", significant=True) is False
    assert gate(result, "length > 0.9", significant=True) is True
    assert gate(result, "mean(length) > 2.4") is True
    assert gate(result, "mean(length) > 2.6") is False
    assert gate(result, "skipped > 7%") is True  # one of 13 records of b
    assert gate(result, "skipped > 8%") is False
    assert gate(result, "unscored(length) > 0") is False


def test_a_condition_on_no_number_cannot_be_told(tmp_path: Path) -> None:
    result = result_of(tmp_path, [row("1", "?")], [row("1", "?")], Cost)
    assert gate(result, "cost < 0") is None
    assert gate(result, "mean(cost) < 0") is None
    assert gate(result, "unscored(cost) > 99%") is True
    result = result_of(tmp_path, [row("1", "x")], [row("1", "x x")])
    assert gate(result, "length > 0") is True
    assert gate(result, "length > 0", significant=True) is None


TALKS = [
    ["How are you?", "I am fine, thanks.", "And the dog?", f"The dog is {i}."] for i in range(9)
]


def silent(talks: list[list[str]], every: int = 2) -> list[list[str]]:
    """Return the talks with the second speaker's replies blanked in some of them."""
    return [
        [text if j % 2 == 0 or i % every else "" for j, text in enumerate(talk)]
        for i, talk in enumerate(talks)
    ]


@pytest.mark.parametrize("least", [0.0, None])
def test_an_empty_reply_is_the_worst(least: float | None) -> None:
    """Five of nine dialogues fall silent: their replies count as the bound, or the worst seen."""
    found = compare(TALKS, silent(TALKS), Words(least), speaker="B")
    column = found.column("words")
    assert (found.pairs, found.a.empty, found.b.empty) == (18, 0, 10)
    worst = 4 if least is None else 0
    assert column.mean_a == 4
    assert column.mean_b == pytest.approx((10 * worst + 8 * 4) / 18)
    assert column.unscored == {}
    assert column.unscored_b == 10 / 18
    assert column.difference.n == 18
    if least == 0:
        assert gate(found, "words < -0.2", significant=True) is True
        assert column.examples[0].b == ""
        assert any("(empty)" in line for line in column.examples[0].lines())


def test_an_empty_reply_is_the_worst_where_less_is_better() -> None:
    talks = [["a", "xx"], ["b", "xxxx"], ["c", "xxx"]]
    found = compare(talks, [["a", ""], ["b", "xxxx"], ["c", "xxx"]], Cost(), speaker="B")
    assert found.column("cost").difference.value == pytest.approx((4 - 2) / 3)
    assert found.column("cost").win_rate.value == pytest.approx(1 / 3)


def test_an_empty_reply_says_nothing_where_no_end_is_good() -> None:
    found = compare(TALKS, silent(TALKS), "length", speaker="B").column("length")
    assert found.difference.n == 8
    assert found.unscored == {"empty response": 10}


def test_unpaired_silence_counts_too() -> None:
    others = [[f"{i} {text}" for text in talk] for i, talk in enumerate(TALKS)]
    found = compare(TALKS, silent(others), Words(0.0), speaker="B")
    assert found.pairs is None
    assert found.column("words").mean_b == pytest.approx((10 * 0 + 8 * 5) / 18)


def test_a_file_and_what_is_in_memory_are_the_same(tmp_path: Path) -> None:
    talks = [dialogue(None, ("user", f"q{i}"), ("bot", "x " * (i + 1))) for i in range(5)]
    other = [dialogue(None, ("user", f"q{i}"), ("bot", "y " * 3)) for i in range(5)]
    in_memory = compare(talks, other, "length")
    paths = [write(tmp_path / name, t) for name, t in (("x.jsonl", talks), ("y.jsonl", other))]
    from_files = compare(*paths, "length")
    assert from_files.table == in_memory.table
    assert (from_files.a.source, in_memory.a.source) == (paths[0], "a")
    assert from_files.signature == in_memory.signature


def test_engines_bring_their_settings() -> None:
    engines = Engines(Settings(threads=1))
    assert compare(TALKS, TALKS, "length", engines=engines).pairs == 27
    with pytest.raises(CauserieError, match="other settings"):
        compare(TALKS, TALKS, "length", engines=engines, settings=Settings())


def test_dialogues_without_a_name_are_not_one_dialogue() -> None:
    made = [Dialogue.from_texts([f"hi {i}", "x " * (i + 1)]) for i in range(6)]
    found = compare(made, made, "length")
    assert found.a.dialogues == 6
    assert found.column("length").difference.low == 0


def test_only_the_system_is_compared_where_it_is_known() -> None:
    talk = [{"role": "user", "content": "hi there you"}, {"role": "assistant", "content": "hi"}]
    more = [*talk, {"role": "user", "content": "and now?"}]
    assert compare([more] * 3, [more] * 3, "length").a.responses == 3
    assert compare([more] * 3, [more] * 3, "length", speaker="all").a.responses == 6


def test_the_result_shows_itself() -> None:
    found = compare(TALKS, silent(TALKS), {"w": Words(0.0), "length": "length"}, speaker="B")
    assert repr(found).startswith("paired: 18 pairs")
    assert "| w ↑ | 4.0000 | 1.7778 |" in repr(found)
    assert "| *length* |" in repr(found)
    assert found.table.column("column").to_pylist() == ["w", "length"]
    assert found.table.column("better").to_pylist() == ["higher", None]
    with pytest.raises(CauserieError, match="comparison has no column 'x': it has w, length"):
        found.column("x")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 95}, "confidence must be a number between 0 and 1, not 95"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"confidence": "turn"}, "not 'turn'"),
        ({"seed": -1}, "seed must be a whole number, 0 or more, not -1"),
        ({"seed": 0.5}, "not 0.5"),
        ({"speaker": 5}, "not 5"),
    ],
)
def test_wrong_arguments_are_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CauserieError, match=said):
        compare(TALKS, TALKS, "length", **options)


def test_confidence_widens_the_interval_and_heads_its_column() -> None:
    talks = [[f"q{i}", "x " * (i + 1)] for i in range(8)]
    wide, narrow = (
        compare(talks, [[q, "x x x"] for q, _ in talks], "length", speaker="B", confidence=c)
        for c in (0.99, 0.5)
    )
    outer, inner = (found.column("length").difference for found in (wide, narrow))
    assert (outer.low or 0) < (inner.low or 0) < (inner.high or 0) < (outer.high or 0)
    assert "b - a [50%]" in repr(narrow)
