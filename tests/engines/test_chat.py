"""Asking an endpoint: a real server that is slow, failing, lying, counting and expensive."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causerie.engines import chat as module
from causerie.engines.answers import Answers
from causerie.engines.budget import Price
from causerie.engines.chat import Chat, Endpoint
from causerie.engines.completion import Answer, Choice
from causerie.errors import CauserieError
from chatserver import ChatServer, Reply, completion, serving

KEY = "sk-very-secret-0123456789"
VARIABLE = "SOME_TEST_KEY"


class Clock:
    """Time that passes only when somebody waits; in place of the event that ends waiting."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        return False

    def is_set(self) -> bool:
        return False

    def set(self) -> None: ...
    def clear(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=found.monotonic))
    monkeypatch.setattr(module, "Event", lambda: found)
    return found


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def questions(count: int, **more: object) -> list[dict[str, Any]]:
    return [
        {"model": "m", "messages": [{"role": "user", "content": f"number {i}?"}], **more}
        for i in range(count)
    ]


def connected(server: ChatServer, folder: Path, **options: Any) -> Chat:
    given = {"key_env": VARIABLE, "answers": str(folder / "answers.sqlite"), "backoff": 0.001}
    return Chat(Endpoint(server.url, **{**given, **options}))


def texts(answers: list[Answer]) -> list[str]:
    return [answer.choices[0].text for answer in answers]


def echo(_: int, body: dict[str, Any]) -> Reply:
    return completion(body["messages"][0]["content"])


def test_answers_come_in_order_and_equal_questions_are_asked_once(tmp_path: Path) -> None:
    with serving(echo) as server:
        asked = questions(20)
        found = connected(server, tmp_path).ask([*asked, *asked])
        assert texts(found) == [f"number {i}?" for i in range(20)] * 2
        assert len(server.asked) == 20
        assert set(server.paths) == {"/v1/chat/completions"}
        assert {h["Authorization"] for h in server.headers} == {f"Bearer {KEY}"}
        # another run, another process: nothing is asked again
        again = connected(server, tmp_path)
        assert texts(again.ask(asked)) == texts(found[:20])
        assert len(server.asked) == 20
        assert "20 answers from before" in again.told()
        # another question, model or place is another answer
        connected(server, tmp_path).ask(questions(1, temperature=0.5))
        assert len(server.asked) == 21


def test_what_is_kept_serves_offline(tmp_path: Path) -> None:
    with serving(echo) as server:
        found = connected(server, tmp_path).ask(questions(2))
        offline = connected(server, tmp_path, offline=True)
        assert offline.ask(questions(2)) == found
        with pytest.raises(CauserieError, match=r"--offline is set, and .* 1 of the questions"):
            offline.ask(questions(3))
        assert len(server.asked) == 2


def test_log_probabilities_are_read_and_kept(tmp_path: Path) -> None:
    with serving(lambda *_: completion("4", {"4": -0.1, "5": -2.5})) as server:
        expected = Answer((Choice("4", (("4", {"4": -0.1, "5": -2.5}),)),))
        assert connected(server, tmp_path).ask(questions(1)) == [expected]
        assert connected(server, tmp_path).ask(questions(1)) == [expected]


@pytest.mark.parametrize("status", [500, 503, 408, 429])
def test_what_passes_is_tried_again(status: int, tmp_path: Path) -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        return echo(number, body) if number > 2 else Reply({"error": "busy"}, status)

    with serving(answer) as server:
        assert texts(connected(server, tmp_path).ask(questions(1))) == ["number 0?"]
        assert len(server.asked) == 3


