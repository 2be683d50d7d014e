"""A client of `causerie serve`, which needs neither the server's dependencies nor networks.

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
    """A refusal by the server, in its own words."""

    def __init__(self, address: str, status: int, sentence: str) -> None:
        super().__init__(f"{address}: {sentence}")
        self.status = status


class Client:
    """Scores from a server at an address; a client may be shared by several threads.

    When the server is too busy, a call waits as long as the server asks and tries again, for up to
    `patience` seconds.
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
            raise CauserieError(f"{address!r} is not the address of a server: use http://NAME:PORT")
        self._place, self._token = place, token

    def score(self, data: object, metrics: Sequence[str] | None = None, **options: Any) -> Any:
        """Return rows as `causerie score` writes them; their `unscored` says what is missing.

        `data` is a dialogue or an exchange; a list of these, of messages, or of strings; or records
        as in files. Options are those of the request: level, speaker, turns ("last"), explain...
        """
        return self._send("POST", "/v1/score", self._asked(metrics, options, data=data))["rows"]

    def compare(
        self, a: object, b: object, metrics: Sequence[str] | None = None, **options: Any
    ) -> Any:
        """Return whether b is better than a: everything in `causerie compare --out FILE.json`."""
        return self._send("POST", "/v1/compare", self._asked(metrics, options, a=a, b=b))

    def metrics(self) -> Any:
        """Return the metrics that the server offers, and the meaning of their columns."""
        return self._send("GET", "/v1/metrics")["metrics"]

    def plan(self, metrics: Sequence[str] | None = None, **options: Any) -> Any:
        """Return what would be computed: columns, and the signature."""
        return self._send("POST", "/v1/plan", self._asked(metrics, options))

    def submit(self, path: str | Path, metrics: Sequence[str] | None = None, **options: Any) -> Any:
        """Have a file scored in the background; return the job, with its `id` and `status`."""
        named = {"metrics": ",".join(metrics)} if metrics is not None else {}
        values = {name: v for name, v in options.items() if v is not None}
        query = {"name": str(path), **named, **values}
        with open(path, "rb") as file:
            return self._send("POST", f"/v1/jobs?{urlencode(query)}", file)

    def job(self, job_id: str) -> Any:
        """Return the progress of a job."""
        return self._send("GET", f"/v1/jobs/{quote(job_id, '')}")

    def wait(self, job_id: str, pause: float = 1.0) -> Any:
        """Wait until a job is done and return it; raise an error if it has failed."""
        while (job := self.job(job_id))["status"] in ("queued", "running"):
            time.sleep(pause)
        if job["status"] == "failed":
            raise CauserieError(f"{job['name']} could not be scored: {job['error']}")
        return job

    def fetch(self, job_id: str, out: str | Path) -> Path:
        """Write the table of a finished job to a file, which appears complete or not at all."""
        from causerie.io import atomic_write

        with atomic_write(Path(out)) as file:
            self._send("GET", f"/v1/jobs/{quote(job_id, '')}/result", into=file)
        return Path(out)

    def remove(self, job_id: str) -> None:
        """Stop a job and delete all its files."""
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
        """Return the server's answer, or raise its refusal as an error."""
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
            with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse early
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
    """Return the data of a request: dialogues and exchanges as records, anything else unchanged."""
    from causerie.io.records import to_fields

    if isinstance(data, (Dialogue, Exchange)):
        return [to_fields(data)]
    if isinstance(data, (list, tuple)):
        return [to_fields(one) if isinstance(one, (Dialogue, Exchange)) else one for one in data]
    return data


def _content(body: Any) -> tuple[Any, dict[str, str]]:
    """Return the body and its headers: a file from its beginning, anything else as JSON."""
    if body is None:
        return None, {}
    if hasattr(body, "read"):
        body.seek(0)
        return body, {"Content-Type": "application/octet-stream"}
    try:
        text = json.dumps(body, ensure_ascii=False)
    except TypeError as error:
        raise CauserieError(f"this cannot be sent ({error}): use lists and dictionaries") from None
    return text.encode("utf-8", "surrogatepass"), {"Content-Type": "application/json"}


def _sentence(status: int, answer: bytes) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {status} without a message: check that this is a causerie server"
