"""The answers are as OpenAPI describes them, and no request makes the server fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from causerie.scoring import Plan
from causerie.server.api import api_room
from causerie.server.app import Config
from causerie.server.explorer.room import explorer_room
from scored import chats, write_scores
from serving import Site, serving

EXAMPLES = 25
"""Requests of each kind."""
schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    room = api_room(Plan.of("length,overlap"), tmp_path_factory.mktemp("state"), load=False)
    with serving(Config((room,), port=0, rate=1e6)) as site:
        yield site


@pytest.mark.slow
def test_no_request_makes_the_server_fail(site: Site) -> None:
    """Statuses, types and shapes of all answers are those that OpenAPI names."""
    schema = schemathesis.openapi.from_url(f"{site.address}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 12
    # a well-formed request may still be wrong: neither messages nor data, or unknown metrics
    left_out = [schemathesis.checks.positive_data_acceptance]
    for operation in operations:

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def holds(case: Any) -> None:
            case.call_and_validate(excluded_checks=left_out)

        holds()


def test_examples_work(site: Site) -> None:
    schemas = site.ask("GET", "/openapi.json").json["components"]["schemas"]
    for path, name in (("/v1/score", "ScoreRequest"), ("/v1/compare", "CompareRequest")):
        examples = schemas[name]["examples"]
        assert examples
        for example in examples:
            answer = site.ask("POST", path, example)
            assert answer.status == 200, answer.body


def test_every_route_and_field_is_explained(site: Site) -> None:
    content = site.ask("GET", "/openapi.json").json
    for path, methods in content["paths"].items():
        for method, about in methods.items():
            assert about.get("description"), (method, path)
    assert {"/v1/score", "/v1/compare", "/v1/metrics", "/v1/jobs", "/healthz", "/readyz"} <= set(
        content["paths"]
    )
    for name in ("Failure", "ScoreRequest", "ScoreAnswer", "Job"):
        assert content["components"]["schemas"][name]["description"]
    assert "localhost" not in json.dumps(content)


@pytest.mark.slow
def test_no_question_makes_the_explorer_fail(tmp_path: Path) -> None:
    """The explorer's API is as exposed to hostile requests as the other routes."""
    for name, shift in (("monday", 0.0), ("tuesday", 0.5)):
        write_scores(tmp_path / f"{name}.parquet", chats(shift=shift))
    room = explorer_room([tmp_path], tmp_path / "marks.sqlite")
    with serving(Config((room,), port=0)) as site:
        schema = schemathesis.openapi.from_url(f"{site.address}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        ours = [one for one in operations if one.path.startswith("/explorer/")]
        assert len(ours) == 9
        left_out = [schemathesis.checks.positive_data_acceptance]
        for operation in ours:

            @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy())
            def holds(case: Any) -> None:
                case.call_and_validate(excluded_checks=left_out)

            holds()
