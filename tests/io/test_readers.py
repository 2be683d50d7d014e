"""Every format and every shape of record, read into the data model."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.io import Rejected, read

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "chat.dat"  # a suffix that says nothing
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def one(path: Path, input_format: str | None = None) -> Any:
    (record,) = read(path, input_format)
    assert not isinstance(record, Rejected), record
    return record


def test_turns_with_everything(write: Write) -> None:
    fields = {
        "id": 7,
        "turns": [
            {
                "speaker": "Ann",
                "text": "  hi\n",
                "role": "user",
                "time": 12,
                "features": {"asr": 1},
            },
            {"speaker": "Bob", "text": "yo", "role": "system", "references": ["hello", "hey"]},
        ],
        "rating": 4,
        "date": "2024-02-03",
        "system": "v2",
        "background": ["I like cats."],
        "metadata": {"a": 1},
        "channel": {"name": "web"},
    }
    assert one(write(json.dumps(fields))) == Dialogue(
        id="7",
        turns=(
            Turn("Ann", "hi", "user", time="12", features={"asr": 1.0}),
            Turn("Bob", "yo", "system", references=("hello", "hey")),
        ),
        rating=4.0,
        date="2024-02-03",
        system="v2",
        background=("I like cats.",),
        metadata={"a": 1, "channel": {"name": "web"}},
    )


def test_openai_messages(write: Write) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Weather"},
                {"type": "image_url", "image_url": {"url": "x"}},
                {"type": "text", "text": "today?"},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "{}", "tool_call_id": "1"},
        {"role": "assistant", "content": "Sunny.", "tool_calls": None},
    ]
    assert one(write(json.dumps({"id": "w", "messages": messages}))) == Dialogue(
        id="w",
        turns=(Turn("user", "Weather\ntoday?", "user"), Turn("assistant", "Sunny.", "system")),
        background=("Be kind.", "Be brief."),
        metadata={"tool_messages": 2},
    )


@pytest.mark.parametrize("human", ["human", "user"])
@pytest.mark.parametrize("bot", ["gpt", "assistant", "chatgpt", "bing", "bard"])
def test_sharegpt_conversations(write: Write, human: str, bot: str) -> None:
    said = [("system", "Rules."), (human, "Hi"), (bot, "Hello"), ("tool", "log")]
    items = [{"from": who, "value": text} for who, text in said]
    assert one(write(json.dumps([{"id": "s", "conversations": items}], indent=2))) == Dialogue(
        id="s",
        turns=(Turn("user", "Hi", "user"), Turn("assistant", "Hello", "system")),
        background=("Rules.",),
        metadata={"tool_messages": 1},
    )


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("", []),
        ([], []),
        ("[]", []),
        ("one", [("A", "one")]),
        ("one\r\n\n two", [("B", "one"), ("A", "two")]),
        (["a", "b", "c"], [("A", "a"), ("B", "b"), ("A", "c")]),
        ('["a\\nb", "c"]', [("B", "a\nb"), ("A", "c")]),
        ("[laughs] sure\nwhat", [("B", "[laughs] sure"), ("A", "what")]),
        ("[1] is my source", [("A", "[1] is my source")]),
        ('[{"speaker": "X", "text": "a"}]', [("X", "a")]),
    ],
)
def test_contexts(write: Write, context: object, expected: list[tuple[str, str]]) -> None:
    record = one(write(json.dumps({"id": "e", "context": context, "response": "r"})))
    assert isinstance(record, Exchange)
    assert record.turn == len(expected)
    assert [(turn.speaker, turn.text) for turn in record.context] == expected
    assert (record.response.speaker, record.response.text) == ("B", "r")


def test_a_response_to_named_speakers_is_by_the_one_who_listened(write: Write) -> None:
    context = [{"speaker": s, "text": "t"} for s in ("Ann", "Bob", "Ann")]
    record = one(write(json.dumps({"context": context, "response": "r"})))
    assert record.response.speaker == "Bob"


def test_a_named_response_gives_the_context_the_other_name(write: Write) -> None:
    response = {"speaker": "A", "text": "r", "references": ["y"]}
    fields = {"context": ["x", "y"], "response": response, "reference": "z"}
    record = one(write(json.dumps(fields)))
    assert [turn.speaker for turn in record.dialogue.turns] == ["A", "B", "A"]
    assert record.references == ("z", "y")


CSV_ROWS = [
    ["ID", "Context", "RESPONSE", "references", "system", "background", "rating", "Genre"],
    ["7", "hi\nthere", 'say "x", y', '["a", "b"]', "v1", "A fact.", "4.5", "chat"],
    ["8", "", "z", "only, one", "", "", "", ""],
]
CSV_EXCHANGES = [
    Exchange(
        Dialogue(
            "7",
            (Turn("B", "hi"), Turn("A", "there"), Turn("B", 'say "x", y', references=("a", "b"))),
            rating=4.5,
            system="v1",
            background=("A fact.",),
            metadata={"Genre": "chat"},
        ),
        2,
    ),
    Exchange(Dialogue("8", (Turn("B", "z", references=("only, one",)),)), 0),
]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_csv_and_tsv(write: Write, delimiter: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(CSV_ROWS)
    assert list(read(write(text.getvalue()))) == CSV_EXCHANGES


def test_parquet_exchanges(write: Write) -> None:
    table = pa.table(
        {
            "ID": [7, 8],
            "Context": [["hi", "there"], []],
            "response": ['say "x", y', "z"],
            "references": [["a", "b"], ["only, one"]],
            "rating": [4.5, None],
            "system": ["v1", None],
            "background": ["A fact.", None],
            "Genre": ["chat", None],
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    first, second = read(write(buffer.getvalue()))
    assert first == CSV_EXCHANGES[0]
    assert isinstance(second, Exchange)
    assert second.dialogue.turns == CSV_EXCHANGES[1].dialogue.turns


def test_parquet_messages(write: Write) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    buffer = io.BytesIO()
    pq.write_table(pa.table({"messages": [messages] * 300}), buffer, row_group_size=70)
    records = list(read(write(buffer.getvalue())))
    turns = (Turn("user", "a", "user"), Turn("assistant", "b", "system"))
    assert records == [Dialogue(f"chat:{row}", turns) for row in range(1, 301)]


def test_plain_text(write: Write) -> None:
    text = "Ann: hi: there\nBob:\n  well\n\tyes\n\n\nZoë Ü: 10:30?\n山田：はい\n"
    assert list(read(write(text))) == [
        Dialogue("chat:1", (Turn("Ann", "hi: there"), Turn("Bob", "well\nyes"))),
        Dialogue("chat:7", (Turn("Zoë Ü", "10:30?"), Turn("山田", "はい"))),
    ]


def test_chat_lines_with_times(write: Write) -> None:
    text = "[12:03] Ann: hi\n[2024-05-06, 12:04:59 PM] Bob: [1] is: mine\n[ok] Cy: 1\n[1] Di: 2\n"
    assert one(write(text)).turns == (
        Turn("Ann", "hi", time="12:03"),
        Turn("Bob", "[1] is: mine", time="2024-05-06, 12:04:59 PM"),
        Turn("[ok] Cy", "1"),
        Turn("[1] Di", "2"),
    )


@pytest.mark.parametrize("text", ['[1.5, {"turns": []}]', "[12.5]", '["12:03", "Ann: hi"]'])
def test_a_list_that_starts_like_a_time_is_json(write: Write, text: str) -> None:
    records = list(read(write(text)))
    assert records
    assert all(isinstance(record, Rejected) for record in records)


def test_assistant_is_the_system(write: Write) -> None:
    turns = [{"speaker": "x", "text": "t", "role": r} for r in ("user", "assistant", "system")]
    assert [t.role for t in one(write(json.dumps({"turns": turns}))).turns] == [
        "user",
        "system",
        "system",
    ]


def test_speakers_whose_names_say_it_have_a_role(write: Write) -> None:
    names = ("User", "human", "bot", "System", "assistant", "Robot", "A")
    turns = [{"speaker": name, "text": "t"} for name in names]
    turns.append({"speaker": "bot", "text": "t", "role": "user", "time": "1"})
    turns.append({"speaker": "bot", "text": "t", "role": None})
    roles = [t.role for t in one(write(json.dumps({"turns": turns}))).turns]
    said = ["user", "user", "system", "system", "system"]
    assert roles == [*said, "user", "user", "user", "system"]  # who is not the system is a user
    turns = [{"speaker": name, "text": "t"} for name in ("Robot", "A")]
    assert [t.role for t in one(write(json.dumps({"turns": turns}))).turns] == [None, None]


TURNS = {
    "turns": [{"speaker": "A", "text": "a"}, {"speaker": "B", "text": "b", "reference": "own"}],
    "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
}


@pytest.mark.parametrize("shape", TURNS)
@pytest.mark.parametrize("name", ["reference", "references"])
def test_references_beside_the_turns_are_for_the_last(write: Write, shape: str, name: str) -> None:
    given: object = "one" if name == "reference" else ["one", "two"]
    record = one(write(json.dumps({shape: TURNS[shape], name: given})))
    first, last = record.turns
    wanted = ("one",) if name == "reference" else ("one", "two")
    assert first.references == ()
    assert last.references == (*wanted, *(("own",) if shape == "turns" else ()))
    assert (last.text, record.metadata) == ("b", {})


@pytest.mark.parametrize(
    ("given", "kept"),
    [(["b c", " "], ("b c",)), ([" ", "\n"], ()), ("  ", ()), (["", "x"], ("x",)), (None, ())],
)
def test_blank_references_are_left_out(write: Write, given: object, kept: tuple[str, ...]) -> None:
    beside = one(write(json.dumps({"context": "a", "response": "b", "references": given})))
    assert beside.references == kept
    turn = {"speaker": "s", "text": "t", "references": given}
    assert one(write(json.dumps({"turns": [turn]}))).turns[0].references == kept


@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 there")
def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(name, "wb") as file:
        file.write(b"Ann: hi\nBob: yo\n")
    record = one(Path(os.fsdecode(name)))
    assert record.id == "caf?:1"
    record.id.encode()


@pytest.mark.parametrize("layout", ["compact", "indent", "flush", "lines", "concatenated"])
def test_json_in_any_layout(write: Write, layout: str) -> None:
    turns = [{"speaker": "A", "text": 'tricky "]},{[ \\'}, {"speaker": "B", "text": "b"}]
    records = [{"id": str(n), "turns": turns} for n in range(5)]
    text = {
        "compact": json.dumps(records, separators=(",", ":")),
        "indent": json.dumps(records, indent=4),
        "flush": json.dumps(records, indent=0),
        "lines": "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n",
        "concatenated": "\n".join(json.dumps(record, indent=1) for record in records),
    }[layout]
    expected = (Turn("A", 'tricky "]},{[ \\'), Turn("B", "b"))
    assert list(read(write(text))) == [Dialogue(str(n), expected) for n in range(5)]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5), st.data())
def test_json_and_jsonl_agree_with_the_standard_parser(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    records = [
        {"id": f"n{n}", "turns": [{"speaker": "s", "text": "x" + text.replace("\0", "") + "x"}]}
        for n, text in enumerate(texts)
    ]
    ascii_only = data.draw(st.booleans())
    indent = data.draw(st.sampled_from([None, 0, 2]))
    path = tmp_path_factory.getbasetemp() / "oracle.json"
    path.write_text(json.dumps(records, ensure_ascii=ascii_only, indent=indent), "utf-8")
    expected = [(r["id"], r["turns"][0]["text"]) for r in json.loads(path.read_text("utf-8"))]
    assert [(r.id, r.turns[0].text) for r in read(path, "json")] == expected
    lines = "\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in records)
    path.write_text(lines, "utf-8", newline="")
    assert [(r.id, r.turns[0].text) for r in read(path, "jsonl")] == expected


def test_many_chunks_of_json_keep_their_lines(write: Write) -> None:
    turn = {"speaker": "A", "text": "é" * 997}
    records = [{"id": n, "turns": [turn]} for n in range(1500)]
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    lines[700] = '{"id": 700, "turns": 1}'
    found = list(read(write("[\n" + ",\n".join(lines) + "\n]")))
    assert found[700] == Rejected(found[700].source, 702, "turns must be a list, not int")
    assert [r.id for r in found if isinstance(r, Dialogue)] == [
        str(n) for n in range(1500) if n != 700
    ]


def test_empty_replies_are_turns_and_the_rest_of_the_dialogue_is_read(write: Write) -> None:
    records = [
        {"turns": [{"speaker": "A", "text": "a"}, {"speaker": "B", "text": " "}]},
        {"turns": [{"speaker": "A", "text": "a"}, {"speaker": "B", "text": None}]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": None}]},
        {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": ""}]},
        {"context": ["a"], "response": ""},
        {"context": ["a"], "response": None},
    ]
    found = list(read(write("\n".join(map(json.dumps, records)))))
    dialogues = [r.dialogue if isinstance(r, Exchange) else r for r in found]
    assert [[t.text for t in d.turns] for d in dialogues if isinstance(d, Dialogue)] == [
        ["a", ""]
    ] * len(records)
    (exchange,) = read(write("context,response\na,\n"))
    assert isinstance(exchange, Exchange)
    assert (exchange.turn, exchange.response.text) == (1, "")
    assert [turn.text for turn in one(write("A: a\nB:\nA: c\n")).turns] == ["a", "", "c"]


SAID = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "content": "{}"},
    {"role": "assistant", "content": "Sunny."},
]
SHARED = [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "Weather?"},
    {"from": "function_call", "value": "{}"},
    {"from": "observation", "value": "{}"},
    {"from": "gpt", "value": "Sunny."},
]
OWN = [
    {"speaker": "developer", "role": "developer", "text": "Be brief."},
    {"role": "user", "text": "Weather?"},
    {"speaker": "tool", "text": "{}"},
    {"speaker": "Sunny", "role": "tool", "text": 5},
    {"speaker": "assistant", "text": "Sunny."},
]


def _csv(**cells: object) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([cells, [json.dumps(cell) for cell in cells.values()]])
    return text.getvalue()


def _parquet(**cells: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: [cell] for name, cell in cells.items()}), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "input_format"),
    [
        (json.dumps({"messages": SAID}), "jsonl"),
        (json.dumps([{"messages": SAID}], indent=1), "json"),
        (json.dumps({"messages": OWN}), "jsonl"),
        (json.dumps({"conversations": SHARED}), "jsonl"),
        (json.dumps({"turns": OWN}), "jsonl"),
        (json.dumps({"turns": SAID}), "jsonl"),
        (json.dumps({"context": SAID[:-1], "response": SAID[-1]}), "jsonl"),
        (json.dumps({"context": SHARED[:-1], "response": "Sunny."}), "jsonl"),
        (_csv(messages=SAID), "csv"),
        (_csv(context=SAID[:-1], response="Sunny.").replace('""Sunny.""', "Sunny."), "csv"),
        (_parquet(messages=SAID), "parquet"),
        (_parquet(conversations=SHARED), "parquet"),
        (_parquet(context=[m for m in SAID if m["content"]][:-1], response="Sunny."), "parquet"),
    ],
)
def test_who_speaks_is_the_same_on_every_path(
    write: Write, content: str | bytes, input_format: str
) -> None:
    record = one(write(content), input_format)
    dialogue = record.dialogue if isinstance(record, Exchange) else record
    assert dialogue.turns == (
        Turn("user", "Weather?", "user"),
        Turn("assistant", "Sunny.", "system"),
    )
    assert dialogue.background == ("Be brief.",)
    whole = b"context" not in content if isinstance(content, bytes) else True
    assert dialogue.metadata == {"tool_messages": 2 if whole else 1}
    assert [turn.message for turn in dialogue.turns] == [1, 4 if whole else 3]


def test_where_a_record_came_from(write: Write) -> None:
    path = write("A: a\nB: b\n\nA: c\n")
    dialogues = [record for record in read(path) if isinstance(record, Dialogue)]
    assert [d.source for d in dialogues] == [str(path)] * 2
    assert [[t.message for t in d.turns] for d in dialogues] == [[0, 1], [0]]
    record = one(write(json.dumps({"context": ["a", "b"], "response": "c"})))
    assert [turn.message for turn in record.dialogue.turns] == [0, 1, 2]


@pytest.mark.parametrize(
    ("fields", "system"),
    [
        ({"model": "m"}, "m"),
        ({"model": "m", "system": "v2"}, "v2"),
        ({"model": {"name": "m"}}, None),
        ({"messages": [*SAID[:-1], {**SAID[-1], "model": "m"}]}, "m"),
        ({"model": "r", "messages": [*SAID[:-1], {**SAID[-1], "model": "m"}]}, "r"),
    ],
)
def test_the_model_is_the_system_where_none_is_named(
    write: Write, fields: dict[str, object], system: str | None
) -> None:
    assert one(write(json.dumps({"messages": SAID, **fields}))).system == system


def test_personas_and_facts_are_background(write: Write) -> None:
    fields = {
        "context": ["a"],
        "response": "b",
        "background": "Two\nlines.",
        "persona": ["I sing.", " "],
        "fact": "One.\n\nTwo.",
        "personas": {"A": ["nested"]},
    }
    dialogue = one(write(json.dumps(fields))).dialogue
    assert dialogue.background == ("Two\nlines.", "I sing.", "One.", "Two.")
    assert dialogue.metadata == {"personas": {"A": ["nested"]}}


def test_a_bare_response_to_one_who_has_a_role_is_by_the_other(write: Write) -> None:
    fields = {"context": [{"role": "user", "content": "a"}], "response": "b"}
    assert one(write(json.dumps(fields))).response == Turn("assistant", "b", "system")
