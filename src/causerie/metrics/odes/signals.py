"""The signals of open-domain dialogue evaluation: what a user's utterance says about the system."""

from __future__ import annotations

from typing import Final

SIGNALS: Final = (
    "disinterest",
    "critique",
    "not_understand",
    "topic_switch_request",
    "obscenity",
    "topic_switch_rejection",
    "repeat_request",
    "stop_request",
    "insult",
    "compliment",
    "calls_out_repetition",
    "calls_out_contradiction",
    "system_not_understand",
)
"""Classes (i) to (xiii) of the paper's table 1, in its order."""
OTHER: Final = "other"
"""Class (xiv): none of the signals."""
CLASSES: Final = (*SIGNALS, OTHER)
THRESHOLD: Final = 0.5
"""A signal fires above it."""
