"""Keeps transformers and the hub client quiet, and offline if asked, while causerie uses them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from typing import Any

_ONE_AT_A_TIME = RLock()
"""Their settings are global: two threads at once would restore each other's."""


@contextmanager
def libraries(offline: bool) -> Iterator[None]:
    """Suppress progress bars, advice and warnings; if offline, all connections, too."""
    with _ONE_AT_A_TIME, _quiet(), _offline(offline):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    bars: Any = import_module("transformers.utils.logging")
    had_bars = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if had_bars:
            bars.enable_progress_bar()


@contextmanager
def _offline(offline: bool) -> Iterator[None]:
    # `local_files_only` alone is not enough: the hub client still connects when it puts
    # its request headers together.
    constants: Any = import_module("huggingface_hub.constants")
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or offline
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
