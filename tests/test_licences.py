"""What learns from data is under the licence of that data: the defaults must be free for all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import causerie
from causerie.graph.about import About
from causerie.licences import Licence, joint_licence, parse_licences
from causerie.models.artifact import ArtifactInfo

OWN = Path(causerie.__file__).parent


def licences_of(folder: Path) -> tuple[Licence, ...]:
    """What the sources of a default artifact or graph are under, as its own files say."""
    if folder.parent.name == "artifacts":
        return ArtifactInfo.read(folder).licences
    sources = About.of(json.loads((folder / "graph.json").read_text("utf-8"))).sources
    return tuple(one for source in sources for one in parse_licences(source.licence))


@pytest.mark.parametrize(
    "name",
    sorted(
        f"{folder.parent.name}/{folder.name}"
        for kind in ("artifacts", "graphs")
        for folder in (OWN / kind).iterdir()
        if folder.is_dir()
    ),
)
def test_everybody_may_use_the_defaults(name: str) -> None:
    found = licences_of(OWN / name)
    restricted = [str(one) for one in found if not one.free]
    assert found, f"{name} does not say what its sources are under"
    assert not restricted
    assert all(one.source for one in found) or name.startswith("graphs/")


def test_sources_and_their_licences() -> None:
    said = "chitchat: MIT; self-dialogue corpus: BSD-3-Clause ; Ji et al. (2022): MIT;"
    assert parse_licences(said) == (
        Licence("chitchat", "MIT"),
        Licence("self-dialogue corpus", "BSD-3-Clause"),
        Licence("Ji et al. (2022)", "MIT"),
    )
    assert parse_licences("Apache-2.0") == (Licence("", "Apache-2.0"),)
    assert parse_licences("") == (Licence("", "not stated"),)
    assert joint_licence(["a: MIT; b: ISC", "b: ISC; c: words of any kind"]) == (
        "a: MIT; b: ISC; c: words of any kind"
    )


@pytest.mark.parametrize(
    ("terms", "free"),
    [
        ("MIT", True),
        ("CC-BY-4.0", True),
        ("MIT AND CC-BY-4.0", True),
        ("MIT AND CC-BY-NC-4.0", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only OR MIT AND CC-BY-NC-4.0", False),
        ("CC-BY-NC-SA-4.0", False),
        ("CC-BY-SA-4.0", False),
        ("CC BY 4.0", False),
        ("mit", False),
        ("MIT, as far as we know", False),
        ("LicenseRef-Research-Only", False),
        ("not stated", False),
        ("", False),
    ],
)
def test_only_what_is_known_to_be_free_is(terms: str, free: bool) -> None:
    assert Licence("source", terms).free is free
