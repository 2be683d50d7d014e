"""Converters, on small files written here in exactly the shape their authors publish."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from causerie.bench.sets.convert import CONVERTERS, convert
from causerie.bench.sets.judged import JudgedSet, read_judged
from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError


def save(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def converted(name: str, folder: Path, *paths: Path) -> JudgedSet:
    """Through the file and back: what a user of the converted set sees."""
    out = folder / f"{name}.jsonl.gz"
    count = convert(name, paths, out)
    judged = read_judged(out)
    assert len(judged) == count
    assert judged.problems == ()
    return judged


def texts(item: Exchange | Dialogue) -> list[str]:
    talk = item.dialogue if isinstance(item, Exchange) else item
    return [turn.text for turn in talk.turns]


FED = [
    {
        "context": "User: Hi!\nSystem: Hello.\nUser: any news?",
        "response": "System: None: all quiet.\nReally.",
        "system": "Mitsuku",
        "annotations": {"Interesting": [0, 1, 2, 1, 1], "Overall": [1, 2, "N/A (odd)", 3, 2]},
    },
    {
        "context": "User: Hi!\nSystem: Hello.\nUser: any news?\nSystem: None.\nUser: oh",
        "response": "System: Sorry.",
        "system": "Mitsuku",
        "annotations": {"Interesting": [2, 2, 2, 2, 2], "Overall": [4, 4, 4, 4, 4]},
    },
    {
        "context": "User: Hi!\nSystem: Hello.\nUser: any news?\nSystem: None.\nUser: oh",
        "system": "Mitsuku",
        "annotations": {"Coherent": [1, 1, 2, 2, 2], "Overall": [3, 3, 3, 3, 3]},
    },
    {
        "context": "User: Good day",
        "response": "System: To you too.",
        "system": "Human",
        "annotations": {"Interesting": [1, 1, 1, 1, 1], "Overall": [2, 2, 2, 2, 2]},
    },
    {
        "context": "User: Good day\nSystem: To you too.\nUser: bye",
        "system": "Human",
        "annotations": {"Coherent": [2, 2, 2, 2, 2], "Overall": [4, 3, 3, 3, 3]},
    },
]


def test_fed(tmp_path: Path) -> None:
    source = save(tmp_path, "fed_data.json", FED)
    turns = converted("fed_turn", tmp_path, source)
    first, second, third = turns.items
    assert texts(first.item) == ["Hi!", "Hello.", "any news?", "None: all quiet. Really."]
    assert isinstance(first.item, Exchange)
    assert first.item.response.role == "system"
    assert first.ratings["Overall"] == (1, 2, None, 3, 2)
    assert first.mean("Overall") == 2
    assert [item.cluster for item in turns.items] == [
        "fed-dialog-000",
        "fed-dialog-000",
        "fed-dialog-001",
    ]
    assert (second.human, third.human) == (False, True)

    dialogues = converted("fed_dialog", tmp_path, source)
    assert [item.id for item in dialogues.items] == ["fed-dialog-000", "fed-dialog-001"]
    assert texts(dialogues.items[1].item) == ["Good day", "To you too.", "bye"]
    assert dialogues.dimensions == ("Coherent", "Overall")


def test_grade(tmp_path: Path) -> None:
    def entry(number: int, corpus: str, system: str, response: str) -> dict[str, Any]:
        return {
            "ID": number,
            "Dataset": f"{corpus}_EVAL",
            "DialogModel": system,
            "Context": "do you ski ?|||no , i swim .",
            "Response": response,
            "HumanScores": "[3, 5, 4, 1]",
        }

    source = save(
        tmp_path,
        "human_judgement.json",
        [
            entry(0, "convai2", "bert_ranker", "where ?"),
            entry(1, "convai2", "dialogGPT", "me too ."),
            entry(2, "convai2", "dialogGPT", "what ?"),
            entry(3, "dailydialog", "transformer_ranker", "ok ."),
        ],
    )
    folder = tmp_path / "eval_data" / "convai2" / "dialogGPT"
    folder.mkdir(parents=True)
    (folder / "human_ctx.txt").write_text("do you ski ?|||no , i swim .\n" * 2)
    (folder / "human_hyp.txt").write_text("what ?\nme  too .\n")
    (folder / "human_ref.txt").write_text("in a pool ?\nhow nice .\n")
    judged = converted("grade_convai2", tmp_path, source, tmp_path / "eval_data")
    assert [item.id for item in judged.items] == [
        "grade_convai2-bert_ranker-000",
        "grade_convai2-dialogGPT-000",
        "grade_convai2-dialogGPT-001",
    ]
    assert judged.items[0].ratings == {"coherence": (3, 5, 4, 1)}
    assert len({item.cluster for item in judged.items}) == 1
    exchanges = [item.item for item in judged.items if isinstance(item.item, Exchange)]
    assert [e.references for e in exchanges] == [(), ("how nice .",), ("in a pool ?",)]
    assert [turn.speaker for turn in exchanges[0].dialogue.turns] == ["A", "B", "A"]
    assert len(converted("grade_dailydialog", tmp_path, source)) == 1


@pytest.mark.parametrize("name", ["usr_personachat", "usr_topicalchat"])
def test_usr(tmp_path: Path, name: str) -> None:
    def answer(text: str, model: str) -> dict[str, Any]:
        scales = {"Understandable": [1, 0, 1], "Uses Knowledge": [0, 0, 1], "Overall": [3, 4, 5]}
        return {"response": f"{text}\n", "model": model, **scales}

    source = save(
        tmp_path,
        "usr_data.json",
        [
            {
                "context": "hi !\nhello , who are you ?\n",
                "fact": "your persona: i sing.\nyour persona: i ski.\n",
                "annotators": ["x", "y", "z"],
                "responses": [
                    answer("a singer .", "Original Ground Truth"),
                    answer("i am .", "Seq2Seq"),
                    answer("i sing and ski .", "New Human Generated"),
                ],
            }
        ],
    )
    judged = converted(name, tmp_path, source)
    assert [item.id for item in judged.items] == [f"{name}-00-{i}" for i in range(3)]
    assert [item.human for item in judged.items] == [True, False, True]
    exchange = judged.items[1].item
    assert isinstance(exchange, Exchange)
    assert exchange.references == ("a singer .",)
    assert exchange.background == ("your persona: i sing.", "your persona: i ski.")
    assert judged.items[1].mean("Overall") == 4
    assert judged.dimensions == ("Understandable", "Uses Knowledge", "Overall")


def test_zhao_in_both_publications(tmp_path: Path) -> None:
    def worker(overall: int | str) -> dict[str, Any]:
        return {"content": 1, "grammar": 2, "overall": overall, "relevance": 4}

    zenodo = save(
        tmp_path,
        "dd_annotations.json",
        {
            "17": {
                "context": [["A", "tea ?"], ["B", " "], ["B", "yes ."]],
                "reference": ["A", "green ?"],
                "responses": {
                    "ground-truth": {
                        "uttr": "green ?",
                        "scores": {"w1": worker(5), "w2": worker("4")},
                    },
                    "S2S": {"uttr": "i am .", "scores": {"w1": worker(1), "w2": worker(2)}},
                },
            }
        },
    )
    dstc10 = save(
        tmp_path,
        "dailydialog-zhao_eval.json",
        [
            {
                "annotations": {
                    "content": [1, 1],
                    "grammar": [2, 2],
                    "overall": overall,
                    "relevance": [4, 4],
                },
                "context": "tea ?\nyes .",
                "dialogue_id": f" dailydialog-zhao-00{number}",
                "model": model,
                "reference": ["green ?"],
                "response": response,
            }
            for number, (model, response, overall) in enumerate(
                [("ground-truth", "green ?", [5, 4]), ("S2S", "i am .", [1, 2])]
            )
        ],
    )
    first = converted("dailydialog_zhao", tmp_path, zenodo)
    second = converted("dailydialog_zhao", tmp_path, dstc10)
    assert first.items == second.items
    assert first.items[0].ratings["overall"] == (5, 4)
    assert first.items[0].human


def test_gupta_keeps_all_references(tmp_path: Path) -> None:
    source = save(
        tmp_path,
        "dailydialog-gupta_eval.json",
        [
            {
                "annotations": {"overall": [4.8]},
                "context": "tea ?",
                "dialogue_id": " dailydialog-gupta-000",
                "model": "human",
                "reference": ["yes .", "no .", "please ."],
                "response": "always .",
            }
        ],
    )
    (item,) = converted("dailydialog_gupta", tmp_path, source).items
    assert isinstance(item.item, Exchange)
    assert item.item.references == ("yes .", "no .", "please .")
    assert (item.human, item.mean("overall")) == (True, 4.8)


def test_dstc9_gathers_the_annotators_of_a_transcript(tmp_path: Path) -> None:
    def entry(talk: str, consistent: int | str, overall: int) -> dict[str, Any]:
        return {
            "consistent": consistent,
            "human (overall)": overall,
            "context": talk,
            "likeable": 2,
        }

    one, two = "User: sup\nSystem: \nUser: hello?\nSystem: hi\n", "User: yo\nSystem: yo\n"
    files = [
        save(tmp_path, "chatbot10.json", [entry(two, 1, 5)]),
        save(tmp_path, "chatbot2.json", [entry(one, 1, 4), entry(one, "N/A", 2), entry(two, 0, 1)]),
    ]
    judged = converted("dstc9_interactive", tmp_path, *files)
    assert [item.id for item in judged.items] == ["dstc9-02-000", "dstc9-02-001", "dstc9-10-000"]
    assert [item.system for item in judged.items] == ["chatbot2", "chatbot2", "chatbot10"]
    assert judged.items[0].ratings == {
        "consistent": (1, None),
        "likeable": (2, 2),
        "overall": (4, 2),
    }
    assert texts(judged.items[0].item) == ["sup", "hello?", "hi"]


def test_pairwise(tmp_path: Path) -> None:
    def said(text: str) -> dict[str, str]:
        return {"speaker": "W", "utterance": text}

    votes = {"relevance": "Both are good.", "overall": "B is better."}
    source = save(
        tmp_path,
        "dream-pairwise.json",
        [
            {
                "id": "61",
                "history": [{"speaker": "M", "utterance": "Cold today.\n"}],
                "human_response": said("Take my coat."),
                "alpaca_lora_response": said("Is it?"),
                "alpaca_lora_response-vs-human_response": {
                    "alpaca_lora_response": said("Is it?"),
                    "human_response": said(" Take my coat."),
                    "human_evaluation_1": votes,
                    "human_evaluation_2": {**votes, "overall": "Both are bad."},
                    "human_evaluation_3": {**votes, "overall": "A is better."},
                },
            }
        ],
    )
    judged = converted("pairwise_dream", tmp_path, source)
    (pair,) = judged.pairs
    assert pair.id == "dream-61-alpaca_lora_response-vs-human_response"
    assert (pair.systems, pair.humans) == (("alpaca_lora", "human"), (False, True))
    assert [vote["overall"] for vote in pair.judgements] == ["B", "both bad", "A"]
    assert {vote["relevance"] for vote in pair.judgements} == {"both good"}
    assert pair.a.response.speaker == "W"
    assert pair.a.references == ("Take my coat.",)


@pytest.mark.parametrize("name", sorted(CONVERTERS))
@pytest.mark.parametrize("data", [{}, [1], [{"a": 1}], {"x": {"context": 3}}, "text", [[]], [None]])
def test_a_file_of_another_shape_is_one_clear_error(tmp_path: Path, name: str, data: Any) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(
        CauserieError, match=rf"not in the published format of '{name}'|no record of"
    ):
        convert(name, [save(tmp_path, "file.json", data)], out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.json"]


def test_the_output_is_whole_or_absent(tmp_path: Path) -> None:
    broken = save(tmp_path, "fed_data.json", [*FED, {"context": "no speaker", "response": "x"}])
    out = tmp_path / "fed_turn.jsonl"
    out.write_text("what was there before")
    with pytest.raises(CauserieError, match="not in the published format"):
        convert("fed_turn", [broken], out)
    assert out.read_text() == "what was there before"
    assert not list(tmp_path.glob(".*"))
    convert("fed_turn", [save(tmp_path, "fed_data.json", FED)], out)
    assert len(out.read_text().splitlines()) == 3


def test_gzip_by_suffix(tmp_path: Path) -> None:
    out = tmp_path / "fed_turn.jsonl.gz"
    convert("fed_turn", [save(tmp_path, "fed_data.json", FED)], out)
    assert len(gzip.decompress(out.read_bytes()).splitlines()) == 3


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    missing, out = tmp_path / "missing.json", tmp_path / "out.jsonl"
    with pytest.raises(CauserieError, match="no converter for 'dstc7'"):
        convert("dstc7", [missing], out)
    with pytest.raises(CauserieError, match="name the published files"):
        convert("fed_turn", [], out)
    with pytest.raises(CauserieError, match="cannot be read"):
        convert("fed_turn", [missing], out)
    text = tmp_path / "text.json"
    text.write_text("not json")
    with pytest.raises(CauserieError, match="is not JSON"):
        convert("fed_turn", [text], out)
    with pytest.raises(CauserieError, match="cannot be written"):
        convert("fed_turn", [save(tmp_path, "fed_data.json", FED)], text / "out.jsonl")
