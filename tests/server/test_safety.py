"""The guard: who is admitted, from where, with how much data, and with which headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from fastapi import APIRouter, Depends, HTTPException, Request
from hypothesis import given
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.server.app import Config
from causerie.server.room import Page, Room
from causerie.server.safety import (
    Buckets,
    Identity,
    digest_of,
    is_loopback,
    is_token,
    name_and_port,
    needs,
    new_token,
    who,
)
from causerie.server.serve import token_from
from serving import Site, serving

OWNER, GUEST = "the token of the owner", "the token of a guest"


def make_room() -> Room:
    """A room that guests may enter and that can do all that rooms do."""
    router = APIRouter()

    @router.get("/hall/who")
    def hello(identity: Identity = Depends(who)) -> str:
        return identity.name

    @router.post("/hall/write")
    async def write(request: Request) -> int:
        return len(await request.body())

    @router.get("/hall/office", dependencies=[Depends(needs("clerk"))])
    def office() -> str:
        return "come in"

    @router.get("/hall/wrong")
    def wrong() -> str:
        raise CauserieError("this cannot be done: do another thing")

    @router.get("/hall/broken")
    def broken() -> str:
        raise ZeroDivisionError

    guest = Identity("guest", frozenset({"guest"}), "/hall/")
    return Room(
        "hall",
        "Hall <&>",
        "causerie.server",
        {"": Page("Hall", "enter.html"), "back": Page("Back", "enter.html", roles=frozenset())},
        [router],
        roles=frozenset({"guest", "clerk"}),
        identify=lambda token: guest if is_token(token, digest_of(GUEST)) else None,
        limits={"/hall/large": 2000},
    )


def other_room() -> Room:
    router = APIRouter()

    @router.get("/v9/secret")
    def secret() -> str:
        return "secret"

    return Room("other", "Other", "causerie.server", routers=[router], prefixes=["/v9/"])


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site without tokens: everybody on this machine is the owner."""
    with serving(Config((make_room(), other_room()), port=0, max_body=1000)) as site:
        yield site


@pytest.fixture(scope="module")
def guarded() -> Iterator[Site]:
    config = Config((make_room(), other_room()), port=0, token=OWNER, hosts=("chat.example",))
    with serving(config) as site:
        yield site


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_who_is_on_this_machine_is_the_owner(site: Site) -> None:
    assert site.ask("GET", "/hall/who").json == "owner"
    assert site.ask("GET", "/hall/office").json == "come in"
    assert site.ask("GET", "/", headers={}).headers["location"] == "/hall/"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", "[::1"]
)
def test_foreign_hosts_are_refused(site: Site, host: str) -> None:
    answer = site.ask("GET", "/hall/who", headers={"Host": host})
    assert answer.status == 421
    assert "--allow-host" in answer.json["error"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "[::1]:5", "127.0.0.1", "127.1.2.3"])
def test_names_of_this_machine_are_ours(site: Site, host: str) -> None:
    assert site.ask("GET", "/hall/who", headers={"Host": host}).status == 200


