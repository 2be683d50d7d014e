"""The shipped hypotheses, and files of users."""

from __future__ import annotations

import json

import pytest

from causerie.errors import CauserieError
from causerie.metrics.followups.formulas import Statistic, measured_statistic, read_statistics
from causerie.metrics.followups.hypotheses import Dimension, dimensions

TURN = (
    "interesting",
    "engaging",
    "specific",
    "relevant",
    "correct",
    "semantically-appropriate",
    "understandable",
    "fluent",
)
DIALOGUE = (
    "coherent",
    "error-recovery",
    "consistent",
    "diverse",
    "depth",
    "likeable",
    "understanding",
    "flexible",
    "informative",
    "inquisitive",
)


def write(path, content) -> object:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_shipped():
    shipped = dimensions()
    assert tuple(d.name for d in shipped["turn"]) == TURN
    assert tuple(d.name for d in shipped["dialogue"]) == DIALOGUE
    said = [text for level in shipped.values() for d in level for text in d.hypotheses]
    assert len(said) == len(set(said)), "a sentence speaks for two dimensions"
    for level in shipped.values():
        for dimension in level:
            assert len(dimension.positive) >= 4
            assert len(dimension.negative) >= 4
            one, other = (
                sum(len(text.split()) for text in side) / len(side)
                for side in (dimension.positive, dimension.negative)
            )
            assert abs(one - other) < 2, f"{dimension.name}: a side is known by its length"
    assert all(text == text.strip() and text[-1] in ".!?" for text in said)


def test_own_dimensions_replace_and_add(tmp_path):
    own = write(
        tmp_path / "own.json",
        {
            "turn": {
                "Semantically appropriate": {"negative": ["Hä?"]},
                "polite": {"positive": ["How kind of you!"], "negative": ["Rude."]},
            }
        },
    )
    shipped, found = dimensions(), dimensions(own)
    assert found["dialogue"] == shipped["dialogue"]
    assert tuple(d.name for d in found["turn"]) == (*TURN, "polite")
    assert found["turn"][5] == Dimension("semantically-appropriate", (), ("Hä?",))
    assert found["turn"][8] == Dimension("polite", ("How kind of you!",), ("Rude.",))
    assert found["turn"][:5] == shipped["turn"][:5]


def test_toml_says_the_same(tmp_path):
    own = write(
        tmp_path / "own.toml",
        """
        [dialogue.error_recovery]
        positive = ["That's better!"]
        negative = ["Still wrong."]
        """,
    )
    found = {d.name: d for d in dimensions(own)["dialogue"]}
    assert list(found) == list(DIALOGUE)
    assert found["error-recovery"].hypotheses == ("That's better!", "Still wrong.")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "own.json is not valid JSON: "),
        ('{"turn": ' * 100_000, "own.json is not valid JSON: "),
        ([], "own.json must be a table"),
        ({"turns": {}}, "own.json: turns is not a level: use turn or dialogue"),
        ({"turn": []}, "own.json: turn must be a table"),
        ({"turn": {"x": ["Hi."]}}, "own.json: turn.x must be a table"),
        ({"turn": {"x": {}}}, "own.json: turn.x has no follow-up"),
        ({"turn": {"x": {"positive": [], "negative": []}}}, "turn.x has no follow-up"),
        ({"turn": {"x": {"good": ["Hi."]}}}, "turn.x.good is unknown: use positive and negative"),
        ({"turn": {"x": {"positive": "Hi."}}}, "turn.x.positive must be a list"),
        ({"turn": {"x": {"positive": ["Hi.", 3]}}}, r"turn.x.positive[1] is not a sentence"),
        ({"turn": {"x": {"negative": [" "]}}}, r"turn.x.negative[0] is not a sentence"),
        ({"turn": {"x": {"negative": ["\ud800"]}}}, r"turn.x.negative[0] is not a sentence"),
        (
            {"dialogue": {"Overall": {"positive": ["Hi."]}}},
            "dialogue.Overall is the name of the mean",
        ),
        ({"turn": {"x.y": {"positive": ["Hi."]}}}, "turn.x.y is not a valid name"),
        ({"turn": {"": {"positive": ["Hi."]}}}, "turn. is not a valid name"),
        (
            {"turn": {"so so": {"positive": ["A."]}, "So-so": {"negative": ["B."]}}},
            "turn.So-so occurs twice",
        ),
        ({"turn": {"x": {"positive": ["A.", " A. "]}}}, "turn.x.positive has a sentence twice"),
        ({"turn": {"x": {"positive": ["A."], "negative": ["A."]}}}, "turn.x has 'A.' on both"),
    ],
)
def test_errors_name_file_and_key(tmp_path, content, complaint):
    with pytest.raises(CauserieError) as error:
        dimensions(write(tmp_path / "own.json", content))
    assert complaint in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "own.json"))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(CauserieError, match=r"none\.json cannot be read: No such file"):
        dimensions(tmp_path / "none.json")
    with pytest.raises(CauserieError, match=r"own\.yaml is neither JSON nor TOML"):
        dimensions(write(tmp_path / "own.yaml", "turn:"))
    (tmp_path / "own.json").write_bytes(b"\xff")
    with pytest.raises(CauserieError, match=r"own\.json is not valid JSON: .*utf-8"):
        dimensions(tmp_path / "own.json")


