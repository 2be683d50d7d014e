"""Secret links, which identify their holder. Only a hash of each secret is stored."""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256

_TOKEN = re.compile(r"([0-9]{1,18})-([0-9A-Za-z_-]{43})")


def new_secret() -> str:
    """Return a secret of 256 random bits, whose hash cannot be reversed and needs no salt."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def token_of(person: int, secret: str) -> str:
    return f"{person}-{secret}"


def parse_token(token: str) -> tuple[int, str] | None:
    """Return the person and the secret, or None if the token is malformed."""
    match = _TOKEN.fullmatch(token)
    return (int(match[1]), match[2]) if match else None


def matches(secret: str, kept: str | None) -> bool:
    """Return whether the secret is the right one, in constant time."""
    return hmac.compare_digest(digest(secret), kept or digest(""))
