"""A client of `causerie serve`, which needs neither the server's packages nor networks.

>>> from causerie import Client
>>> client = Client("http://127.0.0.1:8765")
>>> rows = client.score([{"role": "user", "content": "Hi!"},
...                      {"role": "assistant", "content": "Hello."}])  # doctest: +SKIP
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError

_LATER = (429, 503)
_BLOCK = 1 << 20


class ServerError(CauserieError):
    """A server's refusal, in its own words."""

    def __init__(self, address: str, status: int, sentence: str) -> None:
        super().__init__(f"{address}: {sentence}")
        self.status = status


class Client:
    """Scores from a server at an address; several threads may use one client.

    Where the server has too much to do, a call waits as long as it is told to and asks again,
    until `patience` seconds are over.
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8765",
        token: str | None = None,
        *,
        timeout: float = 300.0,
        patience: float = 600.0,
    ) -> None:
        self.address, self.timeout, self.patience = address.rstrip("/"), timeout, patience
        place = urlsplit(self.address)
        if place.scheme not in ("http", "https") or not place.hostname or place.path:
            raise CauserieError(f"{address!r} is no address of a server: write http://NAME:PORT")
        self._place, self._token = place, token

    def score(self, data: object, metrics: Sequence[str] | None = None, **options: Any) -> Any:
        """Rows as `causerie score` writes them; `unscored` in each says why there is no number.

        `data` is a dialogue or an exchange, a list of them, of messages, of strings, or what the
        files hold. Options are those of the request: level, speaker, turns ("last"), explain...
        """
        return self._send("POST", "/v1/score", self._asked(metrics, options, data=data))["rows"]

    def compare(
        self, a: object, b: object, metrics: Sequence[str] | None = None, **options: Any
    ) -> Any:
        """Is b better than a: everything that `causerie compare --out FILE.json` writes."""
        return self._send("POST", "/v1/compare", self._asked(metrics, options, a=a, b=b))

    def metrics(self) -> Any:
        """What the server offers, and what its numbers mean."""
        return self._send("GET", "/v1/metrics")["metrics"]

    def plan(self, metrics: Sequence[str] | None = None, **options: Any) -> Any:
        """What would be computed: columns, and the signature."""
        return self._send("POST", "/v1/plan", self._asked(metrics, options))

    def submit(self, path: str | Path, metrics: Sequence[str] | None = None, **options: Any) -> Any:
        """Have a file scored in the background; the job has an `id` and a `status`."""
        named = {"metrics": ",".join(metrics)} if metrics is not None else {}
        values = {name: v for name, v in options.items() if v is not None}
        query = {"name": str(path), **named, **values}
        with open(path, "rb") as file:
            return self._send("POST", f"/v1/jobs?{urlencode(query)}", file)

    def job(self, job_id: str) -> Any:
        """How far a job is."""
        return self._send("GET", f"/v1/jobs/{quote(job_id, '')}")

    def wait(self, job_id: str, pause: float = 1.0) -> Any:
        """The job once it is done; an error if it has failed."""
        while (job := self.job(job_id))["status"] in ("queued", "running"):
            time.sleep(pause)
        if job["status"] == "failed":
            raise CauserieError(f"{job['name']} could not be scored: {job['error']}")
        return job

    def fetch(self, job_id: str, out: str | Path) -> Path:
        """Write the table of a job that is done to a file, which appears whole or not at all."""
        from causerie.io import atomic_write

        with atomic_write(Path(out)) as file:
            self._send("GET", f"/v1/jobs/{quote(job_id, '')}/result", into=file)
        return Path(out)

    def remove(self, job_id: str) -> None:
        """Stop a job and forget it with all that belongs to it."""
        self._send("DELETE", f"/v1/jobs/{quote(job_id, '')}")

    def _asked(
        self, metrics: Sequence[str] | None, options: Mapping[str, Any], **data: object
    ) -> dict[str, Any]:
        names = metrics.split(",") if isinstance(metrics, str) else metrics
        asked = {name: as_json(one) for name, one in data.items()}
        return {**asked, **options, **({} if names is None else {"metrics": list(names)})}

    def _send(
        self, method: str, path: str, body: object = None, into: BinaryIO | None = None
    ) -> Any:
        """The answer of the server, or its refusal as an error."""
        end = time.monotonic() + self.patience
        while True:
            try:
                return self._once(method, path, body, into)
            except _LaterError as later:
                if time.monotonic() + later.seconds > end:
                    raise later.refusal from None
                time.sleep(later.seconds)

    def _once(self, method: str, path: str, body: object, into: BinaryIO | None) -> Any:
        secure = self._place.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._place.hostname or "", self._place.port, timeout=self.timeout)
        content, headers = _content(body)
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse before the end
                connection.request(method, path, content, headers)
            response = connection.getresponse()
            if into is not None and response.status == 200:
                while block := response.read(_BLOCK):
                    into.write(block)
                return None
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise CauserieError(
                f"no answer from {self.address} ({error}): is `causerie serve` running there?"
            ) from error
        finally:
            connection.close()
        if response.status < 300:
            return json.loads(answer) if answer else None
        refusal = ServerError(self.address, response.status, _sentence(response.status, answer))
        if response.status in _LATER:
            raise _LaterError(float(response.headers.get("Retry-After") or 1), refusal)
        raise refusal


class _LaterError(Exception):
    def __init__(self, seconds: float, refusal: ServerError) -> None:
        super().__init__(str(refusal))
        self.seconds, self.refusal = seconds, refusal


def as_json(data: object) -> object:
    """What a request holds: dialogues and exchanges as records, anything else as it is."""
    from causerie.io.records import to_fields

    if isinstance(data, (Dialogue, Exchange)):
        return [to_fields(data)]
    if isinstance(data, (list, tuple)):
        return [to_fields(one) if isinstance(one, (Dialogue, Exchange)) else one for one in data]
    return data


def _content(body: Any) -> tuple[Any, dict[str, str]]:
    """A file as it is, from its beginning; anything else as JSON."""
    if body is None:
        return None, {}
    if hasattr(body, "read"):
        body.seek(0)
        return body, {"Content-Type": "application/octet-stream"}
    try:
        text = json.dumps(body, ensure_ascii=False)
    except TypeError as error:
        raise CauserieError(f"this cannot be sent ({error}): give lists and dictionaries") from None
    return text.encode("utf-8", "surrogatepass"), {"Content-Type": "application/json"}


def _sentence(status: int, answer: bytes) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answers {status}, which is not how causerie refuses"
