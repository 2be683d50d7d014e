"""Who speaks: given, told by a name, the other side of somebody known, or played."""

from __future__ import annotations

import doctest
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import causerie.dialogue
from causerie import CauserieError
from causerie.dialogue import ROLES, TOOLS, Dialogue, Exchange, Turn, exchanges_of


def talk(*speakers: str) -> Dialogue:
    return Dialogue.from_texts([f"text {n}" for n in range(len(speakers))], speakers=speakers)


def roles(dialogue: Dialogue) -> str:
    """`"us-"` for a user, a system and somebody unknown."""
    return "".join((turn.role or "-")[0] for turn in dialogue.turns)


@pytest.mark.parametrize(
    ("speakers", "expected"),
    [
        (("user", "assistant"), "us"),
        (("Human", "MODEL", "customer", "AI"), "usus"),
        (("ann", "bob", "ann"), "---"),
        (("ann", "bot", "ann", "cy"), "usuu"),
        (("customer", "sara"), "us"),
        (("customer", "sara", "bot"), "uus"),  # who the system is, is known
    ],
)
def test_names_tell_and_the_others_are_the_other_side(
    speakers: tuple[str, ...], expected: str
) -> None:
    assert roles(talk(*speakers)) == expected


def test_a_given_role_wins_over_the_name_and_holds_for_all_turns_of_its_speaker() -> None:
    turns = (Turn("bot", "a", "user"), Turn("ann", "b"), Turn("bot", "c", "user"))
    assert roles(Dialogue("d", turns)) == "usu"
    turns = (Turn("ann", "a", "user"), Turn("ann", "b"), Turn("bob", "c"))
    assert roles(Dialogue("d", turns)) == "uus"


def test_roles_are_known_by_all_their_names() -> None:
    assert Turn("x", "t", "assistant").role == "system"  # type: ignore[arg-type]
    with pytest.raises(CauserieError, match="user or system, not 'wizard'"):
        Turn("x", "t", "wizard")  # type: ignore[arg-type]


def test_without_roles_the_response_is_by_the_system() -> None:
    dialogue = talk("ann", "bob", "ann", "bob")
    for exchange in dialogue.exchanges():
        played = [exchange.role_of(turn) for turn in exchange.context]
        assert played == [
            "system" if turn.speaker == exchange.response.speaker else "user"
            for turn in exchange.context
        ]
    assert [dialogue.role_of(turn)[0] for turn in dialogue.turns] == ["u", "s", "u", "s"]
    named = [dialogue.role_of(turn, system="ann")[0] for turn in dialogue.turns]
    assert named == ["s", "u", "s", "u"]
    known = talk("user", "bot", "user")
    assert [known.role_of(turn, system="user")[0] for turn in known.turns] == ["u", "s", "u"]


@pytest.mark.parametrize(
    ("speaker", "expected"),
    [
        (None, [1, 3]),
        ("all", [1, 2, 3]),
        ("system", [1, 3]),
        ("Assistant", [1, 3]),
        ("bot", [1, 3]),
        ("Sara", [1, 3]),
        ("user", [2]),
        ("human", [2]),
        ("sara", []),
        ("nobody", []),
    ],
)
def test_whose_turns_are_wanted(speaker: str | None, expected: list[int]) -> None:
    dialogue = talk("customer", "Sara", "customer", "Sara")
    assert [exchange.turn for exchange in dialogue.exchanges(speaker)] == expected
    assert [exchange.turn for exchange in exchanges_of(dialogue, speaker)] == expected


def test_everybody_is_wanted_where_nobody_is_the_system() -> None:
    for dialogue in (talk("ann", "bob", "ann"), talk("user", "customer", "user")):
        assert dialogue.turns_by(None) == [0, 1, 2]
        assert [e.turn for e in dialogue.exchanges(None)] == [1, 2]
    assert len(talk("user", "bot", "user").exchanges()) == 2  # all of them, unless asked


def test_a_context_with_a_response_is_wanted_whoever_speaks() -> None:
    by_user = Exchange(talk("bot", "user"), 1)
    assert exchanges_of(by_user, None) == exchanges_of(by_user, "all") == [by_user]
    assert exchanges_of(by_user, "human") == [by_user]
    assert exchanges_of(by_user, "assistant") == []


@given(st.lists(st.sampled_from(["ann", "bob", "user", "Bot", "x"]), min_size=1, max_size=8))
def test_all_turns_have_a_role_or_none_has_and_parts_keep_theirs(speakers: list[str]) -> None:
    dialogue = talk(*speakers)
    told = {turn.role is not None for turn in dialogue.turns}
    assert told == {any(name.lower() in ROLES for name in speakers)}
    for exchange in dialogue.exchanges():
        for count in range(3):
            part = exchange.recent(count)
            kept = dialogue.turns[exchange.turn - part.turn : exchange.turn + 1]
            if told == {True}:
                assert part.dialogue.turns[: part.turn + 1] == kept
    assert pickle.loads(pickle.dumps(dialogue)) == dialogue


