"""What SECURITY.md says about its tests."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_fault_names_tests_that_there_are() -> None:
    text = (TESTS.parent / "SECURITY.md").read_text()
    rows = re.findall(r"^\| D(\d+) \|.*\| (.*) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 17))
    for _, tests in rows:
        file = ""
        for one in re.findall(r"`([^`]+)`", tests):
            named, _, function = one.rpartition("::")
            file = named or file
            assert f"\ndef {function}(" in (TESTS / file).read_text(), one