def test_pauses_grow_and_end(tmp_path: Path, clock: Clock) -> None:
    with serving(lambda *_: Reply({"error": {"message": "down"}}, 500)) as server:
        chat = connected(server, tmp_path, retries=4, backoff=1.0)
        with pytest.raises(CauserieError, match=r"no answer in 5 attempts \(500: down\): try aga"):
            chat.ask(questions(1))
        assert len(server.asked) == 5
        for wait, longest in zip(clock.waits, (1, 2, 4, 8), strict=True):
            assert longest / 2 <= wait <= longest


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_respected_by_all(form: str, tmp_path: Path, clock: Clock) -> None:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=31), usegmt=True)
    header = {"Retry-After": "30" if form == "seconds" else date}

    def answer(number: int, body: dict[str, Any]) -> Reply:
        return echo(number, body) if number > 1 else Reply({"error": "slow down"}, 429, header)

    with serving(answer) as server:
        connected(server, tmp_path, concurrency=1).ask(questions(3))
        assert len(server.asked) == 4
        assert 25 <= sum(clock.waits) <= 31  # once, and not again for the other questions


@pytest.mark.parametrize("header", ["soon", "-5", "nan", ""])
def test_a_retry_after_that_says_nothing_is_like_none(header: str, tmp_path: Path) -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        return echo(number, body) if number > 1 else Reply({}, 429, {"Retry-After": header})

    with serving(answer) as server:
        assert texts(connected(server, tmp_path).ask(questions(1))) == ["number 0?"]


def test_a_long_pause_is_told(tmp_path: Path) -> None:
    with serving(lambda *_: Reply({}, 429, {"Retry-After": "86400"})) as server:
        with pytest.raises(CauserieError, match="asks to wait 86,400 seconds: try again then"):
            connected(server, tmp_path).ask(questions(1))
        assert len(server.asked) == 1


def test_questions_per_minute(tmp_path: Path, clock: Clock) -> None:
    with serving(echo) as server:
        connected(server, tmp_path, concurrency=1, per_minute=30).ask(questions(5))
        assert sum(clock.waits) == pytest.approx(8.0)


def test_an_endpoint_that_is_too_slow(tmp_path: Path) -> None:
    with serving(echo) as server:

        def slow(number: int, body: dict[str, Any]) -> Reply:
            if number <= 2:
                server.released.wait(30)
            return echo(number, body)

        server.answer = slow
        price = Price(1e6, 0)
        chat = connected(server, tmp_path, timeout=0.3, price=price)
        assert texts(chat.ask(questions(1))) == ["number 0?"]
        assert len(server.asked) == 3
        # what was asked in vain may be charged for: it counts with what it may cost at most
        assert chat.budget.spent == 100 + 2 * (len("number 0?") + 100)
        assert "those of 2 requests at most" in chat.told()
        chat = connected(server, tmp_path / "new", timeout=0.3, retries=0)
        server.asked.clear()
        with pytest.raises(CauserieError, match=r"1 attempts \(no response within 0.3 seconds\)"):
            chat.ask(questions(1))


def test_lies_about_the_content_type_do_not_matter(tmp_path: Path) -> None:
    with serving(
        lambda *_: Reply(completion("5").content, 200, {"Content-Type": "text/html"})
    ) as s:
        assert texts(connected(s, tmp_path).ask(questions(1))) == ["5"]


@pytest.mark.parametrize(
    "content",
    [
        b"<html>Log in</html>",
        b"",
        b'{"choices": [',
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{"text": "5"}]}',
        b'{"choices": [{"message": "5"}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_chat_completion_is_no_answer(content: bytes, tmp_path: Path) -> None:
    with serving(lambda *_: Reply(content)) as server:
        chat = connected(server, tmp_path, retries=1)
        with pytest.raises(CauserieError, match=r"2 attempts \(what it says is no chat completion"):
            chat.ask(questions(1))
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": -5, "completion_tokens": 1}, {"prompt_tokens": "9"}, [1], "none"],
)
def test_without_usage_the_most_is_counted(usage: object, tmp_path: Path) -> None:
    with serving(lambda *_: completion("5", usage=usage)) as server:
        chat = connected(server, tmp_path, price=Price(1.0, 2.0))
        chat.ask(questions(1, max_tokens=16))
        most = len("number 0?") + 100
        assert chat.budget.spent == pytest.approx((most + 2 * 16) / 1e6)


