"""The example conversations keep what their README promises."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_systems_answer_the_same_openings_with_references() -> None:
    lines = (EXAMPLES / "conversations.jsonl").read_text("utf-8").splitlines()
    talks = [json.loads(line) for line in lines]
    assert len({talk["id"] for talk in talks}) == len(talks) >= 14
    openings = defaultdict(set)
    for talk in talks:
        turns = talk["turns"]
        openings[talk["system"]].add(turns[0]["text"])
        assert 6 <= len(turns) <= 12
        assert [turn["role"] for turn in turns[:2]] == ["user", "system"]
        for before, turn in pairwise(turns):
            assert before["role"] != turn["role"]
        assert all(turn["references"] for turn in turns if turn["role"] == "system")
    assert set(openings) == {"aria", "bramble"}
    assert openings["aria"] == openings["bramble"]


def test_every_conversation_that_the_readme_names_is_there() -> None:
    lines = (EXAMPLES / "conversations.jsonl").read_text("utf-8").splitlines()
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    names = {json.loads(line)["id"] for line in lines}
    named = set(re.findall(r"`(\w+-(?:aria|bramble))`", readme))
    assert named == names
