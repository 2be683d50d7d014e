"""Stores on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causerie.annotation.store import Store


@pytest.fixture
def store(location: str) -> Iterator[Store]:
    """An empty store."""
    made = Store.open(location, create=True)
    yield made
    made.close()