def test_a_long_wait_is_not_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_NEWS", 0.05)
    told = ""
    with serving(echo) as server:

        def waiting(number: int, body: dict[str, Any]) -> Reply:
            nonlocal told
            while "1 of 2 questions are answered" not in told and number == 2:
                told += capfd.readouterr().err
            return echo(number, body)

        server.answer = waiting
        assert len(connected(server, tmp_path, concurrency=1).ask(questions(2))) == 2


def test_text_that_is_missing_is_empty(tmp_path: Path) -> None:
    with serving(lambda *_: completion(None)) as server:
        assert texts(connected(server, tmp_path).ask(questions(1))) == [""]


@pytest.mark.parametrize(
    "broken", [{"content": None}, {"content": [{"token": "5"}]}, {"content": 3}, [], "no"]
)
def test_log_probabilities_that_are_none(broken: object, tmp_path: Path) -> None:
    content = {"choices": [{"message": {"content": "5"}, "logprobs": broken}]}
    with serving(lambda *_: Reply(content)) as server:
        assert connected(server, tmp_path).ask(questions(1)) == [Answer((Choice("5"),))]


def test_a_refused_question_leaves_the_others(tmp_path: Path) -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        if "number 1" in body["messages"][0]["content"]:
            return Reply({"error": {"message": "the context is too long"}}, 400)
        return echo(number, body)

    with serving(answer) as server:
        found = connected(server, tmp_path).ask(questions(3))
        assert [one.refusal for one in found] == [None, "400: the context is too long", None]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_what_a_model_does_not_know_is_left_out(concurrency: int, tmp_path: Path) -> None:
    def answer(number: int, body: dict[str, Any]) -> Reply:
        for name in ("logprobs", "max_tokens", "temperature"):
            if name in body:
                return Reply({"error": {"message": f"'{name}' is not supported"}}, 400)
        return echo(number, body)

    asked = questions(9, logprobs=True, top_logprobs=20, max_tokens=16, temperature=0)
    with serving(answer) as server:
        found = connected(server, tmp_path, concurrency=concurrency).ask(asked)
        assert texts(found) == [f"number {i}?" for i in range(9)]
        if concurrency == 1:
            assert len(server.asked) == 3 + 9  # three attempts to learn it, then one each
        assert server.asked[-1].keys() == {"model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (401, f"wrong key {KEY}", rf"refuses to answer \(401: wrong key \*\*\*\): .*in {VARIABLE}"),
        (
            404,
            "no such model",
            r"\(404: no such model\): check the address and the name of the mod",
        ),
        (429, "insufficient_quota", "has run out"),
        (302, "", r"refuses to answer \(status 302\): check the address"),
    ],
)
def test_what_will_not_pass_ends_it_at_once(
    status: int, said: str, told: str, tmp_path: Path
) -> None:
    headers = {"Location": "http://127.0.0.1:9/elsewhere"} if status == 302 else {}
    content = {"error": {"message": said}} if said else b""
    with serving(lambda *_: Reply(content, status, headers)) as server:
        with pytest.raises(CauserieError, match=told) as error:
            connected(server, tmp_path, concurrency=1).ask(questions(5))
        assert len(server.asked) == 1
        assert KEY not in str(error.value)


