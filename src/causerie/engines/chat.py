"""Chat models behind an OpenAI-compatible endpoint: asked politely, paid once, within a budget.

The key comes from an environment variable and is sent, never kept: whatever an endpoint says is
read without it. An answer is kept on disk as soon as it is there, so that nobody pays for it
again.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from threading import Event, Lock
from typing import Any
from urllib.parse import urlsplit

from causerie.engines.answers import Answers
from causerie.engines.budget import NOTHING, Budget, Price, Stopped, Tokens
from causerie.engines.completion import Answer, kept, parsed, said, written
from causerie.engines.web import NoResponse, Response, post, waiting_time
from causerie.errors import CauserieError
from causerie.progress import Progress, print_note

LONGEST_WAIT = 600.0
"""Seconds: an endpoint that asks for a longer pause is asked again another day."""
_LONGEST_BACKOFF = 60.0
_NEWS = 10.0  # seconds between two lines about how far it is
_REFUSED = (400, 413, 422)
"""Of this one question; other questions may be answered."""
_REPEATED = (408, 409, 425, 429)
"""What may pass, beside the server's own errors."""
_OPTIONAL = ("logprobs", "top_logprobs", "temperature", "max_tokens", "seed")
"""What some models do without, and say so."""


@dataclass(frozen=True)
class Endpoint:
    """Where a chat model answers, and how it is asked."""

    url: str
    """As clients of OpenAI take it: https://api.openai.com/v1."""
    key_env: str = "OPENAI_API_KEY"
    """The environment variable that has the key; empty for none."""
    concurrency: int = 8
    per_minute: int | None = None
    retries: int = 5
    timeout: float = 60.0
    price: Price | None = None
    max_cost: float | None = None
    answers: str | None = None
    """The file that keeps them; None: in the platform's cache folder."""
    offline: bool = False
    """Only what is kept."""
    backoff: float = 1.0
    """Seconds before the first repetition; twice as many before each further one."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CauserieError(
                "the address of an endpoint begins with http:// or https://, as in "
                "https://api.openai.com/v1"
            )
        if parts.username or parts.password:
            raise CauserieError(
                "the address of an endpoint has a name or a password in it: leave them out and "
                "name the environment variable of the key with --judge-key-env"
            )

    @property
    def shown(self) -> str:
        """The address as it may be shown: a query may hold secrets."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"

    @property
    def target(self) -> str:
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        if not path.endswith("/chat/completions"):
            path += "/chat/completions"
        return parts._replace(path=path, fragment="").geturl()


