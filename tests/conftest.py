"""Fixtures shared by all rooms: tiny networks made on the spot, and the default weights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import tiny
from databases import location, postgresql  # noqa: F401 (fixtures)

if TYPE_CHECKING:
    from causerie.models import Store

# One machine is slower than the other, and none may find what another does not: no deadlines, and
# the same examples everywhere. Other examples each time: pytest --hypothesis-profile=explore
settings.register_profile(
    "causerie",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("explore", settings.get_profile("causerie"), derandomize=False)
settings.load_profile("causerie")


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a GPT-2-like language model (window 128)."""
    return tiny.make_gpt2(tmp_path_factory.mktemp("models") / "tiny-gpt2")


@pytest.fixture(scope="session")
def tiny_ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a DialogRPT-like ranker (window 128)."""
    return tiny.make_ranker(tmp_path_factory.mktemp("models") / "tiny-ranker")


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Llama-like language model with a chat template (window 256)."""
    return tiny.make_llama(tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture(scope="session")
def tiny_judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Llama-like language model with a window that a judge's prompt fits in."""
    return tiny.make_llama(tmp_path_factory.mktemp("models") / "tiny-judge", window=4096)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a BERT-like encoder (window 64)."""
    return tiny.make_bert(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def default_models() -> Store:
    """A store that holds both default models, fetched if need be."""
    from causerie.errors import CauserieError
    from causerie.models import Store

    store = Store()
    try:
        for kind in ("encoder", "language model"):
            store.resolve("default", kind)
    except CauserieError as error:
        missing = f"the default weights are neither in the store nor fetchable: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return store


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real browser, headless; tests that need it are skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    flags = (
        "headless no-sandbox disable-gpu disable-quic no-first-run disable-sync "
        "disable-background-networking disable-component-update disable-dev-shm-usage"
    )
    for flag in flags.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The driver must be reached directly, whatever proxy the machine has.
    before = os.environ.get("NO_PROXY")
    os.environ["NO_PROXY"] = "localhost,127.0.0.1"
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()
    if before is None:
        del os.environ["NO_PROXY"]
    else:
        os.environ["NO_PROXY"] = before