def test_nobody_is_there(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    chat = Chat(Endpoint(f"http://127.0.0.1:{port}", answers=str(tmp_path / "a"), key_env=""))
    with pytest.raises(
        CauserieError, match=r"cannot be reached \(.*refused.*\): check the address"
    ):
        chat.ask(questions(2))


@pytest.mark.parametrize("concurrency", [1, 8])
def test_no_more_is_spent_than_allowed_and_nothing_is_paid_twice(
    concurrency: int, tmp_path: Path
) -> None:
    price, most = Price(10.0, 20.0), 0.02
    cost = price.of(100, 1)
    with serving(echo) as server:
        limited = {"price": price, "concurrency": concurrency}
        chat = connected(server, tmp_path, max_cost=most, **limited)
        with pytest.raises(
            CauserieError, match=r"has spent 0\.0\d+ of --max-cost 0.02, and .* kep"
        ):
            chat.ask(questions(100, max_tokens=16))
        first = len(server.asked)
        assert chat.budget.spent == pytest.approx(first * cost)
        assert most - 3 * cost < chat.budget.spent <= most
        chat = connected(server, tmp_path, max_cost=1, **limited)
        assert len(chat.ask(questions(100, max_tokens=16))) == 100
        assert len(server.asked) == 100
        assert chat.budget.spent == pytest.approx((100 - first) * cost)


def test_the_key_is_nowhere_but_in_the_request(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda *_: completion(f"5 {KEY}", {f"5{KEY}": -0.5})) as server:
        chat = connected(server, tmp_path)
        found = chat.ask(questions(1))
        assert KEY in server.headers[0]["Authorization"]
        shown = repr((found, chat.endpoint, chat.told())) + "".join(capfd.readouterr())
        assert "127.0.0.1" in shown
        assert KEY not in shown
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_a_key_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "line\nbreak")
    with serving(echo) as server:
        with pytest.raises(CauserieError, match=f"the key in {VARIABLE} has characters") as error:
            connected(server, tmp_path)
        assert "line" not in str(error.value)
        monkeypatch.delenv(VARIABLE)
        connected(server, tmp_path).ask(questions(1))
        assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.b/v1", "https://a.b/v1/chat/completions"),
        ("https://a.b/v1/", "https://a.b/v1/chat/completions"),
        ("http://localhost:8000", "http://localhost:8000/chat/completions"),
        ("https://a.b/x/chat/completions?v=1#f", "https://a.b/x/chat/completions?v=1"),
    ],
)
def test_addresses(url: str, target: str) -> None:
    assert Endpoint(url).target == target
    assert "v=1" not in Endpoint(url).shown


@pytest.mark.parametrize("url", ["file:///etc/passwd", "a.b/v1", "", "ftp://a.b", "https://"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(CauserieError, match="begins with http:// or https://"):
        Endpoint(url)


def test_an_address_with_a_password() -> None:
    with pytest.raises(CauserieError, match="a name or a password in it") as error:
        Endpoint("https://me:hush@a.b/v1")
    assert "hush" not in str(error.value)


def test_the_file_of_answers(tmp_path: Path) -> None:
    store = Answers(str(tmp_path / "new" / "a.sqlite"))
    assert store.find([b"k"]) == {}
    store.put(b"k", "one")
    store.put(b"k", "two")
    assert Answers(str(store.path)).find([b"k", b"k", b"other"]) == {b"k": "two"}
    (tmp_path / "text").write_text("not a database " * 100)
    with pytest.raises(CauserieError, match=r"cannot be used .*: make room, restore the file"):
        Answers(str(tmp_path / "text")).find([b"k"])
    from causerie.scoring import ScoreStore

    ScoreStore(tmp_path / "scores").close()
    with pytest.raises(CauserieError, match="not one of a judge's answers"):
        Answers(str(tmp_path / "scores")).find([b"k"])


@pytest.mark.parametrize(
    "damage", ["[[", "[]", "3", '["5"]', '[["5", [["5", {"5": "x"}]]]]', '[["5", [["5", []]]]]']
)
def test_a_damaged_answer_is_asked_again(damage: str, tmp_path: Path) -> None:
    with serving(echo) as server:
        chat = connected(server, tmp_path)
        chat.ask(questions(1))
        Answers(str(tmp_path / "answers.sqlite")).put(chat._digest(questions(1)[0]), damage)
        assert texts(chat.ask(questions(1))) == ["number 0?"]
        assert len(server.asked) == 2


def test_absurd_usage_is_no_error(tmp_path: Path) -> None:
    with serving(lambda *_: completion("5", usage=(10**400, 1))) as server:
        chat = connected(server, tmp_path, price=Price(1.0, 1.0), max_cost=5.0)
        chat.ask(questions(1))
        with pytest.raises(CauserieError, match="has spent 1000 of --max-cost 5"):
            chat.ask(questions(2))
