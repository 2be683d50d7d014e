"""FED, C-PMI and C-PMI-SYM: qualities of a response, judged by what a user might say next.

A language model that has seen people react to each other finds "Huh, I never thought about it
that way." more likely after an interesting response, and "Meh, so what?" after a dull one.
"""

from causerie.metrics.followups.metrics import Cpmi, CpmiSym, Fed

__all__ = ["Cpmi", "CpmiSym", "Fed"]
