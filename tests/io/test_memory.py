"""What people have at hand, read as the same records as from files; and what is checked early."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError, RecordError
from causerie.io import Rejected, Said, check_inputs, parse_columns, read, read_turns, records_of
from causerie.io.reading import MAX_TURN

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
]
CHAT = Dialogue(
    "data:1",
    (Turn("user", "Hi", "user"), Turn("assistant", "Hello.", "system")),
    background=("Be kind.",),
)
USER = Turn("user", "b")
TEXTS = Dialogue("data:1", (Turn("A", "Hi!"), Turn("B", "Hello.")))
ROW = {"id": "r", "context": ["a", "b"], "response": "c"}
EXCHANGE = Exchange(Dialogue("r", (Turn("B", "a"), Turn("A", "b"), Turn("B", "c"))), 2)


def numbered(dialogue: Dialogue, number: int) -> Dialogue:
    return Dialogue(f"data:{number}", dialogue.turns, background=dialogue.background)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (TEXTS, [TEXTS]),
        ([TEXTS, EXCHANGE], [TEXTS, EXCHANGE]),
        (MESSAGES, [CHAT]),
        ([MESSAGES, MESSAGES], [CHAT, numbered(CHAT, 2)]),
        (["Hi!", "Hello."], [TEXTS]),
        ([["Hi!", "Hello."], ("Hi!", "Hello.")], [TEXTS, numbered(TEXTS, 2)]),
        (ROW, [EXCHANGE]),
        ([ROW, {"messages": MESSAGES}], [EXCHANGE, numbered(CHAT, 2)]),
        ({"conversations": [{"from": "human", "value": "b"}]}, [Dialogue("data:1", (USER,))]),
        ([{"speaker": "A", "text": "Hi!"}, {"speaker": "B", "text": "Hello."}], [TEXTS]),
        ({"turns": ({"speaker": "A", "text": "Hi!"},)}, [Dialogue("data:1", (Turn("A", "Hi!"),))]),
        ([], []),
    ],
    ids=range(12),
)  # fmt: skip
def test_data_in_memory(data: object, expected: list[object]) -> None:
    assert list(records_of(data)) == expected
    if isinstance(data, list):
        assert list(records_of(iter(data))) == expected


def test_a_stream_of_dialogues_is_not_held() -> None:
    def endless() -> Iterator[Dialogue]:
        while True:
            yield TEXTS

    records = records_of(endless())
    assert [next(records) for _ in range(3)] == [TEXTS] * 3


def test_tables_in_memory() -> None:
    table = pa.table({"id": ["r"] * 300, "context": [["a", "b"]] * 300, "response": ["c"] * 300})
    assert list(records_of(table)) == [EXCHANGE] * 300
    renamed = table.rename_columns(["id", "history", "reply"])
    columns = {"context": "history", "response": "reply"}
    assert list(records_of(renamed, columns)) == [EXCHANGE] * 300
    with pytest.raises(CauserieError, match=r"there are id, history, reply: .*--columns"):
        list(records_of(renamed))


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([ROW, {**ROW, "rating": 4.0}, {**ROW, "response": None}])
    frame.index = ["x", "y", "z"]
    first, second, silent = records_of(frame)
    assert first == EXCHANGE
    assert (second.dialogue.rating, second.dialogue.metadata) == (4.0, {})
    assert (silent.response.text, silent.turn) == ("", 2)
    with pytest.raises(CauserieError, match="this table cannot be read"):
        list(records_of(pandas.DataFrame({"context": ["a", ["b"]], "response": ["c", "d"]})))


def test_paths(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for file in (path, other):
        file.write_text(json.dumps(ROW))
    for data in (path, str(path), [path], [str(path)]):
        (record,) = records_of(data)
        assert record == EXCHANGE
        assert isinstance(record, Exchange)
        assert record.dialogue.source == str(path)
    sources = [r.dialogue.source for r in records_of([str(path), other]) if isinstance(r, Exchange)]
    assert sources == [str(path), str(other)]


def test_bad_records_are_rejected_and_the_rest_is_read() -> None:
    bad, good = records_of([{"context": ["a"], "response": 3}, ROW])
    assert bad == Rejected("data", 1, "response: text must be a string, not int")
    assert good == EXCHANGE


@pytest.mark.parametrize(
    ("data", "given"),
    [
        (None, "NoneType is nothing that can be read"),
        (3, "int is nothing that can be read"),
        (b"Ann: hi", "bytes is nothing that can be read"),
        ([[1]], None),
        ([1, 2], "int is nothing that can be read"),
        ("chats.jsonl", "'chats.jsonl' is a string that names no file"),
        (["one.jsonl", "two.csv.gz"], "'one.jsonl' is a string that names no file"),
        ("x" * 5000, "xxx... is a string that names no file"),
        ("a\0b", "is a string that names no file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(data: object, given: str | None) -> None:
    if given is None:
        (record,) = records_of(data)
        assert isinstance(record, Rejected)
        return
    with pytest.raises(CauserieError) as caught:
        list(records_of(data))
    assert given in str(caught.value)
    assert "give dialogues or exchanges, a list of OpenAI messages" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_name_that_is_missing_beside_one_that_is_not_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ROW))
    with pytest.raises(CauserieError, match="typo' is a string that names no file"):
        list(records_of([str(tmp_path / "a.jsonl"), str(tmp_path / "typo")]))


COLUMNS = {"context": "history", "response": "reply"}


@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.parquet", "in.jsonl", "in"])
def test_columns_can_be_called_otherwise(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    row: dict[str, Any] = {"id": "r", "history": "a\nb", "reply": "c", "Context": "other"}
    if name == "in.parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif name == "in.jsonl":
        path.write_text(json.dumps({**row, "context": 5}))
    else:
        mark = "\t" if name == "in.tsv" else ","
        path.write_text(f'id{mark}history{mark}reply{mark}Context\nr{mark}"a\nb"{mark}c{mark}x\n')
    (record,) = read(path, columns=COLUMNS)
    assert isinstance(record, Exchange), record
    assert [turn.text for turn in record.dialogue.turns] == ["a", "b", "c"]


def test_a_table_without_the_columns_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("prompt,answer\na,b\n")
    with pytest.raises(CauserieError, match=r"there are prompt, answer: .*--columns context=NAME"):
        list(read(path))
    with pytest.raises(CauserieError, match="no column 'reply' for response: there are prompt"):
        list(read(path, columns={"context": "prompt", "response": "reply"}))
    (record,) = read(path, columns={"context": "prompt", "response": "answer"})
    assert isinstance(record, Exchange)


def test_columns_of_a_command_line() -> None:
    assert parse_columns("context=history, response = my reply") == {
        "context": "history",
        "response": "my reply",
    }
    for given, why in [
        ("context", "are given as context=NAME"),
        ("context=", "are given as"),
        ("context=a,context=b", "context is two columns"),
        ("context=a,response=a", "'a' cannot be two fields"),
        ("contxt=a", "no field 'contxt' for the column 'a': use one of background, context"),
    ]:
        with pytest.raises(CauserieError, match=why):
            parse_columns(given)


def test_inputs_are_checked_before_anything_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    check_inputs([path, str(path), "-"], "jsonl", COLUMNS, tmp_path / "out.parquet")
    with pytest.raises(CauserieError, match="none does not exist: check its name"):
        check_inputs([path, tmp_path / "none"])
    with pytest.raises(CauserieError, match="is a folder: give the files in it"):
        check_inputs([tmp_path])
    with pytest.raises(CauserieError, match="unknown input format 'xml': use one of jsonl, json"):
        check_inputs([path], "xml")
    with pytest.raises(CauserieError, match="no field 'reply'"):
        check_inputs([path], columns={"reply": "response"})
    with pytest.raises(CauserieError, match=r"out\.xlsx has no known suffix: use \.jsonl"):
        check_inputs([path], out=tmp_path / "out.xlsx")
    with pytest.raises(CauserieError, match="check"):
        check_inputs(["a\0b"])


def test_turns_in_lines_of_json() -> None:
    good = b'{"speaker": "A", "text": "hi"}\n\n{"role": "assistant", "content": "hi"}\n'
    good += b'{"conversation_id": 7, "role": "user", "content": "so"}\n'
    good += b'{"conversation": "c", "role": "tool", "content": "{}"}\n'
    chat = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "so"}]
    for record in ({"id": "x", "messages": chat}, {"conversation": "y", "id": "x", "turns": chat}):
        good += json.dumps(record).encode() + b"\n"
    assert list(read_turns(io.BytesIO(good))) == [
        (1, Said(None, (Turn("A", "hi"),))),
        (2, None),
        (3, Said(None, (Turn("assistant", "hi", "system"),))),
        (4, Said("7", (Turn("user", "so", "user"),))),
        (5, Said("c", ())),
        (6, Said("x", (Turn("user", "so", "user", message=1),), so_far=True)),
        (7, Said("y", (Turn("user", "so", "user", message=1),), so_far=True)),
    ]
    for line, why in [
        (b"[]", "must be an object, not list"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid UTF-8"),
        (b'{"messages": []}', "has no turns"),
        (b'{"conversation": [1], "speaker": "A", "text": "b"}', "conversation must be a string"),
        (b'{"speaker": "A", "text": "%s"}' % (b"x" * MAX_TURN), "longer than 256 KB: split it"),
    ]:
        (_, bad), (_, next_one) = read_turns(io.BytesIO(line + b"\n" + good.split(b"\n")[0]))
        assert isinstance(bad, RecordError)
        assert why in str(bad)
        assert next_one == Said(None, (Turn("A", "hi"),))
