"""Scores as figures and as one self-contained HTML page: figures per system, and conversations."""

from causerie.report.figures import Figures, Group, Quote
from causerie.report.page import Page, Shown, build_report, conversation, quotable, write_report

__all__ = [
    "Figures",
    "Group",
    "Page",
    "Quote",
    "Shown",
    "build_report",
    "conversation",
    "quotable",
    "write_report",
]
