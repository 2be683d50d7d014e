"""What axe, an independent judge of accessibility, finds wrong with a page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LOOKS = [("light", 360), ("dark", 1280)]
"""How people look at pages: colours depend on the one, what has to be scrolled on the other."""


@contextmanager
def looking(browser: Any, look: str, width: int) -> Iterator[None]:
    """The browser of somebody with such a screen."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    features = [{"name": "prefers-color-scheme", "value": look}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def faults(browser: Any) -> list[str]:
    """Faults of any weight, each with the element that has it.

    Arcs over a conversation, which are not there for screen readers, are taken away first: axe
    cannot tell what lies under a picture.
    """
    axe = pytest.importorskip("selenium_axe_python", reason="selenium-axe-python is not installed")
    browser.execute_script("document.querySelectorAll('svg.arcs').forEach((one) => one.remove())")
    judge = axe.Axe(browser)
    judge.inject()
    found = judge.run()
    assert len(found["passes"]) > 10
    return [
        f"{rule['impact']}: {rule['id']}: {node['html'][:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
