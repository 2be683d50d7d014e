"""The server's answers: JSON that can hold any text, and failures as one sentence."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel


class Json(JSONResponse):
    """JSON in ASCII, because foreign text may contain what UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Failure(BaseModel):
    """What went wrong, in one sentence."""

    error: str


def failures(**reasons: str) -> dict[int | str, dict[str, Any]]:
    """Return failure statuses for OpenAPI: `failures(s429="The server is too busy.")`."""
    return {
        status.removeprefix("s"): {"model": Failure, "description": reason}
        for status, reason in reasons.items()
    }
