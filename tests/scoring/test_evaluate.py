"""`causerie.evaluate`: what people have at hand goes in, what they want to know comes out."""

from __future__ import annotations

import copy
import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import causerie
from causerie import CauserieError, Dialogue, Exchange, Turn
from causerie.metrics import load_metric
from causerie.scoring import result as results

TALK = Dialogue.from_texts(["hi there", "hi you", "bye", ""], speakers=("user", "bot"), id="t")
MESSAGES = [
    {"role": "user", "content": "hi there"},
    {"role": "assistant", "content": [{"type": "text", "text": "hi you"}]},
]
RECORD = {"id": "t", "turns": [{"speaker": "A", "text": "hi"}, {"speaker": "B", "text": "hi you"}]}


def test_all_that_people_have_at_hand(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(RECORD) + "\n")
    table = pa.table({"context": ["hi"], "response": ["hi you"]})
    for data in (
        [TALK],
        TALK,
        Exchange(TALK, 1),
        MESSAGES,
        [MESSAGES],
        ["hi", "hi you"],
        [["hi", "hi you"]],
        RECORD,
        [RECORD],
        table,
        path,
        str(path),
        causerie.read(path),
    ):
        result = causerie.evaluate(data, metrics="length")
        assert result["length"].to_pylist()[0] == 2.0, data
    renamed = pa.table({"history": ["hi"], "reply": ["hi you"]})
    columns = {"context": "history", "response": "reply"}
    assert len(causerie.evaluate(renamed, "length", columns=columns)) == 1


def test_metrics_in_every_form() -> None:
    for metrics in (
        "length,turns",
        ["length", "turns"],
        [load_metric("length"), "turns"],
        {"length": "length", "turns": load_metric("turns")},
    ):
        result = causerie.evaluate(TALK, metrics)
        assert result.table.column_names[-2:] == ["length", "turns"]
    both = causerie.evaluate(TALK, "b2=bleu:order=2,bleu", options={"bleu": {"order": 3}})
    assert "bleu(order=3)" in both.signature
    assert "b2=bleu(order=2)" in both.signature


def test_the_result_leads_on() -> None:
    result = causerie.evaluate(TALK, "overlap,length", speaker="all")
    assert len(result) == 3
    assert [row["length"] for row in result] == [2.0, 1.0, None]
    assert result.to_pylist() == result.table.to_pylist() == list(result)
    assert result.summary().columns["length"].mean == 1.5
    assert "| length | 1.5 |" in str(result.summary())
    assert result.signature.startswith("causerie|")


def test_as_a_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    result = causerie.evaluate(TALK, "length")
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.to_pandas(), pandas.DataFrame)
    assert result.to_pandas()["length"].iloc[0] == 2.0


def test_without_pandas_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "find_spec", lambda name: None)
    with pytest.raises(CauserieError, match=r"pandas is not installed: .*\.to_pylist\(\)"):
        causerie.evaluate(TALK, "length").to_pandas()


def test_the_worst_come_first_and_empty_responses_lead() -> None:
    references = ("a b c d", "w x y z")
    talks = [
        Dialogue(f"d{i}", (Turn("A", "hi"), Turn("B", text, references=references)))
        for i, text in enumerate(["a b c d", "", "a b c q", "a b c d"])
    ]
    result = causerie.evaluate(talks, "length,rouge")
    assert [row["dialogue_id"] for row in result.worst(3)] == ["d1", "d2", "d0"]
    assert [row["dialogue_id"] for row in result.worst(9, "rouge")] == ["d1", "d2", "d0", "d3"]
    assert result.worst(0) == []
    with pytest.raises(CauserieError, match="use one of length, rouge"):
        result.worst(column="rogue")


def test_a_report(tmp_path: Path) -> None:
    path = causerie.evaluate(TALK, "length").report(tmp_path / "page.html")
    assert "hi you" in path.read_text()
    with pytest.raises(CauserieError, match="text=True"):
        causerie.evaluate(TALK, "length", text=False).report(path)
    with pytest.raises(CauserieError, match='level="turn"'):
        causerie.evaluate(TALK, "length", level="dialogue").report(path)


