"""The catalogue: its facts are consistent, and a set is found or the error says how to get it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from causerie.bench.sets.catalogue import catalogue, default_sets, entry_for, find_set
from causerie.bench.sets.convert import CONVERTERS
from causerie.errors import CauserieError


def test_entries_hang_together() -> None:
    entries = catalogue()
    assert len(entries) == 48
    for entry in entries.values():
        assert entry.items > 0
        assert entry.url.startswith("http")
        assert entry.licence
        assert entry.paper
        if entry.level == "attack":
            assert (entry.main, entry.default) == (None, False)
        else:
            assert entry.main in entry.dimensions
            assert not entry.control
        for scale in entry.dimensions.values():
            assert scale is None or scale[0] < scale[1]


def test_sets_with_published_files_are_those_with_a_converter() -> None:
    assert {entry.name for entry in catalogue().values() if entry.files} == set(CONVERTERS)


def test_the_default_list() -> None:
    assert default_sets() == (
        "dailydialog_zhao",
        "dailydialog_gupta",
        "grade_convai2",
        "grade_dailydialog",
        "grade_empatheticdialogues",
        "usr_personachat",
        "fed_turn",
        "fed_dialog",
        "dstc9_interactive",
    )


def test_controls() -> None:
    controls = {
        entry.name.removeprefix("personachat.") for entry in catalogue().values() if entry.control
    }
    assert controls == {"good_paraphrase", "ner_neutral", "neutral_cases"}


def test_who_is_human() -> None:
    zhao = catalogue()["dailydialog_zhao"]
    assert zhao.is_human("Ground_Truth")
    assert not zhao.is_human("negative-sample")
    assert not zhao.is_human(None)
    assert entry_for("somebody-elses").is_human("human")


@pytest.mark.parametrize("place", [".", "judged", "adversarial"])
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_a_set_is_found_in_the_folder_and_its_two_subfolders(
    tmp_path: Path, place: str, suffix: str
) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    path = tmp_path / place / f"mine{suffix}"
    path.touch()
    assert find_set("mine", tmp_path) == path


def test_a_known_set_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match=r"fed_data\.json from http.*bench convert fed_turn"):
        find_set("fed_turn", tmp_path)
    with pytest.raises(CauserieError, match=r"published at https://github\.com/dbd-challenge"):
        find_set("dbdc3_en", tmp_path)


def test_an_unknown_set_names_its_neighbours(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="did you mean fed_turn"):
        find_set("fed_turns", tmp_path)
    with pytest.raises(CauserieError, match="causerie bench sets"):
        find_set("qqqq", tmp_path)


def test_a_name_does_not_reach_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").touch()
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("../secret", str(tmp_path / "secret")):
        with pytest.raises(CauserieError, match="there is no set"):
            find_set(name, inner)


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="there is no folder"):
        find_set("fed_turn", tmp_path / "nowhere")


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, causerie.bench.sets.convert, causerie.bench.papers.printed;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
