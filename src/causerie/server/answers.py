"""How the server answers: JSON that any text fits in, and failures in a sentence."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel


class Json(JSONResponse):
    """JSON in ASCII: text of others may hold what cannot be written as UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Failure(BaseModel):
    """What went wrong, in a sentence."""

    error: str


def failures(**reasons: str) -> dict[int | str, dict[str, Any]]:
    """Statuses for OpenAPI: `failures(s429="Too much to do.")`."""
    return {
        status.removeprefix("s"): {"model": Failure, "description": reason}
        for status, reason in reasons.items()
    }