def test_a_notebook_shows_a_small_escaped_table() -> None:
    hostile = "<script>alert(1)</script> & \"'"
    texts = ["hi", hostile] * 20
    shown = causerie.evaluate([texts], {hostile: "length"})._repr_html_()
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(shown)
    assert set(tags) == {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert tags.count("tr") == 11
    assert "10 of 39 rows" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"level": "turns"}, "turn or dialogue"),
        ({"metrics": "lenght"}, "did you mean length"),
        ({"metrics": 5}, "a metric is named or given as a causerie.Metric, not as int"),
        ({"metrics": [5]}, "not as int"),
        ({"metrics": {"five": 5}}, "not as int"),
        ({"metrics": []}, "no metric is named"),
        ({"metrics": "bleu", "options": {"bleu": {"ordr": 2}}}, "did you mean order"),
        ({"metrics": "bleu", "options": {"rouge": {"order": 2}}}, "the metrics are bleu"),
        ({"metrics": "bleu", "options": {"bleu": {"order": "two"}}}, "order is"),
        ({"speaker": "C"}, "the speakers are user, bot"),
        ({"percentiles": True}, "none of length has percentiles"),
        ({"data": 5}, "int is nothing that can be read"),
        ({"data": "no such file"}, "names no file"),
        ({"columns": {"contxt": "x"}}, "there is no field 'contxt'"),
        ({"columns": "contxt=x"}, "there is no field 'contxt'"),
        ({"columns": 5}, "columns are given by field"),
        ({"speaker": 5}, 'a name, a role or "all", not 5'),
        ({"settings": {"encoder": "x"}}, "settings are causerie.Settings(...), not dict"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: dict[str, object], said: str) -> None:
    given = {"data": TALK, "metrics": "length", **arguments}
    with pytest.raises(CauserieError) as error:
        causerie.evaluate(**given)  # type: ignore[arg-type]
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_column_names_the_columns() -> None:
    with pytest.raises(CauserieError, match="use one of dialogue_id, turn,"):
        causerie.evaluate(TALK, "length")["lenght"]


def test_the_callers_objects_stay_as_they_are() -> None:
    metric = load_metric("bleu", order=2)
    options = {"b": {"order": 3}}
    data = [copy.deepcopy(RECORD), copy.deepcopy(MESSAGES)]
    before = copy.deepcopy((metric, options, data))
    causerie.evaluate(data, {"m": metric, "b": "bleu"}, options=options, explain=True)
    causerie.evaluate(data, metric)
    assert (metric, options, data) == before


def test_bad_records_are_left_out_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="left out: data:2: ") as caught:
        result = causerie.evaluate([RECORD, {"id": "bad"}], "length")
    assert len(result) == 1
    assert result.summary().rejected == 1
    assert caught[0].filename == __file__, "the warning is about the caller's line"


def test_only_bad_records_have_the_first_reason_in_the_error() -> None:
    with pytest.warns(UserWarning, match="left out"), pytest.raises(CauserieError) as error:
        causerie.evaluate([{"id": "bad"}, {"turns": 5}], "length")
    assert "2 of them bad; the first bad one is data:1: " in str(error.value)
    assert "data:2" not in str(error.value)


def test_columns_as_on_the_command_line() -> None:
    data = [{"history": ["Any plans?"], "reply": "We hike."}]
    by_field = {"context": "history", "response": "reply"}
    written = causerie.evaluate(data, "length", columns="context=history,response=reply")
    assert list(written) == list(causerie.evaluate(data, "length", columns=by_field))
    found = causerie.compare(data, data, "length", columns="context=history,response=reply")
    assert found.column("length").mean_a == 2


def test_what_a_result_cannot_do_is_one_sentence(tmp_path: Path) -> None:
    result = causerie.evaluate(TALK, "length")
    with pytest.raises(CauserieError, match="how many rows you want, not '3'"):
        result.worst("3")  # type: ignore[arg-type]
    with pytest.raises(CauserieError, match=r"x\.txt is to be a page: end its name with \.html"):
        result.report(tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()


def test_nothing_in_nothing_out() -> None:
    assert len(causerie.evaluate([], "length")) == 0


def test_dir_lists_everything_public() -> None:
    listed = dir(causerie)
    for name in ("Dialogue", "Metric", "Plan", "Scorer", "evaluate", "load", "read", "testing"):
        assert name in listed
        assert getattr(causerie, name) is not None
    assert "sys" not in listed
    assert sys.modules["causerie"].__all__