def test_where_a_turn_came_from_is_no_part_of_what_it_is() -> None:
    turn = Turn("ann", "hi")
    assert turn == replace(turn, message=3)
    assert repr(turn) == repr(replace(turn, message=3))
    dialogue = Dialogue("d", (turn,))
    assert dialogue == replace(dialogue, source="a.jsonl")
    assert repr(dialogue) == repr(replace(dialogue, source="a.jsonl"))


MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}], "model": "m-1"},
    {"role": "tool", "content": 5, "tool_call_id": "1"},
    {"role": "assistant", "content": "Hello.", "name": "Kim", "model": "m-1"},
    {"role": "user", "content": "Are you ill?", "name": "Ann"},
    {"role": "assistant", "content": None, "refusal": "I cannot say."},
    {"role": "assistant", "content": None},
]


def test_from_messages() -> None:
    dialogue = Dialogue.from_messages(MESSAGES, id="d")
    assert dialogue == Dialogue(
        "d",
        (
            Turn("user", "Hi", "user"),
            Turn("Kim", "Hello.", "system"),
            Turn("Ann", "Are you ill?", "user"),
            Turn("assistant", "I cannot say.", "system"),
            Turn("assistant", "", "system"),
        ),
        system="m-1",
        background=("Be kind.",),
        metadata={"tool_messages": 2},
    )
    assert [turn.message for turn in dialogue.turns] == [1, 4, 5, 6, 7]
    assert Dialogue.from_messages(MESSAGES, system="mine").system == "mine"
    several = [{**message, "model": str(n)} for n, message in enumerate(MESSAGES)]
    assert Dialogue.from_messages(several).system is None


def test_messages_of_a_client_are_read_like_their_fields() -> None:
    objects = [
        SimpleNamespace(**fields, model_dump=lambda fields=fields: fields) for fields in MESSAGES
    ]
    assert Dialogue.from_messages(objects) == Dialogue.from_messages(MESSAGES)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "has no turns"),
        (["hi"], "message 0: must be an object, not str"),
        ([{"role": "user", "content": " "}], "has no text"),
        ([{"role": "wizard", "content": "x"}], "role 'wizard' is not"),
        ([{"role": "user", "content": "\ud800"}], "lone surrogate"),
    ],
)
def test_messages_that_are_no_dialogue(messages: list[object], reason: str) -> None:
    with pytest.raises(CauserieError, match=f"these messages are no dialogue: .*{reason}"):
        Dialogue.from_messages(messages)


def test_from_texts() -> None:
    dialogue = Dialogue.from_texts(["Hi!", " Hello. ", ""])
    assert dialogue.turns == (Turn("A", "Hi!"), Turn("B", "Hello."), Turn("A", ""))
    assert roles(dialogue) == "---"
    with pytest.raises(CauserieError, match="lists of strings"):
        Dialogue.from_texts("Hi!")
    with pytest.raises(CauserieError, match="no dialogue: text must be a string, not int"):
        Dialogue.from_texts(["Hi!", 3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Dialogue("x", ["a", "b"]), "turns of a dialogue are Turn objects"),  # type: ignore[arg-type]
        (lambda: Dialogue("x", None), "turns of a dialogue are Turn objects"),  # type: ignore[arg-type]
        (lambda: Dialogue.from_messages(None), "role and content, not NoneType"),  # type: ignore[arg-type]
        (lambda: Dialogue.from_texts(5), "lists of strings"),  # type: ignore[arg-type]
        (lambda: Dialogue.from_texts(["a"], speakers=[1, 2]), "lists of strings"),  # type: ignore[list-item]
        (lambda: Dialogue.from_texts(["a"], speakers=5), "lists of strings"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_dialogue_is_one_sentence(make: Callable[[], Dialogue], said: str) -> None:
    with pytest.raises(CauserieError, match=said):
        make()


def test_the_table_of_the_docs_is_the_table_of_the_code() -> None:
    page = (Path(__file__).parents[1] / "docs" / "formats.md").read_text("utf-8")
    rows = {
        what: set(re.findall(r"`(\w+)`", names.rpartition(":")[2]))
        for names, what in re.findall(r"^\| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    }
    assert rows["the user"] == {name for name, role in ROLES.items() if role == "user"}
    systems = {name for name, role in ROLES.items() if role == "system"}
    assert rows["left out, counted in the metadata as `tool_messages`"] == TOOLS
    named = re.search(r"^\| (`assistant`.+?) \| the system \|$", page, re.MULTILINE)
    assert named is not None
    assert {*re.findall(r"`(\w+)`", named[1]), "system"} == systems


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(causerie.dialogue).failed == 0


def test_parts_for_tools_alone_are_no_empty_reply() -> None:
    messages = [
        {"role": "user", "content": "What is the weather?"},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "weather", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "rain"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It rains."}]},
    ]
    dialogue = Dialogue.from_messages(messages)
    assert [turn.text for turn in dialogue.turns] == ["What is the weather?", "It rains."]
    assert dialogue.metadata["tool_messages"] == 2
