"""Stores on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causerie.annotation.store import Store


@pytest.fixture
def store(location: str) -> Iterator[Store]:
    """One with nothing in it."""
    made = Store.open(location, create=True)
    yield made
    made.close()