def test_statistics(tmp_path):
    human = {"mean": 0.25, "deviation": 2}
    path = write(
        tmp_path / "human.json",
        {"fed": {"turn": {"Semantically appropriate": human}}, "cpmi": {"turn": {}}},
    )
    assert read_statistics(path, "fed", dimensions()) == {
        "turn": {"semantically-appropriate": Statistic(0.25, 2.0)},
        "dialogue": {},
    }
    assert read_statistics(path, "cpmi", dimensions()) == {"turn": {}, "dialogue": {}}
    with pytest.raises(CauserieError, match=r"human\.json: cpmi-sym must be a table"):
        read_statistics(path, "cpmi-sym", dimensions())
    write(path, {"fed": {"dialogue": {"fluent": human}}})
    with pytest.raises(
        CauserieError, match=r"fed\.dialogue\.fluent is not a dimension of this level"
    ):
        read_statistics(path, "fed", dimensions())


@pytest.mark.parametrize("numbers", [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0], [float("nan"), 1.0], 3.0])
def test_statistics_of_a_damaged_artifact(numbers):
    with pytest.raises(CauserieError, match="of the language model is damaged"):
        measured_statistic(numbers)


def test_published_names_stand_for_ours(tmp_path):
    own = {"turn": {}, "dialogue": {"understand": {"negative": ["No."]}}}
    own["dialogue"]["Topic Depth"] = {"positive": ["Deep!"]}
    found = {d.name: d for d in dimensions(write(tmp_path / "own.json", own))["dialogue"]}
    assert tuple(found) == DIALOGUE
    assert found["understanding"] == Dimension("understanding", (), ("No.",))
    assert found["depth"] == Dimension("depth", ("Deep!",), ())


def test_a_key_that_is_there_twice(tmp_path):
    path = write(tmp_path / "own.json", '{"turn": {}, "turn": {"x": {"positive": ["A."]}}}')
    with pytest.raises(CauserieError, match="turn occurs twice"):
        dimensions(path)


@pytest.mark.parametrize(
    "value", [{"mean": 1}, {"mean": 1, "deviation": 0}, {"mean": float("nan"), "deviation": 1}]
)
def test_bad_statistics(tmp_path, value):
    path = write(tmp_path / "human.json", {"fed": {"turn": {"fluent": value}, "dialogue": {}}})
    with pytest.raises(CauserieError, match=r"human\.json: fed\.turn\.fluent must have a mean"):
        read_statistics(path, "fed", dimensions())