class Chat:
    """Asks an endpoint; threads share it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.budget = Budget(endpoint.price, endpoint.max_cost)
        self._store = Answers(endpoint.answers)
        self._key = _key(endpoint.key_env)
        self._lock, self._stopped = Lock(), Event()
        self._slot = self._held = 0.0  # no request before: its place in the rate, a pause of all
        self._answered = False
        self._unsupported: set[str] = set()

    def ask(self, questions: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """The answers to some requests, in their order; equal ones are asked once.

        A question that is refused has the reason; whatever else cannot be had is an error, and
        everything that was answered is kept.
        """
        keys = [self._digest(question) for question in questions]
        stored = self._store.find(keys)
        found = {key: answer for key, text in stored.items() if (answer := kept(text))}
        self.budget.count_kept(len(found))
        missing = {k: q for k, q in zip(keys, questions, strict=True) if k not in found}
        if missing:
            if self.endpoint.offline:
                raise CauserieError(
                    f"--offline is set, and {self.endpoint.shown} has not answered "
                    f"{len(missing)} of the questions yet: leave --offline out"
                )
            try:
                found |= self._ask_all(missing)
            finally:
                print_note(Progress("asking", note=self.told()))
        return [found[key] for key in keys]

    def told(self) -> str:
        """What it has cost so far, in a line."""
        return f"{self.endpoint.shown}: {self.budget.told()}"

    def _ask_all(self, questions: Mapping[bytes, Mapping[str, Any]]) -> dict[bytes, Answer]:
        self._stopped.clear()
        with ThreadPoolExecutor(min(self.endpoint.concurrency, len(questions))) as pool:
            asked = {key: pool.submit(self._run, key, q) for key, q in questions.items()}
            try:
                self._await(asked.values())
            except BaseException:  # somebody has had enough
                self._stopped.set()
                raise
            finally:  # what is under way is paid for: it is waited for and kept
                pool.shutdown(cancel_futures=True)
        errors = [e for one in asked.values() if not one.cancelled() and (e := one.exception())]
        for error in errors:
            if not isinstance(error, Stopped):
                raise error
        return {key: one.result() for key, one in asked.items()}

    def _await(self, asked: Collection[Future[Answer]]) -> None:
        """Wait for all, or for the first that fails; now and then tell how far it is."""
        pending = set(asked)
        while pending and not self._stopped.is_set():
            pending = wait(pending, _NEWS, FIRST_EXCEPTION).not_done
            if pending:
                done = f"{len(asked) - len(pending):,} of {len(asked):,} questions are answered"
                print_note(Progress("asking", note=f"{self.endpoint.shown}: {done}"))

    def _run(self, key: bytes, question: Mapping[str, Any]) -> Answer:
        try:
            if self._stopped.is_set():
                raise Stopped
            return self._obtain(key, question)
        except BaseException:
            self._stopped.set()
            raise

    def _obtain(self, key: bytes, question: Mapping[str, Any]) -> Answer:
        """Ask until there is an answer, and keep it."""
        attempt = 0
        while True:
            self._wait_for_turn()
            most = self.budget.reserve(question, self._stopped)
            used: Tokens | None = NOTHING
            body = self._body(question)
            try:
                response = self._post(body)
                if response.status == 200:
                    used = None  # charged for, whatever it is
                    if found := parsed(response.text):
                        answer, used = found
                        self._answered = True
                        self._store.put(key, written(answer))
                        return answer
                why, pause = self._judged(response, body)
            except NoResponse as error:
                if error.lasting and not self._answered:
                    raise CauserieError(
                        f"{self.endpoint.shown} cannot be reached ({error}): check the address"
                    ) from None
                used = None if error.sent else NOTHING
                why, pause = str(error), None
            finally:
                self.budget.settle(most, used)
            if isinstance(why, Answer):
                return why
            if why is None:  # asked with something that it does not know; again without
                continue
            attempt += 1
            if attempt > self.endpoint.retries:
                raise CauserieError(
                    f"{self.endpoint.shown} gave no answer in {attempt} attempts ({why}): try "
                    f"again later; what it has answered is kept in {self._store.path}"
                )
            self._pause(attempt, pause)

    def _judged(
        self, response: Response, body: Mapping[str, Any]
    ) -> tuple[Answer | str | None, float | None]:
        """What to do about a response without an answer: a refusal, a reason to repeat, None."""
        status, told = response.status, said(response.text)
        why = f"{status}: {told}" if told else f"status {status}"
        if status == 200:
            return "what it says is no chat completion", None
        if status in _REFUSED:
            return (None if self._adapted(response, body) else Answer(refusal=why)), None
        if "insufficient_quota" in response.text:
            raise CauserieError(f"the account at {self.endpoint.shown} has run out ({why})")
        if status in _REPEATED or status >= 500:
            pause = waiting_time(response.headers)
            if pause is not None and pause > LONGEST_WAIT:
                raise CauserieError(
                    f"{self.endpoint.shown} asks to wait {pause:,.0f} seconds: try again then; "
                    f"what it has answered is kept in {self._store.path}"
                )
            return why, pause
        hint = {
            401: f"check the key in {self.endpoint.key_env or 'the variable of --judge-key-env'}",
            403: f"check the key in {self.endpoint.key_env or 'the variable of --judge-key-env'}",
            404: "check the address and the name of the model",
        }
        raise CauserieError(
            f"{self.endpoint.shown} refuses to answer ({why}): "
            f"{hint.get(status, 'check the address')}"
        )

    def _adapted(self, response: Response, body: Mapping[str, Any]) -> bool:
        """Whether it was asked with something that the model does not know, and now is without."""
        named = {name for name in _OPTIONAL if name in body and name in response.text}
        with self._lock:
            self._unsupported |= named
        return bool(named)

    def _body(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The question as the model can be asked, as far as is known."""
        with self._lock:
            body = {name: v for name, v in question.items() if name not in self._unsupported}
        if "logprobs" not in body:
            body.pop("top_logprobs", None)
        if "max_tokens" in question and "max_tokens" not in body:
            body["max_completion_tokens"] = question["max_tokens"]
        return body

    def _post(self, body: Mapping[str, Any]) -> Response:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        endpoint = self.endpoint
        response = post(endpoint.target, json.dumps(body).encode(), headers, endpoint.timeout)
        if not self._key:
            return response
        return Response(response.status, response.headers, response.text.replace(self._key, "***"))

    def _wait_for_turn(self) -> None:
        """Wait as long as the rate and the endpoint itself ask for."""
        with self._lock:
            slot = max(time.monotonic(), self._slot)
            if self.endpoint.per_minute:
                self._slot = slot + 60 / self.endpoint.per_minute
        while (left := max(slot, self._held) - time.monotonic()) > 0:
            self._sleep(left)

    def _pause(self, attempt: int, asked: float | None) -> None:
        """Wait before another attempt; a pause that the endpoint asks for is everybody's."""
        if asked:
            with self._lock:
                self._held = max(self._held, time.monotonic() + asked)
            return
        longest = min(self.endpoint.backoff * 2 ** (attempt - 1), _LONGEST_BACKOFF)
        self._sleep(longest * random.uniform(0.5, 1))

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise Stopped

    def _digest(self, question: Mapping[str, Any]) -> bytes:
        whole = [self.endpoint.target, question]
        return sha256(json.dumps(whole, sort_keys=True).encode()).digest()


def _key(variable: str) -> str | None:
    key = os.environ.get(variable, "").strip() if variable else ""
    if not (key.isascii() and key.isprintable()):
        raise CauserieError(f"the key in {variable} has characters that no key has")
    return key or None