def test_names_can_be_added(guarded: Site) -> None:
    headers = {**bearer(OWNER), "Host": "Chat.Example:8000"}
    assert guarded.ask("GET", "/hall/who", headers=headers).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost:{port}"}, 200),
        ({"Origin": "https://localhost:{port}", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:{port}.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_pages_of_other_sites_change_nothing(
    site: Site, headers: dict[str, str], status: int
) -> None:
    given = {name: value.format(port=site.port) for name, value in headers.items()}
    given["Host"] = f"localhost:{site.port}"
    assert site.ask("POST", "/hall/write", b"1", given).status == status


def test_without_a_token_only_the_door_is_open(guarded: Site) -> None:
    for path in ("/hall/who", "/hall/", "/v9/secret", "/openapi.json", "/nothing", "/static"):
        answer = guarded.ask("GET", path)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), path
    for path in ("/healthz", "/enter", "/static/dom.js", "/hall/static/dom.js"):
        assert guarded.ask("GET", path).status == 200, path
    assert guarded.ask("GET", "/hall/static/../who").status == 404
    page = guarded.ask("GET", "/hall/", headers={"Accept": "text/html,*/*"})
    assert (page.status, page.headers["location"]) == (303, "/enter")


def test_wrong_tokens_are_refused(guarded: Site) -> None:
    for token in ("", "x", OWNER + "x", OWNER[:-1], OWNER.upper(), "é"):
        assert guarded.ask("GET", "/hall/who", headers=bearer(token)).status == 401, token


def test_roles_are_kept_apart(guarded: Site) -> None:
    allowed = {"/hall/who": 200, "/hall/": 200, "/hall/back": 403, "/hall/office": 403}
    allowed |= {"/v9/secret": 403, "/openapi.json": 403, "/other/": 403, "/nothing": 403}
    for path, status in allowed.items():
        assert guarded.ask("GET", path, headers=bearer(GUEST)).status == status, path
    allowed |= {"/hall/back": 200, "/hall/office": 200, "/v9/secret": 200, "/openapi.json": 200}
    for path, status in (allowed | {"/other/": 404, "/nothing": 404}).items():
        assert guarded.ask("GET", path, headers=bearer(OWNER)).status == status, path


def test_a_link_is_exchanged_for_a_cookie(guarded: Site) -> None:
    assert guarded.ask("POST", "/session", {"token": "wrong"}).status == 401
    answer = guarded.ask("POST", "/session", {"token": GUEST})
    assert answer.json == {"home": "/hall/"}
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict"))
    kept = {"Cookie": cookie.partition(";")[0]}
    assert guarded.ask("GET", "/hall/who", headers=kept).json == "guest"
    assert guarded.ask("GET", "/", headers=kept).headers["location"] == "/hall/"
    # the same cookie is not valid at a server on another port
    elsewhere = {**kept, "Host": "localhost:1"}
    assert guarded.ask("GET", "/hall/who", headers=elsewhere).status == 401
    gone = guarded.ask("DELETE", "/session", headers=kept)
    assert "causerie-" in gone.headers["set-cookie"]
    assert "Max-Age=0" in gone.headers["set-cookie"]


def test_sizes_are_limited(site: Site) -> None:
    assert site.ask("POST", "/hall/write", b"x" * 1000).json == 1000
    for headers in ({}, {"Transfer-Encoding": "chunked"}):
        body = b"x" * 1001
        if headers:
            body = b"3e9\r\n" + body + b"\r\n0\r\n\r\n"
        answer = site.ask("POST", "/hall/write", body, headers)
        assert answer.status == 413
        assert "1,000 bytes" in answer.json["error"]
    assert site.ask("POST", "/hall/large", b"x" * 1001).status == 404


def test_rates_are_limited() -> None:
    with serving(Config((make_room(),), port=0, rate=0.1, token=OWNER)) as site:
        answers = [site.ask("GET", "/hall/who", headers=bearer(GUEST)) for _ in range(20)]
        assert answers[0].status == 429  # a burst of 0.2
        assert 1 <= int(answers[0].headers["retry-after"]) <= 10
        assert site.ask("GET", "/healthz").status == 429
        assert {site.ask("GET", "/hall/who", headers=bearer(OWNER)).status} == {200}
    with serving(Config((make_room(),), port=0, rate=0.5, token=OWNER)) as site:
        answers = [site.ask("GET", "/hall/who", headers=bearer(GUEST)) for _ in range(20)]
        assert answers[0].status == 200
        assert 429 in [answer.status for answer in answers]


@given(st.lists(st.tuples(st.floats(0, 3), st.sampled_from("ab")), max_size=40))
def test_nobody_gets_more_than_their_share(steps: list[tuple[float, str]]) -> None:
    now, admitted = 0.0, {"a": 0, "b": 0}
    buckets = Buckets(rate=2.0, burst=3.0, clock=lambda: now)
    for pause, client in steps:
        now += pause
        try:
            buckets.take(client)
            admitted[client] += 1
        except HTTPException:
            pass
        assert admitted[client] <= 3 + 2 * now


@pytest.mark.parametrize("path", ["/hall/", "/hall/wrong", "/hall/broken", "/static/dom.js", "/x"])
def test_every_answer_is_dressed(site: Site, path: str) -> None:
    headers = site.ask("GET", path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers


def test_errors_are_sentences(site: Site) -> None:
    wrong = site.ask("GET", "/hall/wrong")
    assert (wrong.status, wrong.json["error"]) == (422, "this cannot be done: do another thing")
    broken = site.ask("GET", "/hall/broken")
    assert (broken.status, broken.json) == (500, {"error": "an internal error occurred"})


def test_pages_have_nothing_inline(site: Site) -> None:
    page = site.ask("GET", "/hall/").body.decode()
    assert "Hall &lt;&amp;&gt;" in page
    assert '<a href="/hall/" aria-current=page>' in page
    assert 'href="/other/"' not in page
    static = Path(str(resources.files("causerie.server")))
    for file in [*static.rglob("*.html")]:
        text = file.read_text("utf-8")
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|https?://", text)
    for file in [*static.rglob("*.js"), *static.rglob("*.css")]:
        text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|https?://", text)


def test_other_machines_need_a_token(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="--token-file"):
        Config((), host="0.0.0.0")
    with pytest.raises(CauserieError, match="20 characters"):
        Config((), token="short")
    token = token_from(tmp_path / "token")
    assert token == token_from(tmp_path / "token")
    assert len(token) >= 32
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    with pytest.raises(CauserieError, match="--token-file"):
        Config((), hosts=("chat.example",))
    Config((), host="0.0.0.0", token=token)
    assert token not in repr(Config((), token=token))


def test_tokens_differ_and_are_kept_as_digests() -> None:
    first, second = new_token(), new_token()
    assert first != second
    assert is_token(first, digest_of(first))
    assert not is_token(second, digest_of(first))
    assert not is_token("\ud800", digest_of(first))


@given(st.text(max_size=30))
def test_any_host_header_can_be_read(host: str) -> None:
    name, port = name_and_port(host)
    assert is_loopback(name) in (True, False)
    assert port is None or port.isdigit()
