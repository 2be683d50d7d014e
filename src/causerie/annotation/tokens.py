"""Secret links: who holds one is that person. Only a hash of the secret is kept."""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256

_TOKEN = re.compile(r"([0-9]{1,18})-([0-9A-Za-z_-]{43})")


def new_secret() -> str:
    """256 random bits, so the hash needs no salt and cannot be guessed back."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def token_of(person: int, secret: str) -> str:
    return f"{person}-{secret}"


def parse_token(token: str) -> tuple[int, str] | None:
    """The person and the secret; None if that is no token."""
    match = _TOKEN.fullmatch(token)
    return (int(match[1]), match[2]) if match else None


def matches(secret: str, kept: str | None) -> bool:
    """Whether the secret is the one, in a time that does not tell how much of it is right."""
    return hmac.compare_digest(digest(secret), kept or digest(""))
