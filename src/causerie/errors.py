"""The errors a user can meet: each is one sentence that says what is wrong and what to do."""

from __future__ import annotations


class CauserieError(Exception):
    """Nothing could be done (exit status 2): usage, missing weights, unreadable input."""


class CauserieWarning(UserWarning):
    """Something that people should know and that stops nothing; commands show it as one line."""


class RecordError(ValueError):
    """Why one record cannot be used; a reader raises or yields it, and goes on."""
