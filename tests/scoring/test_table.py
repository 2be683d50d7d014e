"""Rows say which file, system, message and text they are about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError
from causerie.io import read, read_table
from causerie.io.tables import read_about
from causerie.metrics.base import Column, Score
from causerie.scoring import Batch, Inputs, Layout, Plan, Run, Scorer
from causerie.scoring.table import by_dialogue


def chat(name: str, *contents: str | None) -> dict[str, object]:
    roles = ["system", *["user", "assistant"] * len(contents)]
    messages = [{"role": r, "content": c} for r, c in zip(roles, ["Be nice.", *contents])]  # noqa: B905
    return {"id": name, "messages": messages, "system": name[0]}


def test_two_files_in_one_table_are_told_apart(tmp_path: Path) -> None:
    """Also where both have the same ids, as every system that answers the same questions has."""
    files = [tmp_path / "old.jsonl", tmp_path / "new.jsonl"]
    for file, answer in zip(files, ("hello", "hello there"), strict=True):
        file.write_text(json.dumps(chat("x1", "hi", answer)) + "\n")
    scorer = Scorer(Plan.of("length"))
    out = tmp_path / "out.csv"
    inputs = Inputs(tuple(map(str, files)))
    with Run(scorer, inputs, Layout(scorer.plan), out=out) as run:
        run.execute()
        run.write()
    rows = list(read_table(out))
    assert [(r["file"], r["system"], r["text"], r["length"]) for r in rows] == [
        (str(files[0]), "x", "hello", 1.0),
        (str(files[1]), "x", "hello there", 2.0),
    ]
    keys = [(r["file"], r["dialogue_id"], r["turn"]) for r in rows]
    assert len(set(keys)) == len(keys)


def test_rows_of_responses(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(chat("a", "hi", "hello", "and?", None, "hm", "sorry!")) + "\n")
    scorer = Scorer(Plan.of("length,turns"))
    (batch,) = scorer.batches(read(path))
    rows = list(Layout(scorer.plan, explain=True).rows(batch))
    common = {"dialogue_id": "a", "speaker": "assistant", "file": str(path), "system": "a"}
    empty = {"unscored": "empty response"}
    assert rows == [
        {**common, "turn": 1, "message": 2, "text": "hello",
         "length": 1.0, "turns": 1.0, "explanation": {}},
        {**common, "turn": 3, "message": 4, "text": "",
         "length": None, "turns": None, "explanation": {"length": empty, "turns": empty}},
        {**common, "turn": 5, "message": 6, "text": "sorry!",
         "length": 1.0, "turns": 5.0, "explanation": {}},
    ]  # fmt: skip
    assert [*rows[0]] == [
        *("dialogue_id", "turn", "speaker", "file", "system", "message", "text"),
        *("length", "turns", "explanation"),
    ]
    assert [*Layout(scorer.plan, text=False).types] == [
        *("dialogue_id", "turn", "speaker", "file", "system", "message", "length", "turns"),
    ]


def test_rows_of_dialogues() -> None:
    scorer = Scorer(Plan.of("length", level="dialogue"))
    dialogue = Dialogue("d", (Turn("A", "hi"), Turn("B", "hi you")), system="s", source="f.jsonl")
    batch = scorer.score_items([dialogue])
    assert list(Layout(scorer.plan).rows(batch)) == [
        {"dialogue_id": "d", "file": "f.jsonl", "system": "s", "length": 2.0}
    ]


def test_rows_hold_every_turn_once_if_conversations_are_wanted() -> None:
    """Those that are not scored stand beside the next one that is, or the last."""
    plan = Plan.of("length", speaker="B")
    turns = tuple(Turn(who, f"{who}{n}") for n, who in enumerate("AABAB" + "AA"))
    dialogues = [Dialogue("one", turns), Dialogue("two", turns[:3])]
    scorer = Scorer(plan)
    (batch,) = scorer.batches(dialogues)
    rows = list(Layout(plan, conversations=True).rows(batch))
    said = [
        [
            *(turn["text"] for turn in row["conversation"]["before"]),
            row["text"],
            *(turn["text"] for turn in row["conversation"].get("after", [])),
        ]
        for row in rows
    ]
    assert said == [["A0", "A1", "B2"], ["A3", "B4", "A5", "A6"], ["A0", "A1", "B2"]]
    alone = scorer.score_items([Exchange(dialogues[0], 4)])
    (row,) = Layout(plan, conversations=True).rows(alone)
    assert [turn["text"] for turn in row["conversation"]["before"]] == ["A0", "A1", "B2", "A3"]
    with pytest.raises(CauserieError, match="leave --no-text out"):
        Layout(plan, text=False, conversations=True)


def test_a_parquet_table_says_what_its_columns_are(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(chat("a", "hi", "hello")) + "\n{}\n")
    scorer = Scorer(Plan.of("length,causalscore=length"))
    out = tmp_path / "out.parquet"
    with Run(scorer, Inputs((str(path),)), Layout(scorer.plan), out=out) as run:
        run.execute()
        run.write()
    about = read_about(out)
    assert about["signature"] == scorer.plan.signature
    assert (about["records"], about["rejected"], about["inputs"]) == (2, 1, ["chats.jsonl"])
    assert about["columns"]["length"]["sentinel"] is True
    assert about["columns"]["causalscore"]["drawing"] is None
    assert next(iter(read_table(out)))["length"] == 1.0


def test_percentiles_stand_beside_their_column() -> None:
    plan = Plan.of("density,length")
    layout = Layout(plan, percentiles=True)
    assert [*layout.types][-3:] == ["density", "density.percentile", "length"]
    item = Exchange(Dialogue("d", (Turn("A", "hi"), Turn("B", "hey"))), 1)
    scores = {"density": (Score(-3.0, 40.0),), "length": (Score(1.0),)}
    (row,) = layout.rows(Batch(plan, (item,), scores))
    assert (row["density"], row["density.percentile"], row["length"]) == (-3.0, 40.0, 1.0)
    with pytest.raises(CauserieError, match="none of length, turns has percentiles"):
        Layout(Plan.of("length,turns"), percentiles=True)


def test_a_metric_may_not_be_called_like_a_column_of_the_table() -> None:
    with pytest.raises(CauserieError, match="a column text already"):
        Layout(Plan.of("text=length"))


def test_exchanges_of_one_dialogue_belong_together() -> None:
    one, other = (Dialogue(n, tuple(Turn("AB"[i % 2], "x") for i in range(4))) for n in "ab")
    items = [Exchange(one, 1), Exchange(one, 3), Exchange(other, 2)]
    batch = Batch(Plan.of("length"), tuple(items), {"length": (Score(1.0),) * 3})
    found = [(dialogue.id, [*scored]) for dialogue, scored in by_dialogue(batch)]
    assert found == [("a", [1, 3]), ("b", [2])]
    assert Column().better == "higher"
