"""Manners for transformers and the hub client while they work for us."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from typing import Any

_ONE_AT_A_TIME = RLock()
"""Their manners are the whole process's: two threads at once would leave those of the other."""


@contextmanager
def libraries(offline: bool) -> Iterator[None]:
    """Without progress bars, advice and warnings; if offline, without any connection."""
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
    # `local_files_only` alone is not enough: with it the hub client still calls home about
    # itself when it puts its request headers together.
    constants: Any = import_module("huggingface_hub.constants")
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or offline
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
