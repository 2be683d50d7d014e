"""Bad records: one clear reason each, and every good record around them is still read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causerie.dialogue import Dialogue, Exchange
from causerie.io import Rejected, read


def turn(text: str = "hi", **fields: object) -> dict[str, object]:
    return {"speaker": "A", "text": text, **fields}


def record(**fields: object) -> bytes:
    return json.dumps({"id": "bad", "turns": [turn()], **fields}).encode()


def messages(*items: object) -> bytes:
    return json.dumps({"id": "bad", "messages": items}).encode()


def sharegpt(*items: object) -> bytes:
    return json.dumps({"id": "bad", "conversations": items}).encode()


def exchange(**fields: object) -> bytes:
    return json.dumps({"id": "bad", **fields}).encode()


USER = {"role": "user", "content": "hi"}

BAD_OBJECTS: list[tuple[bytes, str]] = [
    (b'{"id": "bad\xff", "turns": []}', "not valid UTF-8 at byte 12"),
    (b'{"id": "bad", "turns": [{"speaker": "A", "te', "not valid JSON"),
    (b'{"id": "bad", "turns": [{"speaker": "A", "text": "x"}', "not valid JSON"),
    (b'{"id": "bad", "turns": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
    (b'{"id": "bad", "turns": [tru]}', "not valid JSON"),
    (
        b'{"id": "bad", "rating": ' + b"9" * 5000 + b', "turns": [{}]}',
        "not valid JSON: Exceeds the limit",
    ),
    (b"{}", 'has no "turns", "messages"'),
    (b"[1, 2]", "a record must be a JSON object, not list"),
    (b"17", "a record must be a JSON object, not int"),
    (record(turns="hi"), "turns must be a list, not str"),
    (record(turns=[]), "has no turns"),
    (record(turns=["hi"]), "turn 0: must be an object, not str"),
    (record(turns=[turn(""), turn("  \n")]), "has no text: all its turns are empty"),
    (
        record(turns=[turn(), turn(), {"speaker": "A", "text": 3}]),
        "turn 2: text must be a string, not int",
    ),
    (record(turns=[{"speaker": 1, "text": "a"}]), "turn 0: speaker must be a string, not int"),
    (record(turns=[{"text": "a"}]), "turn 0: speaker is missing"),
    (record(turns=[{"speaker": "A"}]), "turn 0: text is missing"),
    (record(turns=[turn("a\0b")]), "turn 0: text has a NUL character"),
    (record(turns=[turn("a\ud800b")]), "turn 0: text has a lone surrogate"),
    (record(turns=[{"speaker": "\udfff", "text": "a"}]), "turn 0: speaker has a lone surrogate"),
    (record(id="\ud800"), "id has a lone surrogate"),
    (record(id=["x"]), "id must be a string, not list"),
    (record(id=True), "id must be a string, not bool"),
    (record(other={"deep": ["\ud800"]}), "metadata has a lone surrogate"),
    (record(metadata=3), "metadata must be an object, not int"),
    (record(turns=[turn(role="wizard")]), 'turn 0: role must be "user" or "system"'),
    (record(turns=[turn(role=5)]), 'turn 0: role must be "user" or "system"'),
    (record(turns=[turn(role="tool")]), "has no turns"),
    (record(turns=[turn(references=[1])]), "turn 0: references must be a string, not int"),
    (
        record(turns=[turn(features={"asr": "high"})]),
        "turn 0: feature 'asr' must be a number, not str",
    ),
    (
        record(turns=[turn(features={"asr": float("nan")})]),
        "turn 0: feature 'asr' must be a finite",
    ),
    (record(turns=[turn(features=[1])]), "turn 0: features must be an object, not list"),
    (record(rating="good"), "rating must be a number, not str"),
    (record(rating=True), "rating must be a number, not bool"),
    (record(rating=float("inf")), "rating must be a finite number"),
    (record(rating=10**400), "rating must be a finite number"),
    (record(background=4), "background must be a list, not int"),
    (messages(), "has no turns"),
    (messages({"role": "system", "content": "x"}), "has no turns"),
    (messages(USER, {"content": "x"}), "message 1: role is missing"),
    (messages(USER, {"role": "user"}), "message 1: content is missing"),
    (messages(USER, {"role": "assistant"}), "message 1: content is missing"),
    (messages({"role": "user", "content": 3}), "message 0: content must be a string, not int"),
    (messages({"role": "user", "content": ""}), "has no text"),
    (messages({"role": "user", "content": ["x"]}), "message 0: a part of the content must be"),
    (
        messages({"role": "user", "content": [{"type": "text", "text": 3}]}),
        "message 0: text in content",
    ),
    (messages({"role": "user", "content": "a\0"}), "message 0: content has a NUL character"),
    (messages({"role": "user", "content": "\ud800"}), "message 0: content has a lone surrogate"),
    (messages({"role": "wizard", "content": "x"}), "message 0: role 'wizard' is not"),
    (messages("x"), "message 0: must be an object, not str"),
    (sharegpt({"from": "human"}), "message 0: value is missing"),
    (sharegpt({"value": "x"}), "message 0: role is missing"),
    (sharegpt({"from": 1, "value": "x"}), "message 0: role must be a string, not int"),
    (exchange(context=["a"]), "response is missing"),
    (exchange(response="a"), "context is missing"),
    (exchange(context=[" "], response=" "), "has no text"),
    (exchange(context=["a"], response={"role": "tool", "content": "{}"}), "response: is no turn"),
    (exchange(context=["a"], response=5), "response: text must be a string, not int"),
    (exchange(context=["a", 5], response="b"), "context turn 1: must be an object, not int"),
    (exchange(context=["a", "\0"], response="b"), "context turn 1: text has a NUL character"),
    (exchange(context=5, response="b"), "context must be a list, not int"),
    (
        exchange(context='["a", "b', response="b"),
        "context starts like a JSON list but is not valid",
    ),
    (exchange(context=["a"], response="b", reference=3), "reference must be a list, not int"),
]

GOOD = [b'{"id": "good%d", "turns": [{"speaker": "A", "text": "hi"}]}' % n for n in range(3)]


def check(path: Path, line: int, reason: str, good: list[str]) -> None:
    records = list(read(path))
    rejected = [r for r in records if isinstance(r, Rejected)]
    assert [(r.source, r.line) for r in rejected] == [(str(path), line)]
    assert rejected[0].reason.startswith(reason)
    assert "\n" not in str(rejected[0])
    assert str(rejected[0]) == f"{path}:{line}: {rejected[0].reason}"
    dialogues = [r.dialogue if isinstance(r, Exchange) else r for r in records if r not in rejected]
    assert [d.id for d in dialogues if isinstance(d, Dialogue)] == good


@pytest.mark.parametrize(("bad", "reason"), BAD_OBJECTS, ids=range(len(BAD_OBJECTS)))
@pytest.mark.parametrize("position", [0, 1, 3])
def test_jsonl(tmp_path: Path, bad: bytes, reason: str, position: int) -> None:
    lines = [*GOOD[:position], bad, *GOOD[position:]]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    check(tmp_path / "in", position + 1, reason, ["good0", "good1", "good2"])


@pytest.mark.parametrize(("bad", "reason"), BAD_OBJECTS, ids=range(len(BAD_OBJECTS)))
@pytest.mark.parametrize("position", [0, 1, 3])
@pytest.mark.parametrize("separator", [b",\n", b", "])
def test_json_array(
    tmp_path: Path, bad: bytes, reason: str, position: int, separator: bytes
) -> None:
    elements = [*GOOD[:position], bad, *GOOD[position:]]
    (tmp_path / "in").write_bytes(b"[" + separator.join(elements) + b"]")
    line = position + 1 if separator == b",\n" else 1
    check(tmp_path / "in", line, reason, ["good0", "good1", "good2"])


def test_an_array_that_is_cut_short_is_reported(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"[" + b",\n".join(GOOD) + b",\n")
    check(tmp_path / "in", 4, "the array is not closed", ["good0", "good1", "good2"])


BAD_ROWS: list[tuple[bytes, str]] = [
    (b"bad,hi\xff,yo,", "not valid UTF-8"),
    (b'bad,"hi\xff\nthere",yo,', "not valid UTF-8"),
    (b"bad,hi", "has 2 columns where the header has 4"),
    (b"bad,hi,yo,,5", "has 5 columns where the header has 4"),
    (b"bad,,,", "has no text"),
    (b'bad,hi,"yo"x,', "not a valid row"),
    (b'bad,"hi,yo,', "not a valid row"),
    (b"bad,hi,yo,good", "rating must be a number, not str"),
    (b"bad,hi,yo,nan", "rating must be a finite number"),
    (b'bad,"[""hi"", 3]",yo,', "context turn 1: must be an object, not int"),
    (b'bad,"[""hi",yo,', "context starts like a JSON list but is not valid JSON"),
    (b'bad,"[""\\ud800""]",yo,', "context turn 0: text has a lone surrogate"),
    (b"bad,hi\0,yo,", ""),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_ROWS)
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("delimiter", [b",", b"\t"])
def test_csv_and_tsv(
    tmp_path: Path, bad: bytes, reason: str, position: int, delimiter: bytes
) -> None:
    good = [b'good0,"a\nb",c,', b"good1,a,c,3"]
    if delimiter == b"\t":
        good = [row.replace(b",", b"\t") for row in good]
        bad = bad.replace(b'"", ', b'""; ').replace(b",", b"\t").replace(b'""; ', b'"", ')
    header = delimiter.join([b"id", b"context", b"response", b"rating"])
    rows = [*good[:position], bad, *good[position:]]
    (tmp_path / "in").write_bytes(b"\r\n".join([header, *rows, b""]))
    line = {0: 2, 1: 4, 2: 5}[position]
    check(tmp_path / "in", line, reason, ["good0", "good1"])


@pytest.mark.parametrize(
    "broken",
    [
        'bad,"one\nfake,a,b\nend"x,yo',  # text after the mark that closes it
        'bad,one\nfake,a,b\nend",yo',  # the mark that opens it is missing
        'bad"one\nfake,a,b\nalso,a,b\nend",yo',
        'bad,"one\nfake,a,b\nmore, more\nend,yo',  # the mark that closes it is missing
        'bad,"one\nfake,a,b\nend","yo',
        'bad,"one\nfake,a,"b"\nend",yo',
    ],
)
def test_lines_of_a_broken_row_are_no_rows(tmp_path: Path, broken: str) -> None:
    rows = ["id,context,response", "good0,a,b", broken, 'good1,"a\nb",c', "good2,a,b", ""]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    found = list(read(tmp_path / "in.csv"))
    good = [r.dialogue.id for r in found if isinstance(r, Exchange)]
    assert good == ["good0", "good1", "good2"]
    bad = [r for r in found if isinstance(r, Rejected)]
    assert bad[0].line == 3


@pytest.mark.parametrize(
    "broken",
    [
        '"one\nmore",bad\nmore",bad,aria',  # each of its last lines would be a row
        "on\ne,bad,aria",
        '"one\ntwo,bad,aria',
        '\none",bad,aria',
        'one,bad,aria\nmore",bad,aria',
    ],
)
@pytest.mark.parametrize("again", ["", '"one'])
def test_where_rows_end_otherwise_than_lines_a_broken_one_is_one(
    tmp_path: Path, broken: str, again: str
) -> None:
    rows = ["context,response,system", broken, "a,good0,aria", again, '"a\nb",good1,aria', ""]
    (tmp_path / "in.csv").write_bytes("\r\n".join(rows).encode())
    found = [r.response.text for r in read(tmp_path / "in.csv") if isinstance(r, Exchange)]
    assert found == ["good0", "good1"]


def test_the_limit_of_the_csv_module_stays(tmp_path: Path) -> None:
    import csv

    before = csv.field_size_limit()
    (tmp_path / "in.csv").write_text(f"context,response\n{'a' * 2 * before},b\nc,d\n")
    rows = read(tmp_path / "in.csv")
    assert isinstance(next(rows), Exchange)
    assert csv.field_size_limit() == before
    assert isinstance(next(rows), Exchange)


@pytest.mark.parametrize("place", [0, 1])
def test_an_element_with_a_damaged_key_costs_no_others(tmp_path: Path, place: int) -> None:
    good = '{"system": "x", "turns": [{"speaker": "A", "text": "%s"}]}'
    elements = [good % "good0", good % "good1"]
    elements.insert(place, '{"sytem": "x",')
    (tmp_path / "in.json").write_text("[\n" + ",\n".join(elements) + "\n]")
    found = [r for r in read(tmp_path / "in.json") if isinstance(r, Dialogue)]
    assert [r.turns[0].text for r in found] == ["good0", "good1"]


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("opening", [b'"messages": ', b'{"id"', b'["id"', b"[", b"[{"])
def test_elements_that_begin_in_different_ways_are_found_after_a_broken_one(
    tmp_path: Path, opening: bytes, place: int
) -> None:
    elements = [
        b'{"topic": "food", "id": "good0", "turns": [{"speaker": "A", "text": "hi"}]}',
        b'{"id": "good1", "turns": [{"speaker": "A", "text": "hi"}]}',
        b'{"topic": "food", "id": "good2", "turns": [{"speaker": "A", "text": "hi"}]}',
        b'{"turns": [{"speaker": "A", "text": "hi"}], "id": "good3"}',
    ]
    elements.insert(place, opening + b' "turns": [{"speaker": "A"')
    (tmp_path / "in.json").write_bytes(b"[" + b",\n".join(elements) + b"]")
    found = [r.id for r in read(tmp_path / "in.json") if isinstance(r, Dialogue)]
    assert found == ["good0", "good1", "good2", "good3"]


def test_rows_between_bad_ones_that_break_no_quotation_stay(tmp_path: Path) -> None:
    rows = ["id,context,response", "bad,a", "good0,a,b", "bad,b", 'good1,a,5" pipe', "bad", ""]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    found = list(read(tmp_path / "in.csv"))
    assert [r.dialogue.id for r in found if isinstance(r, Exchange)] == ["good0", "good1"]


@pytest.mark.parametrize("inches", ['the tv is 40",nice', "he is 6'2\",ok"])
def test_sound_rows_are_not_taken_for_parts_of_a_bad_one(tmp_path: Path, inches: str) -> None:
    good = [f"good{number},a,b" for number in range(20)]
    rows = ["id,context,response", "bad,how are you, fine, thanks", *good, f"late,{inches}", ""]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    found = [r.dialogue.id for r in read(tmp_path / "in.csv") if isinstance(r, Exchange)]
    assert found[:20] == [f"good{number}" for number in range(20)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"A: hi\nand so on", "line 5 does not start with a speaker: write 'Speaker: text'"),
        (b"  A: hi", "line 4 does not start with a speaker"),
        (b"A:\nB:", "has no text"),
        (b"A: hi\nB: \xff", "not valid UTF-8"),
        (b"A: hi\nB: a\0b", "turn 1: text has a NUL character"),
        (b"A: hi\nB: http://x\nhttp://x", "line 6 does not start with a speaker"),
    ],
)
def test_text(tmp_path: Path, bad: bytes, reason: str) -> None:
    (tmp_path / "in.txt").write_bytes(b"A: x\nB: y\n\n" + bad + b"\n\nA: x\nB: y\n")
    last = 5 + len(bad.split(b"\n"))
    check(tmp_path / "in.txt", 4, reason, ["in:1", f"in:{last}"])


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


INVALID = pa.Array.from_buffers(
    pa.string(),
    3,
    [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb")],
)


@pytest.mark.parametrize(
    ("context", "response", "reason"),
    [
        (["a", None, "a"], ["b", "b", "b"], "context is missing"),
        (["a", "", "a"], ["b", None, "b"], "has no text"),
        (["a", " ", "a"], ["b", " ", "b"], "has no text"),
        ([["a"], ["a", None], ["a"]], ["b", "b", "b"], "context turn 1: must be an object"),
        (["a", "a\0", "a"], ["b", "b", "b"], "context turn 0: text has a NUL character"),
        (INVALID, ["b", "b", "b"], "not valid UTF-8"),
    ],
)
def test_parquet(tmp_path: Path, context: object, response: object, reason: str) -> None:
    ids = ["good0", "bad", "good1"]
    (tmp_path / "in").write_bytes(parquet(id=ids, context=context, response=response))
    check(tmp_path / "in", 2, reason, ["good0", "good1"])


def test_parquet_numbers_for_text(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(parquet(context=["a"], response=[3]))
    check(tmp_path / "in", 1, "response: text must be a string, not int", [])


HUGE = 65 * 2**20


def absurd_jsonl() -> tuple[bytes, int]:
    bad = b'{"id": "bad", "turns": [{"speaker": "A", "text": "' + b"x" * HUGE + b'"}]}'
    return b"\n".join([GOOD[0], bad, GOOD[1]]), 2


def absurd_json() -> tuple[bytes, int]:
    text, _ = absurd_jsonl()
    return b"[" + text.replace(b"\n", b",\n") + b"]", 2


def absurd_csv_line() -> tuple[bytes, int]:
    return b"id,context,response\ngood0,a,b\nbad,a," + b"x" * HUGE + b"\ngood1,a,b\n", 3


def absurd_csv_row() -> tuple[bytes, int]:
    rest = b"good1,a,b\n" + b"good2,a,%s\n" % (b"x" * 1000) * (HUGE // 1000)
    return b'id,context,response\ngood0,a,b\nbad,a,"x\n' + rest, 3


def absurd_text() -> tuple[bytes, int]:
    bad = b"A: hi\n" + b"  %s\n" % (b"x" * 1000) * (HUGE // 1000)
    return b"A: x\n\n" + bad + b"\nA: x\n", 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [absurd_jsonl, absurd_json, absurd_csv_line, absurd_csv_row, absurd_text]
)
def test_absurd_length(tmp_path: Path, make: Callable[[], tuple[bytes, int]]) -> None:
    content, line = make()
    (tmp_path / "in").write_bytes(content)
    found = read(tmp_path / "in")
    first, bad, second = next(found), next(found), next(found)
    assert isinstance(bad, Rejected)
    assert bad.line == line
    assert "longer than 64 MB" in bad.reason
    assert not isinstance(first, Rejected)
    assert not isinstance(second, Rejected)
